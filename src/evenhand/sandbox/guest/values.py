"""Plain data as JSON, both ways, keeping shared and cyclic references.

A document is ``{"nodes": [...], "values": [...]}``. None, booleans, text and ordinary numbers stand for
themselves; everything else is a node and is referred to as ``["@", index]``, or as ``["&", index]`` when it came
with the document that this one answers. Decoding builds values of this side's own classes and never runs code that
the sender chose. What does not fit the form to the letter is refused as a whole (`NotPlain`).
"""

import base64
import builtins
import math
import sys
from typing import Any

PLAIN_TYPES: dict[str, Any] = {
    kind.__name__: kind
    for kind in (
        *(bool, bytearray, bytes, complex, dict, float, frozenset, int, list, object, range, set, slice, str),
        *(tuple, type, type(None)),
    )
}
_SEQUENCES: dict[str, Any] = {"tuple": tuple, "frozenset": frozenset}
_MUTABLE = {"list", "dict", "set", "bytearray", "deque", "Counter", "OrderedDict", "defaultdict", "object"}
DEEPEST = 1000
"""Tuples in tuples. Hashing them is recursion in C that nothing bounds: deeper ones would crash the reader."""


_MALFORMED = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError)
"""What building a value from a malformed document can raise."""


class NotPlain(Exception):
    """A value that cannot be carried."""


_VIEWS: dict[type, str] = {type({}.keys()): "keys", type({}.values()): "values", type({}.items()): "items"}


def _loaded(module: str, name: str) -> Any:
    """A class of a module that may not be loaded; the empty tuple matches nothing."""
    return getattr(sys.modules.get(module), name, ())


class Codec:
    """Encodes and decodes; subclasses say what happens to values that are not plain."""

    def __init__(self) -> None:
        self.classes: dict[str, type] = {}
        """Classes of the prompt: both sides have them, so their instances travel by value."""

    def export(self, value: Any) -> list[Any]:
        """The node for a value that is not plain."""
        raise NotPlain(f"a value of type {type(value).__name__}")

    def admit(self, value: Any) -> Any:
        """The value, when it may be an attribute of something: `NotPlain` when it may not."""
        return value

    def type_named(self, name: str) -> Any:
        """What stands for one of Python's own types."""
        return PLAIN_TYPES[name]

    def adopt(self, node: list[Any]) -> Any:
        """The value for a node that is not plain."""
        raise NotPlain(f"an unknown kind of value: {node[0]!r}")

    def encode(self, values: list[Any], known: list[Any] | None = None) -> tuple[dict[str, Any], list[Any]]:
        """A document, and the objects behind its nodes in order."""
        return _Encoding(self, known or []).document(values)

    def decode(self, document: Any, known: list[Any] | None = None) -> tuple[list[Any], list[Any]]:
        """The values of a document, and the objects behind its nodes in order."""
        try:
            return _Decoding(self, document["nodes"], known or []).values(document["values"])
        except _MALFORMED as error:
            raise NotPlain(f"not a document: {type(error).__name__}: {error}") from None


class _Encoding:
    def __init__(self, codec: Codec, known: list[Any]) -> None:
        self.codec = codec
        self.known = {id(value): index for index, value in enumerate(known)}
        self.index: dict[int, int] = {}
        self.objects: list[Any] = []
        self.nodes: list[Any] = []

    def document(self, values: list[Any]) -> tuple[dict[str, Any], list[Any]]:
        encoded = [self.value(value) for value in values]
        done = 0
        while done < len(self.objects):
            self.nodes.append(self.node(self.objects[done]))
            done += 1
        return {"nodes": self.nodes, "values": encoded}, self.objects

    def value(self, value: Any) -> Any:
        kind = type(value)
        if value is None or kind is bool or kind is str:
            return value
        if kind is int and -(1 << 63) < value < 1 << 63:
            return value
        if kind is float and math.isfinite(value):
            return value
        if id(value) in self.known:
            return ["&", self.known[id(value)]]
        index = self.index.get(id(value))
        if index is None:
            index = self.index[id(value)] = len(self.objects)
            self.objects.append(value)
        return ["@", index]

    def many(self, values: Any) -> list[Any]:
        return [self.value(value) for value in values]

    def node(self, value: Any) -> list[Any]:
        kind = type(value)
        if kind in (list, tuple, set, frozenset):
            return [str(kind.__name__), self.many(value)]
        if kind is dict:
            return ["dict", self.many(value), self.many(value.values())]
        name = getattr(value, "__name__", "") if isinstance(value, type) else ""
        if name and PLAIN_TYPES.get(name) is value:
            return ["type", name]
        if value is Ellipsis:
            return ["ellipsis"]
        if type(value).__name__ in self.codec.classes and isinstance(value, _loaded("enum", "Enum")):
            return ["member", type(value).__name__, str(value.name)]
        scalar = self.scalar(value)
        if scalar is not None:
            return scalar
        return self.container(value) or self.library(value) or self.codec.export(value)

    def scalar(self, value: Any) -> list[Any] | None:
        if isinstance(value, bool | int):
            number = int(value)
            return ["int", hex(number)]
        if isinstance(value, float):
            return ["float", float.__repr__(value)]
        if isinstance(value, complex):
            return ["complex", repr(value.real), repr(value.imag)]
        if isinstance(value, str):
            return ["str", str.__str__(value)]
        if isinstance(value, bytes | bytearray):
            name = "bytes" if isinstance(value, bytes) else "bytearray"
            return [name, base64.b64encode(bytes(value)).decode("ascii")]
        if isinstance(value, range | slice):
            return [type(value).__name__, *self.many([value.start, value.stop, value.step])]
        return None

    def container(self, value: Any) -> list[Any] | None:
        fields = getattr(type(value), "_fields", None)
        if isinstance(value, tuple) and fields is not None:
            return ["namedtuple", type(value).__name__, list(fields), self.many(tuple.__iter__(value))]
        for name in ("list", "tuple", "set", "frozenset"):
            kind = PLAIN_TYPES[name]
            if isinstance(value, kind):
                return [name, self.many(kind.__iter__(value))]
        if isinstance(value, _loaded("collections", "deque")):
            return ["deque", self.many(value), value.maxlen]
        if isinstance(value, dict):
            name = next((c.__name__ for c in type(value).__mro__ if c.__name__ in _MUTABLE), "dict")
            return [name, self.many(dict.__iter__(value)), self.many(dict.values(value))]
        name = _VIEWS.get(type(value), "")
        return [name, self.many(value)] if name else None

    def library(self, value: Any) -> list[Any] | None:
        if isinstance(value, _loaded("decimal", "Decimal")):
            return ["Decimal", str(value)]
        if isinstance(value, _loaded("fractions", "Fraction")):
            return ["Fraction", hex(value.numerator), hex(value.denominator)]
        for name in ("datetime", "date", "time"):
            if isinstance(value, _loaded("datetime", name)):
                return [name, value.isoformat()]
        if isinstance(value, _loaded("datetime", "timedelta")):
            return ["timedelta", value.days, value.seconds, value.microseconds]
        cls = type(value)
        if cls.__name__ in self.codec.classes and hasattr(value, "__dict__"):
            fields = vars(value)
            return ["object", cls.__name__, list(fields), self.many(fields.values())]
        return None


class _Decoding:
    def __init__(self, codec: Codec, nodes: Any, known: list[Any]) -> None:
        if not isinstance(nodes, list) or not all(isinstance(node, list) and node for node in nodes):
            raise NotPlain("nodes that are no nodes")
        self.codec = codec
        self.nodes = nodes
        self.known = known
        self.objects: list[Any] = [None] * len(nodes)
        self.made = [False] * len(nodes)
        self.depths = [0] * len(nodes)

    def values(self, values: list[Any]) -> tuple[list[Any], list[Any]]:
        for index, node in enumerate(self.nodes):
            if node[0] in _MUTABLE:
                self.objects[index] = self.shell(node)
                self.made[index] = True
        for index, node in enumerate(self.nodes):
            if node[0] in _MUTABLE:
                self.fill(self.objects[index], node)
            else:
                self.at(index)
        return [self.value(value) for value in values], self.objects

    def value(self, value: Any) -> Any:
        if isinstance(value, dict):
            raise NotPlain("an object of JSON where a value belongs")
        if not isinstance(value, list):
            return value
        tag, index = value
        if type(index) is not int or index < 0:
            raise NotPlain("a reference that is no number")
        if tag == "&":
            return self.known[index]
        if tag != "@":
            raise NotPlain("an unknown reference")
        return self.at(index)

    def at(self, index: int) -> Any:
        if not self.made[index]:
            node = self.nodes[index]
            self.objects[index] = self.fixed(node)
            self.made[index] = True
            self.depths[index] = 1 + max(
                (self.depth(value) for part in node for value in _listed(part)), default=0
            )
            if self.depths[index] > DEEPEST:
                raise NotPlain(f"a value nested more than {DEEPEST} deep")
        return self.objects[index]

    def depth(self, value: Any) -> int:
        """How deep an immutable value is nested; a mutable one cannot be hashed and starts anew."""
        return self.depths[value[1]] if isinstance(value, list) and value[:1] == ["@"] else 0

    def many(self, values: list[Any]) -> list[Any]:
        if not isinstance(values, list):
            raise NotPlain("a list of values that is no list")
        return [self.value(value) for value in values]

    def shell(self, node: list[Any]) -> Any:
        name = node[0]
        if name == "bytearray":
            return bytearray(base64.b64decode(node[1]))
        if name == "object":
            return object.__new__(self.codec.classes[node[1]])
        if name in PLAIN_TYPES:
            return PLAIN_TYPES[name]()
        import collections

        return collections.deque(maxlen=node[2]) if name == "deque" else getattr(collections, name)()

    def fill(self, shell: Any, node: list[Any]) -> None:
        """Put a node's contents into an object of its kind, replacing what was there."""
        name = node[0]
        if name == "bytearray":
            shell[:] = base64.b64decode(node[1])
        elif name == "object":
            self.fill_instance(shell, node[2], node[3])
        elif name in ("list", "deque"):
            shell.clear()
            shell.extend(self.many(node[1]))
        elif name == "set":
            shell.clear()
            shell.update(self.many(node[1]))
        else:
            shell.clear()
            for key, value in zip(self.many(node[1]), self.many(node[2]), strict=True):
                shell[key] = value

    def fill_instance(self, shell: Any, names: list[Any], values: list[Any]) -> None:
        """The attributes of an instance of the prompt's class: data, and nothing in the place of its methods."""
        fields = {}
        for name, value in zip(names, self.many(values), strict=True):
            if not isinstance(name, str) or (name.startswith("__") and name.endswith("__")):
                raise NotPlain("an instance with an attribute that is no name")
            found = _static(type(shell), name)
            if callable(found) or isinstance(found, staticmethod | classmethod):
                raise NotPlain("an instance that hides a method of its class")
            if hasattr(type(found), "__get__") and not hasattr(type(found), "__set__"):
                # A value that the class computes when asked (`cached_property`): computed anew on this side.
                continue
            fields[name] = self.codec.admit(value)
        vars(shell).clear()
        vars(shell).update(fields)

    def fixed(self, node: list[Any]) -> Any:
        name = node[0]
        if name in _SEQUENCES:
            return _SEQUENCES[name](self.many(node[1]))
        if name == "int":
            return int(node[1], 16)
        if name == "float":
            return float(node[1])
        if name == "complex":
            return complex(float(node[1]), float(node[2]))
        if name == "str" and isinstance(node[1], str):
            return node[1]
        if name == "bytes":
            return base64.b64decode(node[1])
        if name in ("range", "slice"):
            return getattr(builtins, name)(*self.many(node[1:]))
        if name == "type":
            return self.codec.type_named(node[1])
        if name == "ellipsis":
            return Ellipsis
        if name == "namedtuple":
            return self.namedtuple(*node[1:])
        return self.library(name, node)

    def namedtuple(self, title: Any, fields: Any, values: Any) -> Any:
        import collections

        if not isinstance(title, str) or not all(isinstance(field, str) for field in fields):
            raise NotPlain("a tuple whose fields have no names")
        found = [self.codec.admit(value) for value in self.many(values)]
        return collections.namedtuple(title, list(fields))(*found)

    def library(self, name: str, node: list[Any]) -> Any:
        if name == "Decimal":
            import decimal

            return decimal.Decimal(node[1])
        if name == "Fraction":
            import fractions

            return fractions.Fraction(int(node[1], 16), int(node[2], 16))
        if name in ("datetime", "date", "time"):
            import datetime

            return getattr(datetime, name).fromisoformat(node[1])
        if name == "timedelta":
            import datetime

            return datetime.timedelta(node[1], node[2], node[3])
        if name == "keys":
            return dict.fromkeys(self.many(node[1])).keys()
        if name == "values":
            return dict(enumerate(self.many(node[1]))).values()
        if name == "items":
            return dict(self.many(node[1])).items()
        if name == "member":
            import enum

            kind = self.codec.classes[node[1]]
            if not issubclass(kind, enum.Enum):
                raise NotPlain("a member of a class that has none")
            return kind[node[2]]
        return self.codec.adopt(node)


def _listed(part: Any) -> list[Any]:
    """The references in one part of a node."""
    if not isinstance(part, list):
        return []
    return [part] if part[:1] == ["@"] else part


def _static(kind: type, name: str) -> Any:
    """An attribute of a class as it stands there: nothing is computed and no descriptor asked."""
    return next((vars(parent)[name] for parent in kind.__mro__ if name in vars(parent)), None)


def _mutable(name: str) -> Any:
    """The class of this name whose instances can change; None when there is none."""
    if name not in _MUTABLE or name == "object":
        return None
    import collections

    return PLAIN_TYPES.get(name) or getattr(collections, name)


def overwrite(codec: Codec, targets: list[Any], changes: dict[str, Any], known: list[Any]) -> None:
    """Apply what the other side did to objects that it was given."""
    try:
        decoding = _Decoding(codec, changes["nodes"], known)
        decoding.values([])
        for index, node in changes["changed"]:
            if type(index) is not int or index < 0:
                raise NotPlain("a reference that is no number")
            target = targets[index]
            # Containers and instances of the prompt's classes, nothing else of the test's.
            expected = codec.classes.get(node[1]) if node[0] == "object" else _mutable(node[0])
            if type(target) is not expected:
                raise NotPlain("a change of something that cannot change")
            decoding.fill(target, node)
    except _MALFORMED as error:
        raise NotPlain(f"not a list of changes: {type(error).__name__}: {error}") from None


def snapshot(objects: list[Any]) -> list[Any]:
    """What the mutable objects hold now, one level deep."""
    return [_contents(value) for value in objects]


def changes(codec: Codec, objects: list[Any], before: list[Any]) -> dict[str, Any] | None:
    """What happened to the objects since the snapshot, or None."""
    encoding = _Encoding(codec, objects)
    changed = []
    for index, (value, old) in enumerate(zip(objects, before, strict=True)):
        now = _contents(value)
        if old is None or now is None:
            continue
        if len(now) == len(old) and all(a is b for a, b in zip(now, old, strict=True)):
            continue
        changed.append([index, encoding.node(value)])
    if not changed:
        return None
    document, _ = encoding.document([])
    return {"nodes": document["nodes"], "changed": changed}


def _contents(value: Any) -> list[Any] | None:
    kind = type(value)
    if kind in (list, set):
        return list(value)
    if kind is bytearray:
        return [bytes(value)] if not value else [*value]
    if isinstance(value, dict):
        return [*dict.keys(value), *dict.values(value)]
    if isinstance(value, _loaded("collections", "deque")):
        return list(value)
    if kind.__module__ == "program" and hasattr(value, "__dict__"):
        return [*vars(value), *vars(value).values()]
    return None

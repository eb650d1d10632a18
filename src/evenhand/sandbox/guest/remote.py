"""What the test holds in place of the program's functions, classes and objects.

A result that is plain data is the data itself. Anything else stays on the program's side, and its stand-in here
refuses every operation in which the program would learn the expected value and could answer to please: it is
equal to no plain value, has no arithmetic with one and no membership test of its own.
"""

import functools
from collections.abc import Generator, Iterator
from typing import Any, Protocol


class Caller(Protocol):
    """Carries an operation to the program."""

    objects: bool

    def ask(self, operation: str, target: Any, *args: Any, **kwargs: Any) -> Any:
        """Do it there and give the result."""


class Unsupported(Exception):
    """The test asks for something that cannot cross between two processes."""


class Remote:
    # Something that lives with the program; its documentation is the program's.

    @property
    def __doc__(self) -> str | None:  # type: ignore[override]
        found = self._ask("getattr", "__doc__")
        return found if isinstance(found, str) else None

    def __init__(self, caller: Caller, number: int, kind: str, shown: str) -> None:
        vars(self).update(_caller=caller, _number=number, _kind=kind, _shown=shown, _named=False)

    def _ask(self, operation: str, *args: Any, **kwargs: Any) -> Any:
        caller: Caller = vars(self)["_caller"]
        return caller.ask(operation, self, *args, **kwargs)

    def _both(self, operation: str, other: object) -> Any:
        """An operation on two things of the program's; with anything else it is not defined."""
        if not isinstance(other, Remote) or not vars(self)["_caller"].objects:
            return NotImplemented
        return self._ask(operation, other)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if vars(self)["_kind"] not in ("function", "class") and not vars(self)["_caller"].objects:
            raise TypeError(f"the program returned {self._what()}, which the test cannot call")
        return self._ask("call", *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        value = self._ask("getattr", name)
        vouched = vars(self)["_caller"].objects or vars(self)["_named"]
        # An exception class, or a function of the test's own, would be called in place of a method.
        if (isinstance(value, Remote) or callable(value)) and not vouched:
            raise AttributeError(f"the program returned {self._what()}; its '{name}' is not plain data")
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        self._ask("setattr", name, value)

    def _what(self) -> str:
        return f"an object of type {vars(self)['_shown']}"

    # Questions about the object alone: the program learns nothing from them.
    def __bool__(self) -> bool:
        return self._ask("bool") is True

    def __len__(self) -> int:
        return int(self._ask("len"))

    def __str__(self) -> str:
        return str(self._ask("str"))

    def __repr__(self) -> str:
        return str(self._ask("repr"))

    def __int__(self) -> int:
        return int(self._ask("int"))

    def __float__(self) -> float:
        return float(self._ask("float"))

    def __index__(self) -> int:
        return int(self._ask("index"))

    def __abs__(self) -> Any:
        return self._ask("abs")

    def __neg__(self) -> Any:
        return self._ask("neg")

    def __iter__(self) -> Iterator[Any]:
        found = self._ask("iter")
        return found if isinstance(found, Remote) else iter(found)

    def __next__(self) -> Any:
        return self._ask("next")

    def __reversed__(self) -> Any:
        return self._ask("reversed")

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, int | slice) and not (vars(self)["_caller"].objects or vars(self)["_named"]):
            # The key of a mapping is often what the test expects to find.
            raise TypeError(f"the program returned {self._what()}, which the test can index by number only")
        return self._ask("getitem", key)

    def __setitem__(self, key: Any, value: Any) -> None:
        self._ask("setitem", key, value)

    def __delitem__(self, key: Any) -> None:
        self._ask("delitem", key)

    def __enter__(self) -> Any:
        return self._ask("enter")

    def __exit__(self, *_: object) -> None:
        self._ask("exit")

    def __await__(self) -> Generator[None, None, Any]:
        # The program's side waits; nothing is left to wait for here.
        yield from ()
        return self._ask("await")

    def __contains__(self, value: object) -> bool:
        return any(item is value or item == value for item in self)

    # Comparison and arithmetic: between two things of the program's only.
    def __hash__(self) -> int:
        # Equal objects of a class under test belong into one place of a set.
        return hash(self._ask("hash")) if vars(self)["_caller"].objects else id(self)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return self._both("eq", other) is True

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __lt__(self, other: object) -> Any:
        return self._both("lt", other)

    def __le__(self, other: object) -> Any:
        return self._both("le", other)

    def __gt__(self, other: object) -> Any:
        return self._both("gt", other)

    def __ge__(self, other: object) -> Any:
        return self._both("ge", other)

    def __add__(self, other: object) -> Any:
        return self._both("add", other)

    def __sub__(self, other: object) -> Any:
        return self._both("sub", other)

    def __mul__(self, other: object) -> Any:
        return self._both("mul", other)

    def __truediv__(self, other: object) -> Any:
        return self._both("truediv", other)

    def __mro_entries__(self, bases: tuple[Any, ...]) -> tuple[type, ...]:
        if vars(self)["_kind"] != "class":
            raise TypeError(f"the program has {self._what()} where the test needs a class")
        raise Unsupported("the test derives a class from one of the program's")

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, Remote) and self._ask("instance_of", instance) is True


class TypeName:
    """One of Python's own types as a result of the program: equal to that type, without its methods."""

    def __init__(self, kind: type) -> None:
        vars(self).update(kind=kind, __name__=kind.__name__)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return vars(self)["kind"](*args, **kwargs)

    def __instancecheck__(self, instance: object) -> bool:
        return isinstance(instance, vars(self)["kind"])

    def __eq__(self, other: object) -> bool:
        return (vars(other)["kind"] if isinstance(other, TypeName) else other) is vars(self)["kind"]

    def __hash__(self) -> int:
        return hash(vars(self)["kind"])

    def __repr__(self) -> str:
        return repr(vars(self)["kind"])


SPECIAL = frozenset(
    {
        "__len__",
        "__iter__",
        "__next__",
        "__reversed__",
        "__getitem__",
        "__enter__",
        "__exit__",
        "__await__",
        "__contains__",
    }
)
"""Abilities that `isinstance(result, Iterable)` and its like look for: a stand-in has those that it was sent with."""


def stand_in_class(abilities: Any) -> type[Remote]:
    """The class of stand-ins for objects with these abilities."""
    found = {name for name in abilities if isinstance(name, str)} if isinstance(abilities, list) else set()
    if found & {"__len__", "__getitem__", "__iter__"}:
        found |= {"__contains__"}
    if "__getitem__" in found:
        found |= {"__iter__"}
    return _stand_in_class(frozenset(SPECIAL - found))


@functools.cache
def _stand_in_class(lacking: frozenset[str]) -> type[Remote]:
    # None in the place of a special method says "not supported" to Python and to its abstract classes.
    return type("Remote", (Remote,), dict.fromkeys(lacking)) if lacking else Remote

"""What a scorer is: a function with a name, a version and typed options."""

import inspect
import os
import re
import types
import typing
from collections.abc import Callable, Mapping
from copy import copy
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Concatenate, Generic, get_type_hints, overload

import msgspec
from msgspec import Struct

from evenhand.core.errors import OptionError
from evenhand.core.jsontext import canonical
from evenhand.core.sample import with_text
from evenhand.scoring.types import ScorerInput

if TYPE_CHECKING:
    # Defaults of type parameters (PEP 696) are in `typing` from Python 3.13 on: a bare `Scorer` takes any options.
    from typing_extensions import ParamSpec, TypeVar

    P = ParamSpec("P", default=...)
    R = TypeVar("R", default=Any)
else:
    P = typing.ParamSpec("P")
    R = typing.TypeVar("R")

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,99}")


class Option(Struct, frozen=True, kw_only=True):
    """One option of a scorer, as its function declares it."""

    name: str
    """The keyword."""
    type: Any
    """The annotated Python type; `Any` when there is none."""
    default: Any = None
    """The value when the option is not given."""
    required: bool = False
    """Whether there is no default."""

    @property
    def type_name(self) -> str:
        """The type as people read it."""
        if _holds_callable(self.type):
            return "function or name"
        return self.type.__name__ if isinstance(self.type, type) else str(self.type).replace("typing.", "")

    @property
    def json_type(self) -> Any:
        """The type of its values that JSON can carry; None when only Python has them (functions, paths)."""
        return _json_type(self.type)

    def convert_json(self, value: Any) -> Any:
        """A decoded JSON value as the declared type; `OptionError` when it is not one."""
        if self.json_type is None:
            raise OptionError(f"option '{self.name}' takes a {self.type_name}, which JSON cannot carry")
        try:
            return msgspec.convert(value, self.json_type)
        except msgspec.ValidationError as error:
            raise OptionError(f"option '{self.name}': {_lower_first(str(error))}") from None

    def convert(self, value: Any, *, lax: bool = False) -> Any:
        """The value as the declared type; `lax` also reads it from text. `OptionError` when it is not one."""
        if _holds_callable(self.type):
            if callable(value) or isinstance(value, str):
                return value
            raise OptionError(f"option '{self.name}' must be a function or a name, not {value!r:.80}")
        if lax and isinstance(value, str):
            value = _from_text(value, self.type)
        try:
            return msgspec.convert(value, self.type, strict=not lax)
        except msgspec.ValidationError as error:
            raise OptionError(f"option '{self.name}': {_lower_first(str(error))}") from None


class Scorer(Generic[P, R]):
    """A scorer: call it with a sample to get its result as a dict, or configure it first.

    `P` are the options of its function, `R` is what the function returns; `Scorer` alone stands for any scorer.
    Options come from three places; the nearest wins: the call's keywords, the sample's `config`, `configure`.
    """

    def __init__(
        self,
        function: Callable[Concatenate[ScorerInput, P], R],
        *,
        name: str,
        version: str,
        needs_target: bool,
        options: Mapping[str, Option],
        slow: bool = False,
        as_stored: bool = False,
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._function: Callable[..., R] = function
        self.name = name
        self.version = version
        self.needs_target = needs_target
        self.options = options
        self.settings: Mapping[str, Any] = MappingProxyType(dict(settings or {}))
        self.is_async = inspect.iscoroutinefunction(function)
        self.slow = slow or self.is_async
        self.as_stored = as_stored
        self.__name__ = name
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__wrapped__ = function

    def __call__(self, sample: ScorerInput, *args: P.args, **kwargs: P.kwargs) -> R:
        """The result for one sample. A response that is no text is scored as text; one that is None has no score."""
        readable: ScorerInput | None = sample
        if (
            type(sample.response) is not str
        ):  # nearly every response is one, and this is called for each of them
            readable = with_text(sample, parts=not self.as_stored)
            if readable is None:
                return self._no_response()
        options: dict[str, Any] = kwargs
        if self.options and sample.config:
            named = {name: sample.config[name] for name in self.options if name in sample.config}
            options = {**self._converted(named), **options}
        if self.settings:
            options = {**self.settings, **options}
        if args:
            options = {**options, **self._named(args)}
        return self._function(readable, **options)

    def applies(self, sample: ScorerInput) -> bool:
        """Whether it has anything to say about a sample; of several scorers one may be for some rows only."""
        return True

    def configure(self, *args: P.args, **kwargs: P.kwargs) -> "Scorer[..., R]":
        """The same scorer with these options set; `OptionError` when one is unknown or of the wrong type."""
        return self.with_options({**self._named(args), **kwargs})

    def with_options(self, options: Mapping[str, Any]) -> "Scorer[..., R]":
        """`configure` for options that come as data: from a file, a request or a table."""
        return self._with(self._converted(options))

    def configure_from_text(self, options: Mapping[str, str]) -> "Scorer[..., R]":
        """`configure` for values that were typed: `"0.1"`, `"true"`, JSON for lists and objects."""
        return self._with(self._converted(options, lax=True))

    def configure_from_json(self, options: Mapping[str, Any]) -> "Scorer[..., R]":
        """`configure` for decoded JSON, as requests bring it: no functions, no paths, nothing required left out."""
        configured = self._with(
            {name: self._convert_one(name, value, json=True) for name, value in options.items()}
        )
        if configured.missing:
            names = ", ".join(f"'{name}'" for name in configured.missing)
            raise OptionError(f"scorer '{self.name}' needs the option {names}")
        return configured

    def renamed(self, name: str) -> "Scorer[P, R]":
        """The same scorer under another name; what decides its grades, its version and options, stays."""
        if not NAME.fullmatch(name):
            raise OptionError(f"'{name}' cannot be a scorer's name: letters, digits, '_', '.', '-' only")
        found = copy(self)
        found.name = found.__name__ = name
        return found

    @property
    def options_schema(self) -> dict[str, Any]:
        """JSON Schema (draft 2020-12) of the options that JSON can carry."""
        usable = [option for option in self.options.values() if option.json_type is not None]
        found, components = msgspec.json.schema_components(
            [option.json_type for option in usable], ref_template="#/$defs/{name}"
        )
        properties = dict(zip((option.name for option in usable), map(dict, found), strict=True))
        for option in usable:
            if not option.required and _plain(option.default):
                properties[option.name]["default"] = option.default
        schema: dict[str, Any] = {
            "type": "object",
            "properties": properties,
            "required": [option.name for option in self.options.values() if option.required],
            "additionalProperties": False,
        }
        return {**schema, "$defs": components} if components else schema

    @property
    def missing(self) -> list[str]:
        """Required options that have no value yet."""
        return [o.name for o in self.options.values() if o.required and o.name not in self.settings]

    @property
    def summary(self) -> str:
        """The first line of the documentation."""
        return (inspect.getdoc(self) or "").partition("\n")[0]

    @property
    def identity(self) -> dict[str, Any]:
        """Name, version and every option's effective value: what decides whether two scores are comparable."""
        values = {o.name: self.settings.get(o.name, o.default) for o in self.options.values()}
        shown = {k: v if _plain(v) else getattr(v, "__qualname__", repr(v)) for k, v in values.items()}
        return {"name": self.name, "version": self.version, "options": shown}

    def _no_response(self) -> R:
        result = {"unscored": "no_response"}

        async def later() -> dict[str, str]:
            return result

        return typing.cast(R, later() if self.is_async else result)

    def _named(self, args: tuple[Any, ...]) -> dict[str, Any]:
        """Options given by position, by name."""
        if len(args) > len(self.options):
            raise OptionError(
                f"scorer '{self.name}' takes the sample and at most {len(self.options)} options"
            )
        return dict(zip(self.options, args, strict=False))

    def _with(self, settings: Mapping[str, Any]) -> "Scorer[..., R]":
        return Scorer(
            self._function,
            name=self.name,
            version=self.version,
            needs_target=self.needs_target,
            options=self.options,
            slow=self.slow,
            as_stored=self.as_stored,
            settings={**self.settings, **settings},
        )

    def _converted(self, options: Mapping[str, Any], *, lax: bool = False) -> dict[str, Any]:
        return {name: self._convert_one(name, value, lax=lax) for name, value in options.items()}

    def _convert_one(self, name: str, value: Any, *, lax: bool = False, json: bool = False) -> Any:
        option = self.options.get(name)
        if option is None:
            known = ", ".join(self.options) or "none"
            raise OptionError(f"scorer '{self.name}' has no option '{name:.100}'; its options: {known}")
        try:
            return option.convert_json(value) if json else option.convert(value, lax=lax)
        except OptionError as error:
            raise OptionError(f"scorer '{self.name}', {error}") from None

    def __repr__(self) -> str:
        shown = "".join(f", {name}={value!r}" for name, value in self.settings.items())
        return f"<scorer {self.name} version {self.version}{shown}>"


@overload
def scorer(function: Callable[Concatenate[ScorerInput, P], R], /) -> Scorer[P, R]: ...
@overload
def scorer(
    *,
    name: str | None = None,
    version: str = "1",
    needs_target: bool = False,
    slow: bool = False,
    as_stored: bool = False,
) -> "_Decorator": ...


def scorer(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    version: str = "1",
    needs_target: bool = False,
    slow: bool = False,
    as_stored: bool = False,
) -> "Scorer | _Decorator":
    """Make a scorer of `def f(sample) -> dict`, plain or async.

    Further parameters are the scorer's options; their annotations are their types. `needs_target` says that a
    sample without an expected answer has no score (rather than a wrong answer). `slow` says that it may take longer
    than a request should wait: the scoring service then runs it as a job. Async scorers are slow. `as_stored` says
    that a response is compared as it is: content parts as the JSON they are, thinking included.
    """
    decorator = _Decorator(
        name=name, version=version, needs_target=needs_target, slow=slow, as_stored=as_stored
    )
    return decorator if function is None else decorator(function)


class _Decorator(Struct, frozen=True, kw_only=True):
    """`@scorer(...)` with its arguments."""

    name: str | None
    version: str
    needs_target: bool
    slow: bool
    as_stored: bool

    def __call__(self, function: Callable[Concatenate[ScorerInput, P], R]) -> Scorer[P, R]:
        chosen = self.name or function.__name__
        if not NAME.fullmatch(chosen):
            raise OptionError(f"'{chosen}' cannot be a scorer's name: letters, digits, '_', '.', '-' only")
        return Scorer(
            function,
            name=chosen,
            version=str(self.version),
            needs_target=self.needs_target,
            options=_options(function),
            slow=self.slow,
            as_stored=self.as_stored,
        )


def _options(function: Callable[..., Any]) -> Mapping[str, Option]:
    parameters = list(inspect.signature(function).parameters.values())
    if not parameters or parameters[0].kind is inspect.Parameter.KEYWORD_ONLY:
        raise OptionError(f"scorer '{function.__name__}' must take the sample as its first parameter")
    if len(parameters) == 1:
        return {}
    hints = get_type_hints(function)
    found = {}
    for parameter in parameters[1:]:
        if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
            raise OptionError(
                f"scorer '{function.__name__}' must name its options, not take *{parameter.name}"
            )
        required = parameter.default is inspect.Parameter.empty
        found[parameter.name] = Option(
            name=parameter.name,
            type=hints.get(parameter.name, Any),
            default=None if required else parameter.default,
            required=required,
        )
    return found


def _members(annotation: Any) -> tuple[Any, ...]:
    origin = typing.get_origin(annotation)
    return typing.get_args(annotation) if origin in (typing.Union, types.UnionType) else (annotation,)


def _holds_callable(annotation: Any) -> bool:
    return any(m is Callable or typing.get_origin(m) is Callable for m in _members(annotation))


def _json_type(annotation: Any) -> Any:
    """The annotation without what JSON cannot carry; None when nothing is left, and for paths, also as texts."""
    if any(isinstance(m, type) and issubclass(m, os.PathLike) for m in _members(annotation)):
        return None
    members = [m for m in _members(annotation) if not _holds_callable(m) and _is_json(m)]
    if not members or members == [type(None)]:
        return None
    kept: Any = members[0]
    for member in members[1:]:
        kept |= member
    return kept


def _is_json(annotation: Any) -> bool:
    try:
        msgspec.json.schema(annotation)
    except (TypeError, msgspec.ValidationError, RecursionError):
        return False
    return True


def _from_text(text: str, annotation: Any) -> Any:
    """JSON where the type is no string: lists, objects, and lists typed as a|b|c."""
    members = _members(annotation)
    origins = {typing.get_origin(m) or m for m in members}
    if str in origins:
        return text
    if origins & {list, tuple, dict, Mapping, Any}:
        try:
            return msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
            return text.split("|") if origins & {list, tuple} else text
    return text


def _plain(value: Any) -> bool:
    """Whether JSON can carry the value."""
    try:
        canonical(value)
    except (ValueError, TypeError, RecursionError):
        return False
    return True


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]

"""What a scorer is: a function with a name, a version and typed options."""

import inspect
import re
import types
import typing
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, get_type_hints, overload

import msgspec
from msgspec import Struct

from evenhand.core.errors import OptionError
from evenhand.scoring.types import ScorerInput

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


class Scorer:
    """A scorer: call it with a sample to get its result as a dict, or configure it first.

    Options come from three places; the nearest wins: the call's keywords, the sample's `config`, `configure`.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        name: str,
        version: str,
        needs_target: bool,
        options: Mapping[str, Option],
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        self._function = function
        self.name = name
        self.version = version
        self.needs_target = needs_target
        self.options = options
        self.settings: Mapping[str, Any] = MappingProxyType(dict(settings or {}))
        self.is_async = inspect.iscoroutinefunction(function)
        self.__name__ = name
        self.__doc__ = function.__doc__
        self.__module__ = function.__module__
        self.__wrapped__ = function

    def __call__(self, sample: ScorerInput, **options: Any) -> Any:
        if self.options and sample.config:
            named = {name: sample.config[name] for name in self.options if name in sample.config}
            options = {**self._converted(named), **options}
        if self.settings:
            options = {**self.settings, **options}
        return self._function(sample, **options)

    def configure(self, **options: Any) -> "Scorer":
        """The same scorer with these options set; `OptionError` when one is unknown or of the wrong type."""
        return self._with(self._converted(options))

    def configure_from_text(self, options: Mapping[str, str]) -> "Scorer":
        """`configure` for values that were typed: `"0.1"`, `"true"`, JSON for lists and objects."""
        return self._with(self._converted(options, lax=True))

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

    def _with(self, settings: Mapping[str, Any]) -> "Scorer":
        return Scorer(
            self._function,
            name=self.name,
            version=self.version,
            needs_target=self.needs_target,
            options=self.options,
            settings={**self.settings, **settings},
        )

    def _converted(self, options: Mapping[str, Any], *, lax: bool = False) -> dict[str, Any]:
        converted = {}
        for name, value in options.items():
            option = self.options.get(name)
            if option is None:
                known = ", ".join(self.options) or "none"
                raise OptionError(f"scorer '{self.name}' has no option '{name}'; its options: {known}")
            try:
                converted[name] = option.convert(value, lax=lax)
            except OptionError as error:
                raise OptionError(f"scorer '{self.name}', {error}") from None
        return converted

    def __repr__(self) -> str:
        shown = "".join(f", {name}={value!r}" for name, value in self.settings.items())
        return f"<scorer {self.name} version {self.version}{shown}>"


@overload
def scorer(function: Callable[..., Any], /) -> Scorer: ...
@overload
def scorer(
    *, name: str | None = None, version: str = "1", needs_target: bool = False
) -> Callable[[Callable[..., Any]], Scorer]: ...


def scorer(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    version: str = "1",
    needs_target: bool = False,
) -> Scorer | Callable[[Callable[..., Any]], Scorer]:
    """Make a scorer of `def f(sample) -> dict`, plain or async.

    Further parameters are the scorer's options; their annotations are their types. `needs_target` says that a
    sample without an expected answer has no score (rather than a wrong answer).
    """

    def define(inner: Callable[..., Any]) -> Scorer:
        chosen = name or inner.__name__
        if not NAME.fullmatch(chosen):
            raise OptionError(f"'{chosen}' cannot be a scorer's name: letters, digits, '_', '.', '-' only")
        return Scorer(
            inner, name=chosen, version=str(version), needs_target=needs_target, options=_options(inner)
        )

    return define if function is None else define(function)


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
    return value is None or isinstance(value, str | int | float | bool | list | tuple | dict)


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]

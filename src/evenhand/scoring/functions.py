"""Scorers from what users have at hand: a name, a scorer, or a function of `input, output, expected, metadata`."""

import inspect
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from evenhand.core.errors import OptionError
from evenhand.core.outcome import Failed, Outcome, Scored, Unscored
from evenhand.scoring.apply import check_options
from evenhand.scoring.definition import NAME, Scorer, scorer
from evenhand.scoring.registry import get_scorer
from evenhand.scoring.types import ScorerInput

ARGUMENTS: dict[str, Callable[[ScorerInput], Any]] = {
    "input": lambda sample: sample.input,
    "output": lambda sample: sample.response,
    "expected": lambda sample: sample.target,
    "metadata": lambda sample: sample.metadata,
}
"""What a function may ask for, by the names of its parameters."""
ScorerLike = "str | Scorer | Callable[..., Any]"


class FunctionScorer(Scorer):
    """A function of `input, output, expected, metadata`, in any order and as many of them as it likes.

    It is given the output as the task returned it. It may return true or false, a number, a label, a mapping as
    scorers do, an object with `score`, or None when there is nothing to say.
    """

    def __init__(self, function: Callable[..., Any], *, name: str) -> None:
        super().__init__(function, name=name, version="1", needs_target=False, options={})
        self._wanted = _wanted(function, name)
        self.is_async = _is_async(function)
        self.slow = self.slow or self.is_async
        self.__wrapped__ = function

    def __call__(self, sample: ScorerInput, *args: Any, **kwargs: Any) -> Any:
        given = {name: ARGUMENTS[name](sample) for name in self._wanted}
        found = self._function(**given)
        return _awaited(found) if inspect.isawaitable(found) else _result(found)


def make_scorers(given: Any) -> dict[str, Scorer]:
    """The scorers by name, in the order given: one, a list of them, or a mapping that names them."""
    named: list[tuple[str | None, Any]]
    if isinstance(given, Mapping):
        named = [(str(name), one) for name, one in given.items()]
    elif isinstance(given, str | Scorer) or callable(given):
        named = [(None, given)]
    elif isinstance(given, Iterable):
        named = [(None, one) for one in given]
    else:
        raise OptionError(f"scorers are a list of scorers, names or functions, not {type(given).__name__}")
    found: dict[str, Scorer] = {}
    for name, one in named:
        made = make_scorer(one, name=name)
        chosen = name or made.name
        if chosen in found:
            raise OptionError(f"two scorers are called '{chosen}'; name them: scorers={{'a': ..., 'b': ...}}")
        found[chosen] = made
    if not found:
        raise OptionError("there is no scorer: name at least one")
    return found


def make_scorer(given: Any, *, name: str | None = None) -> Scorer:
    """A scorer, a scorer's name, a benchmark (its scorer), or a function."""
    if isinstance(given, str):
        given = get_scorer(given)
    inner = getattr(given, "scorer", None)
    if not isinstance(given, Scorer) and isinstance(inner, Scorer):
        given = inner
    if isinstance(given, Scorer):
        if given.missing:
            raise OptionError(
                f"scorer '{given.name}' needs an option: {given.name}.configure({given.missing[0]}=...)"
            )
        check_options(given)
        return given
    if not callable(given):
        raise OptionError(f"a scorer is a name, a scorer or a function, not {type(given).__name__}")
    chosen = name or getattr(given, "__name__", None) or type(given).__name__
    if not NAME.fullmatch(chosen):
        raise OptionError(
            f"a scorer needs a name of letters, digits, '_', '.' and '-', not '{chosen}': give it one with "
            "scorers={'name': ...}"
        )
    parameters = list(_parameters(given))
    if len(parameters) == 1 and parameters[0].name == "sample":
        return scorer(name=chosen)(given)
    return FunctionScorer(given, name=chosen)


def _parameters(function: Callable[..., Any]) -> Iterable[inspect.Parameter]:
    try:
        return inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return ()


def _wanted(function: Callable[..., Any], name: str) -> list[str]:
    found: list[str] = []
    for one in _parameters(function):
        if one.kind is one.VAR_KEYWORD:
            found += [argument for argument in ARGUMENTS if argument not in found]
        elif one.name in ARGUMENTS and one.kind is not one.POSITIONAL_ONLY:
            found.append(one.name)
        elif one.default is one.empty and one.kind is not one.VAR_POSITIONAL:
            raise OptionError(
                f"scorer '{name}' asks for '{one.name}'; a function is given {', '.join(ARGUMENTS)} by these names"
            )
    return found


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  an object with an async `__call__`
    )


async def _awaited(found: Any) -> Any:
    return _result(await found)


def _result(found: Any) -> Any:
    if isinstance(found, Scored | Unscored | Failed):
        return found
    if found is None:
        return Unscored(reason="no_score", message="the scorer returned None")
    if isinstance(found, str):
        return {"label": found}
    if isinstance(found, Mapping | bool | int | float) or not hasattr(found, "score"):
        return found
    return _from_object(found)


def _from_object(found: Any) -> Outcome | dict[str, Any]:
    if found.score is None:
        return Unscored(reason="no_score", message="the scorer's result has no score")
    details = getattr(found, "metadata", None)
    return {**(details if isinstance(details, Mapping) else {}), "score": found.score}

"""The platform's rules: `exact_match`, `contains` and `regex` on the output of a run or a span.

These are strict: nothing is normalised but what the configuration says. They share a name with, and nothing else
with, the library's scorers; see the glossary.
"""

from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from evenhand.core.errors import OptionError, UnknownName
from evenhand.core.jsontext import canonical
from evenhand.core.outcome import Failed, Outcome, Scored, Unscored
from evenhand.scoring.apply import failure
from evenhand.scoring.bounded_regex import compile_bounded


class ExactMatchRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The output equals the expected output."""

    case_sensitive: bool = True
    """Whether case counts."""
    strip_whitespace: bool = True
    """Whether white space at both ends is removed first."""

    def check(self) -> None: ...

    def score(self, output: str, expected: str) -> float:
        if self.strip_whitespace:
            output, expected = output.strip(), expected.strip()
        if not self.case_sensitive:
            output, expected = output.casefold(), expected.casefold()
        return float(output == expected)


class ContainsRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The output contains the expected output."""

    case_sensitive: bool = True
    """Whether case counts."""

    def check(self) -> None: ...

    def score(self, output: str, expected: str) -> float:
        if not self.case_sensitive:
            output, expected = output.casefold(), expected.casefold()
        return float(expected in output)


class RegexRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A pattern matches somewhere in the output. No expected output is needed."""

    pattern: str
    """The pattern, as for Python's `re`."""
    flags: str = ""
    """Any of i, m, s, x."""

    def check(self) -> None:
        compile_bounded(self.pattern, self.flags)

    def score(self, output: str, expected: str) -> float:
        return float(compile_bounded(self.pattern, self.flags).search(output))


Rule = ExactMatchRule | ContainsRule | RegexRule

_RULES: dict[str, Callable[[Any], Rule]] = {
    "contains": lambda config: msgspec.convert(config, ContainsRule),
    "exact_match": lambda config: msgspec.convert(config, ExactMatchRule),
    "regex": lambda config: msgspec.convert(config, RegexRule),
}


def rule_names() -> list[str]:
    """The names of all rules, sorted."""
    return sorted(_RULES)


def parse_rule(name: str, config: Mapping[str, Any] | None = None) -> Rule:
    """The rule with its configuration checked: `UnknownName`, or `OptionError` for a bad configuration."""
    if name not in _RULES:
        raise UnknownName("rule", name, _RULES)
    try:
        rule = _RULES[name](dict(config or {}))
    except msgspec.ValidationError as error:
        raise OptionError(f"rule '{name}': {error}") from None
    rule.check()
    return rule


def run_rule(
    name: str, output: Any, expected_output: Any, config: Mapping[str, Any] | None = None
) -> Outcome:
    """Score one output. `config["expected_output"]`, when there, takes the place of `expected_output`.

    A bad configuration raises; everything about the values themselves is an outcome.
    """
    options = dict(config or {})
    expected_output = options.pop("expected_output", expected_output)
    rule = parse_rule(name, options)
    if output is None:
        return Unscored(reason="no_output", message="there is no output to score")
    if expected_output is None and not isinstance(rule, RegexRule):
        return Unscored(reason="no_expected_output", message="there is no expected output to compare with")
    try:
        texts = as_text(output), as_text(expected_output)
    except (ValueError, TypeError, RecursionError) as error:
        return Failed(error="invalid_json", message=f"the value cannot be written as JSON: {error}"[:500])
    try:
        return Scored(value=rule.score(*texts))
    except Exception as error:
        return failure(error)


def as_text(value: Any) -> str:
    """A string as it is, any other JSON value in its one canonical spelling (sorted keys, no spaces, 1.0 as 1)."""
    return value if isinstance(value, str) else canonical(_whole_numbers(value)).decode("utf-8")


def _whole_numbers(value: Any) -> Any:
    """Floats without a fraction as integers, as JSON has one kind of number (RFC 8785 spells 1.0 as 1)."""
    match value:
        case float() if value.is_integer() and abs(value) < 2**53:
            return int(value)
        case dict():
            return {key: _whole_numbers(item) for key, item in value.items()}
        case list() | tuple():
            return [_whole_numbers(item) for item in value]
        case _:
            return value

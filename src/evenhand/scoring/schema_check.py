"""Validation with a compiled schema, in one place for the scoring process and its worker."""

import re
from collections.abc import Callable
from typing import Any

import jsonschema_rs

from evenhand.core.errors import OptionError

MAX_ERRORS = 10
"""How many errors are reported per instance."""
BACKTRACKS = 2**62
"""Steps that a pattern with look-around may take: no end of its own.

The validator reads a pattern that used up its steps as one that does not match, which could turn "could not be
decided" into a wrong answer, under `not` even into a right one. So such schemas are checked in the worker alone,
whose clock ends them.
"""

_WHERE = re.compile(r"\n\n.*", re.DOTALL)


class SchemaCheck:
    """A compiled schema. References are followed within the schema only; nothing is ever fetched."""

    def __init__(self, schema: dict[str, Any] | bool) -> None:
        self.linear = True
        """Whether every pattern takes time in proportion to the text."""
        try:
            self._validator = _compile(schema, jsonschema_rs.RegexOptions())
        except OptionError as error:
            if "regex" not in str(error):
                raise
            # Look-around and back-references.
            self.linear = False
            self._validator = _compile(schema, jsonschema_rs.FancyRegexOptions(backtrack_limit=BACKTRACKS))
        self.is_valid: Callable[[Any], bool] = self._validator.is_valid
        """Whether an instance has the schema's form."""

    def errors(self, instance: Any) -> list[str]:
        """The first few reasons why not."""
        found: list[str] = []
        for error in self._validator.iter_errors(instance):
            if len(found) == MAX_ERRORS:
                found.append("and more")
                break
            where = "".join(
                f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.instance_path
            )
            found.append(f"{where.removeprefix('.') or 'the value'}: {error.message}"[:300])
        return found


def _compile(schema: dict[str, Any] | bool, patterns: Any) -> Any:
    try:
        if isinstance(schema, dict) and "$schema" in schema:
            return jsonschema_rs.validator_for(schema, offline=True, pattern_options=patterns)
        return jsonschema_rs.Draft202012Validator(schema, offline=True, pattern_options=patterns)
    except ValueError as error:
        raise OptionError(f"invalid JSON schema: {_WHERE.sub('', str(error))}"[:500]) from None

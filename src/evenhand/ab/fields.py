"""The rules of a record's fields, read off its type: what a value must be, in words and as JSON Schema.

The type is the only definition. Its annotations give the rules; the text under each field gives the description.
"""

import ast
import inspect
import textwrap
from collections.abc import Mapping
from typing import Any, Literal

import msgspec
from msgspec import Struct
from msgspec import inspect as types

Kind = Literal["string", "number", "integer", "boolean"]


class Rule(Struct, frozen=True, kw_only=True):
    """What one field may hold."""

    kind: Kind
    required: bool
    """Whether the field must be there."""
    nullable: bool
    """Whether null is a value too."""
    low: float | int | None = None
    """The smallest number, or the least number of characters."""
    high: float | int | None = None
    """The largest number, or the greatest number of characters."""
    whole_range: bool = False
    """An integer whose range is only there to bound it; messages do not name it."""

    def accepts(self, value: Any) -> bool:
        """Whether `value`, decoded from JSON, is allowed. JSON has one kind of number: 1.0 is the integer 1."""
        if value is None:
            return self.nullable
        match self.kind:
            case "boolean":
                return isinstance(value, bool)
            case "string":
                return isinstance(value, str) and self._within(len(value))
            case _:
                if isinstance(value, bool) or not isinstance(value, int | float) or not self._within(value):
                    return False
                return self.kind == "number" or float(value).is_integer()

    def _within(self, size: float) -> bool:
        return (self.low is None or size >= self.low) and (self.high is None or size <= self.high)

    @property
    def expectation(self) -> str:
        """What a value must be, to follow "must be"."""
        match self.kind:
            case "boolean":
                return "true, false or null" if self.nullable else "true or false"
            case "string" if self.high is not None:
                text = f"a non-empty string of at most {self.high:,} characters"
            case "string":
                return "a string or null" if self.nullable else "a string"
            case "integer" if self.whole_range:
                return "an integer or null" if self.nullable else "an integer"
            case "integer":
                text = f"an integer from {self.low} to {self.high}"
            case "number":
                text = f"a number from {self.low:g} to {self.high:.0e}".replace("e+", "e")
        return f"{text}, or null" if self.nullable else text

    def schema(self, description: str) -> dict[str, Any]:
        """The rule in JSON Schema, draft 2020-12."""
        low, high = ("minLength", "maxLength") if self.kind == "string" else ("minimum", "maximum")
        out: dict[str, Any] = {"type": [self.kind, "null"] if self.nullable else self.kind}
        if self.low is not None:
            out[low] = self.low
        if self.high is not None:
            out[high] = self.high
        return {**out, "description": description}


def rules_of(record: type[Struct]) -> dict[str, Rule]:
    """The rule of every field of a record type, in the order of its fields."""
    info = types.type_info(record)
    assert isinstance(info, types.StructType)
    return {field.encode_name: _rule(field.type, required=field.required) for field in info.fields}


def _rule(kind: types.Type, *, required: bool) -> Rule:
    parts = kind.types if isinstance(kind, types.UnionType) else (kind,)
    (one,) = [part for part in parts if not isinstance(part, types.NoneType)]
    nullable = len(parts) > 1
    match one:
        case types.BoolType():
            return Rule(kind="boolean", required=required, nullable=nullable)
        case types.StrType():
            return Rule(
                kind="string", required=required, nullable=nullable, low=one.min_length, high=one.max_length
            )
        case types.IntType():
            symmetric = one.ge is not None and one.le is not None and one.ge == -one.le
            return Rule(
                kind="integer",
                required=required,
                nullable=nullable,
                low=one.ge,
                high=one.le,
                whole_range=symmetric,
            )
        case types.FloatType():
            return Rule(kind="number", required=required, nullable=nullable, low=one.ge, high=one.le)
        case _:
            raise TypeError(f"a field of a record cannot be {one}")


def make_schema(record: type[Struct], *, title: str, description: str) -> str:
    """The JSON Schema of a record type as indented text. Reads the type's source for the descriptions."""
    rules, texts = rules_of(record), _descriptions(record)
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": title,
        "description": description,
        "type": "object",
        "required": [name for name, rule in rules.items() if rule.required],
        "properties": {name: rule.schema(texts[name]) for name, rule in rules.items()},
        "additionalProperties": True,
    }
    return msgspec.json.format(msgspec.json.encode(schema), indent=2).decode() + "\n"


def _descriptions(record: type[Struct]) -> Mapping[str, str]:
    (definition,) = ast.parse(textwrap.dedent(inspect.getsource(record))).body
    assert isinstance(definition, ast.ClassDef)
    found = {}
    for field, text in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            assert isinstance(text, ast.Expr)
            assert isinstance(text.value, ast.Constant)
            found[field.target.id] = str(text.value.value)
    return found

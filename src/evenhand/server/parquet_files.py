"""Objects of the API and tables of pages as Parquet files: plain fields as columns, everything else as JSON text."""

import io
from collections.abc import Sequence
from typing import Any, BinaryIO, get_type_hints

from msgspec import UNSET, Struct

from evenhand.core.errors import MissingExtra
from evenhand.core.jsontext import encode_text

try:
    import pyarrow
    import pyarrow.parquet
except ImportError as missing:
    raise MissingExtra("pyarrow", "parquet", "a Parquet export") from missing

_TYPES: dict[Any, Any] = {
    str: pyarrow.string(),
    int: pyarrow.int64(),
    float: pyarrow.float64(),
    bool: pyarrow.bool_(),
    str | None: pyarrow.string(),
    int | None: pyarrow.int64(),
    float | None: pyarrow.float64(),
    bool | None: pyarrow.bool_(),
}


class ParquetFile:
    """Takes objects of one kind, a few at a time."""

    def __init__(self, kind: type[Struct], target: BinaryIO) -> None:
        hints = get_type_hints(kind)
        self._plain = {name: _TYPES.get(hints[name]) for name in kind.__struct_fields__}
        self._schema = pyarrow.schema(
            [(name, given or pyarrow.string()) for name, given in self._plain.items()]
        )
        self._writer = pyarrow.parquet.ParquetWriter(target, self._schema)

    def add(self, rows: list[Struct]) -> None:
        columns = {
            name: [_cell(getattr(row, name), plain=given is not None) for row in rows]
            for name, given in self._plain.items()
        }
        self._writer.write_table(pyarrow.table(columns, schema=self._schema))

    def close(self) -> None:
        self._writer.close()


def _cell(value: Any, *, plain: bool) -> Any:
    if value is None or value is UNSET:
        return None
    return value if plain or isinstance(value, str) else encode_text(value)


def records_file(names: Sequence[str], records: Sequence[dict[str, Any]]) -> bytes:
    """A table as a file. A column of numbers alone holds numbers; an empty text among them is nothing."""
    columns = {name: _column([record[name] for record in records]) for name in names}
    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table(columns), out)
    return out.getvalue()


def _column(values: list[Any]) -> Any:
    known = [value for value in values if value is not None and value != ""]
    for kinds, given in (
        ((bool,), pyarrow.bool_()),
        ((int,), pyarrow.int64()),
        ((int, float), pyarrow.float64()),
    ):
        plain = [isinstance(one, kinds) and isinstance(one, bool) == (kinds == (bool,)) for one in known]
        if known and all(plain) and not (kinds == (int,) and any(abs(one) >= 2**63 for one in known)):
            return pyarrow.array([None if one is None or one == "" else one for one in values], given)
    return pyarrow.array([_cell(value, plain=False) for value in values], pyarrow.string())

"""Objects of the API as a Parquet file: plain fields as columns, everything else as JSON text."""

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

"""Reading rows: every format, and every way in which a file can be bad."""

import gzip
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand.core.errors import InputError, OptionError
from evenhand.datasets import read_rows
from evenhand.datasets.rows import guess_count


def write(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


def test_jsonl_with_mark_blank_lines_crlf_and_no_final_newline(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", b'\xef\xbb\xbf{"a": 1}\r\n\r\n  \n{"a": "\xc3\xa9"}')
    assert [tuple(row) for row in read_rows(path)] == [(1, {"a": 1}), (4, {"a": "é"})]


def test_a_key_that_is_also_a_value_is_no_duplicate(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", b'{"a": "a", "b": {"a": 1}, "c": 12345678901234567890123}\n')
    assert [row.values for row in read_rows(path)] == [
        {"a": "a", "b": {"a": 1}, "c": 12345678901234567890123}
    ]


def test_gzip_by_name(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl.gz", gzip.compress(b'{"a": 1}\n' * 3))
    assert [row.line for row in read_rows(path)] == [1, 2, 3]


def test_csv_with_quotes_line_breaks_and_mark(tmp_path: Path) -> None:
    path = write(tmp_path, "a.csv", b'\xef\xbb\xbfid,text\r\n1,"x, ""y""\nz"\r\n\r\n2,\r\n')
    assert [tuple(row) for row in read_rows(path)] == [
        (2, {"id": "1", "text": 'x, "y"\nz'}),
        (5, {"id": "2", "text": ""}),
    ]


def test_parquet_in_batches(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"a": list(range(2500)), "b": [["x"]] * 2500}), path)
    rows = list(read_rows(path))
    assert len(rows) == 2500
    assert rows[2499] == (2500, {"a": 2499, "b": ["x"]})


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (b"{", "invalid JSON"),
        (b"[1]", "expected a JSON object, found an array"),
        (b"null", "expected a JSON object, found null"),
        (b'{"a": NaN}', "invalid JSON"),
        (b'{"a": 1e999}', "out of range"),
        (b'{"a": "\xff"}', "invalid UTF-8"),
        (b'{"a": 1, "b": 2, "a": 3}', "duplicate key 'a'"),
        (b'{"a": {"a": 1, "b": 1, "b": 2}}', "duplicate key 'b'"),
        (b'{"a": {"c": 1, "c": 2}}', "duplicate key 'c'"),
        (b'{"a": 1, "\\u0061": 2}', "duplicate key 'a'"),
        (b'{"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", "nested too deeply"),
    ],
)
def test_a_bad_jsonl_line_names_file_line_and_reason(tmp_path: Path, line: bytes, reason: str) -> None:
    path = write(tmp_path, "a.jsonl", b'{"a": 1}\n' + line + b'\n{"a": 2}\n')
    with pytest.raises(InputError) as caught:
        list(read_rows(path))
    assert str(caught.value).startswith(f"{path}:2: ")
    assert reason in str(caught.value).lower() or reason in str(caught.value)
    rejected: list[InputError] = []
    assert [row.line for row in read_rows(path, reject=rejected.append)] == [1, 3]
    assert [error.line for error in rejected] == [2]


@pytest.mark.parametrize(
    ("data", "place", "reason"),
    [
        (b"", ":1: ", "the file is empty"),
        (b"a,a\n1,2\n", ":1: ", "duplicate column"),
        (b"a,\n1,2\n", ":1: ", "no name"),
        (b"a,b\n1,2\n3\n", ":3: ", "1 fields where the header has 2"),
        (b'a,b\n1,"2\n', ":2: ", "invalid CSV"),
        (b"a,b\n1,\xff\n", ":2: ", "invalid UTF-8"),
    ],
)
def test_a_bad_csv_names_file_line_and_reason(tmp_path: Path, data: bytes, place: str, reason: str) -> None:
    path = write(tmp_path, "a.csv", data)
    with pytest.raises(InputError) as caught:
        list(read_rows(path))
    assert str(caught.value).startswith(f"{path}{place}")
    assert reason in str(caught.value)


def test_damaged_files_are_input_errors(tmp_path: Path) -> None:
    cut = gzip.compress(b'{"a": 1}\n' * 1000)[:-20]
    for name, data in [
        ("a.jsonl.gz", cut),
        ("b.jsonl.gz", b"plain"),
        ("c.parquet", b"PAR1 no"),
        ("d.csv.gz", cut),
    ]:
        with pytest.raises(InputError, match=name):
            list(read_rows(write(tmp_path, name, data), reject=lambda error: None))


def test_what_is_no_file_or_has_no_format(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no such file"):
        list(read_rows(tmp_path / "none.jsonl"))
    with pytest.raises(InputError, match="no such file"):
        list(read_rows(tmp_path / "none.parquet"))
    with pytest.raises(InputError, match="a folder"):
        read_rows(tmp_path, format="jsonl")
    with pytest.raises(InputError, match="cannot infer the format"):
        read_rows(write(tmp_path, "a.txt", b""))
    with pytest.raises(OptionError, match="unknown format 'xml'"):
        read_rows(tmp_path / "a.txt", format="xml")


def test_the_count_for_a_progress_bar(tmp_path: Path) -> None:
    assert guess_count(write(tmp_path, "a.jsonl", b"{}\n" * 12)) == 12
    assert guess_count(write(tmp_path, "a.jsonl.gz", b"")) is None


def test_reading_does_not_hold_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "a.jsonl", b'{"a": 1}\n' * 10)
    rows = read_rows(path)
    next(rows)
    assert next(rows).line == 2
    rows.close()  # type: ignore[attr-defined]  # a generator, though promised only as an iterator

"""`evenhand ab analyze`: what it prints, what it writes, how it exits."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.ab_rows import row, worked_example, write_rows

from evenhand.ab import analyze
from evenhand.ab.tables import delta_table
from evenhand.cli.ab_text import fitted
from evenhand.cli.app import main


def run(*args: object) -> int:
    with pytest.raises(SystemExit) as stopped:
        main([str(arg) for arg in args])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def test_verdict_then_why_then_what_next(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_rows(tmp_path / "collected.jsonl", worked_example())
    assert run("ab", "analyze", path) == 0
    text = capsys.readouterr().out
    assert text.startswith("Decision: mixed results - inspect paired deltas (not ready for promotion")
    places = [text.index(word) for word in ("Decision", "Why", "What to do next", "Paired deltas", "Data")]
    assert places == sorted(places)
    assert "missing: 1 of task t1 in with_tool, 1 of task t2 in without_tool" in text
    assert not any(line.endswith(" " * 40) for line in text.splitlines())
    analysis = json.loads((tmp_path / "analysis.json").read_text())
    assert analysis["decision"] == "mixed results - inspect paired deltas"
    assert (tmp_path / "analysis.md").read_text().startswith("# A/B analysis: with\\_tool against")
    assert not (tmp_path / "analysis.html").exists()


def test_files_go_where_they_are_asked_to(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_rows(tmp_path / "c.jsonl", worked_example())
    files = [tmp_path / name for name in ("a.json", "b.md", "c.html")]
    options = zip(("--output-json", "--output-md", "--html"), files, strict=True)
    assert run("ab", "analyze", path, *(part for pair in options for part in pair)) == 0
    assert all(file.stat().st_size > 1000 for file in files)
    assert not (tmp_path / "analysis.json").exists()
    assert "c.html" in capsys.readouterr().out


def test_json_on_stdout_is_the_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_rows(tmp_path / "c.jsonl", worked_example())
    assert run("ab", "analyze", path, "--format", "json") == 0
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "analysis.json").read_text())


def _rows(treatment: dict[str, Any], control: dict[str, Any]) -> list[dict[str, Any]]:
    return [row("t", "new", 1, **treatment), row("t", "old", 1, **control)]


@pytest.mark.parametrize(
    ("rows", "strict", "plain"),
    [
        (_rows({"duration_seconds": 0.5}, {}), 0, 0),
        (_rows({"duration_seconds": 2}, {}), 1, 0),
        (_rows({"duration_seconds": 2, "input_tokens": 1}, {}), 2, 0),
        ([row("t", "new")], 65, 65),
        ([row("t", "old")], 65, 65),
        ([], 2, 65),
    ],
)
def test_exit_status(
    tmp_path: Path, rows: list[dict[str, Any]], strict: int, plain: int, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_rows(tmp_path / "c.jsonl", rows)
    names = ("--treatment", "new", "--control", "old")
    assert run("ab", "analyze", path, *names, "--strict") == strict
    assert run("ab", "analyze", path, *names) == plain
    assert ("insufficient data" in capsys.readouterr().out) == (plain == 65)


@pytest.mark.parametrize("names", [("typo", "old"), ("new", "typo"), ("typo", None), (None, "typo")])
def test_a_mistyped_arm_overwrites_nothing(
    tmp_path: Path, names: tuple[str | None, str | None], capsys: pytest.CaptureFixture[str]
) -> None:
    path = write_rows(tmp_path / "c.jsonl", _rows({}, {}))
    assert run("ab", "analyze", path, "--treatment", "new", "--control", "old") == 0
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    options = [
        part
        for pair in zip(("--treatment", "--control"), names, strict=True)
        if pair[1] is not None
        for part in pair
    ]
    assert run("ab", "analyze", path, *options, "--html", tmp_path / "x.html") in (64, 65)
    assert run("ab", "analyze", path, *options, "--strict") in (64, 65)  # never a verdict's status
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    captured = capsys.readouterr()
    assert "no run has the arm 'typo'" in captured.err or "Nothing written" in captured.out


def test_bad_input_is_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "c.jsonl"
    path.write_text(json.dumps(row()) + "\n" + json.dumps(row(repeat="two")) + "\n")
    assert run("ab", "analyze", path) == 65
    assert capsys.readouterr().err == (
        f"Error: {path}:2: field 'repeat': must be an integer from 1 to 2147483647, not \"two\"\n"
    )
    assert run("ab", "analyze", path, "--skip-invalid") == 65
    assert "insufficient data" in capsys.readouterr().out
    assert run("ab", "analyze", tmp_path / "none.jsonl") == 66
    assert "No such file" in capsys.readouterr().err
    write_rows(path, [row("t", arm) for arm in "abc"])
    assert run("ab", "analyze", path) == 64
    assert "the runs have 3 arms (a, b, c); say which to compare" in capsys.readouterr().err


def test_a_folder_that_cannot_be_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write_rows(tmp_path / "c.jsonl", worked_example())
    assert run("ab", "analyze", path, "--html", tmp_path / "none" / "x.html") == 74
    assert "cannot be written" in capsys.readouterr().err


def test_names_from_the_log_cannot_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [row("\x1b[2J<b>[red]t", arm, n) for arm in ("with_[bold]", "without_\x1b[31m") for n in (1, 2)]
    path = write_rows(tmp_path / "c.jsonl", rows)
    assert run("ab", "analyze", path, "--html", tmp_path / "x.html") == 0
    assert "\x1b" not in capsys.readouterr().out
    assert "\x1b" not in (tmp_path / "analysis.md").read_text()
    assert "<b>[red]" not in (tmp_path / "x.html").read_text()


def test_a_narrow_terminal_keeps_every_label_and_number() -> None:
    """Means and medians stand in two tables; the widest row of each fits."""
    content = delta_table(analyze(worked_example()))
    assert fitted(content, 200) == [content]
    means, medians = fitted(content, 80)
    assert means.columns == ("paired delta", "mean", "95% interval", "p by task", "pairs")
    assert medians.columns == ("paired delta", "median", "95% interval of the median")
    assert [row[0] for row in means.rows] == [row[0] for row in content.rows]
    for part in (means, medians):
        widths = [max(map(len, cells)) for cells in zip(part.columns, *part.rows, strict=True)]
        assert sum(widths) + 2 * len(widths) <= 80

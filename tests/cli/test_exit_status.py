"""Exit statuses: 0, 1 and 2 are results; everything else follows one table, in every command."""

import errno
import importlib
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tests.runs import single, write_run

from evenhand.cli import app
from evenhand.cli.app import COMMANDS
from evenhand.core import errors
from evenhand.core.errors import Exit


def evenhand(*args: str | Path, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "evenhand", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, timeout=300, cwd=cwd)


def leaves(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Every command that does something, by its words."""
    if not isinstance(command, click.Group):
        yield path
        return
    context = click.Context(command)
    for name in command.list_commands(context):
        found = command.get_command(context, name)
        assert found is not None
        yield from leaves(found, (*path, name))


EVERY = [
    path
    for name in COMMANDS
    for path in leaves(importlib.import_module(COMMANDS[name].module).command, (name,))
]


def status_of(*args: str | Path) -> int:
    """The exit status of the command line, in this process."""
    with pytest.raises(SystemExit) as ended:
        app.main([str(part) for part in args])
    assert isinstance(ended.value.code, int)
    return int(ended.value.code)


@pytest.mark.parametrize("path", EVERY, ids=" ".join)
def test_an_unknown_option_is_bad_usage_in_every_command(path: tuple[str, ...]) -> None:
    assert status_of(*path, "--no-such-option") == 64


@pytest.mark.parametrize("path", [("eval",), ("ab",), ("judge",), ("db",), ("token",), ()], ids=str)
def test_an_unknown_command_is_bad_usage(path: tuple[str, ...]) -> None:
    assert status_of(*path, "zzz") == 64


MISSING = [
    ("score", "{none}.jsonl", "--scorer", "exact_match"),
    ("compare", "{none}", "{run}"),
    ("compare", "{run}", "{none}", "--strict"),
    ("compare", "{run}", "{none}", "--sequential"),
    ("gate", "{none}", "{run}", "--policy", "{policy}"),
    ("gate", "{run}", "{run}", "--policy", "{none}.yaml"),
    ("gate", "{none}", "{run}", "--policy", "classic"),
    ("plan", "{none}", "--effect", "0.1"),
    ("eval", "run", "{none}.yaml"),
    ("eval", "run", "--bench", "{none}.py", "--model-url", "http://127.0.0.1:9", "--model-id", "m"),
    ("eval", "report", "{none}"),
    ("eval", "merge", "{none}"),
    ("eval", "rescore", "{none}", "--scorer", "exact_match"),
    ("eval", "record", "{none}", "http://127.0.0.1:9"),
    ("validate", "-b", "{none}.py"),
    ("ab", "analyze", "{none}.jsonl"),
    ("ab", "analyze", "{none}.jsonl", "--strict"),
    ("ab", "run", "{none}.json"),
    ("ab", "record", "{none}.jsonl", "http://127.0.0.1:9"),
    ("db", "check", "--database", "sqlite:///{none}.db"),
    ("db", "backup", "{none}.copy", "--database", "sqlite:///{none}.db"),
    ("judge", "score", "{none}.jsonl", "--judge-url", "http://127.0.0.1:9", "--judge-id", "m", "-o", "{none}.out"),
    ("judge", "calibrate", "{none}.jsonl", "--human-field", "human"),
    ("mock-model", "--answers", "{none}.jsonl"),
    ("serve", "--config", "{none}.toml"),
    ("import", "{none}.json"),
    ("view", "{none}"),
    ("token", "list", "--database", "sqlite:///{none}.db"),
    ("judge", "compare", "{none}.jsonl", "{none}.jsonl"),
]  # fmt: skip


@pytest.mark.parametrize("words", MISSING, ids=lambda words: " ".join(words[:3]))
def test_a_missing_file_is_66(words: tuple[str, ...], tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", single([1.0, 0.0] * 5))
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\n")
    places = {"none": str(tmp_path / "nothing"), "run": str(run), "policy": str(policy)}
    assert status_of(*(word.format(**places) for word in words)) == 66


def bad_files(folder: Path) -> dict[str, str]:
    run = write_run(folder / "run", single([1.0, 0.0] * 5), hashes={"judge": "a" * 64})
    other = write_run(folder / "other", single([1.0, 0.0] * 5), hashes={"judge": "b" * 64})
    broken = folder / "broken"
    broken.mkdir()
    (broken / "results.jsonl").write_text("{not json\n")
    for name in ("bad.jsonl", "bad.yaml", "bad.json", "bad.py"):
        (folder / name).write_text("{not: [valid\n")
    (folder / "bad.toml").write_text("zzz = [\n")
    (folder / "bad.db").write_bytes(b"no database " * 1000)
    policy = folder / "policy.yaml"
    policy.write_text("version: 1\n")
    return {
        "run": str(run),
        "other": str(other),
        "broken": str(broken),
        "bad": str(folder / "bad"),
        "policy": str(policy),
        "folder": str(folder),
    }


BAD = [
    ("score", "{bad}.jsonl", "--scorer", "exact_match"),
    ("compare", "{run}", "{broken}", "--strict"),
    ("compare", "{run}", "{other}", "--strict"),
    ("compare", "{run}", "{other}"),
    ("gate", "{run}", "{broken}", "--policy", "{policy}"),
    ("gate", "{run}", "{other}", "--policy", "{policy}"),
    ("gate", "{run}", "{run}", "--policy", "{bad}.yaml"),
    ("plan", "{broken}", "--effect", "0.1"),
    ("eval", "run", "{bad}.yaml"),
    ("eval", "merge", "{run}"),
    ("eval", "rescore", "{broken}", "--scorer", "exact_match", "-o", "{folder}/rescored"),
    ("validate", "-b", "{bad}.py"),
    ("ab", "analyze", "{bad}.jsonl", "--strict"),
    ("ab", "run", "{bad}.json"),
    ("judge", "calibrate", "{bad}.jsonl", "--human-field", "human"),
    ("mock-model", "--answers", "{bad}.jsonl"),
    ("import", "{bad}.json"),
    ("eval", "report", "{broken}"),
    ("eval", "record", "{broken}", "http://127.0.0.1:9"),
    ("ab", "record", "{bad}.jsonl", "http://127.0.0.1:9"),
    ("judge", "score", "{bad}.jsonl", "--judge-url", "http://127.0.0.1:9", "--judge-id", "m", "-o", "{folder}/out"),
    ("serve", "--config", "{bad}.toml"),
    ("token", "list", "--database", "sqlite:///{bad}.db"),
    ("db", "check", "--database", "sqlite:///{bad}.db"),
    ("db", "backup", "{folder}/copy.db", "--database", "sqlite:///{bad}.db"),
    ("db", "migrate", "--database", "sqlite:///{bad}.db"),
]  # fmt: skip


@pytest.mark.parametrize("words", BAD, ids=lambda words: " ".join(words[:3]))
def test_bad_and_incomparable_input_is_65(words: tuple[str, ...], tmp_path: Path) -> None:
    places = bad_files(tmp_path)
    assert status_of(*(word.format(**places) for word in words)) == 65


USAGE = [
    ("score",),
    ("score", "{bad}.jsonl"),
    ("score", "{bad}.jsonl", "--scorer", "zzz"),
    ("compare", "{run}"),
    ("compare", "{run}", "{run}", "--max-drop", "-1"),
    ("compare", "{run}", "{run}", "--max-drop", "much"),
    ("gate", "{run}", "{run}"),
    ("plan", "--effect", "0"),
    ("plan",),
    ("eval", "run", "--bench", "zzz", "--model-url", "http://127.0.0.1:9", "--model-id", "m"),
    ("validate",),
    ("ab", "analyze"),
    ("judge", "calibrate"),
    ("db", "backup"),
    ("serve", "--port", "lots"),
    ("import",),
    ("init", "--no-such-option"),
    ("view", "--port", "lots"),
    ("eval", "report"),
    ("eval", "record"),
    ("eval", "merge"),
    ("eval", "rescore"),
    ("eval", "list", "extra"),
    ("token", "create", "--role", "zzz"),
    ("token", "revoke"),
    ("token", "list", "extra"),
    ("db", "check", "extra"),
    ("db", "migrate", "extra"),
    ("ab", "run"),
    ("ab", "record"),
    ("doctor", "extra"),
    ("completion", "zzz"),
    ("judge", "compare"),
    ("judge", "score"),
    ("judge", "selftest"),
    ("mock-model", "--port", "lots"),
]


@pytest.mark.parametrize("words", USAGE, ids=" ".join)
def test_bad_usage_is_64(words: tuple[str, ...], tmp_path: Path) -> None:
    places = bad_files(tmp_path)
    assert status_of(*(word.format(**places) for word in words)) == 64


def test_every_command_is_in_the_table_of_bad_usage() -> None:
    tried = {path for path in EVERY for words in USAGE if words[: len(path)] == path}
    assert [path for path in EVERY if path not in tried] == []


def test_a_service_that_is_away_is_69(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", single([1.0, 0.0] * 5))
    asked = '{"messages": [{"role": "user", "content": "?"}]}\n'
    (run / "trajectories.jsonl").write_text(asked * 10)
    records = tmp_path / "collected.jsonl"
    records.write_text(
        "".join(
            f'{{"task_id": "t", "arm": "{arm}", "repeat": {n}, "success": true, "duration_seconds": 1, '
            f'"total_cost_usd": 0, "input_tokens": 1, "output_tokens": 1, "cache_read_tokens": 0, '
            f'"cache_write_tokens": 0}}\n'
            for arm in ("with_x", "without_x")
            for n in (1, 2)
        )
    )
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"http://127.0.0.1:{closed.getsockname()[1]}"
        assert status_of("eval", "record", run, address) == 69
        assert status_of("ab", "record", records, address) == 69
        model = ("--model-url", f"{address}/v1", "--model-id", "m", "-o", tmp_path / "out")
        assert status_of("eval", "run", "--bench", "gsm8k", "--sample", *model) == 69
        (tmp_path / "answers.jsonl").write_text('{"response": "a", "target": "a"}\n')
        judge = ("--judge-url", f"{address}/v1", "--judge-id", "m", "-o", tmp_path / "judged.jsonl")
        assert status_of("judge", "score", tmp_path / "answers.jsonl", *judge) == 69


def test_a_report_that_cannot_be_written_is_74(tmp_path: Path) -> None:
    run = write_run(tmp_path / "run", single([1.0, 0.0] * 5))
    nowhere = tmp_path / "no" / "folder" / "out.md"
    assert status_of("compare", run, run, "--report", nowhere) == 74
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\n")
    assert status_of("gate", run, run, "--policy", policy, "--report", nowhere) == 74
    assert status_of("gate", run, run, "--policy", policy, "--junit", nowhere) == 74
    assert status_of("plan", run, "--effect", "0.1", "--report", nowhere) == 74


def test_an_internal_error_is_70_with_its_trace() -> None:
    """A command that raises what nobody foresaw is added to the list of commands."""
    program = (
        "import sys, click\n"
        "from evenhand.cli import app\n"
        "@click.command()\n"
        "def broken(): raise ZeroDivisionError('nobody foresaw this')\n"
        "sys.modules['broken_command'] = type(sys)('broken_command')\n"
        "sys.modules['broken_command'].command = broken\n"
        "app.COMMANDS['broken'] = app.Entry('broken_command', 'raises')\n"
        "app.main(['broken'])\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=300)
    assert done.returncode == 70
    assert "ZeroDivisionError: nobody foresaw this" in done.stderr
    assert "a fault of evenhand itself" in done.stderr


def test_every_error_has_a_status_that_is_no_verdict() -> None:
    found = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, Exception)]
    assert len(found) > 20
    for kind in found:
        assert kind.exit_status in set(Exit), kind  # type: ignore[attr-defined]
    assert {int(status) for status in Exit} == {64, 65, 66, 69, 70, 74, 75, 78, 130, 141}


@pytest.mark.parametrize(
    ("status", "expected"), [(None, 69), (503, 69), (429, 69), (408, 69), (401, 65), (404, 65), (422, 65)]
)
def test_a_refusal_by_the_service_is_bad_input_and_an_outage_is_not(
    status: int | None, expected: int
) -> None:
    assert errors.ServiceError("no", status=status).exit_status == expected


def test_the_help_names_every_status() -> None:
    text = evenhand("--help").stdout
    for status in Exit:
        assert str(int(status)) in text


def test_errno_of_a_full_disk_is_output() -> None:
    assert errno.ENOSPC in app.CANNOT_WRITE


def table_of(name: str) -> list[list[str]]:
    """The cells of a marked table of docs/reference.md, without its head."""
    page = (Path(__file__).resolve().parents[2] / "docs" / "reference.md").read_text(encoding="utf-8")
    text = page.split(f"<!-- {name} -->")[1].split(f"<!-- /{name} -->")[0]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.strip().splitlines()[2:]]


def test_the_documentation_lists_every_status() -> None:
    assert [int(row[0]) for row in table_of("exit statuses")] == [status.value for status in Exit]


def test_the_documentation_says_of_every_command_what_0_1_and_2_mean() -> None:
    told: dict[str, list[list[str]]] = {}
    for row in table_of("results by command"):
        for name in re.findall("`([^`]+)`", row[0]):
            told.setdefault(name.removesuffix(" --strict"), []).append(row[1:])
    assert set(told) == {" ".join(path) for path in EVERY}
    assert told["compare"][1] == ["PASS", "BLOCK", "WARN or INCONCLUSIVE"]
    assert told["gate"] == [["GO", "NO-GO", "INCONCLUSIVE"]]


@pytest.mark.parametrize(
    "status",
    [Exit.USAGE, Exit.DATA, Exit.NO_INPUT, Exit.UNAVAILABLE, Exit.INTERNAL],
    ids=lambda status: status.name,
)
def test_the_pages_of_the_commands_name_the_common_statuses(status: Exit) -> None:
    docs = Path(__file__).resolve().parents[2] / "docs"
    for page in ("compare.md", "evaluation.md", "ab.md"):
        assert re.search(rf"\b{status.value}\b", (docs / page).read_text(encoding="utf-8")), page

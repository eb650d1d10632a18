"""Importers on files that the tools really wrote (../shared/data/peers): what each printed is reproduced."""

import json
import struct
import zipfile
import zlib
from pathlib import Path
from typing import Any

import pytest
import zstandard

from evenhand.core.errors import InputError, UnknownName
from evenhand.core.outcome import Failed, Scored, Unscored
from evenhand.integrations import archives
from evenhand.integrations.conformance import faults
from evenhand.integrations.port import ImportedRun
from evenhand.integrations.registry import find_importer, read_foreign

FILES = [
    ("promptfoo", "promptfoo/results.json"),
    ("promptfoo", "promptfoo/results.jsonl"),
    ("promptfoo", "promptfoo/errors.json"),
    ("inspect", "inspect/logs-json/*.json"),
    ("lm-eval", "lm-eval/out/*"),
    ("lm-eval", "lm-eval/out/*/results_*.json"),
    ("lm-eval", "lm-eval/out/*/samples_arith_gen_*.jsonl"),
    ("deepeval", "deepeval/results/test_run_*.json"),
    ("nemo", "nemo/out/mini"),
]


@pytest.fixture(scope="session")
def peers(shared_data: Path) -> Path:
    return shared_data / "peers"


@pytest.mark.parametrize(("tool", "pattern"), FILES, ids=[pattern for _, pattern in FILES])
def test_every_importer_conforms(peers: Path, tmp_path: Path, tool: str, pattern: str) -> None:
    [path] = peers.glob(pattern)
    importer = find_importer(path)
    assert importer is not None
    assert importer.name == tool
    assert list(faults(importer, path, tmp_path)) == []


def one(path: Path) -> ImportedRun:
    [run] = read_foreign(path)
    return run


def printed(run: ImportedRun) -> dict[str, float | None]:
    return {figure.name: figure.printed for figure in run.figures}


def statuses(run: ImportedRun, scorer: str) -> dict[str, int]:
    found = {"scored": 0, "unscored": 0, "failed": 0}
    for outcome in run.outcomes(scorer):
        found[type(outcome).__name__.lower()] += 1
    return found


def test_inspect_as_printed(peers: Path) -> None:
    """printed-json.txt: accuracy 0.786, mean 0.106; 2 of 16 samples had errors and were not scored."""
    run = one(next(peers.glob("inspect/logs-json/*.json")))
    assert {name: round(value or 0, 3) for name, value in printed(run).items()} == {
        "match accuracy": 0.786,
        "brevity mean": 0.106,
    }
    assert statuses(run, "match") == {"scored": 14, "unscored": 0, "failed": 2}
    boom = [sample for sample in run.samples if sample.item == "q7"]
    assert [sample.repeat for sample in boom] == [0, 1]
    assert all(
        isinstance(out := sample.outcomes["match"], Failed) and "tool crashed" in out.message
        for sample in boom
    )


def test_lm_eval_as_printed(peers: Path) -> None:
    """printed.txt: exact_match 0.4 (strict, vote), acc 0.6, acc_norm 0.8."""
    [folder] = peers.glob("lm-eval/out/*")
    gen, choice = read_foreign(folder)
    assert printed(gen) == {"exact_match,strict": 0.4, "exact_match,vote": 0.4}
    assert printed(choice) == {"acc,none": 0.6, "acc_norm,none": 0.8}


def test_promptfoo_as_printed(peers: Path) -> None:
    """printed.txt: 6 passed, 10 failed, 0 errors. Two repeats of 4 tests on 2 prompts; one assertion crashed."""
    runs = read_foreign(peers / "promptfoo" / "results.json")
    assert [printed(run)["pass rate of the whole file"] for run in runs] == [6 / 16, 6 / 16]
    assert [printed(run)["pass rate"] for run in runs] == [2 / 8, 4 / 8]
    for run in runs:
        assert {(sample.item, sample.repeat) for sample in run.samples} == {
            (item, repeat)
            for item in ("addition", "weighted", "fails", "broken assertion")
            for repeat in (0, 1)
        }
        assert statuses(run, "pass") == {"scored": 6, "unscored": 0, "failed": 2}


def test_a_provider_error_is_no_zero(peers: Path) -> None:
    """printed-errors.txt: 1 passed, 1 error."""
    run = one(peers / "promptfoo" / "errors.json")
    assert statuses(run, "pass") == {"scored": 1, "unscored": 0, "failed": 1}
    failed = next(out for out in run.outcomes("pass") if isinstance(out, Failed))
    assert failed.error == "provider_error"
    assert "HTTP 500" in failed.message


def test_deepeval_as_printed(peers: Path) -> None:
    """printed.txt: pass rate 60.0 %, 3 passed, 2 failed; one metric raised, which the file says by leaving it out."""
    run = one(next(peers.glob("deepeval/results/*.json")))
    assert printed(run) == {"pass rate": 0.6}
    assert statuses(run, "Closeness") == {"scored": 4, "unscored": 0, "failed": 1}


def test_nemo_as_printed(peers: Path) -> None:
    """printed.txt: pass@1=0.6000 (6 of 10)."""
    run = one(peers / "nemo" / "out" / "mini")
    assert printed(run) == {"pass@1": 0.6}
    assert statuses(run, "reward") == {"scored": 10, "unscored": 0, "failed": 0}


def zstandard_zip(path: Path, members: dict[str, bytes], *, lie: int | None = None) -> Path:
    """A zip whose members are compressed with Zstandard (method 93), as Inspect writes it; `lie` is told as size."""
    entries, body = [], b""
    for name, data in members.items():
        packed = zstandard.ZstdCompressor().compress(data)
        size = len(data) if lie is None else lie
        fixed = struct.pack(
            "<HHHHHLLLHH", 20, 0x800, 93, 0, 0x21, zlib.crc32(data), len(packed), size, len(name.encode()), 0
        )
        entries.append((len(body), fixed, name.encode()))
        body += b"PK\x03\x04" + fixed + name.encode() + packed
    directory = b"".join(
        b"PK\x01\x02" + struct.pack("<H", 20) + fixed + struct.pack("<HHHLL", 0, 0, 0, 0, offset) + name
        for offset, fixed, name in entries
    )
    end = struct.pack(
        "<4s4H2LH", b"PK\x05\x06", 0, 0, len(entries), len(entries), len(directory), len(body), 0
    )
    path.write_bytes(body + directory + end)
    return path


def eval_members(peers: Path) -> dict[str, bytes]:
    log = json.loads(next(peers.glob("inspect/logs-json/*.json")).read_bytes())
    samples = log.pop("samples")
    members = {f"samples/{s['id']}_epoch_{s['epoch']}.json": json.dumps(s).encode() for s in samples}
    return {"header.json": json.dumps(log).encode(), **members}


def test_the_eval_form_is_the_json_form(peers: Path, tmp_path: Path) -> None:
    """The same log as a zip with Zstandard members, which Python's zipfile cannot read."""
    path = zstandard_zip(tmp_path / "log.eval", eval_members(peers))
    with zipfile.ZipFile(path) as opened, pytest.raises((NotImplementedError, RuntimeError)):
        opened.read("header.json")
    plain = one(next(peers.glob("inspect/logs-json/*.json")))
    assert one(path) == plain


def test_an_archive_that_unpacks_to_far_more_than_it_says_is_refused(peers: Path, tmp_path: Path) -> None:
    bomb = {"header.json": b"{}", "samples/a.json": b" " * (64 << 20)}
    with pytest.raises(InputError, match="packed more than"):
        read_foreign(zstandard_zip(tmp_path / "bomb.eval", bomb))
    # It says that the member is small, and it is not.
    with pytest.raises(InputError, match="damaged"):
        read_foreign(zstandard_zip(tmp_path / "liar.eval", bomb, lie=10))


def test_hostile_archives_are_refused_with_a_reason(peers: Path, tmp_path: Path) -> None:
    damaged = zstandard_zip(tmp_path / "damaged.eval", eval_members(peers))
    data = bytearray(damaged.read_bytes())
    data[200:260] = b"\x00" * 60
    damaged.write_bytes(data)
    with pytest.raises(InputError):
        read_foreign(damaged)
    other = tmp_path / "other.eval"
    with zipfile.ZipFile(other, "w") as made:
        made.writestr("../../etc/passwd", "x")
    with pytest.raises(InputError, match="not an Inspect log"):
        read_foreign(other)
    with zipfile.ZipFile(tmp_path / "many.eval", "w") as made:
        for number in range(3):
            made.writestr(f"samples/{number}.json", "{}")
    assert archives.MAX_MEMBERS == 200_000


def test_a_file_that_nobody_knows(tmp_path: Path) -> None:
    path = tmp_path / "what.json"
    path.write_text('{"hello": 1}')
    with pytest.raises(InputError, match="known are promptfoo, inspect, lm-eval, deepeval"):
        read_foreign(path)
    with pytest.raises(UnknownName):
        read_foreign(path, "prompfoo")


@pytest.mark.parametrize(
    ("value", "wanted"),
    [
        ("C", 1.0),
        ("I", 0.0),
        ("P", 0.5),
        ("N", 0.0),
        (True, 1.0),
        (0.25, 0.25),
        ("0.75", 0.75),
        ("yes", 1.0),
        ("blue", None),
        (None, None),
        ([1], None),
    ],
)
def test_values_of_inspect(peers: Path, tmp_path: Path, value: Any, wanted: float | None) -> None:
    """Inspect's own table of letters (value_to_float): C 1, P 0.5, I and N 0; what is no number is unscored."""
    log = json.loads(next(peers.glob("inspect/logs-json/*.json")).read_bytes())
    for sample in log["samples"]:
        if sample["scores"]:
            sample["scores"]["match"]["value"] = value
    path = tmp_path / "log.json"
    path.write_text(json.dumps(log))
    outcome = one(path).samples[0].outcomes["match"]
    if wanted is None:
        assert isinstance(outcome, Unscored)
    else:
        assert isinstance(outcome, Scored)
        assert outcome.value == wanted


def test_NaN_in_a_foreign_file_is_no_value(peers: Path, tmp_path: Path) -> None:
    [samples] = peers.glob("lm-eval/out/*/samples_arith_gen_*.jsonl")
    lines = samples.read_text().replace('"exact_match": 1.0', '"exact_match": NaN')
    path = tmp_path / "samples_arith_gen_2026-11-16T05-08-04.268231.jsonl"
    path.write_text(lines)
    assert statuses(one(path), "exact_match,strict") == {"scored": 3, "unscored": 2, "failed": 0}

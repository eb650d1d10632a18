"""`evenhand eval run` as people call it: real HTTP, exit statuses and sentences."""

import json
import resource
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.ab_suites import wait_for
from tests.evaluation.runs import evenhand, lines, timeless

from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import MockAnswer, MockCall

ROWS = [{"country": "France", "capital": "Paris"}, {"country": "Japan", "capital": "Tokyo"}]
BENCH = """
from evenhand import benchmark, exact_match, scorer


@benchmark(name="capitals", dataset="rows.jsonl", prompt="Capital of {country}?", target_field="capital")
@scorer
def check(sample):
    return exact_match(sample)
"""


def capital(call: MockCall) -> str:
    return next(row["capital"] for row in ROWS if row["country"] in call.prompt)


@pytest.fixture
def model() -> Iterator[MockModel]:
    with MockModel(capital) as running:
        yield running


@pytest.fixture
def bench(tmp_path: Path) -> Path:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    (tmp_path / "bench.py").write_text(BENCH)
    return tmp_path / "bench.py"


def flags(server: MockModel) -> tuple[str, ...]:
    return ("--model-url", server.url, "--model-id", "m")


def test_a_run_prints_its_result_and_where_the_report_is(
    tmp_path: Path, bench: Path, model: MockModel
) -> None:
    done = evenhand("eval", "run", "--bench", bench, *flags(model), "-o", tmp_path / "out", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "2 problems × 1 = 2 samples: 2 scored, 0 unscored, 0 failed" in done.stdout
    assert "pass@1       1.0000 [" in done.stdout
    assert str(tmp_path / "out" / "report.html") in done.stdout
    again = evenhand("eval", "report", tmp_path / "out", "--format", "json")
    assert json.loads(again.stdout)["benchmark"]["scores"]["pass@1"]["value"] == 1.0


# Says of each costly package, when it is looked for, in which thread that happens.
LOOKED_FOR = """
import sys, threading

COSTLY = ("numpy", "numpy.f2py", "scipy", "scipy.special", "jinja2", "evenhand.compare")


class Witness:
    def find_spec(self, name, path=None, target=None):
        if name in COSTLY:
            where = "loop" if threading.current_thread() is threading.main_thread() else "beside"
            print("LOADS", name, where, file=sys.stderr)


sys.meta_path.insert(0, Witness())
from evenhand.cli.app import main

main(sys.argv[1:])
"""


def test_costly_packages_are_loaded_beside_the_calls_or_not_at_all(
    tmp_path: Path, bench: Path, model: MockModel
) -> None:
    arguments = ["eval", "run", "--bench", str(bench), *flags(model), "-o", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-c", LOOKED_FOR, *arguments], capture_output=True, text=True, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    found = [line.split()[1:] for line in done.stderr.splitlines() if line.startswith("LOADS")]
    assert sorted(found) == [["jinja2", "beside"], ["numpy", "beside"], ["scipy", "beside"]]


def test_results_as_json_on_stdout(tmp_path: Path, bench: Path, model: MockModel) -> None:
    done = evenhand("eval", "run", "-b", bench, *flags(model), "--format", "json", cwd=tmp_path)
    assert json.loads(done.stdout)["benchmark"]["tally"] == {"scored": 2, "unscored": 0, "failed": 0}
    [made] = (tmp_path / "eval-results").iterdir()
    assert made.name.startswith("capitals-")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--bench", "gsm8"], "unknown benchmark 'gsm8'; did you mean gsm8k"),
        (["--bench", "gone.py"], "gone.py: no such file"),
        (["--bench", "simpleqa", "--sample"], "needs a judge; name one with --judge-url and --judge-id"),
        (
            ["--bench", "gsm8k", "--sample", "--judge-url", "http://x"],
            "needs both --judge-url and --judge-id",
        ),
        (["--bench", "gsm8k", "--dataset", "gone.jsonl"], "gone.jsonl: no such file"),
        (
            ["--bench", "gsm8k", "--dataset", "rows.jsonl"],
            "rows.jsonl:1: prepare_row needs the column 'answer'",
        ),
        (["--bench", "gsm8k", "--sample", "--resume"], "--resume needs the folder of the run"),
        (["--bench", "gsm8k", "--repeats", "0"], "Invalid value for '--repeats'"),
        ([], "name a benchmark with --bench"),
    ],
)
def test_bad_input_is_one_sentence_and_status_2(
    tmp_path: Path, bench: Path, model: MockModel, arguments: list[str], words: str
) -> None:
    done = evenhand("eval", "run", *arguments, *flags(model), cwd=tmp_path)
    assert done.returncode in (64, 65, 66)
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert model.requests == 0
    assert not list((tmp_path / "eval-results").glob("*")), "nothing is left behind"


def test_an_address_where_nothing_listens(tmp_path: Path, bench: Path) -> None:
    done = evenhand(
        "eval", "run", "-b", bench, "--model-url", "http://127.0.0.1:9/v1", "--model-id", "m", cwd=tmp_path
    )
    assert done.returncode == 69
    assert "cannot connect to http://127.0.0.1:9/v1 (Connection refused)" in done.stderr


def test_a_wrong_key_is_one_sentence_without_the_key(tmp_path: Path, bench: Path, model: MockModel) -> None:
    model.api_key = "right"
    done = evenhand(
        "eval",
        "run",
        "-b",
        bench,
        *flags(model),
        "--api-key",
        "sk-wrong",
        "-o",
        tmp_path / "out",
        cwd=tmp_path,
    )
    assert done.returncode == 69
    assert "401" in done.stderr
    assert "sk-wrong" not in done.stderr + done.stdout
    assert "resume with: evenhand eval run" in done.stderr


def test_samples_that_cannot_be_measured_mean_status_1(tmp_path: Path, bench: Path, model: MockModel) -> None:
    model.answer = lambda call: MockAnswer(text="no", status=500) if "Japan" in call.prompt else "Paris"
    command = ["eval", "run", "-b", str(bench), *flags(model), "--tries", "1", "-o", str(tmp_path / "out")]
    done = evenhand(*command)
    assert done.returncode == 1
    assert "1 samples could not be measured; try them again with: evenhand eval run" in done.stderr
    assert evenhand(*command, "--resume", "--allow-errors").returncode == 0
    model.answer = capital
    last = evenhand(*command, "--resume")
    assert last.returncode == 0
    assert "2 scored, 0 unscored, 0 failed" in last.stdout


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_ctrl_c_keeps_everything_and_says_how_to_go_on(
    tmp_path: Path, bench: Path, model: MockModel, number: signal.Signals, status: int
) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(ROWS[n % 2]) + "\n" for n in range(200)))

    def slower(call: MockCall) -> MockAnswer:
        # From the twentieth on, so slowly that the run cannot end before the signal.
        return MockAnswer(text=capital(call), latency=3.0 if model.requests >= 20 else 0.0)

    model.answer = slower
    command = ["eval", "run", "-b", str(bench), *flags(model), "-c", "4", "-o", str(tmp_path / "out")]
    process = subprocess.Popen(
        [sys.executable, "-m", "evenhand", *command], stderr=subprocess.PIPE, text=True
    )
    wait_for(lambda: model.requests >= 20, 120)
    process.send_signal(number)
    _, errors = process.communicate(timeout=240)
    assert process.returncode == status
    assert f"resume with: evenhand {' '.join(command)} --resume" in errors
    model.answer = capital
    assert evenhand(*command, "--resume").returncode == 0
    assert model.requests == 200, "what was in flight was waited for"


def test_a_suite_of_benchmarks_goes_on_when_one_fails(tmp_path: Path, bench: Path, model: MockModel) -> None:
    (tmp_path / "suite.yaml").write_text(
        textwrap.dedent(
            """
            services:
              model: {url: "${MODEL_URL}", id: m, api_key: "${MODEL_KEY:-none}"}
            benchmarks:
              - name: gsm8k
                dataset: gone.jsonl
              - ./bench.py
              - name: xstest
                sample: true
                max_problems: 2
            defaults: {concurrency: 2}
            output: out
            """
        )
    )
    model.answer = lambda call: capital(call) if "Capital" in call.prompt else "Sure."
    done = evenhand("eval", "run", tmp_path / "suite.yaml", env={"MODEL_URL": model.url}, cwd=tmp_path)
    assert done.returncode == 66
    assert "Error: gsm8k: " in done.stderr
    assert lines(tmp_path / "out" / "capitals" / "results.jsonl")[1]["reward"] == 1.0
    assert len(lines(tmp_path / "out" / "xstest" / "results.jsonl")) == 2
    capped = evenhand("eval", "run", tmp_path / "suite.yaml", "--spend-cap-usd", "5", cwd=tmp_path)
    assert capped.returncode == 64
    assert "--spend-cap-usd is not used with a config file" in capped.stderr
    missing = evenhand("eval", "run", tmp_path / "suite.yaml", cwd=tmp_path)
    assert missing.returncode == 65
    assert "suite.yaml: the variable MODEL_URL is not set in the environment" in missing.stderr


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("services: [", "suite.yaml:1: "),
        ("services: {}\noutput: a\noutput: b\n", "suite.yaml:3: duplicate key 'output'"),
        ('services: {m: {url: "http://x", id: m}}', "missing required field `benchmarks`"),
        (
            'services: {m: {url: "http://x", id: m, temprature: 1}}\nbenchmarks: [gsm8k]',
            "unknown field `temprature`",
        ),
        ('services: {judge: {url: "http://x", id: m}}\nbenchmarks: [gsm8k]', "unknown service 'model'"),
        ('services: {m: {url: "http://x", id: m}}\nbenchmarks: []', "the list of benchmarks is empty"),
        ('services: {m: {url: "http://x", id: m}}\nbenchmarks: [gsm8k, gsm8k]', "is in the list twice"),
    ],
)
def test_a_bad_suite_file_says_where(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "suite.yaml").write_text(text)
    done = evenhand("eval", "run", tmp_path / "suite.yaml")
    assert done.returncode in (64, 65)
    assert words in done.stderr


def test_shards_merge_into_the_whole(tmp_path: Path, bench: Path, model: MockModel) -> None:
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(ROWS[n % 2]) + "\n" for n in range(11)))
    model.answer = lambda call: "Paris"
    whole = evenhand("eval", "run", "-b", bench, *flags(model), "-o", tmp_path / "whole")
    assert whole.returncode == 0
    for shard in ("1/2", "2/2"):
        folder = tmp_path / "shards" / shard[0]
        assert (
            evenhand("eval", "run", "-b", bench, *flags(model), "--shard", shard, "-o", folder).returncode
            == 0
        )
        merged = evenhand("eval", "merge", tmp_path / "shards", "-o", tmp_path / "merged")
        if shard == "1/2":
            assert merged.returncode == 65
            assert "shards are missing: 2/2" in merged.stderr
    assert merged.returncode == 0, merged.stderr
    one, two = timeless(tmp_path / "whole"), timeless(tmp_path / "merged")
    for name in ("results", "trajectories", "failures"):
        assert one[name] == two[name]
    assert one["bundle"]["benchmark"] == two["bundle"]["benchmark"]


def test_list_and_validate(tmp_path: Path, bench: Path) -> None:
    assert "humaneval" in evenhand("eval", "list").stdout
    assert len(json.loads(evenhand("eval", "list", "--format", "json").stdout)) == 12
    done = evenhand("validate", "-b", bench, "--samples", "1")
    assert done.returncode == 0
    assert "capitals: 2 problems, every prompt can be made" in done.stdout
    assert "the target as the answer → scored 1.0; no answer → scored 0.0" in done.stdout
    (tmp_path / "rows.jsonl").write_text('{"country": "France"}\n')
    bad = evenhand("validate", "-b", bench)
    assert bad.returncode == 65
    assert "rows.jsonl:1: target_field needs the column 'capital'" in bad.stderr


def test_a_full_disk_is_a_sentence_and_nothing_is_lost(tmp_path: Path, bench: Path, model: MockModel) -> None:
    """The file size limit stands in for the disk: journal or artifacts, whichever meets it first."""
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(ROWS[n % 2]) + "\n" for n in range(60)))
    model.answer = lambda call: capital(call) + " " * 1000
    command = ["eval", "run", "-b", str(bench), *flags(model), "-c", "4", "-o", str(tmp_path / "out")]
    done = subprocess.run(
        [sys.executable, "-m", "evenhand", *command],
        capture_output=True,
        text=True,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (40_000, 40_000)),
    )
    assert done.returncode == 74
    assert "cannot be written: the " in done.stderr
    assert "resume with: evenhand eval run" in done.stderr
    assert "Traceback" not in done.stderr
    before = model.requests
    assert 20 <= before <= 45
    assert evenhand(*command, "--resume").returncode == 0
    assert model.requests <= 60 + 4, "only what was in flight was asked again"
    assert [row["reward"] for row in lines(tmp_path / "out" / "results.jsonl")] == [1.0] * 60

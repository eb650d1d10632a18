"""A run from start to artifacts, against a real HTTP endpoint."""

import json
import math
import socket
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace
from tests.evaluation.runs import config_for, doubles, doubling, lines, refusing, timeless

from evenhand.benchmarks.definition import Benchmark, benchmark
from evenhand.core.errors import (
    BudgetExceeded,
    InputError,
    ModelRejected,
    OptionError,
    RunActive,
    RunConflict,
    Unavailable,
)
from evenhand.core.secret import Secret
from evenhand.evaluation.artifacts import Written
from evenhand.evaluation.config import RunConfig, Sampling, Selection, Service
from evenhand.evaluation.lease import Lease
from evenhand.evaluation.pipeline import Stopped
from evenhand.evaluation.runner import Evaluation, Resume
from evenhand.reports.run import run_page
from evenhand.results import read_run
from evenhand.scoring.registry import scorer
from evenhand.scoring.types import ScorerInput
from evenhand.testing.faults import FaultPlan
from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import MockAnswer, MockCall, with_nonce

CONTINUE = Resume(allowed=True)


async def run(
    folder: Path, server: MockModel, bench: Any = None, resume: Resume | None = None, **options: Any
) -> Written:
    return await Evaluation(bench or doubles(), config_for(server, **options), folder, resume=resume).run()


async def test_a_whole_run(tmp_path: Path) -> None:
    async with MockModel(doubling) as server:
        written = await run(
            tmp_path / "r", server, system_prompt="Be brief.", sampling=Sampling(temperature=0.5)
        )
        assert server.requests == 20
        assert server.calls[0].body["temperature"] == 0.5
        assert server.calls[0].system == "Be brief."
    # 0, 5, 10 and 15 are wrong: 16 of 20.
    scores = written.bundle.benchmark.scores
    assert scores["pass@1"].value == scores["mean_reward"].value == 0.8
    assert scores["pass@1"].method == "clopper_pearson"
    rows = lines(tmp_path / "r" / "results.jsonl")
    assert [row["problem_idx"] for row in rows] == list(range(20))
    assert rows[3] == {
        "problem_idx": 3,
        "reward": 1.0,
        "repeat": 0,
        "expected_answer": "6",
        "model_response": "6",
        "extracted_answer": "6",
        "metadata": {"n": 3, "category": "odd"},
        "scoring_details": {},
        "status": "scored",
        "error": None,
        "usage": {
            "input_tokens": 6,
            "output_tokens": 1,
            "cost_usd": None,
            "duration_seconds": rows[3]["usage"]["duration_seconds"],
        },
        "reasoning": None,
        "truncated": False,
    }
    found = written.bundle.benchmark.categories
    assert isinstance(found, list)
    categories = {one.category: one for one in found}
    assert categories["even"].mean_reward == 0.8
    assert written.failures.categories["wrong_answer"].count == 4
    assert {path.name for path in written.paths} == {
        path.name for path in (tmp_path / "r").iterdir() if path.name != ".run"
    }
    again = read_run(tmp_path / "r")
    assert again.name == "doubles"
    assert len(again.samples) == 20


async def test_the_denominator_is_closed_whatever_happens(tmp_path: Path) -> None:
    def moody(call: MockCall) -> Any:
        number = int(call.prompt.split()[-1].rstrip("?"))
        if number % 4 == 1:
            return MockAnswer(text="boom", status=500)
        if number % 4 == 2:
            return MockAnswer(text="maximum context length is 10", status=400)
        return str(2 * number)

    async with MockModel(moody) as server:
        written = await run(tmp_path / "r", server, repeats=2)
    tally = written.bundle.benchmark.tally
    assert tally is not None
    assert (tally.scored, tally.unscored, tally.failed) == (20, 0, 20)
    assert written.bundle.benchmark.samples == 40 == tally.total
    assert written.bundle.benchmark.scores["mean_reward"].value == 1.0, "a failure is not a zero"
    assert {name: c.count for name, c in written.failures.categories.items()} == {
        "context_length": 10,
        "server_error": 10,
    }
    failed = [row for row in lines(tmp_path / "r" / "results.jsonl") if row["status"] == "failed"]
    assert all(
        row["reward"] is None and row["error"]["kind"] in ("server_error", "context_length") for row in failed
    )


async def test_resume_retries_only_what_infrastructure_lost(tmp_path: Path) -> None:
    down = True

    def moody(call: MockCall) -> Any:
        number = int(call.prompt.split()[-1].rstrip("?"))
        if number == 2:
            return MockAnswer(text="maximum context length is 10", status=400)
        if down and number % 4 == 1:
            return MockAnswer(text="boom", status=503)
        return str(2 * number)

    async with MockModel(moody) as server:
        await run(tmp_path / "r", server)
        assert server.requests == 20
        down = False
        written = await run(tmp_path / "r", server, resume=CONTINUE)
        assert server.requests == 25, "the five that met a 503, and no other"
        tally = written.bundle.benchmark.tally
        assert tally is not None
        assert (tally.scored, tally.failed) == (19, 1)
        await run(tmp_path / "r", server, resume=CONTINUE)
        assert server.requests == 25


async def test_repeats_give_pass_at_k(tmp_path: Path) -> None:
    def second_time(call: MockCall) -> str:
        number = int(call.prompt.split()[-1].rstrip("?"))
        return str(2 * number) if number % 2 == 0 or call.body["seed"] == 8 else "no"

    async with MockModel(second_time) as server:
        written = await run(tmp_path / "r", server, repeats=2, sampling=Sampling(seed=7))
    scores = written.bundle.benchmark.scores
    # Even problems: 2 of 2. Odd ones: only the repeat with seed 8.
    assert {name: metric.value for name, metric in scores.items()} == {
        "mean_reward": 0.75,
        "mean_reward_sample_level": 0.75,
        "pass@1": 0.75,
        "pass@2": 1.0,
        "pass^2": 0.5,
    }
    assert scores["mean_reward"].n == 20
    assert scores["mean_reward"].method.startswith("clustered")


async def test_a_wrong_key_stops_at_once(tmp_path: Path) -> None:
    async with MockModel(doubling, api_key="right") as server:
        with pytest.raises(ModelRejected, match="401"):
            await run(tmp_path / "r", server, bench=doubles(500))
        assert server.requests <= 16


async def test_a_request_that_is_always_refused_stops_soon(tmp_path: Path) -> None:
    async with MockModel(refusing(400, "unknown parameter: temperature")) as server:
        with pytest.raises(
            ModelRejected, match=r"the first \d+ requests were all refused.*unknown parameter"
        ):
            await run(tmp_path / "r", server, bench=doubles(500))
        assert server.requests < 60


async def test_an_unreachable_model_fails_before_anything_is_started(tmp_path: Path) -> None:
    with socket.socket() as silent:
        # Bound, so that nobody else gets the port; not listening.
        silent.bind(("127.0.0.1", 0))
        service = Service(url=f"http://127.0.0.1:{silent.getsockname()[1]}/v1", id="m", tries=100)
        with pytest.raises(Unavailable, match=r"cannot connect to http://127\.0\.0\.1"):
            await Evaluation(doubles(), RunConfig(model=service), tmp_path / "r").run()
    assert not (tmp_path / "r").exists(), "nothing was started"


async def test_changed_settings_refuse_to_resume_and_say_what_differs(tmp_path: Path) -> None:
    async with MockModel(doubling) as server:
        await run(tmp_path / "r", server)
        with pytest.raises(RunConflict, match="holds a finished run of 'doubles'"):
            await run(tmp_path / "r", server)
        with pytest.raises(
            RunConflict, match=r"cannot be resumed: temperature was not set and is now 0\.7\. "
        ):
            await run(tmp_path / "r", server, resume=CONTINUE, sampling=Sampling(temperature=0.7))
        with pytest.raises(RunConflict, match="the contents of the dataset changed"):
            await run(tmp_path / "r", server, bench=doubles(21), resume=CONTINUE)
        with pytest.raises(RunConflict, match="repeats was 1 and is now 2"):
            await run(tmp_path / "r", server, resume=CONTINUE, repeats=2)
        with pytest.raises(RunConflict, match="the prompt changed"):
            await run(tmp_path / "r", server, resume=CONTINUE, system_prompt="x")
        assert server.requests == 20
        drift = Resume(allowed=True, allow_drift=True)
        await run(tmp_path / "r", server, resume=drift, sampling=Sampling(temperature=0.7))


async def test_the_spend_cap_counts_model_and_judge_and_earlier_sessions(tmp_path: Path) -> None:
    """A call is worth 1,000 tokens = 0.1 dollars; every sample costs one of the model and one of the judge."""

    def answer(call: MockCall) -> MockAnswer:
        reply = '{"nonce": "{{nonce}}", "reasoning": "", "score": 5}'
        text = with_nonce(reply, call.prompt) if call.model == "judge" else "4"
        return MockAnswer(text=text, input_tokens=0, output_tokens=1000)

    def asks_the_judge(sample: ScorerInput) -> dict[str, Any]:
        return {"correct": False, "needs_judge": True}

    bench = benchmark(
        name="judged",
        dataset=lambda: [{"n": n, "target": "4"} for n in range(30)],
        prompt="{n}?",
        judge="default",
    )(scorer(asks_the_judge))
    free: dict[str, Any] = {"input_usd": 0.0, "output_usd": 100.0, "tries": 1}
    async with MockModel(answer) as server:
        config = RunConfig(
            model=Service(url=server.url, id="model", **free),
            judge=Service(url=server.url, id="judge", **free),
            sampling=Sampling(max_tokens=1000),
            judge_options={"max_tokens": 1000},
            concurrency=1,
            spend_cap_usd=1.05,
        )
        for resume in (None, CONTINUE):
            with pytest.raises(BudgetExceeded, match="spend cap"):
                await Evaluation(bench, config, tmp_path / "r", resume=resume).run()
            assert server.requests == 10, "ten calls of model and judge together, and none on resuming"
        await Evaluation(bench, replace(config, spend_cap_usd=100.0), tmp_path / "r", resume=CONTINUE).run()
        assert server.requests == 60


def judged_if_long(**options: Any) -> Benchmark:
    """Thirty numbers; a scorer that leaves answers of one digit to the judge, and grades the others itself."""

    def asks(sample: ScorerInput) -> dict[str, Any]:
        if len(sample.response) < 2:
            return {"correct": False, "needs_judge": True}
        return {"correct": True}

    rows = [{"n": n, "target": "x"} for n in range(30)]
    return benchmark(name="judged", dataset=lambda: rows, prompt="{n}", **options)(scorer(asks))


def number_or_verdict(call: MockCall) -> str:
    if call.model == "judge":
        return with_nonce('{"nonce": "{{nonce}}", "reasoning": "", "score": 4}', call.prompt)
    number = call.prompt.split()[-1]
    return "" if number == "7" else number


async def test_a_judge_that_is_configured_judges_though_the_benchmark_names_no_rubric(tmp_path: Path) -> None:
    """Ten answers of one digit, one of them empty: all ten go to the judge, which says 4 of 5."""
    async with MockModel(number_or_verdict) as server:
        judge = Service(url=server.url, id="judge", tries=1)
        with pytest.raises(OptionError, match="a sample needs a judge and there is none"):
            await Evaluation(judged_if_long(), config_for(server), tmp_path / "r").run()
        # The judge comes with the resume.
        config = config_for(server, judge=judge)
        await Evaluation(judged_if_long(), config, tmp_path / "r", resume=CONTINUE).run()
        assert sum(call.model == "judge" for call in server.calls) == 10
        other = config_for(server, judge=replace(judge, id="another"))
        with pytest.raises(RunConflict, match='judge id was "judge" and is now "another"'):
            await Evaluation(judged_if_long(), other, tmp_path / "r", resume=CONTINUE).run()
    rows = lines(tmp_path / "r" / "results.jsonl")
    assert [row["reward"] for row in rows] == [0.8] * 10 + [1.0] * 20
    assert rows[7]["model_response"] == ""
    assert {row["status"] for row in rows} == {"scored"}
    bundle = json.loads(next((tmp_path / "r").glob("eval-*.json")).read_text())
    assert "judge" in bundle["hashes"]
    assert bundle["config"]["judge"]["id"] == "judge"


async def test_a_judge_that_is_never_asked_is_no_part_of_the_run(tmp_path: Path) -> None:
    async with MockModel(doubling) as server:
        config = config_for(server, judge=Service(url=server.url, id="judge", tries=1))
        await Evaluation(doubles(), config, tmp_path / "r").run()
    bundle = json.loads(next((tmp_path / "r").glob("eval-*.json")).read_text())
    assert "judge" not in bundle["hashes"]
    assert "judge" not in bundle["config"]


async def test_the_key_of_the_judges_fence_stays_with_the_run_and_is_no_part_of_its_identity(
    tmp_path: Path,
) -> None:
    async with MockModel(number_or_verdict) as server:
        config = config_for(server, judge=Service(url=server.url, id="judge", tries=1))
        for name in ("a", "b"):
            await Evaluation(judged_if_long(judge="default"), config, tmp_path / name).run()
        keys = [(tmp_path / name / ".run" / "judge.key").read_text() for name in ("a", "b")]
        await Evaluation(judged_if_long(judge="default"), config, tmp_path / "a", resume=CONTINUE).run()
    assert keys[0] != keys[1]
    assert (tmp_path / "a" / ".run" / "judge.key").read_text() == keys[0]
    first, second = (
        [row["judge"] for row in lines(tmp_path / name / "trajectories.jsonl") if "judge" in row]
        for name in ("a", "b")
    )
    assert [row["identity"] for row in first] == [row["identity"] for row in second]
    assert [row["prompt_hash"] for row in first] == [row["prompt_hash"] for row in second]
    assert first[0]["raw_reply"] != second[0]["raw_reply"], "another code was repeated"
    for name in ("a", "b"):
        for file in (tmp_path / name).glob("*.json*"):
            assert keys[0].strip() not in file.read_text()


async def test_a_price_is_both_prices(tmp_path: Path) -> None:
    async with MockModel(doubling) as server:
        config = RunConfig(model=Service(url=server.url, id="m", input_usd=1.0))
        with pytest.raises(OptionError, match="give both prices"):
            await Evaluation(doubles(), config, tmp_path / "r").run()


async def test_two_processes_do_not_work_on_one_run(tmp_path: Path) -> None:
    (tmp_path / "r" / ".run").mkdir(parents=True)
    async with MockModel(doubling) as server:
        with Lease(tmp_path / "r" / ".run" / "lock", refusal="the run is active"):
            with pytest.raises(RunActive, match=r"is active on host .*, process \d+, since 2") as caught:
                await run(tmp_path / "r", server)
            assert caught.value.exit_status == 75
        await run(tmp_path / "r", server)


async def test_an_interrupted_run_keeps_what_was_finished(tmp_path: Path) -> None:
    async with MockModel(doubling, latency=0.02) as server:
        pipelines: list[Any] = []

        class StopAtTen:
            def tick(self, ledger: Any) -> None:
                if ledger.done() >= 10 and ledger.done() < len(ledger):
                    pipelines[0].stop(Stopped("enough", reason="2"))

        evaluation = Evaluation(
            doubles(400),
            config_for(server, concurrency=8),
            tmp_path / "r",
            watcher=StopAtTen(),
            on_pipeline=pipelines.append,
        )
        with pytest.raises(Stopped):
            await evaluation.run()
        first = server.requests
        assert 10 <= first < 400
        assert not (tmp_path / "r" / "results.jsonl").exists()
        await run(tmp_path / "r", server, bench=doubles(400), resume=CONTINUE)
        assert server.requests == 400, "calls in flight were waited for, none was repeated"
        await run(tmp_path / "whole", server, bench=doubles(400))
    one, two = timeless(tmp_path / "r"), timeless(tmp_path / "whole")
    two["bundle"]["config"]["concurrency"] = one["bundle"]["config"]["concurrency"]
    assert one == two


async def test_faults_are_ridden_out(tmp_path: Path) -> None:
    plan = FaultPlan(rate=0.3, kinds=("rate_limit", "cut", "server_error"), retry_after="0")
    async with MockModel(doubling, faults=plan) as server:
        config = config_for(server)
        patient = Service(url=server.url, id="m", tries=6)
        written = await Evaluation(
            doubles(40), type(config)(model=patient, concurrency=40), tmp_path / "r"
        ).run()
    tally = written.bundle.benchmark.tally
    assert tally is not None
    assert tally.scored == 40
    assert written.runtime.retries > 0


async def test_scorers_that_misbehave_become_failures(tmp_path: Path) -> None:
    bench = doubles(6)

    def bad(sample: Any) -> Any:
        return [{"reward": math.nan}, {"nothing": 1}, 1 / 0 if sample.target == "4" else {"reward": 1}][
            int(sample.target) // 2 % 3
        ]

    async with MockModel(doubling) as server:
        written = await run(tmp_path / "r", server, bench=replace(bench, scorer=scorer(bad)))
    tally = written.bundle.benchmark.tally
    assert tally is not None
    assert (tally.scored, tally.failed) == (1, 5)
    kinds = {row["error"]["kind"] for row in lines(tmp_path / "r" / "results.jsonl") if row["error"]}
    assert kinds == {"bad_result", "scorer_error"}


async def test_bad_input_is_found_before_the_first_call(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    rows.write_text('{"n": 1, "target": "2"}\n{"n": 2}\n')
    async with MockModel(doubling) as server:
        with pytest.raises(InputError, match=r"rows\.jsonl:2: target_field needs the column 'target'"):
            await run(tmp_path / "r", server, dataset=str(rows))
        with pytest.raises(OptionError, match="needs a judge; name one with --judge-url and --judge-id"):
            await run(tmp_path / "r", server, bench=doubles(judge="default"))
        with pytest.raises(OptionError, match="ships no sample rows"):
            await run(tmp_path / "r", server, selection=Selection(sample=True))
        assert server.requests == 0


async def test_artifacts_are_plain_json_without_secrets(tmp_path: Path) -> None:
    async with MockModel(doubling) as server:
        config = config_for(server)
        keyed = Service(url=server.url, id="m", api_key=Secret("sk-canary-123"))
        await Evaluation(
            doubles(), type(config)(model=keyed), tmp_path / "r", load_report=lambda: run_page
        ).run()
    for path in (tmp_path / "r").rglob("*"):
        if path.is_file():
            assert "sk-canary-123" not in path.read_text()
    bundle = json.loads(next((tmp_path / "r").glob("eval-*.json")).read_text())
    assert set(bundle["hashes"]) == {"benchmark", "dataset", "prompt", "scorer", "sampling"}
    assert bundle["versions"]["evenhand"]
    page = (tmp_path / "r" / "report.html").read_text()
    assert "src=" not in page  # its own script stands in it, and nothing is fetched


@pytest.mark.parametrize("waits", [False, True], ids=["plain", "async"])
@pytest.mark.parametrize("reports", [False, True], ids=["reports nothing", "reports what it extracted"])
async def test_only_a_scorer_that_extracts_finds_errors_of_format(
    tmp_path: Path, reports: bool, waits: bool
) -> None:
    """12 samples: more than are tried on threads before a plain scorer may run in the event loop."""
    result: dict[str, Any] = {"correct": False, "extracted": None} if reports else {"correct": False}

    def rows() -> list[dict[str, Any]]:
        return [{"n": n, "target": "x"} for n in range(12)]

    def plain(sample: ScorerInput) -> dict[str, Any]:
        return result

    async def waiting(sample: ScorerInput) -> dict[str, Any]:
        return result

    made = benchmark(name="wrong", dataset=rows, prompt="{n}")(waiting if waits else plain)
    async with MockModel("an answer") as server:
        written = await run(tmp_path / "r", server, made)
    counts = {name: category.count for name, category in written.failures.categories.items()}
    assert counts == {"format_error" if reports else "wrong_answer": 12}

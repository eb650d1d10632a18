"""Suites without code: `evenhand init` and `evenhand eval run evenhand.yaml`, over HTTP and with the built-in mock."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from tests.evaluation.runs import evenhand, lines

from evenhand.core.errors import EvenhandError
from evenhand.evaluation.suites.file import TOP, read_variant_suite
from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import MockAnswer, MockCall, with_nonce

ROWS = [{"question": f"{a} + {b}", "expected": str(a + b)} for a in range(8) for b in range(10)]


def calculator(call: MockCall) -> str:
    """Right with the good prompt, wrong on sums above 9 with the other; as a judge it likes what is short."""
    if call.model == "judge":
        best = "1" if "criterion" in call.prompt else "5"
        label = best if "about it" not in call.prompt else "0"
        return with_nonce('{"nonce": "{{nonce}}", "reasoning": "-", "score": ' + label + "}", call.prompt)
    left, _, right = call.prompt.split(":")[-1].strip().split()[:3]
    total = int(left) + int(right)
    return str(total) if call.model == "good" or total < 10 else "Let me think about it"


@pytest.fixture
def model() -> Iterator[MockModel]:
    with MockModel(calculator) as found:
        yield found


def write(folder: Path, **suite: Any) -> Path:
    path = folder / "evenhand.yaml"
    path.write_text(yaml.safe_dump(suite, sort_keys=False))
    return path


def suite(url: str, **more: Any) -> dict[str, Any]:
    return {
        "data": ROWS,
        "prompts": {"plain": "Add: {question}", "kind": "Please add: {question}"},
        "models": {"bad": {"url": url, "id": "bad"}, "good": {"url": url, "id": "good"}},
        "scorers": ["exact_match"],
        **more,
    }


def run(folder: Path, *words: str, status: int) -> dict[str, Any]:
    done = evenhand("eval", "run", "evenhand.yaml", "--format", "json", *words, cwd=folder)
    assert done.returncode == status, done.stderr + done.stdout
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def test_every_prompt_meets_every_model_and_gets_a_verdict(tmp_path: Path, model: MockModel) -> None:
    write(tmp_path, **suite(model.url, baseline={"prompt": "plain", "model": "good"}, margin=0.1))
    found = run(tmp_path, "-o", "out", status=1)
    said = {line["variant"]: line for line in found["lines"]}
    assert {name: line["verdict"] for name, line in said.items()} == {
        "plain · bad": "NO-GO",
        "plain · good": None,
        "kind · bad": "NO-GO",
        "kind · good": "GO",
    }
    right = sum(int(row["expected"]) < 10 for row in ROWS) / len(ROWS)
    cell = said["kind · bad"]["cells"]["exact_match"]
    assert cell["mean"]["value"] == pytest.approx(right)
    assert cell["mean"]["ci_lower"] < right < cell["mean"]["ci_upper"]
    assert cell["tally"] == {"scored": len(ROWS), "unscored": 0, "failed": 0}
    (difference,) = said["kind · bad"]["differences"]
    assert difference["ci_lower"] < right - 1 < difference["ci_upper"] < -0.1
    assert said["plain · good"]["is_baseline"]
    assert said["kind · good"]["latency_seconds"] > 0
    assert len(model.calls) == 4 * len(ROWS)
    assert json.loads((tmp_path / "out" / "grid.json").read_text())["verdict"] == "NO-GO"
    assert "plain · good" in (tmp_path / "out" / "report.html").read_text()


def test_the_differences_are_corrected_for_their_number(tmp_path: Path, model: MockModel) -> None:
    write(tmp_path, **suite(model.url, baseline="good", prompts=["Add: {question}"]))
    alone = run(tmp_path, "-o", "one", status=1)["lines"][0]["differences"][0]
    write(tmp_path, **suite(model.url, baseline={"prompt": "plain", "model": "good"}))
    among = run(tmp_path, "-o", "three", status=1)["lines"][0]["differences"][0]
    assert among["delta"] == alone["delta"]
    assert among["ci_upper"] - among["ci_lower"] > alone["ci_upper"] - alone["ci_lower"]


def test_a_finished_suite_repeats_no_call(tmp_path: Path, model: MockModel) -> None:
    write(tmp_path, **suite(model.url, baseline="good", prompts=["Add: {question}"]))
    first = run(tmp_path, "-o", "out", status=1)
    asked = model.requests
    assert run(tmp_path, "-o", "out", "--resume", status=1)["lines"] == first["lines"]
    assert model.requests == asked


def test_chat_prompts_examples_and_images_are_sent_as_written(tmp_path: Path) -> None:
    prompt = [
        {"role": "system", "content": "You see {{everything}}."},
        {"role": "user", "content": "Hello"},
        {"role": "assistant", "content": "Hi"},
        {
            "role": "user",
            "content": [
                {"type": "text", "text": "What is on {name}?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,{picture}"}},
            ],
        },
    ]
    with MockModel("a cat") as model:
        write(
            tmp_path,
            data=[{"name": "one", "picture": "AAAA", "expected": "a cat"}],
            prompts={"look": {"messages": prompt, "examples": [{"name": "zero", "picture": "BB", "expected": "a dog"}]}},
            models={"eye": {"url": model.url, "id": "eye", "temperature": 0.5}},
            scorers=["exact_match"],
        )  # fmt: skip
        found = run(tmp_path, "-o", "out", status=0)
        (call,) = model.calls
    assert found["verdict"] is None
    shown = call.body["messages"]
    assert [turn["role"] for turn in shown] == [
        "system", "user", "assistant", "user", "assistant", "user", "assistant", "user",
    ]  # fmt: skip
    assert shown[0]["content"] == "You see {everything}."
    assert shown[4]["content"] == "a dog"
    assert shown[7]["content"] == [
        {"type": "text", "text": "What is on one?"},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}},
    ]
    assert call.body["temperature"] == 0.5
    assert lines(tmp_path / "out" / "eye" / "results.jsonl")[0]["status"] == "scored"


def test_rows_bring_scorers_and_the_judge_of_the_suite_reads_its_rubric(
    tmp_path: Path, model: MockModel
) -> None:
    rows = [
        {"question": "1 + 2", "expected": "3"},
        {"question": "4 + 4", "expected": "8", "scorers": ["exact_match", {"regex": {"pattern": "[0-9]+"}}]},
        {"question": "9 + 9", "expected": "18", "scorers": [{"contains": {"case_sensitive": True}}]},
        {"question": "2 + 2", "expected": "4", "scorers": [{"judge": "is {{short}}"}]},
    ]
    judge = {"url": model.url, "id": "judge", "rubric": "Is it short?"}
    models = {"bad": {"url": model.url, "id": "bad"}}
    write(tmp_path, **suite(model.url, data=rows, judge=judge, models=models, prompts=["Add: {question}"]))
    (line,) = run(tmp_path, "-o", "out", status=0)["lines"]
    assert set(line["cells"]) == {"exact_match", "judge", "checks"}
    assert line["cells"]["judge"]["mean"]["value"] == 0.75
    assert line["cells"]["checks"]["tally"] == {"scored": 3, "unscored": 0, "failed": 0}
    assert line["cells"]["checks"]["mean"]["value"] == pytest.approx(2 / 3)
    prompts = [call.prompt for call in model.calls if call.model == "judge"]
    assert len([text for text in prompts if "Is it short?" in text]) == 4
    assert len([text for text in prompts if "is { {short} }" in text]) == 1
    result = lines(tmp_path / "out" / "bad" / "results.jsonl")[2]
    assert result["scores"]["checks"]["details"]["checks"] == [
        {"scorer": "contains", "value": 0.0, "passed": False}
    ]


def at_a_price(call: MockCall) -> MockAnswer:
    """The calculator; every reply is as long as a judge's may be."""
    return MockAnswer(text=calculator(call), input_tokens=0, output_tokens=1024)


def priced(url: str, judge_cap: float | None = None, **more: Any) -> dict[str, Any]:
    """Ten rows with two criteria each, at 0.1 dollars a call: ten calls of the model and twenty of the judge."""
    prices = {"input_usd": 0.0, "output_usd": 0.1 / 1024e-6, "tries": 1, "url": url}
    rows = [{**row, "scorers": [{"judge": "is short"}, {"judge": "is a number"}]} for row in ROWS[:10]]
    cap = {} if judge_cap is None else {"spend_cap_usd": judge_cap}
    return suite(
        url,
        data=rows,
        prompts=["Add: {question}"],
        models={"good": {**prices, "id": "good"}},
        judge={**prices, **cap, "id": "judge"},
        max_tokens=1024,
        concurrency=1,
        **more,
    )


def test_what_rows_ask_the_judge_is_in_the_grids_cost(tmp_path: Path) -> None:
    with MockModel(at_a_price) as model:
        write(tmp_path, **priced(model.url))
        (line,) = run(tmp_path, "-o", "out", status=0)["lines"]
        assert (line["cost_usd"], line["judge_cost_usd"]) == pytest.approx((1.0, 2.0))
        assert model.requests == 30
        shown = evenhand("eval", "run", "evenhand.yaml", "-o", "out", "--resume", cwd=tmp_path).stdout
    assert "$3.0000" in shown
    stats = json.loads((tmp_path / "out" / "good" / "runtime_stats.json").read_text())
    assert stats["judge_tokens"] == {"input": 0, "output": 20 * 1024}


@pytest.mark.parametrize(
    ("caps", "requests"),
    [({"spend_cap_usd": 1.05}, 10), ({"spend_cap_usd": 50.0, "judge_cap": 0.55}, None)],
    ids=["of the suite", "of the judge"],
)
def test_what_rows_ask_the_judge_is_under_the_spend_caps(
    tmp_path: Path, caps: dict[str, float], requests: int | None
) -> None:
    """A call that would pass a cap is not made; the run can be continued, and no paid call is made again."""
    with MockModel(at_a_price) as model:
        write(tmp_path, **priced(model.url, **caps))
        done = evenhand("eval", "run", "evenhand.yaml", "-o", "out", cwd=tmp_path)
        assert done.returncode not in (0, 1, 2), done.stdout
        assert "spend cap" in done.stderr
        judged = sum(call.model == "judge" for call in model.calls)
        if requests is None:
            assert judged == 5
        else:
            assert model.requests == requests
            evenhand("eval", "run", "evenhand.yaml", "-o", "out", "--resume", cwd=tmp_path)
            assert model.requests == requests, "what was spent before the stop counts on resuming"
        assert judged > 0
        write(tmp_path, **priced(model.url, spend_cap_usd=50.0))
        (line,) = run(tmp_path, "-o", "out", "--resume", status=0)["lines"]
    assert line["cells"]["checks"]["tally"] == {"scored": 10, "unscored": 0, "failed": 0}
    assert line["judge_cost_usd"] == pytest.approx(2.0)


def test_the_matrix_leaves_out_and_adds(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        data=ROWS,
        prompts={"a": "{question}", "b": "{question}!"},
        models={"x": "mock", "y": {"mock": {"right": 1}}},
        scorers={"same": "exact_match", "near": {"contains": {"case_sensitive": False}}},
        matrix={
            "exclude": [{"prompt": "b", "model": "x"}],
            "include": [{"name": "hot", "model": "y", "temperature": 1}],
        },
    )
    found = read_variant_suite(path)
    assert [one.name for one in found.variants] == ["a · x", "a · y", "b · y", "hot"]
    assert found.variants[3].planned.config.sampling.temperature == 1
    assert list(found.variants[0].planned.benchmark.scorers) == ["same", "near"]
    assert found.baseline == "a · x"


def test_a_policy_decides_in_place_of_the_margin(tmp_path: Path) -> None:
    common: dict[str, Any] = {
        "data": ROWS,
        "prompts": ["{question}"],
        "models": {"old": {"mock": {"right": 0.9}}, "new": {"mock": {"right": 0.7}}},
        "scorers": ["exact_match"],
    }
    lenient = {"version": 1, "defaults": {"max_drop": 0.5}}
    write(tmp_path, **common, policy=lenient)
    assert run(tmp_path, status=0)["lines"][1]["verdict"] == "GO"
    (tmp_path / "policy.yaml").write_text("version: 1\nbenchmarks:\n  exact_match: {max_drop: 0.01}\n")
    write(tmp_path, **common, policy="policy.yaml")
    line = run(tmp_path, status=1)["lines"][1]
    assert (line["verdict"], line["differences"][0]["verdict"]) == ("NO-GO", "BREACH")


def test_one_benchmark_with_two_models(tmp_path: Path) -> None:
    with MockModel("#### 18") as model:
        models = {name: {"url": model.url, "id": name} for name in ("small", "large")}
        write(tmp_path, benchmark="gsm8k", models=models, max_problems=3, output="out")
        services = {
            "services": models,
            "benchmarks": [{"name": "gsm8k", "model": name, "sample": True} for name in models],
        }
        (tmp_path / "old.yaml").write_text(yaml.safe_dump({**services, "output": "old"}))
        done = evenhand("eval", "run", "old.yaml", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert {path.name for path in (tmp_path / "old").iterdir()} == {"gsm8k-small", "gsm8k-large"}
    found = read_variant_suite(tmp_path / "evenhand.yaml")
    assert [(one.name, one.planned.benchmark.name) for one in found.variants] == [
        ("small", "gsm8k"),
        ("large", "gsm8k"),
    ]


MINIMAL: dict[str, Any] = {
    "data": ROWS[:2],
    "prompts": ["{question}"],
    "models": ["mock"],
    "scorers": ["exact_match"],
}


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"promts": ["x"]}, "unknown key 'promts'; did you mean 'prompts'?"),
        ({"models": [{"mock": {"rigth": 1}}]}, "unknown key 'rigth'; did you mean 'right'?"),
        ({"models": [{"url": "http://x/v1", "id": "m", "key": "sk-123"}]}, "never the key itself"),
        ({"models": [{"url": "http://x/v1", "id": "m", "key": "NOT_SET_HERE"}]}, "NOT_SET_HERE is not set"),
        ({"models": [{"url": "${HOME}", "id": "m"}]}, "address"),
        ({"data": "../secret.csv"}, "outside the folder"),
        ({"data": "/etc/passwd"}, "outside the folder"),
        ({"prompts": [{"file": "../../etc/passwd"}]}, "outside the folder"),
        ({"data": "none.csv"}, "does not exist"),
        ({"scorers": ["exact_mach"]}, "exact_match"),
        ({"scorers": ["mine.py:tone"]}, "runs no code"),
        ({"scorers": [{"contains": {"case": True}}]}, "has no option 'case'"),
        ({"benchmark": "x.py"}, "has its own data"),
        ({"baseline": "nobody"}, "nobody"),
        ({"prompts": ["a { b"]}, "lone '{'"),
        ({"matrix": {"exclude": [{"model": "mock"}]}}, "every variant is excluded"),
        ({"matrix": {"exclude": [{"modle": "mock"}]}}, "did you mean 'model'?"),
        ({"data": [{"question": "x", "scorers": ["nothing_such"]}]}, "nothing_such"),
        ({"data": [{"question": "x", "scorers": [{"judge": "is nice"}]}]}, "names none"),
        ({"judge": "mock"}, "cannot judge"),
        ({"margin": -1}, "margin"),
        ({"policy": {"version": 1}, "margin": 0.1}, "not both"),
        ({"temperature": "hot"}, "temperature"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_before_anything_runs(
    tmp_path: Path, change: dict[str, Any], words: str
) -> None:
    path = write(tmp_path, **{**MINIMAL, **change})
    with pytest.raises(EvenhandError, match=words.replace("{", "\\{").replace("?", "\\?")):
        read_variant_suite(path)


def test_a_missing_variable_is_named_and_nothing_is_kept(tmp_path: Path) -> None:
    write(tmp_path, **{**MINIMAL, "prompts": ["{qestion}"]})
    done = evenhand("eval", "run", "evenhand.yaml", "-o", "out", cwd=tmp_path)
    assert done.returncode == 65
    assert "did you mean 'question'?" in done.stderr
    assert not (tmp_path / "out").exists() or not any((tmp_path / "out").iterdir())


def test_yaml_is_data(tmp_path: Path) -> None:
    (tmp_path / "evenhand.yaml").write_text("data: !!python/object/apply:os.system ['touch hacked']\n")
    assert evenhand("eval", "run", "evenhand.yaml", cwd=tmp_path).returncode == 65
    assert not (tmp_path / "hacked").exists()


def test_a_link_out_of_the_folder_is_not_followed_unless_the_file_is_named(tmp_path: Path) -> None:
    (tmp_path / "secret.csv").write_text("question,expected\n1,1\n")
    home = tmp_path / "suite"
    home.mkdir()
    (home / "data.csv").symlink_to(tmp_path / "secret.csv")
    path = write(home, **{**MINIMAL, "data": "data.csv"})
    with pytest.raises(EvenhandError, match="outside the folder"):
        read_variant_suite(path)
    done = evenhand("eval", "run", "evenhand.yaml", "--data", "../secret.csv", cwd=home)
    assert done.returncode == 0, done.stderr


def test_failed_answers_are_no_zeros_and_prove_nothing(tmp_path: Path) -> None:
    def shaky(call: MockCall) -> str | MockAnswer:
        return MockAnswer(text="down", status=500) if call.model == "bad" else calculator(call)

    with MockModel(shaky) as model:
        models = {name: {"url": model.url, "id": name, "tries": 1} for name in ("good", "bad")}
        write(tmp_path, **suite(model.url, prompts=["Add: {question}"], models=models))
        good, bad = run(tmp_path, "-o", "out", status=2)["lines"]
    assert good["is_baseline"]
    assert bad["cells"]["exact_match"]["mean"]["value"] is None
    assert bad["cells"]["exact_match"]["tally"] == {"scored": 0, "unscored": 0, "failed": len(ROWS)}
    assert bad["verdict"] == "INCONCLUSIVE"


def test_init_runs_as_it_is_and_overwrites_nothing(tmp_path: Path) -> None:
    assert evenhand("init", cwd=tmp_path).returncode == 0
    before = (tmp_path / "evenhand.yaml").read_text()
    again = evenhand("init", cwd=tmp_path)
    assert again.returncode == 64
    assert "does not overwrite" in again.stderr
    assert (tmp_path / "evenhand.yaml").read_text() == before
    found = run(tmp_path, status=0)
    assert found["verdict"] == "GO"
    (tmp_path / "evenhand.yaml").write_text(before.replace("right: 0.95", "right: 0.5"))
    assert run(tmp_path, status=1)["verdict"] == "NO-GO"
    assert evenhand("init", "new/place", cwd=tmp_path).returncode == 0
    assert (tmp_path / "new" / "place" / "questions.csv").exists()


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (("--stop-when-decided",), "needs every row of every variant"),
        (("--baseline", "."), "--baseline is not used with a config file; set it in the file"),
        (("--margin", "0.5"), "--margin is not used with a config file; set it in the file"),
    ],
)
def test_what_a_suite_decides_itself_is_refused_as_a_flag(
    tmp_path: Path, flags: tuple[str, ...], words: str
) -> None:
    assert evenhand("init", cwd=tmp_path).returncode == 0
    done = evenhand("eval", "run", "evenhand.yaml", "-o", "out", *flags, cwd=tmp_path)
    assert (done.returncode, (tmp_path / "out").exists()) == (64, False)
    assert words in done.stderr


DOCS = Path(__file__).resolve().parents[2] / "docs" / "suites.md"


def test_the_page_leads_from_an_empty_folder_to_a_verdict(tmp_path: Path) -> None:
    page = DOCS.read_text(encoding="utf-8")
    commands = re.findall(r"^\$ evenhand (.*)$", page, flags=re.MULTILINE)
    assert commands == ["init", "eval run evenhand.yaml"]
    assert evenhand(*commands[0].split(), cwd=tmp_path).returncode == 0
    done = evenhand(*commands[1].split(), cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    (shown,) = re.findall(r"```text\n(.*?)```", page, flags=re.DOTALL)

    def timeless(text: str) -> str:
        return re.sub(r"\s+", " ", re.sub(r"[0-9.]+ ms", "", text))

    for line in filter(None, shown.splitlines()):
        assert timeless(line).strip() in timeless(done.stdout)
    # The edit of two lines: other models.
    text = (tmp_path / "evenhand.yaml").read_text()
    with MockModel(lambda call: "I do not know" if call.model == "weak" else "3") as model:
        for name in ("today", "tomorrow"):
            identity = "strong" if name == "today" else "weak"
            new = f'  {name}: {{url: "{model.url}", id: {identity}}}'
            text = re.sub(rf"^  {name}: .*$", new, text, flags=re.MULTILINE)
        (tmp_path / "evenhand.yaml").write_text(text)
        assert run(tmp_path, status=2)["verdict"] == "INCONCLUSIVE"


def test_the_pieces_of_the_page_make_a_suite(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    whole: dict[str, Any] = {"scorers": ["exact_match"], "judge": {"url": "http://127.0.0.1:9/v1", "id": "j"}}
    for block in re.findall(r"```yaml\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL):
        whole |= yaml.safe_load(block)
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "long.txt").write_text("{question}")
    found = read_variant_suite(write(tmp_path, **whole))
    assert len(found.variants) == 4 * 5 - 1 + 1


def test_every_key_is_on_the_page() -> None:
    page = DOCS.read_text(encoding="utf-8")
    assert not [key for key in TOP if f"`{key}`" not in page]

"""Whatever a file says, no command sends control characters to the terminal."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.ab_rows import row, write_rows
from tests.ab_suites import suite, write_suite
from tests.evaluation.runs import evenhand
from tests.runs import samples

from evenhand.results.bundle import Bundle
from evenhand.testing import MockAnswer, MockModel

EVIL = "\x1b]0;owned\x07\x1b[2J\x9b31m\r\x08\u202e"
"""A new window title, a cleared screen, an eight-bit sequence, an overwritten line, and text turned around."""
CONTROL = {chr(code) for code in [*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0), 0x202E]}


def evil(value: Any) -> Any:
    """Every text in `value`, keys too, with the sequences at its end."""
    if isinstance(value, str):
        return value + EVIL
    if isinstance(value, list):
        return [evil(one) for one in value]
    if isinstance(value, dict):
        return {key if key in FIELDS else key + EVIL: evil(one) for key, one in value.items()}
    return value


# Names that the formats fix; anything else may be a name of somebody's own.
FIELDS = {
    *Bundle.__struct_fields__,
    *(
        "name",
        "samples",
        "repeats",
        "scores",
        "categories",
        "tally",
        "value",
        "ci_lower",
        "ci_upper",
        "method",
        "n",
    ),
    *(
        "category",
        "mean_reward",
        "n_samples",
        "unscored",
        "failed",
        "scored",
        "model",
        "id",
        "scorer",
        "dataset",
    ),
    *("problem_idx", "repeat", "reward", "expected_answer", "model_response", "extracted_answer", "metadata"),
    *("scoring_details", "status", "error", "usage", "reasoning", "truncated", "kind", "message", "judge"),
    *("response", "target", "input_tokens", "output_tokens", "cost_usd", "duration_seconds"),
    *("prompt", "system_prompt", "sampling", "human"),
}


def hostile_run(folder: Path, right: int) -> Path:
    folder.mkdir(parents=True)
    rewards: dict[int, list[float | None]] = {n: [float(n < right)] for n in range(12)}
    rewards[11] = [None]
    category = {n: "even" if n % 2 else "odd" for n in rewards}
    rows = []
    for sample in samples(rewards, category=category):
        fixed = {name: getattr(sample, name) for name in ("problem_idx", "repeat", "reward", "status")}
        fixed["usage"] = {"input_tokens": 5, "output_tokens": 5, "duration_seconds": 1.0, "cost_usd": None}
        texts = {
            "expected_answer": "yes",
            "model_response": f"answer {sample.reward}",
            "extracted_answer": "yes",
            "metadata": {"category": sample.metadata["category"], "source": "s"},
            "scoring_details": {"reasoning": "because", "judge": "j"},
            "error": {"kind": "kind", "message": "message"} if sample.reward is None else None,
            "reasoning": "thought",
        }
        rows.append({**fixed, **evil(texts)})
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    bundle = {
        "benchmark": {
            "name": "bench",
            "samples": 12,
            "scores": {"mean_reward": {"value": 0.5, "method": "wilson"}},
            "categories": [{"category": "odd", "mean_reward": 0.5, "n_samples": 6}],
            "tally": {"scored": 11, "unscored": 0, "failed": 1},
        },
        "run_id": "run",
        "schema_version": 1,
        "created_at": "2026-01-01T00:00:00Z",
        "config": {
            "model": {"id": f"m{right}"},
            "prompt": f"p{right}",
            "dataset": "d",
            "scorer": {"name": "s"},
        },
        "hashes": {"dataset": "d", "prompt": f"p{right}", "sampling": "s"},
        "versions": {"python": "3"},
    }
    (folder / "eval-1.json").write_text(json.dumps(evil(bundle)))
    return folder


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("hostile")
    for name, right in (("base", 9), ("candidate", 5), ("third", 7)):
        hostile_run(home / name, right)
    hostile_run(home / "shards" / "one", 9)
    other = json.loads((home / "base" / "eval-1.json").read_text())
    other["hashes"]["dataset"] = "other" + EVIL
    (home / "other").mkdir()
    (home / "other" / "eval-1.json").write_text(json.dumps(other))
    (home / "other" / "results.jsonl").write_bytes((home / "base" / "results.jsonl").read_bytes())
    rows = [
        {**evil({"response": "[1", "target": "Paris", "category": "c"}), "human": n % 2, "reward": n % 3 > 0}
        for n in range(12)
    ]
    for place, one in enumerate(rows):
        one["problem_idx"] = place
    (home / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (home / "bad.jsonl").write_text(json.dumps({"x" + EVIL: "y" + EVIL}) + "\n{\x1b\n")
    (home / "policy.yaml").write_text("version: 1\ndefaults: {max_drop: 0.01}\n")
    (home / "badpolicy.yaml").write_text('version: 1\n"unknown\\e[2J": 1\n')
    (home / "bench.py").write_text(
        "from evenhand import ScorerInput, benchmark, exact_match, scorer\n"
        f"EVIL = {EVIL!r}\n"
        "def rows():\n    return [{'q': 'one' + EVIL, 'target': 'B' + EVIL, 'category': 'c' + EVIL}]\n"
        "@benchmark(name='b', dataset=rows, prompt='{q}', description='d' + EVIL)\n"
        "@scorer\n"
        "def b(sample: ScorerInput):\n    raise ValueError('failed' + EVIL)\n"
        "def answer(row):\n    raise ValueError('no answer' + EVIL)\n"
    )
    records = [
        row(f"t{n}{EVIL}", arm + EVIL, repeat, success=(n + repeat) % 3 > 0, error="e" + EVIL)
        for n in range(4)
        for repeat in (1, 2)
        for arm in ("a", "b")
    ]
    write_rows(home / "records.jsonl", records)
    task = {"id": "t" + EVIL, "prompt": "p" + EVIL, "acceptance_command": f"printf '{EVIL}'; false"}
    arms = [
        {"name": name, "agent_command": f"printf '{EVIL}' >&2; false"} for name in ("with_x", "without_x")
    ]
    write_suite(home, suite(name="s" + EVIL, tasks=[{**task, "timeout_seconds": 20}], arms=arms))
    (home / "bad.toml").write_text('"unknown\\u001b[2J" = 1\n')
    text = json.dumps("Say {word}" + EVIL)  # as YAML writes it
    (home / "evenhand.yaml").write_text(
        f"prompts: {{one: {text}, {json.dumps('two' + EVIL)}: {text}}}\n"
        "models: [{name: m, url: 'http://127.0.0.1:9/v1', id: m, tries: 1}]\n"
        f"rows: [{{word: {text}, target: {text}}}]\nscorers: [exact_match]\n"
    )
    (home / "promptfooconfig.yaml").write_text(
        f"prompts: [{text}]\nproviders: [{json.dumps('strange:' + EVIL)}]\ntests: [{{vars: {{word: {text}}}}}]\n"
    )
    return home


COMMANDS = {
    "eval report": "eval report base",
    "eval report of a folder": "eval report shards",
    "eval merge": "eval merge shards -o merged",
    "eval rescore": "eval rescore base -o rescored --scorer exact_match",
    "eval record": "eval record base http://127.0.0.1:9",
    "eval run": "eval run -b bench.py --model-url http://127.0.0.1:9/v1 --model-id m -o out",
    "eval list": "eval list",
    "compare": "compare base candidate --show-flips",
    "compare as JSON": "compare base candidate --show-flips --format json",
    "compare several": "compare base candidate third",
    "compare what is not comparable": "compare base other",
    "compare files": "compare base/results.jsonl candidate/results.jsonl --show-flips",
    "gate": "gate base candidate --policy policy.yaml --report gate.md",
    "gate in Markdown": "gate base candidate --policy policy.yaml --format markdown",
    "gate, classic": "gate base candidate --policy classic --force",
    "gate with a bad policy": "gate base candidate --policy badpolicy.yaml",
    "plan": "plan base candidate --effect 0.1",
    "score": "score rows.jsonl --scorer exact_match --scorer json_schema:schema={} -o scores",
    "score a bad file": "score bad.jsonl --scorer exact_match",
    "score and skip": "score rows.jsonl bad.jsonl --skip-invalid --scorer exact_match -o skipped",
    "validate": "validate -b bench.py",
    "import": "import base/results.jsonl",
    "import scores": "import scores/scores.jsonl -o imported",
    "judge calibrate": "judge calibrate rows.jsonl --human-field human",
    "judge compare": "judge compare rows.jsonl rows.jsonl --human-field human",
    "ab analyze without arms": "ab analyze records.jsonl",
    "ab analyze": f"ab analyze records.jsonl --treatment a{EVIL} --control b{EVIL}",
    "ab record": "ab record records.jsonl http://127.0.0.1:9",
    "ab record to a file": "ab record records.jsonl agents.db",
    "ab run": "ab run suite.json -o trials",
    "ab run of a bad suite": "ab run bad.jsonl -o trials",
    "judge score": "judge score rows.jsonl --judge-url http://127.0.0.1:9/v1 --judge-id m -o judged.jsonl --no-cache",
    "judge score with a bad rubric": "judge score rows.jsonl --judge-url http://127.0.0.1:9/v1 --judge-id m --rubric bad.jsonl",
    "judge selftest with a bad rubric": "judge selftest --judge-url http://127.0.0.1:9/v1 --judge-id m --rubric bad.jsonl",
    "token create": f"token create --name me{EVIL} --database sqlite:///tokens.db",
    "token create in no project": f"token create --project p{EVIL} --database sqlite:///tokens.db",
    "token list": "token list --database sqlite:///tokens.db",
    "token revoke": f"token revoke none{EVIL} --database sqlite:///tokens.db",
    "db migrate": "db migrate --database sqlite:///tokens.db",
    "db check": "db check --database sqlite:///tokens.db",
    "db backup": f"db backup copy{EVIL}.db --database sqlite:///tokens.db",
    "db of what is none": "db check --database sqlite:///bad.jsonl",
    "serve with a bad configuration": "serve --config bad.toml --database sqlite:///tokens.db",
    "serve with a bad scorer": f"serve --scorer none{EVIL} --database sqlite:///tokens.db",
    "view what is not there": f"view none{EVIL}",
    "view a bad file": "view bad.jsonl",
    "doctor": "doctor --quick --no-sandboxes",
    "mock-model with a bad script": "mock-model --answers bad.jsonl",
    "init in a folder": f"init new{EVIL}",
    "eval run of a suite": "eval run evenhand.yaml -o suite",
    "eval run of a bad suite": "eval run badpolicy.yaml -o badsuite",
    "eval run of a promptfoo file": "eval run promptfooconfig.yaml -o promptfoo",
    "eval run of a task": "eval run --task bench.py:answer --data rows.jsonl --scorer exact_match -o task",
    "an unknown command": f"nothing{EVIL}",
    "an unknown option": f"score rows.jsonl --scorer none{EVIL}",
}


@pytest.mark.parametrize("command", COMMANDS)
def test_control_characters_are_not_printed(home: Path, command: str) -> None:
    done = evenhand(*COMMANDS[command].split(" "), cwd=home)
    printed = done.stdout + done.stderr
    assert printed.strip()
    assert done.returncode != 70, printed
    # No sequence can work without its control characters; "owned" as a word does no harm.
    assert not CONTROL & set(printed), [line for line in printed.splitlines() if CONTROL & set(line)][:3]


def test_a_run_against_a_hostile_endpoint_prints_none_either(home: Path) -> None:
    script = iter([MockAnswer(text="no" + EVIL, status=400), MockAnswer(text="yes" + EVIL)])
    with MockModel(lambda call: next(script)) as model:
        flags = ("-b", "bench.py", "--model-url", model.url, "--model-id", "m", "-o", "hostile")
        for more in ((), ("--resume",)):
            done = evenhand("eval", "run", *flags, *more, cwd=home)
            assert done.returncode == 1, done.stderr
            assert not CONTROL & set(done.stdout + done.stderr)


@pytest.mark.parametrize("command", ["score rows.jsonl -o judgements.jsonl", "selftest"])
def test_a_hostile_judge_prints_none_either(home: Path, command: str) -> None:
    replies = iter(range(10_000))

    def reply(call: object) -> MockAnswer:
        return MockAnswer(text="a verdict" + EVIL, status=400 if next(replies) % 3 == 0 else 200)

    with MockModel(reply) as model:
        flags = ("--judge-url", model.url, "--judge-id", "m" + EVIL, "--no-cache")
        done = evenhand("judge", *command.split(), *flags, cwd=home)
    assert done.returncode not in (0, 70), done.stderr
    assert not CONTROL & set(done.stdout + done.stderr)


@pytest.mark.parametrize("command", ["view base", "serve --port 0 --database sqlite:///served.db"])
def test_what_servers_say_when_they_start(home: Path, command: str) -> None:
    started = subprocess.Popen(
        [sys.executable, "-m", "evenhand", *command.split(), *(("--port", "0") if "view" in command else ())],
        cwd=home,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert started.stdout is not None
        lines: list[str] = []
        while not any("http://" in line for line in lines):
            lines.append(started.stdout.readline())
            assert lines[-1], lines
    finally:
        started.terminate()
        rest, _ = started.communicate(timeout=60)
    assert not CONTROL & set("".join(lines) + rest)

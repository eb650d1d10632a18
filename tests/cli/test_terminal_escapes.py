"""Whatever a file says, no command sends control characters to the terminal."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.ab_rows import row, write_rows
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
    )
    records = [
        row(f"t{n}{EVIL}", arm + EVIL, repeat, success=(n + repeat) % 3 > 0, error="e" + EVIL)
        for n in range(4)
        for repeat in (1, 2)
        for arm in ("a", "b")
    ]
    write_rows(home / "records.jsonl", records)
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
}


@pytest.mark.parametrize("command", COMMANDS)
def test_control_characters_are_not_printed(home: Path, command: str) -> None:
    done = evenhand(*COMMANDS[command].split(), cwd=home)
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

"""Answers that know nothing, put to every built-in benchmark and every scorer that reads an answer.

Rows are generated: a benchmark's shipped rows, varied by their shape so that no answer is frequent. A benchmark or
scorer that is registered later joins with its own rows, or with words as targets.
"""

import copy
import random
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from evenhand.benchmarks import get_benchmark
from evenhand.benchmarks.definition import Problem, ProblemMaker
from evenhand.core.outcome import Outcome, Scored, Unscored
from evenhand.datasets.sources import open_source
from evenhand.scoring.apply import score_sample
from evenhand.scoring.definition import Scorer
from evenhand.scoring.registry import get_scorer
from evenhand.scoring.types import ScorerInput

ROWS = 200
FIXED = {
    "e": "e",
    "1": "1",
    "A": "A",
    "yes": "yes",
    ".": ".",
    "nothing": "",
    "I don't know": "I don't know",
    "all choices": "A, B, C, D, E, F, G, H, I, J",
}
REPEATED, LISTED = "the question", "all answers"
SILLY = (*FIXED, REPEATED, LISTED)
"""The silly answers, by name."""
CONTAINMENT = frozenset(("contains", "fuzzy_match", "includes_all", "includes_any"))
"""Scorers that ask whether something stands in the response: they cannot refuse a response that holds everything."""
NOT_READING = frozenset(
    (
        # Similarities have no right and wrong.
        *("bleu", "embedding_similarity", "levenshtein", "rouge_l"),
        # These have no target, or no answer to read.
        *("code_sandbox", "json_schema", "needs_judge", "regex", "regex_match"),
    )
)
SYLLABLES = [
    "ba",
    "de",
    "fi",
    "go",
    "lu",
    "mar",
    "nel",
    "os",
    "pri",
    "qua",
    "rin",
    "sto",
    "tur",
    "vex",
    "wil",
    "zan",
]


class Graded(Struct, frozen=True, kw_only=True):
    """The mean of one silly answer, and what the best constant answer gets."""

    mean: float | None
    """The mean reward; None where a judge has to decide."""
    chance: float
    """The share of the most frequent target."""


def grade_benchmark(name: str) -> dict[str, Graded]:
    """Every silly answer put to 200 problems of a benchmark, plain and behind "Answer:"; the better one counts."""
    spec = get_benchmark(name)
    maker = ProblemMaker(spec)
    made = [maker.make(row, place) for place, row in enumerate(generated_rows(name))]
    problems = [problem for problem in made if problem is not None]
    assert len(problems) == ROWS
    samples = [
        ScorerInput(response="", target=problem.target, metadata=problem.metadata, config=dict(spec.extra))
        for problem in problems
    ]
    return _grade(spec.scorer, samples, [_question(problem) for problem in problems])


def grade_scorer(name: str) -> dict[str, Graded]:
    """The same for a scorer by itself."""
    rng = random.Random(f"silly:{name}")
    make = TARGETS.get(name, _name)
    samples = [ScorerInput(response="", target=make(rng)) for _ in range(ROWS)]
    return _grade(get_scorer(name), samples, [f"What is item {place}?" for place in range(ROWS)])


def _grade(scorer: Scorer, samples: list[ScorerInput], questions: list[str]) -> dict[str, Graded]:
    spelled = [str(sample.target) for sample in samples]
    listed = ", ".join(dict.fromkeys(spelled))
    chance = max(Counter(spelled).values()) / len(spelled)
    found = {}
    for silly in SILLY:
        means = []
        for before in ("", "Answer: "):
            outcomes = [
                _outcome(scorer, sample, before + FIXED.get(silly, question if silly == REPEATED else listed))
                for sample, question in zip(samples, questions, strict=True)
            ]
            values = [float(o.value) for o in outcomes if isinstance(o, Scored)]
            assert all(
                isinstance(o, Scored) or (isinstance(o, Unscored) and o.reason == "needs_judge")
                for o in outcomes
            )
            means.append(sum(values) / len(values) if values else None)
        known = [mean for mean in means if mean is not None]
        found[silly] = Graded(mean=max(known, default=None), chance=chance)
    return found


_seen: dict[tuple[str, str, str], Outcome] = {}


def _outcome(scorer: Scorer, sample: ScorerInput, response: str) -> Outcome:
    # Rows of one program differ in nothing: it is run once per answer.
    key = (scorer.name, repr((sample.target, sorted(map(str, sample.metadata.items())))), response)
    if key not in _seen:
        filled = ScorerInput(
            response=response, target=sample.target, metadata=sample.metadata, config=sample.config
        )
        _seen[key] = score_sample(scorer, filled)
    return _seen[key]


def _question(problem: Problem) -> str:
    return str(problem.metadata.get("question") or problem.turns[-1].content)


def generated_rows(name: str) -> list[dict[str, Any]]:
    """The benchmark's shipped rows again and again, each time with another answer."""
    spec = get_benchmark(name)
    assert spec.sample is not None
    shipped = [dict(row.values) for row in open_source(spec.sample).rows()]
    rng = random.Random(f"silly:{name}")
    return [_varied(copy.deepcopy(shipped[place % len(shipped)]), rng, place) for place in range(ROWS)]


def _varied(row: dict[str, Any], rng: random.Random, place: int) -> dict[str, Any]:
    answer = row.get("answer")
    if "choices" in row or "options" in row:
        choices = row["choices" if "choices" in row else "options"]
        rng.shuffle(choices)
        row["answer"] = rng.randrange(len(choices))
    elif "answer_number" in row:
        row["answer_number"] = rng.randint(10, 5000)
    elif isinstance(answer, str) and "####" in answer:
        row["answer"] = f"{answer.partition('####')[0]}#### {rng.randint(10, 5000)}"
    elif isinstance(answer, Mapping) and "aliases" in answer:
        value = _name(rng)
        row["answer"] = {"value": value, "aliases": [value, f"{value} {_name(rng)}"]}
    elif isinstance(answer, Mapping) and "spans" in answer:
        spans = [_name(rng) for _ in range(place % 3)]
        number = "" if spans else str(rng.randint(10, 5000))
        row["answer"] = {"number": number, "date": {}, "spans": spans}
        row["validated_answers"] = []
    elif isinstance(answer, str):
        row["answer"] = _expression(rng)
    elif "label" in row:
        row["label"] = ("safe", "unsafe")[place % 2]
    return row


def _name(rng: random.Random) -> str:
    return "".join(rng.choice(SYLLABLES) for _ in range(rng.randint(2, 4))).capitalize()


def _expression(rng: random.Random) -> str:
    a, b, c = (rng.randint(2, 99) for _ in range(3))
    forms = (
        f"{a * b + c}",
        rf"\frac{{{a}}}{{{a + b}}}",
        rf"{a}\sqrt{{{b}}}",
        f"({a}, {b})",
        f"{a}x + {b}",
        f"{a}.{b}",
    )
    return rng.choice(forms)


def _number(rng: random.Random) -> str:
    return str(rng.randint(10, 5000))


TARGETS: dict[str, Callable[[random.Random], Any]] = {
    "answer_line": _expression,
    "json_diff": lambda rng: {"name": _name(rng), "count": rng.randint(10, 5000)},
    "list_match": lambda rng: [_name(rng) for _ in range(3)],
    "math_equal": _expression,
    "multichoice_regex": lambda rng: rng.choice("ABCD"),
    "numeric_match": _number,
    "numeric_tolerance": _number,
    "tool_call_match": lambda rng: [{"name": _name(rng), "arguments": {"x": rng.randint(1, 99)}}],
}
"""Targets of another kind than words."""

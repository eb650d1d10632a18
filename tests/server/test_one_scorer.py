"""Every scorer of the registry gives the same values and outcomes whatever way it is asked, on both databases."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.postgres import PostgresServer
from tests.scored_ways import Sample, Seen, every_way
from tests.service import ADMIN, ServiceUnderTest, running_service
from tests.service_harness import Client

from evenhand.core.ids import new_id
from evenhand.core.outcome import Scored
from evenhand.scoring.apply import score_sample
from evenhand.scoring.registry import BUILT_IN, get_scorer
from evenhand.scoring.types import ScorerInput

OPTIONS: dict[str, list[dict[str, Any]]] = {
    "bleu": [{}, {"max_n": 2}],
    "contains": [{}, {"case_sensitive": False}],
    "exact_match": [{}, {"strict": True}],
    "fuzzy_match": [{}, {"whole_words": False, "either_way": True}],
    "embedding_similarity": [{"embed": "char_ngrams"}, {"embed": "char_ngrams", "threshold": 0.5}],
    "includes_all": [{}, {"values": ["Paris", "fra"], "case_sensitive": True}],
    "includes_any": [{}, {"values": ["paris"], "case_sensitive": True}],
    "json_schema": [{}, {"schema": {"type": "object", "required": ["a"]}}],
    "levenshtein": [{}, {"case_sensitive": False}],
    "list_match": [{}, {"ordered": True, "partial": True}],
    "multichoice_regex": [{}, {"pattern": r"\(([A-J])\)"}, {"letters": "ABCDEFGHIJ"}],
    "numeric_match": [{}, {"which": "first", "percent": True}],
    "numeric_tolerance": [{}, {"abs": 0.5, "rel": 0.0, "which": "answer", "percent": True}],
    "regex": [{"pattern": r"[A-Z]\w+$"}, {"pattern": "PARIS", "flags": "i"}],
    "regex_match": [{"pattern": r"(\w+)\s*$"}, {"pattern": "PARIS", "flags": "i"}],
    "strict_match": [{}, {"case_sensitive": False, "strip_whitespace": False}],
    "tool_call_match": [{}, {"ordered": False, "arguments": "subset", "extra": True}],
}
"""The options that a scorer is tried with; those that are not here have none."""

FEW = [
    Sample("The capital of France is Paris", "Paris"),
    Sample("  paris. ", "Paris"),
    Sample("x", None),
    Sample({"b": 1.0, "a": [1, 2]}, {"a": [1, 2], "b": 1}),
    Sample("Lima", None, {"correct_answers": ["Lima", "Ciudad de los Reyes"]}),
    Sample("So the answer is 41.9", 42),
    Sample("<think>\nLima? No: 42, (B).\n</think>\n\nParis", "Paris"),
]
"""Right, nearly right, nothing to compare with, JSON, other accepted answers, a number, thinking."""

MANY = [
    *FEW,
    Sample("", ""),
    Sample("", "x"),
    Sample("Answer: B", "B"),
    Sample("(C)", "C"),
    Sample("Answer: 1,000.0", "1000"),
    Sample(r"\boxed{\frac{1}{2}}", "0.5"),
    Sample("(x+1)^2", "x^2+2x+1"),
    Sample("- a\n- b", ["b", "a"]),
    Sample('["a", "b"]', '["a", "b"]'),
    Sample('{"a": 1}', {"a": 1}, {"schema": {"type": "object", "required": ["b"]}}),
    Sample('{"name": "f", "arguments": {"x": 1}}', [{"name": "f", "arguments": {"x": 1}}]),
    Sample(
        "no calls", [{"name": "f", "arguments": {}}], {"tool_calls": [{"name": "f", "arguments": {"y": 2}}]}
    ),
    Sample(True, True),
    Sample(1e3, "1000"),
    Sample([1.0, None], [1, None]),
    Sample("naïve ﬁnance\u0000", "naïve finance"),
    Sample("𝒳" * 50, "X" * 50),
    Sample("the cat sat on the mat", "a cat is on the mat", {"topic": "cats", "hard": True}),
    Sample("a" * 60_000, "b" * 60_000),
    Sample(10**30, 10**30),
    Sample([{"type": "text", "text": "Par"}, {"type": "text", "text": "is"}], "Paris"),
]

PROGRAM = {"_prompt": "def double(x):\n", "_test": "assert double(2) == 4\n", "entry_point": "double"}
PROGRAMS = [
    Sample("    return 2 * x\n", None, PROGRAM),
    Sample("    return x\n", None, PROGRAM),
    Sample("    return 2 * x\n", None),
]
"""Right, wrong, and without a test, which is no wrong answer."""

CASES = [
    pytest.param(name, options, id=f"{name}-{number}")
    for name in sorted(BUILT_IN)
    for number, options in enumerate(OPTIONS.get(name, [{}]))
]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("sqlite", marks=pytest.mark.xdist_group("sqlite")),
        pytest.param("postgresql", marks=pytest.mark.xdist_group("postgresql")),
    ],
)
def everything_enabled(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ServiceUnderTest]:
    """A server whose administrator lists the one built-in scorer that has to be listed."""
    with ExitStack() as stack:
        if request.param == "sqlite":
            url = f"sqlite:///{tmp_path_factory.mktemp('ways') / 'evenhand.db'}"
        else:
            server: PostgresServer = request.getfixturevalue("postgres_server")
            url = stack.enter_context(server.database())
        yield stack.enter_context(running_service(url, scorers=("code_sandbox",)))


def check(
    service: ServiceUnderTest, name: str, options: dict[str, Any], samples: list[Sample], folder: Path
) -> None:
    client = Client(service.url, ADMIN, f"project-{new_id()}")
    client.made("/v1/projects", {"id": client.project, "name": "ways"})
    ways = every_way(client, name, options, samples, folder)
    client.close()
    flat = [sample for sample in samples if sample.fits_a_span]
    for way in ("command", "inline", "posted", "batch"):
        same_outcomes(way, samples, ways[way], ways["library"])
    for way in ("inline on spans", "rule"):
        same_outcomes(way, flat, ways[way], ways["library on spans"])


def same_outcomes(way: str, samples: list[Sample], found: list[Seen], library: list[Seen]) -> None:
    differing = [
        f"{way} says {one}, the library {other}, of {sample!r:.300}"
        for sample, one, other in zip(samples, found, library, strict=True)
        if one != other
    ]
    assert differing == []


@pytest.mark.parametrize(("name", "options"), CASES)
def test_every_way_gives_the_same(
    everything_enabled: ServiceUnderTest, name: str, options: dict[str, Any], tmp_path: Path
) -> None:
    samples = PROGRAMS if name == "code_sandbox" else FEW
    check(everything_enabled, name, options, samples, tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), CASES)
def test_every_way_gives_the_same_for_many_samples(
    everything_enabled: ServiceUnderTest, name: str, options: dict[str, Any], tmp_path: Path
) -> None:
    samples = [*PROGRAMS, *FEW] if name == "code_sandbox" else MANY
    check(everything_enabled, name, options, samples, tmp_path)


def test_the_options_tried_are_of_every_scorer_that_has_some() -> None:
    """A scorer that gets options later is tried with some."""
    from evenhand.scoring.registry import get_scorer

    with_options = {name for name in BUILT_IN if get_scorer(name).options}
    assert set(OPTIONS) == with_options - {"code_sandbox"}
    for name, tried in OPTIONS.items():
        assert {option for options in tried for option in options} == set(get_scorer(name).options)


THINKING = "[THINK]Lima?[/THINK]\nParis"


@pytest.mark.parametrize(
    ("tags", "value", "stored"),
    [(("think",), 0.0, None), (("[THINK]...[/THINK]",), 1.0, ["[THINK]...[/THINK]"]), ((), 0.0, [])],
)
def test_the_tags_of_thinking_are_the_servers(
    tmp_path: Path, tags: tuple[str, ...], value: float, stored: list[str] | None
) -> None:
    """Other tags than the usual ones are kept with the score: the same output may come to another value."""
    with running_service(f"sqlite:///{tmp_path / 'tags.db'}", think_tags=tags) as service:
        client = Client(service.url, ADMIN)
        run = client.run(THINKING, "Paris")
        body = {"target_id": run, "target_type": "run", "scorer_name": "normalized_match"}
        score = client.made("/v1/scores", body)
        assert score["value"] == value
        assert score["scorer_options"].get("think_tags") == stored
        # what was stored is as it came
        [experiment] = client.pages("/v1/experiments", project_id=client.project)
        [kept] = client.pages(f"/v1/experiments/{experiment['id']}/runs")
        assert kept["output"] == THINKING
        client.close()


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("normalized_match", "It is Paris. Answer: B, 42"),
        ("fuzzy_match", "Paris"),
        ("multichoice_regex", "B"),
        ("numeric_match", "42"),
        ("answer_line", "B, 42"),
    ],
)
def test_thinking_that_was_cut_off_is_no_answer(client: Client, name: str, target: str) -> None:
    """The same words are right as an answer and wrong as thinking without an end, as in the library."""
    words = "It is Paris. Answer: B, 42"
    for output, value in ((f"<think>{words}", 0.0), (f"<think>So?</think>{words}", 1.0)):
        in_library = score_sample(get_scorer(name), ScorerInput(response=output, target=target))
        body = {"target_id": client.run(output, target), "target_type": "run", "scorer_name": name}
        stored = client.made("/v1/scores", body)["value"]
        assert isinstance(in_library, Scored)
        assert stored == in_library.value == value


@pytest.mark.parametrize("tags", [("think",), ("[THINK]...[/THINK]",), ()])
def test_the_contracts_rules_compare_outputs_as_they_are_stored(
    tmp_path: Path, tags: tuple[str, ...]
) -> None:
    """The contract compares the run's output as a string; what a model thought aloud is part of that string."""
    thought = "<think>Lima?</think>Paris"
    with running_service(f"sqlite:///{tmp_path / 'strict.db'}", think_tags=tags) as service:
        client = Client(service.url, ADMIN)
        run = client.run(thought, "Paris")
        for name, config, value in (
            ("exact_match", {}, 0.0),
            ("exact_match", {"expected_output": thought}, 1.0),
            ("strict_match", {"expected_output": thought}, 1.0),
            ("contains", {"expected_output": "Lima?"}, 1.0),
            ("regex", {"pattern": "^<think>"}, 1.0),
        ):
            body = {"target_id": run, "target_type": "run", "scorer_name": name, "config": config}
            score = client.made("/v1/scores", body)
            assert (name, score["value"]) == (name, value)
            assert "think_tags" not in score["scorer_options"]
        client.close()

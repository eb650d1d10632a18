"""Scorers by name, their options, and what becomes of what they return or raise."""

import asyncio
import json
import math
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from evenhand.core.errors import (
    JudgementError,
    ModelError,
    OptionError,
    SandboxUnavailable,
    ScorerTimeout,
    UnknownName,
)
from evenhand.core.outcome import Failed, Scored, Unscored
from evenhand.evaluation.score_file import Fields, FileScoring, ScoresFile
from evenhand.scoring.apply import score_sample, score_sample_async
from evenhand.scoring.definition import Scorer, scorer
from evenhand.scoring.registry import BUILT_IN, get_scorer, register_scorer, scorer_names
from evenhand.scoring.strict import contains, regex, strict_match
from evenhand.scoring.text import exact_match
from evenhand.scoring.types import ScorerInput

SAMPLE = ScorerInput(response="a", target="a")


@scorer
def bare(sample: ScorerInput) -> dict[str, Any]:
    """Always right."""
    return {"correct": True, "extracted": sample.response, "why": "because"}


@scorer(name="with.options", version="2")
def with_options(
    sample: ScorerInput,
    *,
    limit: float,
    words: list[str] | None = None,
    mode: Literal["strict", "loose"] = "strict",
    flag: bool = False,
) -> dict[str, Any]:
    return {"reward": limit, "words": words, "mode": mode, "flag": flag}


@scorer
async def slowly(sample: ScorerInput) -> dict[str, Any]:
    await asyncio.sleep(0)
    return {"reward": 0.5}


def returning(result: Any) -> Scorer:
    def function(sample: ScorerInput) -> Any:
        return result

    return scorer(name="returning")(function)


def raising(error: BaseException) -> Scorer:
    def function(sample: ScorerInput) -> Any:
        raise error

    return scorer(name="raising")(function)


def test_a_decorated_function_stays_a_function() -> None:
    assert bare(SAMPLE) == {"correct": True, "extracted": "a", "why": "because"}
    assert (bare.name, bare.version, bare.summary) == ("bare", "1", "Always right.")


def test_options_are_typed_and_round_trip() -> None:
    configured = with_options.configure(limit=0.25, words=["x"], mode="loose", flag=True)
    assert configured(SAMPLE) == {"reward": 0.25, "words": ["x"], "mode": "loose", "flag": True}
    again = with_options.with_options(configured.identity["options"])
    assert again.identity == configured.identity
    assert with_options.missing == ["limit"]
    assert configured.missing == []
    assert dict(with_options.settings) == {}


def test_options_as_text_become_their_types() -> None:
    configured = with_options.configure_from_text({"limit": "0.5", "words": "x|y", "flag": "true"})
    assert dict(configured.settings) == {"limit": 0.5, "words": ["x", "y"], "flag": True}
    assert with_options.configure_from_text({"words": '["x, y"]'}).settings["words"] == ["x, y"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limt": 1}, "no option 'limt'; its options: limit, words, mode, flag"),
        ({"limit": "high"}, "option 'limit': expected `float`, got `str`"),
        ({"mode": "odd"}, "option 'mode': invalid enum value 'odd'"),
        ({"words": [1]}, "option 'words': expected `str`, got `int`"),
    ],
)
def test_a_bad_option_is_a_clear_error(options: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError) as caught:
        with_options.with_options(options)
    assert message in str(caught.value)
    assert "with.options" in str(caught.value)


def test_the_samples_config_sets_options_it_names_and_keywords_win() -> None:
    sample = ScorerInput(response="a", config={"limit": 0.5, "unrelated": object()})
    assert with_options(sample)["reward"] == 0.5  # type: ignore[call-arg]  # the config has the required option
    assert with_options(sample, limit=0.75)["reward"] == 0.75
    assert with_options.configure(limit=1.0)(sample)["reward"] == 0.5


def test_a_scorer_must_take_a_sample_and_name_its_options() -> None:
    def nothing() -> None: ...
    def anything(sample: ScorerInput, **more: Any) -> None: ...

    bad: list[Callable[..., Any]] = [nothing, anything]
    for function in bad:
        with pytest.raises(OptionError):
            scorer(function)
    with pytest.raises(OptionError, match="cannot be a scorer's name"):
        scorer(name="two words")(lambda sample: {})


@pytest.mark.parametrize(
    ("result", "value"),
    [
        ({"correct": True}, 1.0),
        ({"correct": False}, 0.0),
        ({"correct": np.True_}, 1.0),
        ({"reward": 0.3, "correct": False}, 0.3),
        ({"reward": np.float32(0.5)}, 0.5),
        ({"reward": -2}, -2.0),
        ({"valid": True, "score": 1.0}, 1.0),
        ({"label": "fail"}, "fail"),
        (True, 1.0),
        (0.25, 0.25),
    ],
)
def test_what_counts_as_a_score(result: Any, value: float | str) -> None:
    outcome = score_sample(returning(result), SAMPLE)
    assert isinstance(outcome, Scored)
    assert outcome.value == value


@pytest.mark.parametrize(
    "result",
    [
        None,
        "yes",
        {},
        {"correct": None},
        {"correct": "yes"},
        {"correct": 0.5},
        {"reward": math.nan},
        {"reward": math.inf},
        {"reward": 10**400},
        {"reward": "0.8"},
        {"label": ""},
        [1.0],
        np.array([1.0]),
    ],
)
def test_a_result_without_a_value_is_a_failure_not_a_zero(result: Any) -> None:
    outcome = score_sample(returning(result), SAMPLE)
    assert isinstance(outcome, Failed)
    assert outcome.error == "bad_result"


def test_extracted_and_details_are_kept() -> None:
    outcome = score_sample(bare, SAMPLE)
    assert outcome == Scored(value=1.0, extracted="a", details={"why": "because"})


def test_needs_judge_is_unscored() -> None:
    outcome = score_sample(returning({"correct": False, "needs_judge": True}), SAMPLE)
    assert isinstance(outcome, Unscored)
    assert outcome.reason == "needs_judge"


def test_a_scorer_can_say_that_there_is_nothing_to_score() -> None:
    outcome = score_sample(returning({"unscored": "off_topic", "why": "no question"}), SAMPLE)
    assert outcome == Unscored(reason="off_topic", details={"why": "no question"})


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ScorerTimeout("too long"), "scorer_timeout"),
        (JudgementError("no verdict", reply="hm"), "grade_parse_failure"),
        (ModelError("down", kind="rate_limit"), "rate_limit"),
        (SandboxUnavailable("none"), "sandbox_unavailable"),
        (OptionError("bad"), "invalid_option"),
        (ValueError(), "scorer_error"),
        (RecursionError("deep"), "scorer_error"),
        (MemoryError(), "scorer_error"),
    ],
)
def test_a_scorer_that_raises_is_a_failure_not_a_zero(error: Exception, kind: str) -> None:
    outcome = score_sample(raising(error), SAMPLE)
    assert isinstance(outcome, Failed)
    assert outcome.error == kind
    assert outcome.message


def test_an_interruption_is_not_swallowed() -> None:
    with pytest.raises(KeyboardInterrupt):
        score_sample(raising(KeyboardInterrupt()), SAMPLE)


def test_async_scorers_run_from_plain_code() -> None:
    assert score_sample(slowly, SAMPLE) == Scored(value=0.5)


async def test_both_kinds_run_in_a_loop() -> None:
    assert await score_sample_async(slowly, SAMPLE) == Scored(value=0.5)
    assert isinstance(await score_sample_async(bare, SAMPLE), Scored)
    assert isinstance(await score_sample_async(raising(ValueError("x")), SAMPLE), Failed)


async def test_an_async_scorer_in_a_loop_must_be_awaited() -> None:
    with pytest.raises(OptionError, match="score_sample_async"):
        score_sample(slowly, SAMPLE)
    assert isinstance(score_sample(bare, SAMPLE), Scored)


def test_absent_response_or_target_is_unscored() -> None:
    exact = get_scorer("exact_match")
    missing: Any = None
    assert score_sample(exact, ScorerInput(response=missing, target="x")) == Unscored(
        reason="no_response", message="the sample has no response"
    )
    outcome = score_sample(exact, ScorerInput(response="x", target=None))
    assert isinstance(outcome, Unscored)
    assert outcome.reason == "no_expected_output"


def test_every_built_in_loads_and_has_a_summary() -> None:
    for name in BUILT_IN:
        found = get_scorer(name)
        assert found.name == name
        assert found.version
        assert found.summary.endswith((".", ":")), name


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownName, match="did you mean exact_match"):
        get_scorer("exactmatch")


def test_a_registered_scorer_is_found_and_its_name_is_taken() -> None:
    def right(sample: ScorerInput) -> dict[str, Any]:
        return {"correct": True}

    mine = scorer(name="test_registry_mine")(right)
    assert register_scorer(mine) is mine
    assert get_scorer("test_registry_mine") is mine
    assert "test_registry_mine" in scorer_names()
    with pytest.raises(OptionError, match="exists already"):
        register_scorer(scorer(name="test_registry_mine")(right))
    with pytest.raises(OptionError, match="exists already"):
        register_scorer(scorer(name="exact_match")(right))


def test_installed_packages_offer_scorers_by_entry_point(tmp_path: Path) -> None:
    (tmp_path / "theirs.py").write_text(
        "from evenhand import scorer\n@scorer(version='3')\ndef polite(sample):\n"
        "    return {'correct': 'please' in sample.response}\n"
        "def plain(sample, word: str = 'x'):\n    return {'correct': word in sample.response}\n",
        encoding="utf-8",
    )
    info = tmp_path / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n", encoding="utf-8")
    entries = "[evenhand.scorers]\npolite = theirs:polite\nplain_word = theirs:plain\nodd = theirs:__name__\n"
    (info / "entry_points.txt").write_text(entries, encoding="utf-8")
    program = """
from evenhand import ScorerInput, get_scorer, scorer_names
from evenhand.core.errors import OptionError
assert {"polite", "plain_word"} <= set(scorer_names())
assert get_scorer("polite").version == "3"
assert get_scorer("polite")(ScorerInput(response="please")) == {"correct": True}
assert get_scorer("plain_word").configure(word="a")(ScorerInput(response="a")) == {"correct": True}
try:
    get_scorer("odd")
except OptionError as error:
    print(error)
"""
    done = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        timeout=200,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
    )
    assert done.stdout == "entry point 'odd' of 'evenhand.scorers' is not a scorer\n", done.stderr


@scorer
def with_python_options(
    sample: ScorerInput,
    path: Path | None = None,
    key: Callable[[str], str] | None = None,
    name: str | Callable[[str], str] = "plain",
    weights: dict[str, float] | None = None,
) -> dict[str, Any]:
    return {"reward": 0.5}


def test_functions_and_paths_are_no_json_options() -> None:
    """What cannot come over the wire is not in the schema, and is refused by name."""
    assert set(with_python_options.options_schema["properties"]) == {"name", "weights"}
    assert with_python_options.configure_from_json({"name": "x", "weights": {"a": 1}}).settings == {
        "name": "x",
        "weights": {"a": 1.0},
    }
    for option, value in (("path", "/etc/passwd"), ("key", "os.system")):
        with pytest.raises(OptionError, match=f"option '{option}' takes a .* JSON cannot carry"):
            with_python_options.configure_from_json({option: value})
    with pytest.raises(OptionError, match="no option 'odd'"):
        with_python_options.configure_from_json({"odd": 1})
    with pytest.raises(OptionError, match="needs the option 'limit'"):
        with_options.configure_from_json({"flag": True})


def test_slow_scorers_say_so() -> None:
    assert slowly.slow
    assert not bare.slow
    assert get_scorer("code_sandbox").configure(timeout=1.0).slow


def test_defaults_that_are_no_json_do_not_spoil_the_schema_or_the_identity() -> None:
    @scorer
    def odd(
        sample: ScorerInput, limit: float = math.inf, marks: tuple[str, ...] = ("a",), seen: Any = frozenset
    ) -> dict[str, Any]:
        return {"reward": 0.5}

    assert odd.options_schema["properties"]["marks"]["default"] == ("a",)
    assert "default" not in odd.options_schema["properties"]["limit"]
    assert odd.identity["options"] == {"limit": "inf", "marks": ("a",), "seen": "frozenset"}


@pytest.mark.parametrize(
    ("response", "value"),
    [
        ("<think>Lyon?</think>Paris", 1.0),
        ("Lyon?\n</think>\n\nParis", 1.0),
        ("Paris <think>or\nLyon</think>", 1.0),
        ("Paris\n<think>or Lyon", 1.0),
        ("<think>Paris", 0.0),
        ([{"type": "text", "text": "<Think>Lyon?</Think>Paris"}], 1.0),
        ("Paris", 1.0),
    ],
)
async def test_thinking_is_not_scored(response: Any, value: float) -> None:
    sample = ScorerInput(response=response, target="Paris")
    outcome = score_sample(exact_match, sample)
    assert outcome == await score_sample_async(exact_match, sample) == Scored(value=value)


@pytest.mark.parametrize(
    ("strict", "target", "value"),
    [
        (strict_match, "Paris", 0.0),
        (strict_match, "<think>Lyon?</think>Paris", 1.0),
        (contains, "Lyon?", 1.0),
        (regex.configure(pattern="^Paris"), None, 0.0),
    ],
)
async def test_strict_scorers_see_the_response_as_it_is(
    strict: Scorer, target: str | None, value: float, tmp_path: Path
) -> None:
    """What was stored is compared, thinking included; so does `evenhand score`."""
    sample = ScorerInput(response="<think>Lyon?</think>Paris", target=target)
    outcome = score_sample(strict, sample)
    assert outcome == await score_sample_async(strict, sample) == Scored(value=value)
    file = tmp_path / "answers.jsonl"
    file.write_text(json.dumps({"response": sample.response, "target": target}) + "\n")
    both = FileScoring([file], {"strict": strict, "other": exact_match}, Fields())
    with ScoresFile(tmp_path / "scores.jsonl", [file]) as out:
        both.score(out)
    [line] = [json.loads(text) for text in (tmp_path / "scores.jsonl").read_text().splitlines()]
    assert line["scores"]["strict"]["value"] == value
    assert line["scores"]["other"].get("value") == (None if target is None else float(target == "Paris"))

"""Suite files: what is wrong with a bad one, how commands are filled in, how usage is read, in which order trials run."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.ab_suites import EXAMPLE, suite, write_suite

from evenhand.core.errors import InputError, OptionError, UnknownName
from evenhand.evaluation.trials.plan import Key, planned
from evenhand.evaluation.trials.suite import FieldSource, UsageSource, choose, load_suite
from evenhand.evaluation.trials.trial import words
from evenhand.evaluation.trials.usage import read_usage

TASK = {"id": "t", "prompt": "p"}
ARM = {"name": "a", "agent_command": "true"}


@pytest.mark.parametrize(
    ("content", "place"),
    [
        ("{", "invalid JSON"),
        ('{"tasks": [], "arms": [{"name": "a", "name": "b"}]}', "duplicate key 'name'"),
        ("[]", "Expected `object`, got `array`"),
        ({"arms": [ARM]}, "missing required field `tasks`"),
        ({"tasks": [], "arms": [ARM]}, "field 'tasks'"),
        ({"tasks": [TASK], "arms": []}, "field 'arms'"),
        ({"tasks": [TASK, TASK], "arms": [ARM]}, "field 'tasks[1].id': duplicate 't'"),
        ({"tasks": [TASK], "arms": [ARM, ARM]}, "field 'arms[1].name': duplicate 'a'"),
        ({"tasks": [{"id": "t"}], "arms": [ARM]}, "field 'tasks[0]': needs either prompt or prompt_file"),
        (
            {"tasks": [{**TASK, "prompt_file": "x"}], "arms": [ARM]},
            "field 'tasks[0]': needs either prompt or prompt_file",
        ),
        (
            {"tasks": [{"id": "t", "prompt_file": "none.txt"}], "arms": [ARM]},
            "field 'tasks[0].prompt_file': none.txt: No such file",
        ),
        ({"tasks": [{**TASK, "timeout": 3}], "arms": [ARM]}, "unknown field `timeout`"),
        ({"tasks": [{**TASK, "timeout_seconds": 0}], "arms": [ARM]}, "field 'tasks[0].timeout_seconds'"),
        ({"tasks": [{**TASK, "id": ""}], "arms": [ARM]}, "field 'tasks[0].id'"),
        (
            {"tasks": [TASK], "arms": [{"name": "a"}]},
            "field 'arms[0]': missing required field `agent_command`",
        ),
        ({"tasks": [TASK], "arms": [{**ARM, "agent_command": []}]}, "field 'arms[0].agent_command'"),
        ({"tasks": [TASK], "arms": [{**ARM, "env": {"A=B": "x"}}]}, "field 'arms[0].env'"),
        ({"tasks": [TASK], "arms": [ARM], "repeats": 0}, "field 'repeats'"),
        ({"tasks": [TASK], "arms": [ARM], "workspace": {"kind": "cloud"}}, "field 'workspace.kind'"),
        (
            {"tasks": [TASK], "arms": [ARM], "usage": {"fields": {"tokens": "x"}}},
            "field 'usage.fields.tokens': is not a usage field",
        ),
        ({"tasks": [TASK], "arms": [ARM], "usage": {"file": "../x"}}, "field 'usage.file'"),
    ],
)
def test_a_bad_suite_is_named_with_field_and_reason(tmp_path: Path, content: Any, place: str) -> None:
    path = tmp_path / "suite.json"
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    with pytest.raises(InputError) as caught:
        load_suite(path)
    assert str(caught.value).startswith(f"{path}: ")
    assert place in str(caught.value)


def test_yaml_and_json_mean_the_same(tmp_path: Path) -> None:
    path = tmp_path / "s.yaml"
    path.write_text("tasks: [{id: t, prompt: p}]\narms: [{name: a, agent_command: [echo, hi]}]\n")
    json_path = write_suite(
        tmp_path, {"tasks": [TASK], "arms": [{"name": "a", "agent_command": ["echo", "hi"]}]}
    )
    assert load_suite(path).suite == load_suite(json_path).suite
    path.write_text("a: [")
    with pytest.raises(InputError, match="invalid YAML"):
        load_suite(path)


def test_files_that_are_no_suites(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="No such file"):
        load_suite(tmp_path / "none.json")
    (tmp_path / "b.json").write_bytes(b"\xff\xfe")
    with pytest.raises(InputError, match="UTF-8"):
        load_suite(tmp_path / "b.json")


def test_choosing_arms_tags_and_repeats() -> None:
    loaded = load_suite(EXAMPLE)
    assert [task.id for task in choose(loaded.suite, tags=["code"]).tasks] == ["add"]
    assert [arm.name for arm in choose(loaded.suite, arms=["without_hints"]).arms] == ["without_hints"]
    assert choose(loaded.suite, repeats=2).repeats == 2
    with pytest.raises(UnknownName, match="did you mean with_hints"):
        choose(loaded.suite, arms=["with_hint"])
    with pytest.raises(OptionError, match="tags: code, text"):
        choose(loaded.suite, tags=["nope"])


def test_commands_are_filled_in_and_quoted() -> None:
    values = dict.fromkeys(
        ("prompt", "prompt_file", "workspace", "usage_file", "task_id", "arm", "repeat", "suite_folder"), "x"
    )
    values["prompt"] = "it's; rm -rf $HOME {arm}"
    assert words("run {prompt} ${HOME} {other} '{'", values)[2] == (
        "run 'it'\"'\"'s; rm -rf $HOME {arm}' ${HOME} {other} '{'"
    )
    assert words(("run", "--p={prompt}", "{}"), values) == ["run", "--p=it's; rm -rf $HOME {arm}", "{}"]


def test_order_is_random_blocks_that_the_seed_decides() -> None:
    """Every trial once; both arms of a pair next to each other; either arm goes first now and then."""
    choice = choose(load_suite(EXAMPLE).suite, repeats=20)
    trials = [trial.key for trial in planned(choice, seed=1)]
    assert len(set(trials)) == len(trials) == 3 * 2 * 20
    pairs = list(zip(trials[::2], trials[1::2], strict=True))
    assert all((a.task, a.repeat) == (b.task, b.repeat) and a.arm != b.arm for a, b in pairs)
    first = [a.arm for a, _ in pairs]
    # 60 fair coins: fewer than 15 or more than 45 of one side come up once in 15,000 seeds
    assert 15 < first.count("with_hints") < 45
    assert [a.repeat for a, _ in pairs] != sorted(a.repeat for a, _ in pairs)
    assert trials == [trial.key for trial in planned(choice, seed=1)]
    assert trials != [trial.key for trial in planned(choice, seed=2)]
    left = planned(choice, seed=1, finished=set(trials[:50]))
    assert [trial.key for trial in left] == trials[50:]


def test_trial_folders_are_readable_safe_and_different() -> None:
    assert Key("add", "with_x", 3).folder == "add/with_x/3"
    odd = [
        Key(name, "a", 1).folder
        for name in ("../../etc", "a/b", "a b", "a-b", "..", "é", "x" * 300, "y" * 300)
    ]
    assert len(set(odd)) == len(odd)
    assert all(".." not in folder.split("/") and len(folder) < 90 for folder in odd)


FIELDS: dict[str, str | FieldSource] = {
    "input_tokens": "usage.in",
    "output_tokens": FieldSource(path="usage.out", combine="max"),
    "step_count": FieldSource(path="usage.in", combine="count"),
    "session_id": "id",
    "acceptance_first_pass": "ok",
    "total_cost_usd": FieldSource(path="parts.-1.cost", combine="last"),
}


def test_usage_from_json_lines(tmp_path: Path) -> None:
    """Sums by default, the last for names and flags, other lines passed over."""
    path = tmp_path / "log"
    lines: list[object] = [
        {"type": "step", "usage": {"in": 10, "out": 3}, "id": "s1", "ok": False},
        {"type": "other", "usage": {"in": 999, "out": 999}},
        {"type": "step", "usage": {"in": 5, "out": 7}, "parts": [{"cost": 9}, {"cost": 0.25}]},
        {"type": "step", "id": "s2", "ok": True},
        ["no object"],
    ]
    path.write_text("thinking…\n" + "\n".join(json.dumps(line) for line in lines) + "\n{broken")
    usage = UsageSource(format="jsonl", fields=FIELDS, where={"type": "step"})
    found = read_usage(usage, path)
    assert found.error == ""
    assert {name: found.values[name] for name in FIELDS} == {
        "input_tokens": 15,
        "output_tokens": 7,
        "step_count": 2,
        "session_id": "s2",
        "acceptance_first_pass": True,
        "total_cost_usd": 0.25,
    }
    assert found.values["cache_read_tokens"] is None
    none = read_usage(UsageSource(format="jsonl", fields=FIELDS, where={"type": "gone"}), path)
    assert "no line of JSON that counts" in none.error


@pytest.mark.parametrize(
    ("text", "error", "tokens"),
    [
        ('{"input_tokens": 12}', "", 12),
        ("{}", "", None),
        ('{"input_tokens": -1}', "usage that cannot be used: input_tokens is -1", None),
        ('{"input_tokens": "12"}', 'input_tokens is "12"', None),
        ('{"input_tokens": true}', "input_tokens is true", None),
        ('{"input_tokens": 1e16}', "input_tokens is 1e16", None),
        ("{", "no usage: invalid JSON", None),
        ("[]", "", None),
        (None, "no usage: No such file", None),
    ],
)
def test_usage_is_never_made_up(tmp_path: Path, text: str | None, error: str, tokens: int | None) -> None:
    path = tmp_path / "usage.json"
    if text is not None:
        path.write_text(text)
    found = read_usage(UsageSource(), path)
    assert found.values["input_tokens"] == tokens
    assert error in found.error if error else found.error == ""


def test_suite_of_the_tests_is_valid(tmp_path: Path) -> None:
    assert load_suite(write_suite(tmp_path, suite())).suite.name == "small"

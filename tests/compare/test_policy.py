"""Policies: what they mean, and what is said of bad ones."""

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from evenhand.compare.policy import limits_of, parse_policy, policy_schema
from evenhand.core.errors import InputError

SCHEMA = Path(__file__).resolve().parents[2] / "docs" / "schemas" / "gate_policy.schema.json"
GOOD = """\
version: 1
defaults:
  tier: supporting
  metric: mean_reward
  direction: higher_is_better
  max_drop: 0.015
benchmarks:
  gpqa: {tier: critical, max_drop: 0.01}
  humaneval: {metric: pass@1}
  aime: {tier: critical, max_relative_drop: 0.02, relative_guard_below: 0.2}
  chat:
    metrics:
      mean_reward: {max_drop: 0.0}
      cost: {max_relative_drop: 0.1, tier: advisory}
  triviaqa:
"""


def test_gaps_are_filled_from_the_benchmark_then_the_defaults() -> None:
    policy = parse_policy(GOOD)
    (gpqa,) = limits_of(policy, "gpqa")
    assert (gpqa.tier, gpqa.max_drop, gpqa.metric) == ("critical", 0.01, "mean_reward")
    (humaneval,) = limits_of(policy, "humaneval")
    assert (humaneval.tier, humaneval.max_drop, humaneval.metric) == ("supporting", 0.015, "pass@1")
    (trivia,) = limits_of(policy, "triviaqa")
    assert (trivia.tier, trivia.max_drop) == ("supporting", 0.015)


def test_a_limit_of_zero_is_a_limit_and_costs_go_the_other_way() -> None:
    reward, cost = limits_of(parse_policy(GOOD), "chat")
    assert reward.max_drop == 0.0
    assert (cost.direction, cost.tier) == ("lower_is_better", "advisory")
    assert (cost.max_drop, cost.max_relative_drop) == (None, 0.1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("version: 1\ndefaults:\n  max_drpo: 0.1\n", r"p.yaml:3: unknown key 'max_drpo'; known: .*max_drop"),
        ("version: 1\nbenchmrks: {}\n", r"p.yaml:2: unknown key 'benchmrks'"),
        (
            "version: 1\nbenchmarks:\n  a:\n    metrics:\n      cost:\n        limit: 3\n",
            r"p.yaml:6: unknown key 'limit'",
        ),
        ("version: 1\nbenchmarks:\n  a: {tier: vital}\n", r"p.yaml:3: .*tier"),
        ("version: 1\nbenchmarks:\n  a:\n    max_drop: lots\n", r"p.yaml:4: .*max_drop"),
        ("version: 1\nversion: 1\n", r"p.yaml:2: duplicate key 'version'"),
        ("version: 2\n", r"version"),
        ("benchmarks: {}\n", r"version"),
        ("- 1\n", r"a policy is a mapping"),
        (
            "version: 1\ndefaults: {max_drop: -0.1}\n",
            r"defaults: max_drop must be from 0 to 1e\+15, not -0.1",
        ),
        (
            "version: 1\ndefaults: {max_drop: .nan}\n",
            r"defaults: max_drop must be from 0 to 1e\+15, not nan",
        ),
        ("version: 1\ndefaults: {max_relative_drop: .inf}\n", r"max_relative_drop must be from 0 to 1e\+15"),
        ("version: 1\ndefaults: {min_coverage: 1.5}\n", r"min_coverage must be from 0 to 1, not 1.5"),
        ("version: 1\nalpha: .nan\n", r"alpha must be between 0 and 0.5, not nan"),
        ("version: 1\nbenchmarks: {a: {metric: vibes}}\n", r"a: unknown metric 'vibes'; known: mean_reward"),
        ("version: 1\nbenchmarks: {a: {metric: pass@0}}\n", r"unknown metric 'pass@0'"),
        ("version: 1\nalpha: 0.9\n", r"alpha must be between 0 and 0.5"),
        ("version: [1\n", r"p.yaml:2: invalid YAML"),
        ("version: !!python/object/apply:os.system ['true']\n", r"invalid YAML"),
    ],
)
def test_bad_policies_are_named_with_their_line(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        parse_policy(text, "p.yaml")


def test_a_cost_without_a_limit_of_its_own_is_refused() -> None:
    policy = parse_policy("version: 1\nbenchmarks: {a: {metric: cost}}\n")
    with pytest.raises(InputError, match="metric 'cost' needs max_drop or max_relative_drop of its own"):
        limits_of(policy, "a")


def test_the_published_schema_is_the_current_one_and_agrees_with_the_parser() -> None:
    schema = policy_schema()
    assert json.loads(SCHEMA.read_text(encoding="utf-8")) == schema
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(yaml.safe_load(GOOD), schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"version": 1, "benchmrks": {}}, schema)

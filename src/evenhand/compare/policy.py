"""Gate policies: which benchmarks decide a release, by which metric, and how much each may drop."""

from pathlib import Path
from typing import Any, Literal

import msgspec
import yaml
from msgspec import UNSET, Struct, UnsetType

from evenhand.core.errors import InputError

Tier = Literal["critical", "supporting", "advisory"]
Direction = Literal["higher_is_better", "lower_is_better"]
USAGE_METRICS = ("cost", "duration", "tokens")
"""Metrics of what answers cost; lower is better unless the policy says otherwise."""


class MetricRule(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked of one metric. A key that is not given comes from the benchmark, then from `defaults`."""

    tier: Tier | UnsetType = UNSET
    """`critical` and `supporting` decide; `advisory` is only reported."""
    direction: Direction | UnsetType = UNSET
    """Which way is better."""
    max_drop: float | UnsetType = UNSET
    """The damage that is tolerated, on the metric's own scale."""
    max_relative_drop: float | UnsetType | None = UNSET
    """The damage that is tolerated as a part of the base's value."""
    relative_guard_below: float | UnsetType | None = UNSET
    """The relative limit counts only when the base's value is below this."""
    require_significance: bool | UnsetType = UNSET
    """True: a breach must be proven, and a pass too. False: the estimates alone decide."""
    min_coverage: float | UnsetType = UNSET
    """The part of the samples that each side must have for a PASS, unless the worst case passes too; 0.98 if not given."""


class BenchmarkRule(MetricRule, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is asked of one benchmark."""

    metric: str | UnsetType = UNSET
    """`mean_reward`, `pass@K`, `pass^K`, `cost`, `duration` or `tokens`."""
    metrics: dict[str, MetricRule] = msgspec.field(default_factory=dict)
    """Several metrics, each with its own limits."""


class Policy(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole policy file."""

    version: Literal[1]
    """The version of this layout."""
    alpha: float = 0.05
    """The error rate of the gate as a whole; Holm's correction shares it among the gated metrics."""
    defaults: BenchmarkRule = BenchmarkRule()
    """For everything that a benchmark does not say itself."""
    benchmarks: dict[str, BenchmarkRule | None] = msgspec.field(default_factory=dict)
    """By name. Empty: every benchmark of the base, under `defaults`."""


class Limit(Struct, frozen=True, kw_only=True):
    """A rule with every gap filled."""

    benchmark: str
    """The benchmark's name."""
    metric: str
    """The metric's name."""
    tier: Tier
    """How much it counts."""
    direction: Direction
    """Which way is better."""
    max_drop: float | None
    """The tolerated damage; None when only the relative limit counts."""
    max_relative_drop: float | None
    """The tolerated relative damage."""
    relative_guard_below: float | None
    """When the relative limit counts."""
    require_significance: bool
    """Whether breaches and passes must be proven."""
    min_coverage: float
    """How much must be compared."""


def limits_of(policy: Policy, benchmark: str) -> list[Limit]:
    """What `policy` asks of `benchmark`, metric by metric."""
    rule = policy.benchmarks.get(benchmark) or BenchmarkRule()
    defaults = policy.defaults
    metric = _first(rule.metric, defaults.metric, "mean_reward")
    if rule.metrics or (defaults.metrics and rule.metric is UNSET):
        rules = {**defaults.metrics, **rule.metrics}
        return [_limit(benchmark, name, [one, rule, defaults]) for name, one in rules.items()]
    return [_limit(benchmark, metric, [rule, defaults])]


def _limit(benchmark: str, metric: str, rules: list[Any]) -> Limit:
    def value(name: str, fallback: Any) -> Any:
        return _first(*(getattr(rule, name) for rule in rules), fallback)

    costs = metric in USAGE_METRICS
    own = rules[0]
    relative = value("max_relative_drop", None)
    if costs:
        # A drop of 0.015 and "higher is better" are said of scores: costs never inherit them.
        max_drop = None if own.max_drop is UNSET else own.max_drop
        direction = _first(own.direction, "lower_is_better")
    else:
        max_drop, direction = value("max_drop", 0.015), value("direction", "higher_is_better")
    if costs and max_drop is None and relative is None:
        raise InputError(
            f"benchmark '{benchmark}': metric '{metric}' needs max_drop or max_relative_drop of its own"
        )
    return Limit(
        benchmark=benchmark,
        metric=metric,
        tier=value("tier", "supporting"),
        direction=direction,
        max_drop=max_drop,
        max_relative_drop=relative,
        relative_guard_below=value("relative_guard_below", None),
        require_significance=value("require_significance", True),
        min_coverage=value("min_coverage", 0.98),
    )


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not UNSET)


def parse_policy(text: str, path: Path | str | None = None) -> Policy:
    """The policy that the YAML `text` describes; `InputError` names the line of what is wrong."""
    try:
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        data = yaml.safe_load(text)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InputError(f"invalid YAML: {error.problem}", path=path, line=line) from None
    except (yaml.YAMLError, RecursionError) as error:
        raise InputError(f"invalid YAML: {error}", path=path) from None
    if not isinstance(data, dict):
        raise InputError("a policy is a mapping with 'version', 'defaults' and 'benchmarks'", path=path)
    _check_keys(node, path)
    try:
        policy = msgspec.convert(data, Policy)
    except msgspec.ValidationError as error:
        place = _place(node, str(error))
        raise InputError(str(error), path=path, line=place) from None
    _check_values(policy, node, path)
    return policy


def policy_schema() -> dict[str, Any]:
    """The JSON Schema of policy files."""
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **msgspec.json.schema(Policy)}


_TOP = set(Policy.__struct_fields__)
_BENCHMARK = set(BenchmarkRule.__struct_fields__)
_METRIC = set(MetricRule.__struct_fields__)


def _check_keys(node: Any, path: Path | str | None) -> None:
    """Refuse unknown and repeated keys, with their lines: a misspelt limit must not pass for no limit."""
    _check_mapping(node, _TOP, path)
    for key, value in _pairs(node):
        if key == "defaults":
            _check_rule(value, path)
        elif key == "benchmarks":
            _check_mapping(value, None, path)
            for _, rule in _pairs(value):
                _check_rule(rule, path)


def _check_rule(node: Any, path: Path | str | None) -> None:
    _check_mapping(node, _BENCHMARK, path)
    for key, value in _pairs(node):
        if key == "metrics":
            _check_mapping(value, None, path)
            for _, rule in _pairs(value):
                _check_mapping(rule, _METRIC, path)


def _check_mapping(node: Any, known: set[str] | None, path: Path | str | None) -> None:
    seen: set[str] = set()
    for key_node, _ in node.value if isinstance(node, yaml.MappingNode) else []:
        key, line = str(key_node.value), key_node.start_mark.line + 1
        if known is not None and key not in known:
            raise InputError(f"unknown key '{key}'; known: {', '.join(sorted(known))}", path=path, line=line)
        if key in seen:
            raise InputError(f"duplicate key '{key}'", path=path, line=line)
        seen.add(key)


def _pairs(node: Any) -> list[tuple[str, Any]]:
    return (
        [(str(key.value), value) for key, value in node.value] if isinstance(node, yaml.MappingNode) else []
    )


def _place(node: Any, message: str) -> int | None:
    """The line of the value that a validation message (`... - at `$.a[...].b``) is about.

    msgspec writes `[...]` for the keys of a mapping, so the first key whose value fails is looked for.
    """
    if "`$" not in message:
        return None
    steps = message.rsplit("`$", 1)[1].rstrip("`").replace("[...]", ".*").split(".")[1:]
    found = _follow(node, steps)
    return None if found is None else int(found.start_mark.line) + 1


def _follow(node: Any, steps: list[str]) -> Any:
    if not steps:
        return node
    for key, value in _pairs(node):
        if steps[0] in (key, "*"):
            found = _follow(value, steps[1:])
            if found is not None and (steps[0] != "*" or not _sound(value)):
                return found
    return None


def _sound(node: Any) -> bool:
    """Whether a rule's node converts by itself."""
    try:
        msgspec.convert(yaml.safe_load(yaml.serialize(node, Dumper=yaml.SafeDumper)), BenchmarkRule | None)
    except msgspec.ValidationError:
        return False
    return True


def _check_values(policy: Policy, node: Any, path: Path | str | None) -> None:
    if not 0 < policy.alpha < 0.5:
        raise InputError(f"alpha must be between 0 and 0.5, not {policy.alpha}", path=path)
    rules = {"defaults": policy.defaults, **{name: rule for name, rule in policy.benchmarks.items() if rule}}
    for name, rule in rules.items():
        for where, one in [
            (name, rule),
            *((f"{name}.metrics.{key}", value) for key, value in rule.metrics.items()),
        ]:
            for key, most in HIGHEST.items():
                value = getattr(one, key)
                if value is not UNSET and value is not None and not 0 <= value <= most:
                    raise InputError(f"{where}: {key} must be from 0 to {most:g}, not {value}", path=path)
        for metric in [rule.metric, *rule.metrics]:
            if metric is not UNSET and not known_metric(str(metric)):
                raise InputError(f"{name}: unknown metric '{metric}'; known: {METRICS}", path=path)


# A limit beyond these, an infinite one or NaN would pass anything, or nothing, without a word.
HIGHEST = {"max_drop": 1e15, "max_relative_drop": 1e15, "relative_guard_below": 1e15, "min_coverage": 1.0}
METRICS = "mean_reward, pass@K, pass^K, cost, duration, tokens"


def known_metric(name: str) -> bool:
    """Whether a gate can compute the metric."""
    if name in ("mean_reward", *USAGE_METRICS):
        return True
    prefix, _, number = name.partition("@" if "@" in name else "^")
    return prefix == "pass" and number.isdigit() and int(number) >= 1

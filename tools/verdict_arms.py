"""The A/B part of `verify_verdict.py`: arms, paired deltas, tests, headline intervals of means, gates and decision."""

import gzip
import json
from fractions import Fraction
from math import sqrt
from statistics import mean, median

from verdict_statistics import (
    clustered,
    difference_ends,
    flip_p,
    flip_slack,
    grouped,
    holm,
    phi,
    sign_p,
    t_quantile,
)

FIELDS = ("total_cost_usd", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
DELTAS = {
    "success": "pass_delta",
    "cost_usd": "cost_delta_usd",
    "duration_seconds": "duration_delta_seconds",
    "total_tokens": "token_delta",
    "non_cache_tokens": "non_cache_token_delta",
}
GATES = {"success_rate": "success", "duration": "duration_seconds", "tokens": "non_cache_tokens"}
MIXED = "mixed results - inspect paired deltas"
ALPHA = 0.05
NORMAL_BEYOND = 1_000
"""Beyond this many tasks that differ, the p-value is that of the normal limit."""


def read_runs(data, arms, zero):
    """Arm → (task, repeat) → figures, without infrastructure failures; and how many lines are no records."""
    text = (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig")
    runs, invalid = {arm: {} for arm in arms}, 0
    for line in filter(str.strip, text.splitlines()):
        try:
            one = json.loads(line)
            agent = one.get("agent_exit_code", one.get("opencode_exit_code"))
            refused = agent not in (0, None) and one.get("acceptance_exit_code") == 99
            cost, *tokens = ((one.get(f) or 0) if zero else one.get(f) for f in FIELDS)
            row = {
                "success": float(one["success"]),
                "duration_seconds": one["duration_seconds"],
                "cost_usd": cost,
                "total_tokens": None if None in tokens else sum(tokens),
                "non_cache_tokens": None if None in tokens[:2] else sum(tokens[:2]),
            }
            if one["arm"] in runs and not (one.get("infra_failure") or agent == 86 or refused):
                runs[one["arm"]][one["task_id"], one["repeat"]] = row
        except (ValueError, KeyError, TypeError, AttributeError):
            invalid += 1
    return runs, invalid


def lean(values):
    """The third moment of deviations over the cube of their spread."""
    top = max(map(abs, values))
    if top == 0:
        return 0.0
    scaled = [v / top for v in values]
    return mean(v**3 for v in scaled) / mean(v * v for v in scaled) ** 1.5


def headline_ends(values, tasks, level, scale):
    """The headline interval of a mean over at least two tasks; None where there is no spread to estimate from."""
    centre = mean(values)
    sums, sizes = grouped(values, tasks)
    rest = [s - m * centre for s, m in zip(sums, sizes, strict=True)]
    same = max(map(abs, rest)) <= 1e-12 * max(map(abs, sums))
    if same and scale is None:
        return None
    half = 0.0
    if not same:
        error, df = clustered(sums, sizes)
        half = t_quantile((1 + level) / 2, df) * error
    if scale is None:
        root = sqrt(len(sums))
        leans = (4 * lean(rest) / root, lean([v - centre for v in values]) / root)
        return centre - half * (1 + max(0.0, *(-x for x in leans))), centre + half * (1 + max(0.0, *leans))
    low, high = centre - half, centre + half
    means = [s / m for s, m in zip(sums, sizes, strict=True)]
    method, *ends = difference_ends(means, None, level, scale)
    if method != "t":
        shift = centre - mean(means)
        low, high = min(low, ends[0] + shift), max(high, ends[1] + shift)
    return max(low, -scale), min(high, scale)


def verify_ab(audit, check, data):
    """The parts that hold results, after all checks; bootstrap intervals and those of medians are not recomputed."""
    told, options = audit["result"], audit["options"]
    arms = [one["arm"] for one in told["arm_summaries"]]
    runs, invalid = read_runs(data, arms, options.get("null_as_zero"))
    check.near("lines that are no records", told["data_quality"]["invalid_lines"], invalid)

    def known(arm, name):
        return [row[name] for row in runs[arm].values() if row[name] is not None]

    for summary in told["arm_summaries"]:
        arm = summary["arm"]
        check.near(f"{arm}: runs", summary["runs"], len(runs[arm]))
        if runs[arm]:
            check.near(f"{arm}: successes", summary["successes"], sum(known(arm, "success")))
            check.near(f"{arm}: success rate", summary["success_rate"], mean(known(arm, "success")))
            for name in ("duration_seconds", "cost_usd", "total_tokens", "non_cache_tokens"):
                values = known(arm, name)
                found = median(values) if values else None
                check.near(f"{arm}: median {name}", summary[f"median_{name}"], found)
    if len(arms) < 2 or not all(runs.values()):
        for name, said in (("decision", told["decision"]), ("verdict", audit["verdict"])):
            check.near(name, said, "insufficient data")
        return [told]
    deltas = verify_deltas(told, runs, arms, check)
    proven = verify_tests(told, deltas, check)
    leads = []
    for gate in told["gates"]:
        name = GATES[gate["name"]]
        sides = [known(arm, name) for arm in arms]
        sides = [[Fraction(str(v)) for v in side] for side in sides]
        figures = [(mean if name == "success" else median)(side) if side else None for side in sides]
        for label, figure in zip(("treatment", "control"), figures, strict=True):
            found = None if figure is None else float(figure)
            check.near(f"gate {gate['name']}: {label}", gate[label], found)
        lead = None if None in figures else (figures[0] - figures[1]) * (1 if name == "success" else -1)
        standing = "unknown" if lead is None else "better" if lead > 0 else "worse" if lead < 0 else "equal"
        check.near(f"gate {gate['name']}: standing", gate["standing"], standing)
        check.near(f"gate {gate['name']}: holds", gate["holds"], None if lead is None else lead >= 0)
        found = None if lead is None else lead <= 0
        check.near(f"gate {gate['name']}: holds for the control", gate["holds_for_control"], found)
        shown = proven.get(DELTAS[name], False)
        if shown:
            better = (mean(deltas[name][0]) > 0) == (name == "success")
            shown = standing == ("better" if better else "worse")
        check.near(f"gate {gate['name']}: proven", gate["proven"], shown)
        leads.append((lead, shown))
    check.near("number of gates", " ".join(gate["name"] for gate in told["gates"]), " ".join(GATES))
    best = None
    if all(lead is not None for lead, _ in leads):
        best = (
            arms[0]
            if all(lead >= 0 for lead, _ in leads)
            else arms[1]
            if all(lead <= 0 for lead, _ in leads)
            else None
        )
    if options.get("require_significance") and not all(shown for _, shown in leads):
        best = None
    for name, said in (("decision", told["decision"]), ("verdict", audit["verdict"])):
        check.near(name, said, MIXED if best is None else f"prefer {best}")
    return [told]


def verify_deltas(told, runs, arms, check):
    """Metric → (deltas, their tasks), after the means, medians and headline intervals of means were checked."""
    shared = sorted(runs[arms[0]].keys() & runs[arms[1]].keys(), key=str)
    check.near("paired runs", told["paired"]["paired_runs"], len(shared))
    found = {}
    for name, label in DELTAS.items():
        pairs = [(key[0], *(runs[arm][key][name] for arm in arms)) for key in shared]
        kept = [(t, Fraction(str(a)) - Fraction(str(b))) for t, a, b in pairs if None not in (a, b)]
        exact = [delta for _, delta in kept]
        for what, function in (("mean", mean), ("median", median)):
            value = float(function(exact)) if exact else None
            check.near(f"{what} {label}", told["paired"][f"{what}_{label}"], value)
        check.near(f"pairs with {label}", told["paired"]["pairs_with_value"][label], len(exact))
        values, tasks = [float(delta) for delta in exact], [task for task, _ in kept]
        found[name] = values, tasks
        said = told["intervals"][label]["mean"]
        level = 0.95 if said is None else said["confidence_level"]
        ends = None
        if len(set(tasks)) > 1:
            ends = headline_ends(values, tasks, level, 1.0 if name == "success" else None)
        if ends is None or said is None:
            check.near(f"interval of the mean {label}", said and "there", ends and "there")
            continue
        for part, value in (
            ("value", mean(values)),
            ("ci_lower", ends[0]),
            ("ci_upper", ends[1]),
            ("n", len(values)),
            ("n_groups", len(set(tasks))),
        ):
            check.near(f"interval of the mean {label}: {part}", said[part], value)
    return found


def verify_tests(told, deltas, check):
    """Delta → whether it is proven, after the p-values were checked."""
    by_task = {}
    for name, label in DELTAS.items():
        values, tasks = deltas[name]
        if not values:
            continue
        test, sums = told["tests"][label], grouped(values, tasks)[0]
        if sum(one != 0 for one in sums) > NORMAL_BEYOND:
            found, slack = 2 * phi(-abs(sum(sums)) / sqrt(sum(one * one for one in sums))), 1e-5
        else:
            found = flip_p(sums, "two-sided")
            slack = flip_slack(sums, test["by_task_p_value"], found)
        by_task[label] = check.near(f"p of {label} by task", test["by_task_p_value"], found, slack)
        check.near(f"tasks of {label}", test["tasks"], len(sums))
        check.near(f"pairs of {label}", test["pairs"], len(values))
        check.near(f"mean of the test of {label}", test["mean"], mean(values))
        if name == "success":
            wins, losses = sum(v > 0 for v in values), sum(v < 0 for v in values)
            check.near("wins", test["wins"], wins)
            check.near("losses", test["losses"], losses)
            check.near(f"p of {label}", test["p_value"], sign_p(losses, wins, "two-sided"), 1e-5)
    tested = [DELTAS[name] for name in GATES.values() if DELTAS[name] in by_task]
    proven = {}
    for label, p in zip(tested, holm([by_task[label] for label in tested]), strict=True):
        test = told["tests"][label]
        p_holm = check.near(f"p of {label} after Holm", test["p_holm"], p)
        proven[label] = p_holm <= ALPHA
        check.near(f"{label} proven", test["proven"], proven[label])
    return proven

#!/usr/bin/env python3
"""Recompute the numbers of a verdict from its audit file, with nothing but Python's standard library.

    python tools/verify_verdict.py audit.json [--inputs]

Written from the formulas, not from `evenhand.metrics` (`verdict_statistics.py` beside it: distributions by series and
integration, tests by enumeration and convolution). Prints what differs, how many numbers were recomputed, and which
ones were not. Options, limits and samples are taken as they stand in the file. With --inputs the digests of the input
files are checked too; those of A/B records always are, for an A/B audit does not hold the records themselves.

Exit status 0 when everything agrees, 1 when something differs, 65 when the file (or one that it names) cannot be
understood, 66 when a file is not there.
"""

import hashlib
import json
import sys
from collections import Counter
from fractions import Fraction
from math import comb, sqrt
from pathlib import Path
from statistics import StatisticsError, mean

from verdict_arms import verify_ab
from verdict_statistics import (
    Z,
    clustered,
    difference_ends,
    drop_evidence,
    flip_p,
    flip_slack,
    grouped,
    hochberg,
    holm,
    lower_bound_holds,
    mcnemar_power,
    mean_ends,
    noncentral_t_cdf,
    sign_p,
    spread,
    t_power,
)

TOLERANCE = 1e-6


class Real(float):
    """A number of the file: an object of its own, so that it can be told which ones were checked."""


class Whole(int):
    """The same for whole numbers."""


class Flag(int):
    """The same for true and false."""

    def __repr__(self):
        return str(bool(self))


def flagged(tree):
    """The same tree, with a `Flag` for every true and false."""
    if isinstance(tree, dict):
        return {key: flagged(value) for key, value in tree.items()}
    if isinstance(tree, list):
        return [flagged(value) for value in tree]
    return Flag(tree) if isinstance(tree, bool) else tree


def numbers(tree, path=""):
    """Every number of a tree, with its place; all members of a list have the same place."""
    if isinstance(tree, Real | Whole | Flag):
        yield path, tree
    for key, value in tree.items() if isinstance(tree, dict) else ():
        yield from numbers(value, f"{path}.{key}" if path else key)
    for value in tree if isinstance(tree, list) else ():
        yield from numbers(value, path)


class Check:
    """What was compared, and what differs."""

    def __init__(self):
        self.count, self.wrong, self.seen, self.copies = 0, [], set(), []

    def near(self, name, told, found, tolerance=TOLERANCE):
        """Compare; the number to go on with is the file's if it agrees, else the recomputed one."""
        self.count += 1
        self.seen.add(id(told))
        exact = isinstance(told, str | None) or isinstance(found, str | None)
        if (told == found) if exact else abs(told - found) <= tolerance * max(1.0, abs(found)):
            return told
        self.wrong.append(f"{name}: the file says {told!r}, recomputed {found!r}")
        return found

    def holds(self, name, told, holds):
        """A number that is checked by a condition; None to go on with if it does not hold."""
        self.count += 1
        self.seen.add(id(told))
        if not holds:
            self.wrong.append(f"{name}: the file says {told!r}, which is not what the samples give")
        return told if holds else None

    def same(self, name, copy, original):
        """A part that the file holds twice: a copy counts as recomputed where its original does."""
        if isinstance(copy, dict) and isinstance(original, dict) and copy.keys() == original.keys():
            for key, value in copy.items():
                self.same(f"{name} {key}", value, original[key])
        elif copy == original:
            self.copies.append((id(copy), id(original)))
        else:
            self.near(name, copy, original, 0.0)

    def left(self, tree):
        """How many numbers at which place were not recomputed."""
        done = self.seen | {copy for copy, original in self.copies if original in self.seen}
        return Counter(place for place, number in numbers(tree) if id(number) not in done)


# ---------------------------------------------------------------- a comparison


def verify_comparison(one, options, check, place):
    told, level = one["result"], options["confidence_level"]
    sides = [{(p, r): (s, v) for p, r, s, v in one["samples"][side]} for side in ("base", "candidate")]
    keys = sorted({tuple(key) for key in one["expected"]})
    score = [{key: v for key, (s, v) in side.items() if s == "scored"} for side in sides]
    seen = [v for side in score for v in side.values()]
    low, high = min([0.0, *seen]), max([1.0, *seen])
    scale = high - low
    pairs = {}
    for key in keys:
        if key in score[0] and key in score[1]:
            pairs.setdefault(key[0], []).append((score[0][key], score[1][key]))
    problems = sorted(pairs)
    base = [mean(a for a, _ in pairs[p]) for p in problems]
    candidate = [mean(b for _, b in pairs[p]) for p in problems]
    deltas = [b - a for a, b in zip(base, candidate, strict=False)]
    clusters = one.get("clusters")
    groups = None if clusters is None else [clusters[str(p)] for p in problems]
    single = all(len(found) == 1 for found in pairs.values())
    binary = all(v in (0, 1) for found in pairs.values() for pair in found for v in pair)

    def near(name, value, found, tolerance=TOLERANCE):
        return check.near(f"{place} {name}", value, found, tolerance)

    def interval(name, value, centre, ends):
        near(f"{name} value", value["value"], centre)
        near(f"{name} n", value["n"], len(problems))
        near(f"{name} level", value["confidence_level"], level)
        near(f"{name} lower end", value["ci_lower"], ends[0])
        near(f"{name} upper end", value["ci_upper"], ends[1])

    count = sum(map(len, pairs.values()))
    near("problems", told["problems"], len(problems))
    near("pairs", told["pairs"], count)
    for name, found in zip(("improved", "regressed", "unchanged"), _signs(deltas), strict=False):
        near(name, told[name], found)
    coverage = told["coverage"]
    near("possible", coverage["possible"], len(keys))
    near("compared", coverage["pairs"], count)
    near("share", coverage["share"], count / len(keys))
    near("low end", coverage["low"], low)
    near("high end", coverage["high"], high)
    shares = []
    for name, side in zip(("base", "candidate"), score, strict=False):
        have = sum(key in side for key in keys)
        near(f"{name} scored", coverage[f"{name}_scored"], have)
        shares.append(near(f"{name} share", coverage[f"{name}_share"], have / len(keys)))
    every = sorted({key[0] for key in keys})
    every_group = None if clusters is None else [clusters[str(p)] for p in every]
    extremes = {}
    for name, for_base, for_candidate in (("worst", high, low), ("best", low, high)):
        filled = []
        for side, value in ((score[0], for_base), (score[1], for_candidate)):
            filled.append(
                [mean(side.get(k, value) for k in keys if k[0] == p) for p in every]
                if len(keys) < 3000 or len(every) < len(keys)
                else [side.get(k, value) for k in keys]
            )
        extremes[name] = [b - a for a, b in zip(*filled, strict=False)]
        near(f"{name} case", coverage[f"{name}_delta"], mean(extremes[name]))
        ends = ("lowest_mean", "highest_mean")
        near(f"base in the {name} case", told["base"][ends[name == "worst"]], mean(filled[0]))
        near(f"candidate in the {name} case", told["candidate"][ends[name == "best"]], mean(filled[1]))
    sure = (1 + level) / 2
    worst = coverage["worst_lower"]
    if worst is not None:
        holds = lower_bound_holds(extremes["worst"], every_group, sure, scale, worst)
        worst = check.holds(f"{place} worst case's bound", worst, holds)
        turned = [-d for d in extremes["best"]]
        holds = lower_bound_holds(turned, every_group, sure, scale, -coverage["best_upper"])
        check.holds(f"{place} best case's bound", coverage["best_upper"], holds)
    for name, values in (("base", base), ("candidate", candidate)):
        interval(
            f"{name} mean", told[name]["mean"], mean(values), mean_ends(values, groups, level, (low, high))
        )
    method, *ends = difference_ends(deltas, groups, level, scale)
    near("delta's method", told["delta"]["method"], method)
    interval("delta", told["delta"], mean(deltas), ends)
    error = sqrt(sum(spread(v) ** 2 for v in (base, candidate)) / len(base))
    half = Z.inv_cdf((1 + level) / 2) * error
    interval(
        "unpaired delta", told["unpaired_delta"], mean(deltas), (mean(deltas) - half, mean(deltas) + half)
    )
    evidence = told["evidence"]
    p_values = []
    for name, side, value in (
        ("two-sided p", "two-sided", told["test"]["p_value"]),
        ("p of a drop", "less", told["p_drop"]),
        ("p of a rise", "greater", evidence["p_rise"]),
    ):
        slack = 1e-5
        if groups is None and single and binary:
            found = sign_p(sum(d < 0 for d in deltas), sum(d > 0 for d in deltas), side)
        else:
            terms = grouped(deltas, groups)[0]
            found = flip_p(terms, side)
            slack = flip_slack(terms, value, found)
        p_values.append(near(name, value, found, slack))
    p_beyond = drop_evidence(deltas, groups, options["max_drop"], scale)
    p_beyond = near("p of a drop beyond the tolerance", told["p_beyond"], p_beyond)
    near("tolerance", told["max_drop"], options["max_drop"])
    near("scale", evidence["scale"], scale)
    near("required coverage", evidence["min_coverage"], options["min_coverage"])
    for name in ("delta", "p_drop", "p_beyond", "max_drop", "coverage", "family"):
        check.same(f"{place} evidence {name}", evidence[name], told[name])
    _effect(told, deltas, level, near, check, place)
    _detectable(told, deltas, groups, single and binary, level, check, place)
    _categories(one, told, problems, base, candidate, options, scale, single and binary, near)
    return {
        "deltas": deltas,
        "groups": groups,
        "scale": scale,
        "delta": mean(deltas),
        "p_drop": p_values[1],
        "p_rise": p_values[2],
        "p_beyond": p_beyond,
        "share": min(shares),
        "worst": worst,
    }


def _signs(deltas):
    return sum(d > 0 for d in deltas), sum(d < 0 for d in deltas), sum(d == 0 for d in deltas)


def _effect(told, deltas, level, near, check, place):
    if told["effect_size"] is None:
        return
    n = len(deltas)
    d = mean(deltas) / spread(deltas)
    near("effect size", told["effect_size"]["value"], d)
    for end, p in (("ci_lower", (1 + level) / 2), ("ci_upper", (1 - level) / 2)):
        found = noncentral_t_cdf(d * sqrt(n), n - 1, told["effect_size"][end] * sqrt(n))
        check.holds(f"{place} effect size's {end}", told["effect_size"][end], abs(found - p) <= 1e-4)
    near("effect size's level", told["effect_size"]["confidence_level"], level)
    near("effect size's n", told["effect_size"]["n"], n)


def _detectable(told, deltas, groups, exact, level, check, place):
    size, alpha, n = told["minimum_detectable_effect"], 1 - level, len(deltas)
    if size is None:
        return
    if groups is not None:
        units = len(set(groups))
        power = t_power(size, clustered(*grouped(deltas, groups))[0] * sqrt(units), units, alpha)
    elif exact:
        power = mcnemar_power(size, mean(d != 0 for d in deltas), n, alpha)
    else:
        power = t_power(size, spread(deltas), n, alpha)
    check.holds(f"{place} minimum detectable effect (power 0.8)", size, abs(power - 0.8) <= 2e-3)


def _categories(one, told, problems, base, candidate, options, scale, exact, near):
    p_values = []
    for found in told["categories"]:
        inside = [i for i, p in enumerate(problems) if one["categories"].get(str(p)) == found["category"]]
        left, right = [base[i] for i in inside], [candidate[i] for i in inside]
        deltas = [b - a for a, b in zip(left, right, strict=False)]
        name = f"category {found['category']}:"
        near(f"{name} problems", found["problems"], len(inside))
        near(f"{name} base", found["base_mean"], mean(left))
        near(f"{name} candidate", found["candidate_mean"], mean(right))
        if found["delta"] is not None:
            near(f"{name} delta", found["delta"]["value"], mean(deltas))
            _, low, high = difference_ends(deltas, None, options["confidence_level"], scale)
            near(f"{name} lower end", found["delta"]["ci_lower"], low)
            near(f"{name} upper end", found["delta"]["ci_upper"], high)
        p = (
            sign_p(sum(d < 0 for d in deltas), sum(d > 0 for d in deltas), "two-sided")
            if exact
            else flip_p(deltas, "two-sided")
        )
        near(f"{name} p", found["p_value"], p, flip_slack(deltas, found["p_value"], p))
        p_values.append(found["p_value"])
    for found, p in zip(told["categories"], holm(p_values), strict=False):
        near(f"category {found['category']}: p after Holm", found["p_adjusted"], p)


def verdict_of(found, options):
    """The verdict, from numbers that were recomputed."""
    alpha, most = 1 - options["confidence_level"], options["max_drop"]
    if found["delta"] < 0 and found["p_drop"] < alpha:
        return "BLOCK" if -found["delta"] > most else "WARN"
    if not found["p_beyond"] < alpha / 2:
        return "INCONCLUSIVE"
    covered = found["share"] >= options["min_coverage"]
    return "PASS" if covered or (found["worst"] is not None and found["worst"] > -most) else "INCONCLUSIVE"


def verify_compare(audit, check):
    options, told = audit["options"], audit["comparisons"]
    found = [verify_comparison(one, options, check, f"{one['benchmark']}:") for one in told]
    if len(told) > 1:
        level = 1 - (1 - options["confidence_level"]) / len(told)
        for name, correct in (("p_drop", holm), ("p_rise", holm), ("p_beyond", hochberg)):
            for one, mine, p in zip(told, found, correct([one[name] for one in found]), strict=True):
                place = f"{one['benchmark']}: {name} after correction"
                mine[name] = check.near(place, one["result"]["family"][name], p)
        for one, mine in zip(told, found, strict=True):
            place, family = one["benchmark"], one["result"]["family"]
            ends = difference_ends(mine["deltas"], mine["groups"], level, mine["scale"])[1:]
            for name, value in (
                ("value", mine["delta"]),
                ("ci_lower", ends[0]),
                ("ci_upper", ends[1]),
                ("confidence_level", level),
                ("n", len(mine["deltas"])),
            ):
                check.near(f"{place}: simultaneous {name}", family["simultaneous"][name], value)
            check.near(f"{place}: benchmarks", family["size"], len(told))
    names = [verdict_of(one, options) for one in found]
    for one, name in zip(told, names, strict=True):
        check.near(f"{one['benchmark']}: verdict", one["result"]["verdict"]["name"], name)
    order = ["PASS", "WARN", "INCONCLUSIVE", "BLOCK"]
    names += ["INCONCLUSIVE"] * bool(audit["left_out"])
    check.near("overall verdict", audit["verdict"], max(names, key=order.index))
    return [one["result"] for one in told]


# ---------------------------------------------------------------- a gate


def metric_values(metric, rows, expected, missing):
    """Problem → value over the expected samples; `missing` stands for what is not there, None leaves it out."""
    known, groups = {}, {}
    for problem, repeat, status, reward, usage in rows:
        value = reward if status == "scored" else None
        if metric in ("cost", "duration", "tokens"):
            used = usage or {}
            value = {"cost": used.get("cost_usd"), "duration": used.get("duration_seconds")}.get(metric)
            if metric == "tokens" and None not in (used.get("input_tokens"), used.get("output_tokens")):
                value = used["input_tokens"] + used["output_tokens"]
        if value is not None:
            known[problem, repeat] = value
    for key in expected:
        if key in known or missing is not None:
            groups.setdefault(key[0], []).append(known.get(key, missing))
    found = {}
    for problem, values in groups.items():
        if "@" not in metric and "^" not in metric:
            found[problem] = mean(values)
        elif len(values) >= (k := int(metric[5:])):
            n, right = len(values), int(sum(values))
            ways = comb(n - right, k) if "@" in metric else comb(right, k)
            found[problem] = abs(float("@" in metric) - ways / comb(n, k))
    return found, sum(key in known for key in expected) / max(1, len(expected))


def verify_metric(limit, gate, entry, alpha, check):
    """The numbers of a metric that its status depends on, recomputed; None where no problem has the metric."""
    rows, metric = [entry["base"], entry["candidate"]], limit["metric"]
    spent = metric in ("cost", "duration", "tokens")
    seen = sorted({(p, r) for side in rows for p, r, *_ in side})
    expected = []
    for side in rows:
        repeats = {r for _, r, *_ in side}
        mine = {key for key in seen if key[1] in repeats}
        lost = {p for p, _ in seen} - {p for p, _ in mine}
        expected.append(sorted(mine | {(p, r) for p in lost for r in repeats}))
    scores = [r[3] for side in rows for r in side if r[2] == "scored"]
    low, high = min([0.0, *scores]), max([1.0, *scores])
    sign = 1 if limit["direction"] == "higher_is_better" else -1

    def damages(ends):
        parts = [metric_values(metric, rows[i], expected[i], ends[i]) for i in (0, 1)]
        shared = sorted(parts[0][0].keys() & parts[1][0].keys())
        values = [[part[0][p] for p in shared] for part in parts]
        groups = None if entry["clusters"] is None else [entry["clusters"][str(p)] for p in shared]
        return (
            [sign * float(Fraction(repr(a)) - Fraction(repr(b))) for a, b in zip(*values, strict=False)],
            values,
            groups,
            [part[1] for part in parts],
        )

    worse, values, groups, shares = damages((None, None))
    if not worse:
        return None
    sure = dict.fromkeys(("damage_lower", "damage_upper", "worst_damage", "worst_upper", "p_value"))
    place = f"{limit['benchmark']} {metric}:"
    for name, found in zip(
        ("base_coverage", "candidate_coverage", "problems"), (*shares, len(worse)), strict=False
    ):
        sure[name] = check.near(f"{place} {name}", gate[name], found)
    for name, found in zip(
        ("base", "candidate", "damage"), (mean(values[0]), mean(values[1]), mean(worse)), strict=False
    ):
        sure[name] = check.near(f"{place} {name}", gate[name], found)
    possible = len({p for p, _ in seen})
    check.near(f"{place} possible", gate["possible"], possible)
    check.near(f"{place} coverage", gate["coverage"], len(worse) / possible)
    limits = [] if limit["max_drop"] is None else [limit["max_drop"]]
    if limit["max_relative_drop"] is not None:
        guard = limit["relative_guard_below"]
        if not limits or guard is None or mean(values[0]) < guard:
            limits.append(limit["max_relative_drop"] * abs(mean(values[0])))
    sure["limit"] = check.near(f"{place} limit", gate["limit"], min(limits))
    check.near(f"{place} clusters", gate["clusters"], None if groups is None else len(set(groups)))
    flat = [v for side in values for v in side]
    scale = None if spent else max(1.0, *flat) - min(0.0, *flat)
    alike = scale is None and max(worse) == min(worse)  # equal costs prove nothing: no bounds
    none = {"damage_upper": alike or len(worse) < 2, "p_value": len(worse) < 2}
    for name, absent in none.items():
        check.holds(f"{place} {name}", gate[name], (gate[name] is None) == absent)
    if gate["damage_upper"] is not None and not alike:
        holds = lower_bound_holds([-w for w in worse], groups, 1 - alpha, scale, -gate["damage_upper"])
        sure["damage_upper"] = check.holds(f"{place} upper bound", gate["damage_upper"], holds)
        holds = lower_bound_holds(worse, groups, 1 - alpha, scale, gate["damage_lower"])
        sure["damage_lower"] = check.holds(f"{place} lower bound", gate["damage_lower"], holds)
    if gate["worst_damage"] is not None:
        ends = [(high, low), (low, high)][:: 1 if sign > 0 else -1]
        for name, pair in zip(("worst_damage", "best_damage"), ends, strict=False):
            sure[name] = check.near(f"{place} {name}", gate[name], mean(damages(pair)[0]))
        filled, _, codes, _ = damages(ends[0])
        if gate["worst_upper"] is not None:
            turned = [-w for w in filled]
            found = lower_bound_holds(turned, codes, 1 - alpha, scale, -gate["worst_upper"])
            sure["worst_upper"] = check.holds(f"{place} worst case's upper bound", gate["worst_upper"], found)
    if gate["p_value"] is None:
        return sure
    slack = 1e-5
    if max(worse) == min(worse):
        over = (scale + sure["limit"]) / (scale + worse[0]) if scale else 0.5
        p = 1.0 if worse[0] <= sure["limit"] else over ** len(worse)
    elif sure["limit"] == 0:
        p = flip_p(grouped(worse, groups)[0], "greater")
        slack = flip_slack(grouped(worse, groups)[0], gate["p_value"], p)
    else:
        p = drop_evidence([w - sure["limit"] for w in worse], groups, 0.0, scale)
    sure["p_value"] = check.near(f"{place} p", gate["p_value"], p, slack)
    return sure


def status_of(gate, limit, alpha):
    enough = min(gate["base_coverage"], gate["candidate_coverage"]) >= limit["min_coverage"]
    most = gate["limit"]

    def covered(worst):
        return enough or (worst is not None and worst < most)

    if not limit["require_significance"]:
        if gate["damage"] > most:
            return "BREACH"
        return "PASS" if covered(gate["worst_damage"]) else "INSUFFICIENT_EVIDENCE"
    if gate["p_adjusted"] is None:
        return "INSUFFICIENT_EVIDENCE"
    if gate["damage"] > most and gate["p_adjusted"] < alpha:
        return "BREACH"
    upper = gate["damage_upper"]
    if upper is not None and upper < most and covered(gate["worst_upper"]):
        return "PASS"
    return "INSUFFICIENT_EVIDENCE"


def verify_gate(audit, check):
    limits = {(one["benchmark"], one["metric"]): one for one in audit["limits"]}
    told = {(gate["benchmark"], gate["metric"]): gate for gate in audit["result"]["gates"]}
    alpha, found, lacking = audit["alpha"], {}, {}
    check.near("alpha", audit["result"]["alpha"], alpha)
    check.near("metrics", " ".join(map(str, sorted(told))), " ".join(map(str, sorted(limits))))
    check.near("number of results", len(audit["result"]["gates"]), len(limits))
    for key in told.keys() & limits.keys():
        entry = audit["benchmarks"][key[0]]
        gone = entry["base"] is None or entry["candidate"] is None
        found[key] = None if gone else verify_metric(limits[key], told[key], entry, alpha, check)
        lacking[key] = gone and key[0] in audit["required"]
        check.near(f"{' '.join(key)}: tier", told[key]["tier"], limits[key]["tier"])
        check.near(f"{' '.join(key)}: lacking", told[key]["lacking"], lacking[key])
    needed = [key for key in sorted(found) if limits[key]["tier"] != "advisory"]
    tested = [key for key in needed if found[key] and found[key]["p_value"] is not None]
    adjusted = dict(zip(tested, holm([found[key]["p_value"] for key in tested]), strict=True))
    status = {}
    for key, sure in found.items():
        status[key] = "MISSING"
        if sure is not None:
            p = adjusted.get(key, sure["p_value"])
            sure["p_adjusted"] = check.near(f"{' '.join(key)}: adjusted p", told[key]["p_adjusted"], p)
            status[key] = status_of(sure, limits[key], alpha)
        check.near(f"{' '.join(key)}: status", told[key]["status"], status[key])
    stop = any(status[key] == "BREACH" or lacking[key] for key in needed)
    fine = bool(needed) and all(status[key] == "PASS" for key in needed)
    verdict = "NO-GO" if stop else "GO" if fine else "INCONCLUSIVE"
    check.near("verdict", audit["verdict"], verdict)
    check.near("verdict of the result", audit["result"]["verdict"], verdict)
    return [audit["result"]]


class Unusable(Exception):
    """What cannot be verified, and the exit status that says so."""


def read_bytes(path):
    try:
        return Path(path).read_bytes()
    except FileNotFoundError as error:
        raise Unusable(f"{path}, which the audit was made from, is not there", 66) from error
    except OSError as error:
        raise Unusable(f"{path} cannot be read: {error}", 66) from error


def verified(audit, check, with_inputs):
    """The parts of an audit that hold its results, after all checks."""
    if with_inputs or audit["kind"] == "ab":
        for file in (one for source in audit["inputs"] for one in source["files"]):
            found = hashlib.sha256(read_bytes(file["path"])).hexdigest()
            check.near(f"digest of {file['path']}", file["sha256"], found)
    if audit["kind"] == "ab":
        if not audit["inputs"][0]["files"]:
            raise Unusable(
                "the A/B records were no file when the audit was made: there is nothing to recompute from", 65
            )
        return verify_ab(audit, check, read_bytes(audit["inputs"][0]["files"][0]["path"]))
    return {"compare": verify_compare, "gate": verify_gate}[audit["kind"]](audit, check)


def load(path):
    audit = json.loads(Path(path).read_text(encoding="utf-8"), parse_float=Real, parse_int=Whole)
    if (audit["format"], audit["version"]) != ("evenhand-audit", 1):
        raise ValueError("format or version")
    if audit["kind"] not in ("compare", "gate", "ab"):
        raise ValueError(f"kind {audit['kind']!r}")
    return flagged(audit)


def main(args):
    try:
        audit = load(args[0])
    except (IndexError, OSError, ValueError, KeyError, TypeError) as error:
        print(f"not an audit file of version 1: {error!r}", file=sys.stderr)
        return 65
    check = Check()
    try:
        results = verified(audit, check, "--inputs" in args)
    except Unusable as error:
        print(f"cannot verify: {error.args[0]}", file=sys.stderr)
        return error.args[1]
    except (
        LookupError,
        TypeError,
        ValueError,
        ArithmeticError,
        AttributeError,
        StatisticsError,
        OSError,
        EOFError,
    ) as error:
        for line in check.wrong:
            print(f"DIFFERS {line}")
        print(f"cannot verify: the parts of the file do not fit together ({error!r})", file=sys.stderr)
        return 65
    for line in check.wrong:
        print(f"DIFFERS {line}")
    print(f"{audit['kind']} {audit['verdict']}: {check.count} numbers recomputed, {len(check.wrong)} differ")
    left = sum(map(check.left, results), Counter())
    places = ", ".join(f"{place} ({count})" if count > 1 else place for place, count in sorted(left.items()))
    print(f"not recomputed: {left.total()} numbers{': ' if places else ''}{places}")
    print(
        "not checked: sentences, reasons and other words; options, limits and samples are taken as they stand"
    )
    return 1 if check.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
# fmt: off
"""Recompute the numbers of a verdict from its audit file, with nothing but Python's standard library.
    python tools/verify_verdict.py audit.json [--inputs]
Written from the formulas, not from `evenhand.metrics`, and densely, to stay within 600 lines. Builds the results anew from the samples
(of an A/B audit: from the records that it names), prints what differs from the file and which numbers were not recomputed. Options,
limits and samples are taken as they stand; --inputs checks the digests of the input files too, those of A/B records always are.
Exit status: 0 everything agrees, 1 something differs, 65 a file cannot be understood, 66 a file is not there.
"""
import gzip, hashlib, json, random, sys
from collections import Counter
from fractions import Fraction
from functools import lru_cache
from math import ceil, comb, cos, cosh, erf, exp, inf, lcm, lgamma, log, log1p, pi, prod, sin, sinh, sqrt
from pathlib import Path
from statistics import NormalDist, mean, median, median_low, stdev
Z = NormalDist()
SPENT = ("cost", "duration", "tokens")
SIGNS = {"improved": lambda d: d > 0, "regressed": lambda d: d < 0, "unchanged": lambda d: d == 0}
# ---------------------------------------------------------------- distributions and tests
def beta_cdf(x, a, b):  # The regularised incomplete beta function, by its continued fraction
    if x <= 0 or x >= 1: return float(x >= 1)
    if x > (a + 1) / (a + b + 2): return 1 - beta_cdf(1 - x, b, a)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or 1e-300)
    value = d * exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x)) / a
    for m in range(1, 2000):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        for term in (even, -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))):
            d, c = 1 / (1 + term * d or 1e-300), 1 + term / c or 1e-300
            value *= c * d
        if abs(c * d - 1) < 1e-15: break
    return value
def solve(function, target, low, high):  # Where an increasing function takes a value
    for _ in range(100):
        middle = (low + high) / 2
        low, high = (middle, high) if function(middle) < target else (low, middle)
    return (low + high) / 2
def t_cdf(x, df):
    tail = beta_cdf(df / (df + x * x), df / 2, 0.5) / 2
    return 1 - tail if x > 0 else tail
@lru_cache
def quantile(p, df):  # Of Student's t; of the normal distribution for infinite degrees of freedom
    return Z.inv_cdf(p) if df == inf else solve(lambda x: t_cdf(x, df), p, -1e9, 1e9)
def phi(x): return (1 + erf(x / sqrt(2))) / 2
def integral(function, low, high, steps):  # By the midpoint rule
    return (high - low) / steps * sum(function(low + (i + 0.5) * (high - low) / steps) for i in range(steps))
def noncentral_t_cdf(x, df, shift):  # E Φ(x·S − shift) over S = χ/√df
    low, high = max(1e-9, 1 - 10 / sqrt(2 * df)), 1 + 10 / sqrt(2 * df) + (3.0 if df < 5 else 0.0)
    constant = log(2) + (df / 2) * log(df / 2) - lgamma(df / 2)
    return integral(lambda s: exp(constant + (df - 1) * log(s) - df * s * s / 2) * phi(x * s - shift), low, high, 600)
def binomial(n, p):  # All probabilities of Binomial(n, p)
    if p <= 0 or p >= 1: return [float(k == (n if p >= 1 else 0)) for k in range(n + 1)]
    return [exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log(1 - p)) for k in range(n + 1)]
def flip_p(terms, side):  # The share of sign patterns with a sum at least as extreme (of ±1: McNemar's test), and how far the file's may be off
    terms = [term for term in terms if term != 0]
    observed, slack, (unit, sizes) = sum(terms), 1e-9 * sum(map(abs, terms)), lattice(terms)
    if unit is None and len(terms) > 18:
        below = inverted(terms, observed)
        p = min(1.0, max(0.0, {"less": below, "greater": 1 - below, "two-sided": 2 * min(below, 1 - below)}[side]))
        return p, 6 * sqrt(p * (1 - p) / 10_000) + 1e-3  # drawn there, or the limit, which knows no ties
    sums = Counter({0: 1.0})
    for size in sizes:
        halves = [{value + step: weight / 2 for value, weight in sums.items()} for step in (size, -size)]
        (sums := Counter(halves[0])).update(halves[1])  # adds the weights of equal sums
    far = {"less": lambda v: -v, "greater": lambda v: v, "two-sided": abs}[side]
    return min(1.0, sum(w for v, w in sums.items() if far(v * (unit or 1.0)) >= far(observed) - slack)), 1e-5
def lattice(terms):  # A unit and the terms as multiples of it, when their sum is few units; else None and the terms
    fractions = [Fraction(abs(term)).limit_denominator(10_000) for term in terms]
    bottom = lcm(*(fraction.denominator for fraction in fractions))
    sizes = [int(fraction * bottom) for fraction in fractions]
    off = any(abs(float(f) - abs(t)) > 1e-9 * abs(t) for f, t in zip(fractions, terms, strict=True))
    return (None, [abs(term) for term in terms]) if off or sum(sizes) > 20_000 else (1 / bottom, sizes)
def inverted(terms, observed):  # P(sum of ±terms ≤ observed) = ½ + (1/π)∫ sin(t·observed)/t·Π cos(t·term) dt
    scale = sqrt(sum(term * term for term in terms))
    return 0.5 + integral(lambda t: sin(t * observed) / t * prod(cos(t * term) for term in terms), 0.0, 80 / scale, 4000) / pi
def stepped(values, *, up=False):  # Holm's p-values; Hochberg's with `up`
    steps = [(p, p * (len(values) - place)) for place, p in enumerate(sorted(values))]
    return [min(1.0, min(q for other, q in steps if other >= p) if up else max(q for other, q in steps if other <= p)) for p in values]
# ---------------------------------------------------------------- intervals
def grouped(values, groups):  # Sums and sizes of the groups; of single values without
    found = {}
    for value, group in zip(values, groups or range(len(values)), strict=True): found.setdefault(group, []).append(value)
    return [sum(part) for part in found.values()], [len(part) for part in found.values()]
def useful(groups): return groups if groups is not None and len(set(groups)) < len(groups) else None  # Groups with more than one member; single ones are none
def deviations(sums, sizes):
    centre = sum(sums) / sum(sizes)
    return [s - m * centre for s, m in zip(sums, sizes, strict=True)]
def alike(sums, sizes): return max(map(abs, deviations(sums, sizes))) <= 1e-12 * (max(map(abs, sums)) + max(sizes))
def lean(values):  # The skewness of deviations
    top = max(map(abs, values))
    return mean((v / top) ** 3 for v in values) / mean((v / top) ** 2 for v in values) ** 1.5 if top else 0.0
def clustered(sums, sizes):  # Bell and McCaffrey's standard error and degrees of freedom: K = W·B·W, B = MᵀAM, M = I − sizes·1ᵀ/n
    n, g = sum(sizes), range(len(sizes))
    lever = [1 / (1 - m / n) for m in sizes]
    variance = sum(a * r * r for a, r in zip(lever, deviations(sums, sizes), strict=True)) / n**2
    total = sum(a * m * m for a, m in zip(lever, sizes, strict=True)) / n**2
    k = [[(lever[i] * ((i == j) - sizes[i] / n) - lever[j] * sizes[j] / n + total) * sizes[i] * sizes[j] for i in g] for j in g]
    return sqrt(variance), sum(k[i][i] for i in g) ** 2 / sum(entry * entry for row in k for entry in row)
def error_of(values, groups):  # The standard error of a mean and its degrees of freedom
    return clustered(*grouped(values, groups)) if useful(groups) else (stdev(values) / sqrt(len(values)), len(values) - 1)
def unseen(value, sizes, tail, low, high):  # All alike: what was not seen may lie anywhere between low and high
    kept = tail ** (sum(m * m for m in sizes) / sum(sizes) ** 2)
    return value * kept + low * (1 - kept), value * kept + high * (1 - kept)
def proportion(x, n, level):  # Clopper and Pearson's interval with at most four failures or successes, else Wilson's
    tail, p = (1 - level) / 2, x / n
    if min(x, n - x) <= 4:
        low, high = ((lambda q, a=a: beta_cdf(q, x + a, n - x + 1 - a)) for a in (0, 1))
        return 0.0 if x == 0 else solve(low, tail, 0.0, 1.0), 1.0 if x == n else solve(high, 1 - tail, 0.0, 1.0)
    z = Z.inv_cdf(1 - tail)
    middle, half = p + z * z / (2 * n), z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)
def mean_ends(values, groups, level, bounds):  # The interval of a side's mean, and its standard error
    groups, n, p, binary = useful(groups), len(values), mean(values), all(v in (0, 1) for v in values)
    sums, sizes = grouped(values, groups)
    if groups is None and binary: return *proportion(round(sum(values)), n, level), sqrt(p * (1 - p) / n)
    same = alike(sums, sizes)
    if same and not binary: return *unseen(p, sizes, (1 - level) / 2, *bounds), None
    error, df = error_of(values, groups)
    if min(values) >= 0 and max(values) <= 1 and (same or abs(lean(deviations(sums, sizes))) / sqrt(len(sums)) > 0.2):
        effect = most = sum(m * m for m in sizes) / n
        if 0 < p < 1:
            ratio = min(max(error**2 / (p * (1 - p) / n), float(bool(groups) and binary)), most)
            parts = (sums, [m - s for s, m in zip(sums, sizes, strict=True)])
            seen = min(sum(part) ** 2 / sum(f * f for f in part) for part in parts)
            effect = (seen * ratio + most) / (seen + 1)
        return *proportion(p * n / effect, n / effect, level), error
    half = quantile((1 + level) / 2, df) * error
    low, high = bounds if min(values) >= bounds[0] and max(values) <= bounds[1] else (-inf, inf)
    return max(p - half, low), min(p + half, high), error
def difference_ends(deltas, groups, level, scale):  # Method, ends and standard error of a paired difference
    groups, n, value = useful(groups), len(deltas), mean(deltas)
    (sums, sizes), name = grouped(deltas, groups), "clustered_" if groups else ""
    inside = scale is not None and max(map(abs, deltas)) <= scale
    ternary, changed = inside and all(d == 0 or abs(d) == scale for d in deltas), sum(s != 0 for s in sums)
    few = inside and changed <= 4 and (2 * changed < len(sums) or (ternary and groups is not None))
    if few or (inside and all(s == 0 or abs(s / m) == scale for s, m in zip(sums, sizes, strict=True))):
        size = sum(m * m for m in sizes) / n  # one more (group) won and one more lost
        name, middle = name + "bonett_price", value * n / (n + 2 * size)
        square = (sum(d * d for d in deltas) + 2 * (scale or 0) ** 2) / (n + 2)
        error, df = sqrt((square - middle**2) / (n + 2)), inf
        if groups: error, df = clustered([*sums, scale * size, -scale * size], [*sizes, size, size])
    elif inside and alike(sums, sizes): return name + "constant", *unseen(value, sizes, (1 - level) / 2, -scale, scale), None
    else: name, middle, (error, df) = name + "t", value, error_of(deltas, groups)
    half, limit = quantile((1 + level) / 2, df) * error, scale if inside else inf
    return name, max(middle - half, -limit), min(middle + half, limit), error
def at_most_p(values, groups, target, scale):  # P(Σ W·x ≤ target), W ~ Dirichlet(1, …, 1), over the groups and one more at −scale (Gaffke)
    sums, sizes = grouped(values, useful(groups))
    c = [s - target * m for s, m in zip(sums, sizes, strict=True)] + [(-max(scale, *map(abs, values)) - target) * max(sizes)]
    top = max(map(abs, c))
    c = [0.0 if abs(x) < 1e-13 * top else x / top for x in c]
    if c[-1] >= 0 or max(c) <= 0: return float(c[-1] < 0)
    turned = sum(c) <= 0
    counts = Counter((-x if turned else x) for x in c if x)
    # P(Σ c·E < 0) for exponentials E is −∫ Π(1 − z·c)^−1 / z dz / 2πi along a line through the saddle point.
    s = solve(lambda s: sum(k * x / (1 - s * x) for x, k in counts.items()) - 1 / s, 0.0, 1 / min(counts), -1e-12)
    parts = [(x / (1 - s * x), k) for x, k in counts.items()]
    width, total = 1 / sqrt(sum(k * r * r for r, k in parts) + 1 / s**2), 0.0
    for i in range(12 * 24):
        t = width * sinh((i + 0.5) / 24)
        height = prod(((1 - 1j * t * r) ** -k for r, k in parts), start=1 / (s + 1j * t))
        total -= height.real * width * cosh((i + 0.5) / 24) / 24
        if abs(height) * t < 1e-18: break
    p = min(1.0, max(0.0, total * exp(-sum(k * log1p(-s * x) for x, k in counts.items())) / pi))
    return 1 - p if turned else p
def p_of(values, groups, target, scale):  # Of "the mean is at most the target"; without a scale Student's t, corrected for few large drops
    if scale is not None: return at_most_p(values, groups, target, scale)
    (error, df), centre = error_of(values, groups), mean(values)
    skew = 0.0 if useful(groups) else lean([v - centre for v in values])
    t, pull = (centre - target) / error, max(-0.03, min(0.0, skew / (6 * sqrt(len(values)))))
    at = min(t, -1 / (4 * pull)) if pull < 0 else t
    return t_cdf(-(at + pull * (2 * at * at + 1)), df)
def lower_bound(values, groups, alpha, scale):  # A condition on the file's number: that its p-value is α
    end = -inf if scale is None else -max(scale, *map(abs, values))
    return lambda told: told >= end and (max(values) == end == told or abs(p_of(values, groups, told, scale) - alpha) < 1e-6)
# ---------------------------------------------------------------- power
def powered(deltas, groups, exact, alpha):  # A condition on the smallest effect that the test shows: its power is 0.8; None where there is none
    n, sums, sd = len(deltas), grouped(deltas, groups)[0], deviation(deltas, groups)
    if groups is None and exact:
        share = mean(d != 0 for d in deltas)
        known = mcnemar_power(1.0, share, n, alpha) >= 0.8
        return (lambda told: abs(mcnemar_power(told, share, n, alpha) - 0.8) < 2e-3) if known else None
    patterns = 2 ** min(sum(s != 0 for s in sums), 60)
    k = ceil(alpha * patterns * (1 - 1e-12)) - 1
    if k < 1 or sd == 0: return None
    edge, df, root = quantile(1 - k / patterns, len(sums) - 1), len(sums) - 1, sqrt(len(sums)) / sd
    shown = sd * Z.inv_cdf(0.8 ** (1 / len(sums)))
    return shown if k == 1 else lambda told: abs(0.2 - noncentral_t_cdf(edge, df, told * root)) < 2e-3
def deviation(deltas, groups): return error_of(deltas, groups)[0] * sqrt(len(grouped(deltas, useful(groups))[0]))
def mcnemar_power(effect, share, n, alpha):
    share, total = min(1.0, max(share, effect)), 0.0
    for d, weight in enumerate(binomial(n, share)):
        if weight > 1e-12:
            won, tail = -1, 0.0
            while won < d and (tail := tail + comb(d, won + 1) / 2**d) < alpha: won += 1
            total += weight * sum(binomial(d, 1 - min(1.0, (1 + effect / share) / 2))[: won + 1])
    return total
def more_units(sd, n, effect, scale, alpha, max_drop, changed):  # How many more problems show the drop, and rule it out, with 80 % power
    if effect >= scale or effect < 1e-4 * max(sd, scale) or (max_drop == 0 and sd == 0): return None
    (z, power), test = (Z.inv_cdf(1 - alpha), Z.inv_cdf(0.8)), changed is not None or sd == 0
    units = lambda spread, extra: ceil(((spread + sqrt(spread**2 + 4 * effect * extra)) / (2 * effect)) ** 2)
    share = max(changed or 0.0, effect / scale) * scale**2  # McNemar's test: a drop changes at least that share of problems
    needed = [units(z * sqrt(share) + power * sqrt(share - effect**2), scale) if test else units((z + power) * sd, 0.0)]
    if max_drop: needed += [units((Z.inv_cdf(1 - alpha / 2) + power) * sd, scale), ceil(log(alpha / 2) / log1p(-effect / scale) - 1e-9)]
    return max(0, max(needed) - n)
# ---------------------------------------------------------------- what is told against what was found
class Check:  # How many numbers were compared, what differs, and what was not recomputed
    def __init__(self): self.count, self.wrong, self.left = 0, [], Counter()
    def compare(self, told, found, place):
        """Found is a tree, a number, text, a pair of number and tolerance, or a condition on the number told."""
        if isinstance(found, dict) and isinstance(told, dict):
            for key in told | found:
                if key not in told: self.wrong.append(f"{place}{key}: not in the file")
                elif key in found: self.compare(told[key], found[key], f"{place}{key}.")
                else: self.leave(told[key], f"{place}{key}")
        elif isinstance(found, list) and isinstance(told, list) and len(found) == len(told):
            for i, (one, other) in enumerate(zip(told, found, strict=True)): self.compare(one, other, f"{place}{i}.")
        else:
            self.count += 1
            if not agrees(told, found):
                shown = "another number" if callable(found) else repr(found[0] if isinstance(found, tuple) else found)
                self.wrong.append(f"{place.rstrip('.')}: the file says {told!r}, recomputed {shown}")
    def leave(self, tree, place):
        for key, value in tree.items() if isinstance(tree, dict) else (): self.leave(value, f"{place}.{key}")
        for value in tree if isinstance(tree, list) else (): self.leave(value, place)
        self.left[place] += isinstance(tree, int | float)
def agrees(told, found):
    if callable(found): return isinstance(told, int | float) and bool(found(told))
    found, tolerance = found if isinstance(found, tuple) else (found, 1e-6)
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (told, found))
    return abs(told - found) <= tolerance * max(1.0, abs(found)) if numbers else told == found
def agreed(told, found):  # The file's p-value where it agrees with the one found: a verdict near its edge then follows the file
    return told if agrees(told, found) else found[0] if isinstance(found, tuple) else found
def interval(value, ends, level, n, groups=None, error=None):
    return {"value": value, "ci_lower": ends[0], "ci_upper": ends[1], "confidence_level": level, "n": n, "n_groups": groups, "standard_error": error}
def delta_interval(deltas, groups, level, scale):
    method, low, high, error = difference_ends(deltas, groups, level, scale)
    count = len(set(groups)) if useful(groups) else None
    return {**interval(mean(deltas), (low, high), level, len(deltas), count, error), "method": method}
# ---------------------------------------------------------------- a comparison
def recompute_comparison(one, options):  # The result as it should be, what its verdict rests on, and the differences
    told, level, most = one["result"], options["confidence_level"], options["max_drop"]
    rows, alpha = [one["samples"][side] for side in ("base", "candidate")], 1 - level
    score = [{(p, r): v for p, r, s, v in side if s == "scored"} for side in rows]
    ends = min([0.0, *score[0].values(), *score[1].values()]), max([1.0, *score[0].values(), *score[1].values()])
    keys, scale, every = sorted(map(tuple, one["expected"])), ends[1] - ends[0], {}
    for key in keys: every.setdefault(key[0], []).append(key)
    pairs = {p: [k for k in found if k in score[0] and k in score[1]] for p, found in every.items()}
    pairs = {p: found for p, found in pairs.items() if found}
    base, candidate = ([mean(side[k] for k in found) for found in pairs.values()] for side in score)
    deltas, clusters = [b - a for a, b in zip(base, candidate, strict=True)], one["clusters"] or {}
    groups, all_groups = ([clusters[str(p)] for p in part] if clusters else None for part in (pairs, every))
    flat = [score[i][k] for found in pairs.values() for k in found for i in (0, 1)]
    exact = all(v in (0, 1) for v in flat) and len(flat) == 2 * len(pairs)
    n, count, units = len(deltas), len(flat) // 2, len(set(groups)) if groups else len(deltas)
    fill = [[[mean(side.get(k, end) for k in found) for found in every.values()] for end in ends] for side in score]
    worst, best = ([c - b for b, c in zip(fill[0][i], fill[1][1 - i], strict=True)] for i in (1, 0))
    have = [sum(k in side for k in keys) for side in score]
    coverage = {"pairs": count, "possible": len(keys), "base_scored": have[0], "candidate_scored": have[1], "low": ends[0],
                "share": count / len(keys), "base_share": have[0] / len(keys), "candidate_share": have[1] / len(keys),
                "high": ends[1], "worst_delta": mean(worst), "best_delta": mean(best), "worst_lower": None, "best_upper": None}
    if count < len(keys) and len(every) > 1:
        coverage["worst_lower"] = lower_bound(worst, all_groups, alpha / 2, scale)
        coverage["best_upper"] = turned(lower_bound([-d for d in best], all_groups, alpha / 2, scale))
    sides = {}
    for name, values, filled, side in zip(("base", "candidate"), (base, candidate), fill, rows, strict=True):
        *limits, error = mean_ends(values, groups, level, ends)
        sides[name] = {"mean": interval(mean(values), limits, level, n, units if useful(groups) else None, error),
                       "lowest_mean": mean(filled[0]), "highest_mean": mean(filled[1]),
                       "tally": {s: sum(row[2] == s for row in side) for s in ("scored", "unscored", "failed")}}
    p = {side: flip_p(grouped(deltas, groups)[0], side) for side in ("two-sided", "less", "greater")}
    beyond, effect = at_most_p(deltas, groups, -most, scale), most or 0.01 * scale
    error, flips = sqrt(sum(stdev(v) ** 2 for v in (base, candidate)) / n), groups is not None or not exact
    half, said, changed = Z.inv_cdf((1 + level) / 2) * error, told["test"], None if flips else mean(d != 0 for d in deltas)
    result = {
        **sides, "coverage": coverage, "problems": n, "pairs": count, "clusters": units if groups else None,
        **{name: sum(map(sign, deltas)) for name, sign in SIGNS.items()}, "delta": delta_interval(deltas, groups, level, scale),
        "unpaired_delta": interval(mean(deltas), (mean(deltas) - half, mean(deltas) + half), level, n, None, error),
        "test": {"p_value": p["two-sided"], "statistic": mean(deltas) if flips else sum(d > 0 for d in deltas),
                 "n": n if flips else sum(d != 0 for d in deltas),
                 "monte_carlo_error": said["monte_carlo_error"] and sqrt(said["p_value"] * (1 - said["p_value"]) / 10_000)},
        "p_drop": p["less"], "p_beyond": beyond, "max_drop": most, "effect_size": effect_size(deltas, level),
        "minimum_detectable_effect": powered(deltas, groups, exact, alpha), "categories": categories(one, list(pairs), base, candidate, groups, scale, level),
        "evidence": {"p_rise": p["greater"], "lowest": lower_bound(deltas, groups, alpha / 2, scale), "wanted_effect": effect,
                     "more_problems": more_units(deviation(deltas, groups), units, effect, scale, alpha, most, changed), "scale": scale,
                     "units": units, "clustered": groups is not None, "min_coverage": options["min_coverage"]}}
    cleared = count == len(keys) or at_most_p(worst, all_groups, -most, scale) < alpha / 2
    sure = {"p_drop": agreed(told["p_drop"], p["less"]), "p_beyond": agreed(told["p_beyond"], beyond), "delta": mean(deltas),
            "p_rise": agreed(told["evidence"]["p_rise"], p["greater"]), "covered": min(have) / len(keys) >= options["min_coverage"] or cleared}
    return result, sure, (deltas, groups, scale)
def turned(condition): return lambda told: condition(-told)
def effect_size(deltas, level):
    if max(deltas) - min(deltas) < 1e-9: return None
    n, d = len(deltas), mean(deltas) / stdev(deltas)
    tail = lambda told: noncentral_t_cdf(d * sqrt(n), n - 1, told * sqrt(n)) - 0.5
    return interval(d, (lambda told: abs(tail(told) - level / 2) < 1e-4, lambda told: abs(tail(told) + level / 2) < 1e-4), level, n)
def categories(one, problems, base, candidate, groups, scale, level):
    inside, found = {}, []
    for i, problem in enumerate(problems):
        if (name := one["categories"].get(str(problem))) is not None: inside.setdefault(name, []).append(i)
    for name, places in sorted(inside.items()) if len(inside) > 1 else ():
        left, right = [base[i] for i in places], [candidate[i] for i in places]
        part, codes = [b - a for a, b in zip(left, right, strict=True)], groups and [groups[i] for i in places]
        found.append({"category": name, "problems": len(places), "base_mean": mean(left), "candidate_mean": mean(right),
                      "delta": delta_interval(part, codes, level, scale) if len(set(codes or places)) > 1 else None,
                      "p_value": flip_p(grouped(part, codes)[0], "two-sided")})
    told = one["result"]["categories"]
    p_values = stepped([agreed(said["p_value"], entry["p_value"]) for said, entry in zip(told, found, strict=True)])
    return [entry | {"p_adjusted": p} for entry, p in zip(found, p_values, strict=True)]
def verify_compare(audit, check):
    options, told, names = audit["options"], audit["comparisons"], []
    alpha, families = 1 - options["confidence_level"], [None] * len(told)
    found = [recompute_comparison(one, options) for one in told]
    if len(told) > 1:
        families = [{"size": len(told), "simultaneous": delta_interval(d, g, 1 - alpha / len(told), s)} for *_, (d, g, s) in found]
        for name in ("p_drop", "p_rise", "p_beyond"):
            corrected = stepped([sure[name] for _, sure, _ in found], up=name == "p_beyond")
            for family, (_, sure, _), p in zip(families, found, corrected, strict=True): family[name] = sure[name] = p
    for one, (result, sure, _), family in zip(told, found, families, strict=True):
        names.append("PASS" if sure["p_beyond"] < alpha / 2 and sure["covered"] else "INCONCLUSIVE")
        if sure["delta"] < 0 and sure["p_drop"] < alpha:
            names[-1] = "BLOCK" if -sure["delta"] > options["max_drop"] + 1e-12 else "WARN"
        check.compare(one["result"], result | {"family": family, "verdict": {"name": names[-1]}}, f"{one['benchmark']}: ")
    names += ["INCONCLUSIVE"] * bool(audit["left_out"])
    check.compare(audit["verdict"], max(names, key=["PASS", "WARN", "INCONCLUSIVE", "BLOCK"].index), "overall verdict")
# ---------------------------------------------------------------- a gate
def known_values(metric, rows):  # (problem, repeat) → exact value, of the samples that have one
    known = {}
    for problem, repeat, status, reward, usage in rows:
        used = [(usage or {}).get(name) for name in ("cost_usd", "duration_seconds", "input_tokens", "output_tokens")]
        spent = {"cost": used[0], "duration": used[1], "tokens": None if None in used[2:] else sum(used[2:])}
        value = spent[metric] if metric in SPENT else reward if status == "scored" else None
        if value is not None: known[problem, repeat] = Fraction(repr(value))
    return known
def metric_values(metric, keys, known, missing):  # Problem → value over these samples; `missing` stands for what is not there
    groups, found = {}, {}
    for key in keys: groups.setdefault(key[0], []).append(known.get(key, missing))
    for problem, values in groups.items():
        if "@" not in metric and "^" not in metric: found[problem] = Fraction(repr(float(mean(values))))
        elif len(values) >= (k := int(metric[5:])):
            right = int(sum(values))
            ways = comb(len(values) - right, k) if "@" in metric else comb(right, k)
            found[problem] = Fraction(repr(abs(float("@" in metric) - ways / comb(len(values), k))))
    return found
def expected(sides, planned):  # The samples that all sides should have: every problem of any, in the repeats that all have made
    seen, repeats = {(p, r) for side in sides for p, r, *_ in side}, set.intersection(*({row[1] for row in side} for side in sides))
    keys = {key for key in seen | {tuple(key) for key in planned} if key[1] in repeats}
    return sorted(keys | {(p, min(repeats)) for p in {p for p, _ in seen} - {p for p, _ in keys} if repeats})
def recompute_metric(limit, entry, alpha):  # A metric's numbers, and whether its bounds are below the limit; None where no problem has it
    rows, metric = [entry["base"], entry["candidate"]], limit["metric"]
    keys, known = expected(rows, entry["planned"]), [known_values(metric, side) for side in rows]
    pairs = [key for key in keys if key in known[0] and key in known[1]]
    scores = [Fraction(repr(row[3])) for side in rows for row in side if row[2] == "scored"]
    low, high = min([Fraction(0), *scores]), max([Fraction(1), *scores])
    sign = 1 if limit["direction"] == "higher_is_better" else -1
    def damages(ends):
        left, right = (metric_values(metric, keys if ends else pairs, known[i], ends and ends[i]) for i in (0, 1))
        shared = sorted(left.keys() & right.keys())
        groups = entry["clusters"] and [entry["clusters"][str(p)] for p in shared]
        return [sign * (left[p] - right[p]) for p in shared], groups, [[side[p] for p in shared] for side in (left, right)]
    exact, groups, sides = damages(None)
    if not exact: return None
    possible, base, worse = len({p for p, _ in keys}), mean(sides[0]), [float(w) for w in exact]
    shares = [sum(key in side for key in keys) / len(keys) for side in known]
    limits, guard = [] if limit["max_drop"] is None else [Fraction(repr(limit["max_drop"]))], limit["relative_guard_below"]
    if limit["max_relative_drop"] is not None and (not limits or guard is None or base < guard):
        limits.append(Fraction(repr(limit["max_relative_drop"])) * abs(Fraction(repr(float(base)))))
    most, flat = float(min(limits)), [float(v) for side in sides for v in side]
    scale = None if metric in SPENT else max(1.0, *flat) - min(0.0, *flat)
    found = {"base": float(base), "candidate": float(mean(sides[1])), "damage": float(mean(exact)), "limit": most,
             "problems": len(worse), "possible": possible, "coverage": len(worse) / possible, "base_coverage": shares[0],
             "candidate_coverage": shares[1], "clusters": len(set(groups)) if groups else None, "p_value": None, "missing": len(keys) - len(pairs),
             **dict.fromkeys(("damage_lower", "damage_upper", "worst_damage", "worst_upper", "best_damage"))}
    below = {"upper": False, "worst": False, "worst_alone": False}
    if len(worse) > 1 and (scale is not None or max(worse) > min(worse)):
        found["damage_lower"] = lower_bound(worse, groups, alpha, scale)
        below["upper"], found["damage_upper"] = bound_above(worse, groups, alpha, scale, most)
    if scale is not None:
        ends = [(high, low), (low, high)][::sign]
        (filled, codes, *_), found["best_damage"] = damages(ends[0]), float(mean(damages(ends[1])[0]))
        found["worst_damage"] = float(mean(filled))
        below["worst_alone"] = found["worst_damage"] < most
        if len(filled) > 1: below["worst"], found["worst_upper"] = bound_above([float(w) for w in filled], codes, alpha, scale, most)
    if len(worse) > 1: found["p_value"] = breach_p(worse, groups, most, scale)
    return found, below
def bound_above(worse, groups, alpha, scale, most):  # Whether the upper bound is below the limit, and the condition on it
    mirrored = [-w for w in worse]
    return p_of(mirrored, groups, -most, scale) < alpha, turned(lower_bound(mirrored, groups, alpha, scale))
def breach_p(worse, groups, most, scale):
    if scale is None and max(worse) == min(worse): return 1.0 if worse[0] <= most else 0.5 ** len(worse)
    return flip_p(grouped(worse, groups)[0], "greater") if most == 0 and scale is not None else p_of(worse, groups, most, scale)
def status_of(found, below, limit, p_adjusted, alpha):
    enough, proof = min(found["base_coverage"], found["candidate_coverage"]) >= limit["min_coverage"], limit["require_significance"]
    if found["damage"] > found["limit"] and (not proof or (p_adjusted is not None and p_adjusted < alpha)): return "BREACH"
    passes = below["upper"] and (enough or below["worst"]) if proof else found["damage"] <= found["limit"] and (enough or below["worst_alone"])
    return "PASS" if passes else "INSUFFICIENT_EVIDENCE"
def verify_gate(audit, check):
    limits = {(one["benchmark"], one["metric"]): one for one in audit["limits"]}
    told = {(one["benchmark"], one["metric"]): one for one in audit["result"]["gates"]}
    alpha, found, lacking, status = audit["alpha"], {}, {}, {}
    check.compare(*(" ".join(map(str, sorted(part))) for part in (told, limits)), "metrics")
    for key in told.keys() & limits.keys():
        entry = audit["benchmarks"][key[0]]
        gone = entry["base"] is None or entry["candidate"] is None
        found[key], lacking[key] = None if gone else recompute_metric(limits[key], entry, alpha), gone and key[0] in audit["required"]
    needed = [key for key in sorted(found) if limits[key]["tier"] != "advisory"]
    adjusted = {k: agreed(told[k]["p_value"], one[0]["p_value"]) for k, one in found.items() if one}
    tested = [key for key in needed if adjusted.get(key) is not None]
    adjusted |= dict(zip(tested, stepped([adjusted[key] for key in tested]), strict=True))
    for key, one in found.items():
        status[key] = "MISSING" if one is None else status_of(*one, limits[key], adjusted[key], alpha)
        numbers = {"status": status[key], "tier": limits[key]["tier"], "lacking": lacking[key]}
        if one:
            proof = limits[key]["require_significance"]
            alike = status[key] == "PASS" and one[0]["missing"] > 0 and not one[1]["worst" if proof else "worst_alone"]
            numbers |= {**one[0], "p_adjusted": adjusted[key], "proven": proof and status[key] in ("PASS", "BREACH"), "assumes_alike": alike}
        check.compare({k: v for k, v in told[key].items() if k in numbers or one}, numbers, f"{' '.join(key)}: ")
    stop = any(status[key] == "BREACH" or lacking[key] for key in needed)
    verdict = "NO-GO" if stop else "GO" if needed and all(status[key] == "PASS" for key in needed) else "INCONCLUSIVE"
    told = {"verdict": audit["verdict"], "result": audit["result"]["verdict"], "alpha": audit["result"]["alpha"]}
    check.compare(told, {"verdict": verdict, "result": verdict, "alpha": alpha}, "")
# ---------------------------------------------------------------- two arms
FIELDS = ("total_cost_usd", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")
COUNTS = ("step_count", "tool_call_count", "acceptance_cmd_count")
DELTAS = {"success": "pass_delta", "cost_usd": "cost_delta_usd", "duration_seconds": "duration_delta_seconds", "total_tokens": "token_delta",
          **{f"{name}_tokens": f"{name}_token_delta" for name in ("non_cache", "cache_read", "cache_write")}, **{name: f"{name}_delta" for name in COUNTS}}
GATES = {"success_rate": "success", "duration": "duration_seconds", "tokens": "non_cache_tokens"}
def read_runs(lines, arms, zero):  # Arm → (task, repeat) → exact figures, without infrastructure failures; how many of those, and the tasks
    runs, failed, tasks = {arm: {} for arm in arms}, 0, set()
    for line in filter(str.strip, lines):
        try:
            one = json.loads(line, parse_float=str)
            agent = one.get("agent_exit_code", one.get("opencode_exit_code"))
            refused = agent not in (0, None) and one.get("acceptance_exit_code") == 99
            known = {f: (one.get(f) or 0) if zero else one.get(f) for f in (*FIELDS, *COUNTS)}
            known = {f: None if v is None else Fraction(str(v)) for f, v in known.items()}
            tokens = [known[f] for f in FIELDS[1:]]
            row = {"success": Fraction(bool(one["success"])), "duration_seconds": Fraction(str(one["duration_seconds"])),
                   "cost_usd": known.pop("total_cost_usd"), "total_tokens": None if None in tokens else sum(tokens),
                   "non_cache_tokens": None if None in tokens[:2] else sum(tokens[:2]), **known}
            infra = one.get("infra_failure") or agent == 86 or refused
            failed += bool(infra) and one["arm"] in runs
            if one["arm"] in runs: tasks.add(one["task_id"])
            if one["arm"] in runs and not infra: runs[one["arm"]][one["task_id"], one["repeat"]] = row
        except (ValueError, KeyError, TypeError, AttributeError): continue
    return runs, failed, len(tasks)
def rounded(value): return None if value is None else float(value)
def arm_summary(arm, runs):
    known = {name: [row[name] for row in runs if row[name] is not None] for name in DELTAS}
    solved, cost = sum(known["success"]), sum(known["cost_usd"]) if known["cost_usd"] else None
    paid = sum(row["success"] for row in runs if row["cost_usd"] is not None)
    return {"arm": arm, "runs": len(runs), "successes": int(solved), "success_rate": rounded(solved / len(runs) if runs else None),
            "total_cost_usd": rounded(cost), "avg_cost_usd": rounded(cost / len(known["cost_usd"]) if cost is not None else None),
            "solved_per_dollar": rounded(paid / cost if cost else None),
            **{f"median_{name}": rounded(median(known[name]) if known[name] else None) for name in list(DELTAS)[1:]}}
def headline_ends(values, tasks, level, scale):  # The interval of a mean over at least two tasks; None where there is no spread to estimate from
    centre, (sums, sizes) = mean(values), grouped(values, tasks)
    rest, root = deviations(sums, sizes), sqrt(len(sums))
    same = max(map(abs, rest)) <= 1e-12 * max(map(abs, sums))
    if same and scale is None: return None
    error, df = (0.0, 1) if same else clustered(sums, sizes)
    half = quantile((1 + level) / 2, df) * error
    if scale is None:
        leans = (4 * lean(rest) / root, lean([v - centre for v in values]) / root)
        return centre - half * (1 + max(0.0, *(-x for x in leans))), centre + half * (1 + max(0.0, *leans)), error
    low, high, means = centre - half, centre + half, [s / m for s, m in zip(sums, sizes, strict=True)]
    method, *ends, _ = difference_ends(means, None, level, scale)
    if method != "t": low, high = min(low, ends[0] + centre - mean(means)), max(high, ends[1] + centre - mean(means))
    return max(low, -scale), min(high, scale), error
def median_end(values, tasks, tail):  # The smallest value that a sign-flip test by task does not put below the median
    kept = (value for value in sorted(set(values)) if flip_p(grouped([1 if v > value else -1 for v in values], tasks)[0], "greater")[0] > tail)
    return next(kept, max(values))
def bootstrapped(parts, level, statistic):  # A condition on the lower end: within six standard errors of one's own draws of tasks
    rng, tail, off = random.Random(15), (1 - level) / 2, 6 * sqrt((1 - level) / 3_200)
    drawn = sorted(statistic([v for part in rng.choices(parts, k=len(parts)) for v in part]) for _ in range(2_000))
    return lambda told: drawn[int(max(0.0, tail - off) * 1_999)] - 1e-9 <= told <= drawn[ceil((tail + off) * 1_999)] + 1e-9
def delta_intervals(values, tasks, level, scale, centres):
    count, found = len(set(tasks)), dict.fromkeys(("mean", "median", "mean_bootstrap", "median_bootstrap"))
    if count < 2: return found
    ends, tail = headline_ends(values, tasks, level, scale), (1 - level) / 2
    if ends is not None: found["mean"] = interval(centres[0], ends, level, len(values), count, ends[2])
    if 0.5**count <= tail and max(values) > min(values):
        ends = median_end(values, tasks, tail), -median_end([-v for v in values], tasks, tail)
        found["median"] = interval(centres[1], ends, level, len(values), count)
    parts = [[v for v, t in zip(values, tasks, strict=True) if t == task] for task in sorted(set(tasks))]
    mirrored = [[-v for v in part] for part in parts]
    for name, statistic, centre in (("mean", mean, centres[0]), ("median", median_low, centres[1])):
        ends = bootstrapped(parts, level, statistic), turned(bootstrapped(mirrored, level, statistic))
        found[f"{name}_bootstrap"] = interval(centre, ends, level, len(values), count)
    return found
def verify_ab(audit, check):
    path = next((one["path"] for source in audit["inputs"] for one in source["files"]), None)
    if path is None: raise Unusable("the A/B records were no file when the audit was made: there is nothing to recompute from", 65)
    data = read_bytes(path)
    decision = verify_arms(audit, check, (gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data).decode("utf-8-sig").splitlines())
    check.compare(audit["verdict"], decision, "verdict")
def verify_arms(audit, check, lines):  # The decision that follows from the records
    told, options, arms = audit["result"], audit["options"], [one["arm"] for one in audit["result"]["arm_summaries"]]
    runs, failed, tasks = read_runs(lines, arms, options.get("null_as_zero"))
    result = {"arm_summaries": [arm_summary(arm, list(runs[arm].values())) for arm in arms], "excluded_infra_failures": failed,
              "effective_run_count": sum(map(len, runs.values())), "run_count": sum(map(len, runs.values())) + failed,
              "task_count": tasks, "decision": "insufficient data",
              **{name: options[name] for name in ("seed", "require_significance", "n_resamples") if name in options}}
    if len(arms) == 2 and all(runs.values()): result |= recompute_arms(told, options, runs, arms)
    check.compare(told, result, "")
    return result["decision"]
def verify_classic(audit, check):  # The A/B rule on the samples of two runs; no score is an infrastructure failure
    lines = [json.dumps({**usage, "arm": arm, "task_id": str(p), "repeat": r + 1, "success": (reward or 0) > 0.5, "infra_failure": reward is None,
                         "total_cost_usd": usage["cost_usd"], "cache_read_tokens": 0, "cache_write_tokens": 0})
             for arm, rows in audit["samples"].items() for p, r, _, reward, usage in rows]
    verdict = {"prefer candidate": "GO", "prefer base": "NO-GO"}.get(verify_arms(audit, check, lines), "INCONCLUSIVE")
    verdict = "INCONCLUSIVE" if verdict == "GO" and not enough_known(audit) else verdict
    gates = [{"metric": one["name"], "base": one["control"], "candidate": one["treatment"],
              "status": {None: "MISSING", True: "PASS", False: "BREACH"}[one["holds"]]} for one in audit["result"]["gates"]]  # recomputed above
    check.compare({"verdict": audit["verdict"], "gates": audit["gates"]}, {"verdict": verdict, "gates": gates}, "")
def enough_known(audit):  # Scores and tokens of enough samples on each side, or three gates that hold in the worst case
    rows, worst, enough = [audit["samples"][side] for side in ("base", "candidate")], [], True
    keys, every = expected(rows, audit["planned"]), sorted({(p, r) for side in rows for p, r, *_ in side})
    for side, good in zip(rows, (True, False), strict=True):
        scored = {key: value > 0.5 for key, value in known_values("mean_reward", side).items()}
        tokens, times = ({k: v for k, v in known_values(name, side).items() if k in scored} for name in ("tokens", "duration"))
        enough &= min(sum(key in scored for key in keys) / len(keys), len(tokens) / len(scored)) >= audit["options"]["min_coverage"]
        worst.append([-sum(scored.get(key, good) for key in every), *(median(part.get(key, 0 if good else inf) for key in every) for part in (times, tokens))])
    return enough or all(theirs <= mine for mine, theirs in zip(*worst, strict=True))
def recompute_arms(told, options, runs, arms):
    shared = sorted(runs[arms[0]].keys() & runs[arms[1]].keys(), key=str)
    paired, tests, intervals, by_task = {"paired_runs": len(shared), "pairs_with_value": {}}, {}, {}, {}
    for name, label in DELTAS.items():
        both = [(key[0], *(runs[arm][key][name] for arm in arms)) for key in shared]
        kept = [(task, a - b) for task, a, b in both if None not in (a, b)]
        values, tasks, exact = [float(d) for _, d in kept], [task for task, _ in kept], [d for _, d in kept]
        centres = [rounded(statistic(exact)) if exact else None for statistic in (mean, median)]
        names = {label, label.replace("_count_delta", "_delta")}  # the names of release 0.1 stand beside the present ones
        for known_as in names:
            paired |= {f"mean_{known_as}": centres[0], f"median_{known_as}": centres[1]}
            paired["pairs_with_value"][known_as] = len(exact)
        level = (told["intervals"][label]["mean_bootstrap"] or {"confidence_level": 0.95})["confidence_level"]
        intervals |= dict.fromkeys(names, delta_intervals(values, tasks, level, 1.0 if name == "success" else None, centres))
        if not exact: continue
        wins, losses = sum(v > 0 for v in values), sum(v < 0 for v in values)
        sums, said = grouped(values, tasks)[0], told["tests"][label]
        test = {"tasks": len(sums), "mean": centres[0], "pairs": len(values), "by_task_p_value": by_flips(sums),
                "p_value": by_flips(values), "statistic": centres[0], "proven": None, "p_holm": None}
        tests |= {one: test | ({"statistic": wins, "wins": wins, "losses": losses} if name == "success" else {}) for one in names}
        by_task[label] = agreed(said["by_task_p_value"], tests[label]["by_task_p_value"])
    tested = [DELTAS[name] for name in GATES.values() if DELTAS[name] in by_task]
    for label, p in zip(tested, stepped([by_task[label] for label in tested]), strict=True): tests[label] |= {"p_holm": p, "proven": p <= 0.05}
    gates, leads, best = [], [], None
    for gate, name in GATES.items():
        sides = [[row[name] for row in runs[arm].values() if row[name] is not None] for arm in arms]
        figures = [(mean if name == "success" else median)(side) if side else None for side in sides]
        lead = None if None in figures else (figures[0] - figures[1]) * (1 if name == "success" else -1)
        standing = "unknown" if lead is None else "better" if lead > 0 else "worse" if lead < 0 else "equal"
        test = tests.get(DELTAS[name], {"proven": False})
        better = test["proven"] and (test["mean"] > 0) == (name == "success")
        proven = bool(test["proven"]) and standing == ("better" if better else "worse")
        gates.append({"name": gate, "treatment": rounded(figures[0]), "control": rounded(figures[1]), "standing": standing, "proven": proven,
                      "holds": None if lead is None else lead >= 0, "holds_for_control": None if lead is None else lead <= 0})
        leads.append(lead)
    if None not in leads and (all(gate["proven"] for gate in gates) or not options.get("require_significance")):
        best = arms[0] if min(leads) >= 0 else arms[1] if max(leads) <= 0 else None
    decision = "mixed results - inspect paired deltas" if best is None else f"prefer {best}"
    paired["unpaired_runs"], worse = {arm: len(runs[arm]) - len(shared) for arm in arms}, [gate["name"] for gate in gates if gate["standing"] == "worse"]
    shifts = [{**{k: paired[f"{k}_{entry['delta']}"] for k in ("mean", "median")}, "regression": entry["gate"] in worse} for entry in told["diagnostics"]]
    return {"paired": paired, "tests": tests, "intervals": intervals, "gates": gates, "decision": decision, "diagnostics": shifts}
def by_flips(terms):  # The two-sided p-value of sign flips: exact, drawn or in the normal limit beyond 1,000 terms
    terms = [term for term in terms if term]
    if len(terms) > 1_000: return 2 * phi(-abs(sum(terms)) / sqrt(sum(term * term for term in terms))), 1e-5
    p, slack = flip_p(terms, "two-sided")
    return p, slack if len(terms) <= 18 else 6 * sqrt(p * (1 - p) / 10_000) + 1e-3
# ---------------------------------------------------------------- the file
class Unusable(Exception): pass  # What cannot be verified, and the exit status that says so
def read_bytes(path):
    if not Path(path).is_file(): raise Unusable(f"{path}, which the audit was made from, is not there", 66)
    return Path(path).read_bytes()
KINDS = {"compare": verify_compare, "gate": verify_gate, "classic": verify_classic, "ab": verify_ab}
def verify(audit, check, with_inputs):
    for file in (one for source in audit["inputs"] for one in source["files"] if with_inputs or audit["kind"] == "ab"):
        check.compare(file["sha256"], hashlib.sha256(read_bytes(file["path"])).hexdigest(), f"digest of {file['path']}")
    return KINDS[audit["kind"]](audit, check)
def main(args):
    check = Check()
    try:
        audit = json.loads(Path(args[0]).read_text(encoding="utf-8"))
        if (audit["format"], audit["version"]) != ("evenhand-audit", 2) or audit["kind"] not in KINDS:
            raise ValueError("format, version or kind")
    except (IndexError, OSError, ValueError, KeyError, TypeError) as error:
        print(f"not an audit file of version 2: {error!r}", file=sys.stderr)
        return 66 if isinstance(error, FileNotFoundError) else 65
    try: problem = status = verify(audit, check, "--inputs" in args)  # None when it could be verified
    except Unusable as error: problem, status = error.args
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError, OSError, EOFError) as error:
        problem, status = f"the parts of the file do not fit together ({error!r})", 65
    print("".join(f"DIFFERS {line}\n" for line in check.wrong), end="")
    if problem: return print(f"cannot verify: {problem}", file=sys.stderr) or status
    print(f"{audit['kind']} {audit['verdict']}: {check.count} numbers recomputed, {len(check.wrong)} differ")
    places = ", ".join(f"{place} ({count})" if count > 1 else place for place, count in sorted(check.left.items()) if count)
    print(f"not recomputed: {check.left.total()} numbers{': ' if places else ''}{places}\nnot checked: sentences, reasons and other words; "
          "options, limits and samples are taken as they stand")
    return 1 if check.wrong else 0
if __name__ == "__main__": sys.exit(main(sys.argv[1:]))

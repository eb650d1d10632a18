"""The statistics behind `verify_verdict.py`, written from the formulas with Python's standard library alone."""

from collections import Counter
from fractions import Fraction
from math import comb, cos, erf, exp, inf, lgamma, log, pi, sin, sqrt
from statistics import NormalDist, mean

Z = NormalDist()

# ---------------------------------------------------------------- distributions


def beta_cdf(x, a, b):
    """The regularised incomplete beta function, by its continued fraction."""
    if x <= 0 or x >= 1:
        return 0.0 if x <= 0 else 1.0
    if x > (a + 1) / (a + b + 2):
        return 1 - beta_cdf(1 - x, b, a)
    front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(1 - x)) / a
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1) or 1e-300)
    value = d
    for m in range(1, 2000):
        for term in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / (1 + term * d or 1e-300)
            c = 1 + term / c or 1e-300
            value *= c * d
        if abs(c * d - 1) < 1e-15:
            break
    return front * value


def solve(function, target, low, high, steps=200):
    """Where an increasing function takes a value."""
    for _ in range(steps):
        middle = (low + high) / 2
        if function(middle) < target:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def beta_quantile(p, a, b):
    return solve(lambda x: beta_cdf(x, a, b), p, 0.0, 1.0, 100)


def t_cdf(x, df):
    tail = beta_cdf(df / (df + x * x), df / 2, 0.5) / 2
    return 1 - tail if x > 0 else tail


def t_quantile(p, df):
    if p < 0.5:
        return -t_quantile(1 - p, df)
    high = 1.0
    while t_cdf(high, df) < p:
        high *= 2
    return solve(lambda x: t_cdf(x, df), p, 0.0, high, 100)


def phi(x):
    return (1 + erf(x / sqrt(2))) / 2


def noncentral_t_cdf(x, df, shift):
    """E Φ(x·S − shift) over S = χ/√df, by Simpson's rule."""
    spread = 10 / sqrt(2 * df)
    low, high = max(1e-9, 1 - spread), 1 + spread + (3.0 if df < 5 else 0.0)
    steps = 600
    width = (high - low) / steps
    constant = log(2) + (df / 2) * log(df / 2) - lgamma(df / 2)
    total = 0.0
    for i in range(steps + 1):
        s = low + i * width
        weight = 1 if i in (0, steps) else 4 if i % 2 else 2
        total += weight * exp(constant + (df - 1) * log(s) - df * s * s / 2) * phi(x * s - shift)
    return total * width / 3


def binomial(n, p):
    """All probabilities of Binomial(n, p)."""
    if p <= 0 or p >= 1:
        return [float(k == (n if p >= 1 else 0)) for k in range(n + 1)]
    return [
        exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) + k * log(p) + (n - k) * log(1 - p))
        for k in range(n + 1)
    ]


# ---------------------------------------------------------------- tests


def half_tail(k, n):
    """P(X ≤ k) for X ~ Binomial(n, ½), exactly."""
    return float(Fraction(sum(comb(n, i) for i in range(k + 1)), 2**n)) if k >= 0 else 0.0


def sign_p(losses, wins, side):
    less, greater = half_tail(wins, losses + wins), half_tail(losses, losses + wins)
    return min(1.0, {"less": less, "greater": greater, "two-sided": 2 * min(less, greater)}[side])


def flip_p(terms, side):
    """The share of sign patterns with a sum at least as extreme: by convolution, else by Fourier inversion."""
    terms = [term for term in terms if term != 0]
    if not terms:
        return 1.0
    observed, slack = sum(terms), 1e-9 * sum(map(abs, terms))
    whole = on_lattice(terms)
    if whole is not None or len(terms) <= 18:
        unit, sizes = whole if whole is not None else (1.0, [abs(term) for term in terms])
        sums = Counter({0: 1.0})
        for size in sizes:
            grown = Counter()
            for value, weight in sums.items():
                grown[value + size] += weight / 2
                grown[value - size] += weight / 2
            sums = grown
        ends = [(value * unit, weight) for value, weight in sums.items()]
        if side == "less":
            return min(1.0, sum(w for v, w in ends if v <= observed + slack))
        if side == "greater":
            return min(1.0, sum(w for v, w in ends if v >= observed - slack))
        return min(1.0, sum(w for v, w in ends if abs(v) >= abs(observed) - slack))
    below = _inverted(terms, observed)
    tails = {"less": below, "greater": 1 - below, "two-sided": 2 * min(below, 1 - below)}
    return min(1.0, tails[side])


def on_lattice(terms):
    """The terms as multiples of a unit, when there is one that keeps their sum small."""
    fractions = [Fraction(abs(term)).limit_denominator(10_000) for term in terms]
    if any(abs(float(f) - abs(t)) > 1e-9 * abs(t) for f, t in zip(fractions, terms, strict=False)):
        return None
    bottom = 1
    for fraction in fractions:
        bottom = bottom * fraction.denominator // _gcd(bottom, fraction.denominator)
        if bottom > 10**5:
            return None
    sizes = [int(fraction * bottom) for fraction in fractions]
    return (1 / bottom, sizes) if sum(sizes) <= 20_000 else None


def _gcd(a, b):
    while b:
        a, b = b, a % b
    return a


def _inverted(terms, observed):
    """P(sum of ±terms ≤ observed) = ½ + (1/π)∫ sin(t·observed)/t·Π cos(t·term) dt."""
    scale = sqrt(sum(term * term for term in terms))
    step, total, t = 0.02 / scale, 0.0, 0.0
    for i in range(1, 4000):
        t = (i - 0.5) * step
        product = 1.0
        for term in terms:
            product *= cos(t * term)
        total += sin(t * observed) / t * product * step
        if t * scale > 9 and abs(product) < 1e-12:
            break
    return 0.5 + total / pi


def flip_slack(terms, told, found):
    """How far a sign-flip p-value may be off: drawn ones (of 10,000 patterns) by six standard errors; others hardly."""
    enumerated = sum(term != 0 for term in terms) <= 18
    if not enumerated and abs(told * 10_001 - round(told * 10_001)) < 1e-6:
        return 6 * sqrt(found * (1 - found) / 10_000) + 1e-3
    # The continuous limit, used here where there is no coarse unit, knows no ties.
    return 1e-5 if on_lattice(terms) or len(terms) <= 18 else 5e-4


def holm(values):
    return _stepped(values, largest_first=False)


def hochberg(values):
    return _stepped(values, largest_first=True)


def _stepped(values, largest_first):
    m = len(values)
    order = sorted(range(m), key=lambda i: values[i])
    scaled = [values[i] * (m - place) for place, i in enumerate(order)]
    places = range(m - 1, -1, -1) if largest_first else range(m)
    out, best = [0.0] * m, 1.0 if largest_first else 0.0
    for place in places:
        best = min(best, scaled[place]) if largest_first else max(best, scaled[place])
        out[order[place]] = min(1.0, best)
    return out


# ---------------------------------------------------------------- intervals


def spread(values):
    centre = mean(values)
    return sqrt(sum((v - centre) ** 2 for v in values) / (len(values) - 1))


def alike(sums, sizes):
    """Whether all groups have the same mean but for rounding."""
    centre = sum(sums) / sum(sizes)
    largest = max(abs(s - m * centre) for s, m in zip(sums, sizes, strict=False))
    return largest <= 1e-12 * (max(map(abs, sums)) + max(sizes))


def skewness(sums, sizes):
    centre = sum(sums) / sum(sizes)
    rest = [s - m * centre for s, m in zip(sums, sizes, strict=False)]
    top = max(map(abs, rest))
    rest = [r / top for r in rest]
    return abs(mean(r**3 for r in rest)) / mean(r * r for r in rest) ** 1.5 / sqrt(len(rest))


def grouped(values, groups):
    if groups is None:
        return list(values), [1] * len(values)
    sums, sizes = {}, {}
    for value, group in zip(values, groups, strict=False):
        sums[group] = sums.get(group, 0.0) + value
        sizes[group] = sizes.get(group, 0) + 1
    return [sums[g] for g in sums], [sizes[g] for g in sums]


def clustered(sums, sizes):
    """Bell and McCaffrey's standard error and degrees of freedom, by the matrices themselves."""
    n, g = sum(sizes), len(sizes)
    centre = sum(sums) / n
    lever = [1 / (1 - m / n) for m in sizes]
    variance = sum(a * (s - m * centre) ** 2 for a, s, m in zip(lever, sums, sizes, strict=False)) / n**2
    # K = W·B·W with B = MᵀAM, M = I − sizes·1ᵀ/n and W = diag(sizes); trace(K²) = Σ (w_i w_j B_ij)².
    total = sum(a * m * m for a, m in zip(lever, sizes, strict=False)) / n**2
    trace = square = 0.0
    for i in range(g):
        for j in range(g):
            b = (lever[i] if i == j else 0.0) - lever[i] * sizes[i] / n - lever[j] * sizes[j] / n + total
            entry = b * sizes[i] * sizes[j]
            square += entry * entry
            trace += entry if i == j else 0.0
    return sqrt(variance), trace * trace / square


def unseen(value, units, tail, low, high):
    kept = tail ** (1 / units)
    return value * kept + low * (1 - kept), value * kept + high * (1 - kept)


def proportion(x, n, level, few):
    tail = (1 - level) / 2
    if few:
        low = 0.0 if x == 0 else beta_quantile(tail, x, n - x + 1)
        high = 1.0 if x == n else beta_quantile(1 - tail, x + 1, n - x)
        return low, high
    z, p = Z.inv_cdf(1 - tail), x / n
    middle, half = (p + z * z / (2 * n)), z * sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    low, high = (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)
    return (0.0 if x == 0 else low), (1.0 if x == n else high)


def mean_ends(values, groups, level, bounds):
    """The interval of a side's mean."""
    useful = groups if groups is not None and len(set(groups)) < len(values) else None
    binary = all(v in (0, 1) for v in values)
    n = len(values)
    sums, sizes = grouped(values, useful)
    if useful is None and binary:
        x = int(sum(values))
        return proportion(x, n, level, min(x, n - x) <= 4)
    if alike(sums, sizes) and not (useful is not None and binary):
        units = sum(sizes) ** 2 / sum(m * m for m in sizes)
        return unseen(mean(values), units, (1 - level) / 2, *bounds)
    same = alike(sums, sizes)
    if min(values) >= 0 and max(values) <= 1 and (same or skewness(sums, sizes) > 0.2):
        return _effective(sums, sizes, level, 1.0 if useful is not None and binary else 0.0)
    if useful is None:
        half = t_quantile((1 + level) / 2, n - 1) * spread(values) / sqrt(n)
    else:
        error, df = clustered(sums, sizes)
        half = t_quantile((1 + level) / 2, df) * error
    low, high = mean(values) - half, mean(values) + half
    if min(values) >= bounds[0] and max(values) <= bounds[1]:
        low, high = max(low, bounds[0]), min(high, bounds[1])
    return low, high


def _effective(sums, sizes, level, at_least):
    n = sum(sizes)
    p = min(1.0, max(0.0, sum(sums) / n))
    most = sum(m * m for m in sizes) / n
    effect = most
    if p * (1 - p) > 0:
        ratio = min(max(clustered(sums, sizes)[0] ** 2 / (p * (1 - p) / n), at_least), most)
        lacks = [m - s for s, m in zip(sums, sizes, strict=False)]
        seen = min(sum(part) ** 2 / sum(f * f for f in part) for part in (sums, lacks))
        effect = (seen * ratio + most) / (seen + 1)
    trials = n / effect
    return proportion(p * trials, trials, level, trials * min(p, 1 - p) <= 4)


def centre_of(deltas, groups, scale):
    """Method, centre, error, degrees of freedom (inf: normal) and units of a paired difference."""
    useful = groups if groups is not None and len(set(groups)) < len(deltas) else None
    n, value = len(deltas), mean(deltas)
    sums, sizes = grouped(deltas, useful)
    inside = scale is not None and max(map(abs, deltas)) <= scale
    ternary = inside and all(d == 0 or abs(d) == scale for d in deltas)
    changed = sum(s != 0 for s in sums)
    sparse = inside and changed <= 4 and 2 * changed < len(sums)
    if useful is None and (ternary or sparse):
        middle = value * n / (n + 2)
        square = (sum(d * d for d in deltas) + 2 * scale**2) / (n + 2)
        return "bonett_price", middle, sqrt((square - middle**2) / (n + 2)), inf, None
    whole = all(s == 0 or abs(s / m) == scale for s, m in zip(sums, sizes, strict=False))
    few = changed <= 4 and (ternary or 2 * changed < len(sums))
    if useful is not None and inside and (whole or few):
        size = sum(m * m for m in sizes) / n  # a whole group won and another one lost
        error, df = clustered([*sums, scale * size, -scale * size], [*sizes, size, size])
        return "clustered_bonett_price", value * n / (n + 2 * size), error, df, None
    if inside and alike(sums, sizes):
        units = sum(sizes) ** 2 / sum(m * m for m in sizes)
        return ("constant" if useful is None else "clustered_constant"), value, 0.0, inf, units
    if useful is None:
        return "t", value, spread(deltas) / sqrt(n), n - 1.0, None
    error, df = clustered(sums, sizes)
    return "clustered_t", value, error, df, None


def quantile(p, df):
    return Z.inv_cdf(p) if df == inf else t_quantile(p, df)


def difference_ends(deltas, groups, level, scale):
    method, middle, error, df, units = centre_of(deltas, groups, scale)
    if units is not None:
        return method, *unseen(mean(deltas), units, (1 - level) / 2, -scale, scale)
    half = quantile((1 + level) / 2, df) * error
    limit = scale if max(map(abs, deltas)) <= scale else inf
    return method, max(middle - half, -limit), min(middle + half, limit)


# ---------------------------------------------------------------- how large a drop is left possible


GAMMA = 1e-4


def trinomial_p(losses, wins, n, margin):
    """Exact, at the share of changed pairs that makes a result this good most likely."""
    if margin >= 1:
        return GAMMA if losses < n else 1.0

    def z_of(balance, changed):
        c = balance / (n + 2)
        return (c - margin) / sqrt(((changed + 2) / (n + 2) - c * c) / (n + 2))

    changed = losses + wins
    z = z_of(losses - wins, changed)
    if changed > 2000:
        return phi(z)
    low = 0.0 if changed == 0 else beta_quantile(GAMMA / 2, changed, n - changed + 1)
    high = 1.0 if changed >= n else beta_quantile(1 - GAMMA / 2, changed + 1, n - changed)
    low = max(low, margin, 1e-12)
    high = max(high, low)
    found = 0.0
    for i in range(12):
        share = low + (high - low) * i / 11
        total = 0.0
        for d, weight in enumerate(binomial(n, share)):
            if weight < 1e-13:
                continue
            a, b = -1, d  # the most losses among d changed pairs that are no worse than what was seen
            while a < b:
                middle = (a + b + 1) // 2
                if middle < 0 or z_of(2 * middle - d, d) <= z + 1e-9:
                    a = middle
                else:
                    b = middle - 1
            if a >= 0:
                loss = min(1.0, (1 + margin / share) / 2)
                total += weight * (1.0 if a >= d else sum(binomial(d, loss)[: a + 1]))
        found = max(found, total)
        if high == low:
            break
    return min(1.0, found + GAMMA)


def changes(deltas, groups, scale, method):
    """Losses, wins and pairs; with groups, in whole groups of the size that a random pair sees."""
    sums, sizes = grouped(deltas, groups if method.startswith("clustered") else None)
    size = sum(m * m for m in sizes) / sum(sizes)
    n = max(1, int(sum(sizes) / size + 1e-9))
    losses, wins = (sum(max(0.0, sign * s) for s in sums) / size / scale for sign in (-1, 1))
    losses = min(losses, n)
    return losses, min(wins, n - losses), n


def drop_evidence(deltas, groups, margin, scale):
    """One-sided p of "the drop is `margin` or larger"."""
    method, middle, error, df, units = centre_of(deltas, groups, scale)
    distance = middle + margin
    if units is not None:
        return (max(0.0, scale - margin) / (scale + mean(deltas))) ** units if distance > 0 else 1.0
    if method.endswith("bonett_price"):
        return trinomial_p(*changes(deltas, groups, scale, method), margin / scale)
    if error == 0:
        return 0.0 if distance > 0 else 1.0
    t = distance / error
    if method == "t":
        t = pulled(t, pull_of(deltas))
    return phi(-t) if df == inf else t_cdf(-t, df)


def pull_of(deltas):
    rest = [d - mean(deltas) for d in deltas]
    skew = mean(r**3 for r in rest) / mean(r * r for r in rest) ** 1.5
    return max(-0.03, min(0.0, skew / (6 * sqrt(len(deltas)))))


def pulled(t, pull):
    at = min(t, -1 / (4 * pull)) if pull < 0 else t
    return at + pull * (2 * at * at + 1)


def lower_bound_holds(deltas, groups, level, scale, told):
    """Whether `told` is the one-sided lower bound: just inside it the p-value is above 1 − level, just outside below."""
    method, middle, error, df, units = centre_of(deltas, groups, scale)
    if units is not None:
        return abs(unseen(mean(deltas), units, 1 - level, -scale, scale)[0] - told) < 1e-6
    if method.endswith("bonett_price"):
        losses, wins, n = changes(deltas, groups, scale, method)
        drop, centre = -told / scale, (wins - losses) / (n + 2)
        far = Z.inv_cdf(level) * sqrt(((losses + wins + 2) / (n + 2) - centre**2) / (n + 2))
        wald = scale * max(-1.0, centre - far)
        if losses + wins > 2000:
            return abs(wald - told) < 1e-6
        if not -1.0 <= drop <= 1 + 1e-9:
            return False
        if drop < 1e-9:  # a proven gain: the adjusted Wald bound, but no drop
            proven = wins > losses and trinomial_p(losses, wins, n, 0.0) <= 1 - level + 1e-9
            return proven and abs(max(0.0, wald) - told) < 1e-6
        inside = trinomial_p(losses, wins, n, drop * 0.999 - 1e-9) if drop > 1e-6 else 1.0
        return inside > 1 - level >= trinomial_p(losses, wins, n, min(1.0, drop * 1.001 + 1e-9)) - 1e-9
    if method == "t":
        pull, t = pull_of(deltas), quantile(level, df)
        if pull < 0:
            t = solve(lambda x: pulled(x, pull), t, 0.0, -1 / (4 * pull))
        return abs(middle - t * error - told) < 1e-6
    return abs(middle - quantile(level, df) * error - told) < 1e-6


# ---------------------------------------------------------------- power


def t_power(effect, sd, n, alpha):
    return 1 - noncentral_t_cdf(t_quantile(1 - alpha, n - 1), n - 1, effect * sqrt(n) / sd)


def mcnemar_power(effect, share, n, alpha):
    share = min(1.0, max(share, effect))
    lost, total = min(1.0, (1 + effect / share) / 2), 0.0
    for d, weight in enumerate(binomial(n, share)):
        if weight > 1e-12:
            won, tail = -1, 0.0
            while won < d and (tail := tail + comb(d, won + 1) / 2**d) < alpha:
                won += 1
            total += weight * sum(binomial(d, 1 - lost)[: won + 1])
    return total

"""Quantiles and tail probabilities of the usual distributions, from `scipy.special` (loaded on first use).

`scipy.stats` has the same functions and costs most of a second to import.
"""

import math

from evenhand.metrics.special import special


def normal_quantile(p: float) -> float:
    """z with Φ(z) = p."""
    return float(special().ndtri(p))


def normal_cdf(z: float) -> float:
    """Φ(z)."""
    return float(special().ndtr(z))


def t_quantile(p: float, df: float) -> float:
    """The p quantile of Student's t with `df` degrees of freedom."""
    return float(special().stdtrit(df, p))


def t_cdf(x: float, df: float) -> float:
    """The distribution function of Student's t."""
    return float(special().stdtr(df, x))


def beta_quantile(p: float, a: float, b: float) -> float:
    """The p quantile of Beta(a, b)."""
    return float(special().betaincinv(a, b, p))


def binomial_cdf(k: int, n: int, p: float) -> float:
    """P(X ≤ k) for X ~ Binomial(n, p)."""
    return 0.0 if k < 0 else 1.0 if k >= n else float(special().bdtr(k, n, p))


def binomial_pmf(k: int, n: int, p: float) -> float:
    """P(X = k) for X ~ Binomial(n, p), 0 < p < 1."""
    if not 0 <= k <= n:
        return 0.0
    functions = special()
    log = -math.log1p(n) - float(functions.betaln(n - k + 1, k + 1))
    log = log + float(functions.xlogy(k, p)) + float(functions.xlog1py(n - k, -p))
    return math.exp(log)


def noncentral_t_cdf(x: float, df: float, shift: float) -> float:
    """P(T ≤ x) for the noncentral t with `df` degrees of freedom and noncentrality `shift`."""
    p = float(special().nctdtr(df, shift, x))
    if math.isnan(p):
        # Far out in a tail the special function gives up; the normal approximation is 0 or 1 there.
        return normal_cdf((x * (1.0 - 0.25 / df) - shift) / (1.0 + x * x / (2.0 * df)) ** 0.5)
    return p


def noncentrality(p: float, df: float, x: float) -> float:
    """The shift at which a noncentral t lies below `x` with probability p."""
    low, high = x - 10.0 - abs(x), x + 10.0 + abs(x)
    for _ in range(80):
        middle = (low + high) / 2.0
        if noncentral_t_cdf(x, df, middle) > p:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0

"""Several attempts per problem: pass@k and pass^k."""

from fractions import Fraction
from math import comb

from evenhand.metrics.checks import checked_count


def pass_at_k(n: int, c: int, k: int) -> float:
    """The chance that at least one of `k` attempts is correct, given `c` correct ones among `n`.

    1 − C(n−c, k)/C(n, k), unbiased for k ≤ n (Chen et al. 2021, arXiv 2107.03374, equation 1), in exact
    arithmetic.

    >>> pass_at_k(n=8, c=3, k=1)
    0.375
    """
    n, c, k = _checked_attempts(n, c, k)
    return float(1 - Fraction(comb(n - c, k), comb(n, k)))


def pass_hat_k(n: int, c: int, k: int) -> float:
    """The chance that all of `k` attempts are correct, given `c` correct ones among `n`.

    C(c, k)/C(n, k), unbiased for k ≤ n (Yao et al. 2024, arXiv 2406.12045).

    >>> pass_hat_k(n=8, c=4, k=2)
    0.21428571428571427
    """
    n, c, k = _checked_attempts(n, c, k)
    return float(Fraction(comb(c, k), comb(n, k)))


def _checked_attempts(n: int, c: int, k: int) -> tuple[int, int, int]:
    n = checked_count(n, name="n", at_least=1)
    c = checked_count(c, name="c")
    if c > n:
        raise ValueError(f"c: must be at most n ({n}), not {c}")
    k = checked_count(k, name="k", at_least=1)
    if k > n:
        raise ValueError(f"k: must be at most n ({n}), not {k}")
    return n, c, k

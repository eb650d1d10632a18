"""Several tests at once."""

import numpy as np
import numpy.typing as npt

from evenhand.metrics.checks import checked_values
from evenhand.metrics.types import FloatArray


def holm(p_values: npt.ArrayLike) -> FloatArray:
    """Holm's step-down p-values: rejecting those at most α keeps the chance of any false rejection at α.

    With p₍₁₎ ≤ … ≤ p₍ₘ₎ the adjusted value is max over j ≤ i of (m − j + 1)·p₍ⱼ₎, capped at 1; no assumption
    about dependence (Holm 1979, Scandinavian Journal of Statistics 6:65).
    """
    p = _checked(p_values)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * np.arange(p.size, 0, -1)
    return _unsorted(np.minimum(np.maximum.accumulate(scaled), 1.0), order)


def hochberg(p_values: npt.ArrayLike) -> FloatArray:
    """Hochberg's step-up p-values: the same promise as Holm's for independent tests, and never larger.

    The adjusted value is min over j ≥ i of (m − j + 1)·p₍ⱼ₎ (Hochberg 1988, Biometrika 75:800). When every p is at
    most α, all are rejected: "all of them pass" needs no correction.
    """
    p = _checked(p_values)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * np.arange(p.size, 0, -1)
    return _unsorted(np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0), order)


def benjamini_hochberg(p_values: npt.ArrayLike) -> FloatArray:
    """Benjamini–Hochberg step-up p-values: rejecting those at most q keeps the false discovery rate at q.

    The adjusted value is min over j ≥ i of m·p₍ⱼ₎/j, capped at 1; for independent or positively dependent
    tests (Benjamini and Hochberg 1995, JRSS B 57:289).
    """
    p = _checked(p_values)
    order = np.argsort(p, kind="stable")
    scaled = p[order] * (p.size / np.arange(1, p.size + 1))
    return _unsorted(np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0), order)


def _checked(p_values: npt.ArrayLike) -> FloatArray:
    p = checked_values(p_values, name="p_values")
    if (p < 0).any() or (p > 1).any():
        raise ValueError("p_values: must lie between 0 and 1")
    return p


def _unsorted(values: FloatArray, order: npt.NDArray[np.intp]) -> FloatArray:
    out = np.empty_like(values)
    out[order] = values
    return out

"""What the statistics return: named, frozen results that say how they were made."""

from typing import ClassVar, Literal

import numpy as np
import numpy.typing as npt
from msgspec import Struct

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

Alternative = Literal["two-sided", "less", "greater"]
"""Which departures from the null hypothesis count."""


class Interval(Struct, frozen=True, kw_only=True):
    """An estimate and the interval around it."""

    value: float
    """The estimate itself."""
    ci_lower: float
    """The lower end."""
    ci_upper: float
    """The upper end."""
    confidence_level: float
    """How often such an interval is meant to cover the truth, say 0.95."""
    method: str
    """Which method was used: `wilson`, `t`, `clustered_t`, `percentile/binomial`, ..."""
    n: int
    """How many values went in."""
    n_groups: int | None = None
    """How many independent groups they came from, when they were grouped."""
    standard_error: float | None = None
    """The standard error of the estimate, where the method has one."""

    def contains(self, value: float) -> bool:
        """Whether `value` lies inside, the ends included."""
        return self.ci_lower <= value <= self.ci_upper


class TestResult(Struct, frozen=True, kw_only=True):
    """A hypothesis test."""

    __test__: ClassVar[bool] = False  # pytest would otherwise collect the class by its name

    statistic: float
    """The test statistic; the function that returns it says which."""
    p_value: float
    """The probability, were nothing different, of data at least this extreme."""
    method: str
    """Which method was used: `exact`, `mid_p`, `permutation/exact`, ..."""
    alternative: Alternative
    """Which departures from the null hypothesis count."""
    n: int
    """How many values or pairs went in."""
    monte_carlo_error: float | None = None
    """The standard error of `p_value` from the finite number of resamples; None when it has none."""


class NonInferiority(Struct, frozen=True, kw_only=True):
    """Whether a candidate is no worse than a base by more than a margin."""

    established: bool
    """True when the lower bound of the difference lies above minus the margin."""
    margin: float
    """The largest drop that would be accepted, on the score's scale, as a positive number."""
    value: float
    """The mean difference, candidate minus base."""
    ci_lower: float
    """The one-sided lower confidence bound of the difference."""
    confidence_level: float
    """The level of that one-sided bound."""
    p_value: float
    """Of the hypothesis that the drop is at least the margin."""
    method: str
    """Which interval the bound comes from."""
    n: int
    """How many pairs went in."""


class VarianceSplit(Struct, frozen=True, kw_only=True):
    """How much scores vary among repeats of one problem, and how much among problems."""

    within: float
    """Variance among repeats of one problem: what more repeats average away."""
    between: float
    """Variance of the problems' true means: what only more problems average away."""
    total: float
    """Their sum: the variance of one repeat of a random problem."""
    n_problems: int
    """How many problems went in."""
    n_values: int
    """How many values went in."""


class CategoryScore(Struct, frozen=True, kw_only=True):
    """One category's mean with its closed denominator: samples = scored + unscored + failed."""

    category: str
    """The category's name."""
    mean_reward: float | None
    """The mean of the scored samples; None when none was scored."""
    n_samples: int
    """How many samples were scored."""
    ci: Interval | None
    """The interval around the mean; None when the data allow none (no value, one that is not 0 or 1, no spread)."""
    unscored: int = 0
    """How many samples had nothing to score."""
    failed: int = 0
    """How many samples failed."""

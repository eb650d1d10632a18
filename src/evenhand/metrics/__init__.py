"""Statistics on numpy: estimates with their uncertainty, tests, power. Pure functions, no I/O, seeded.

The names below are loaded on first use; numpy and `scipy.special` come with them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.metrics.aggregation import category_breakdown as category_breakdown
    from evenhand.metrics.bootstrap import bootstrap_ci as bootstrap_ci
    from evenhand.metrics.differences import non_inferiority as non_inferiority
    from evenhand.metrics.effects import (
        cohens_d_paired as cohens_d_paired,
    )
    from evenhand.metrics.effects import (
        matched_odds_ratio as matched_odds_ratio,
    )
    from evenhand.metrics.effects import (
        win_rate as win_rate,
    )
    from evenhand.metrics.exact import (
        as_fraction as as_fraction,
    )
    from evenhand.metrics.exact import (
        compare_exactly as compare_exactly,
    )
    from evenhand.metrics.exact import (
        exact_mean as exact_mean,
    )
    from evenhand.metrics.exact import (
        exact_sum as exact_sum,
    )
    from evenhand.metrics.intervals import (
        mean_interval as mean_interval,
    )
    from evenhand.metrics.intervals import (
        proportion_interval as proportion_interval,
    )
    from evenhand.metrics.multiplicity import benjamini_hochberg as benjamini_hochberg
    from evenhand.metrics.multiplicity import holm as holm
    from evenhand.metrics.paired import (
        mcnemar as mcnemar,
    )
    from evenhand.metrics.paired import (
        paired_difference as paired_difference,
    )
    from evenhand.metrics.paired import (
        permutation_test as permutation_test,
    )
    from evenhand.metrics.paired import (
        sign_test as sign_test,
    )
    from evenhand.metrics.power import (
        clustered_minimum_detectable_effect as clustered_minimum_detectable_effect,
    )
    from evenhand.metrics.power import (
        clustered_power_of as clustered_power_of,
    )
    from evenhand.metrics.power import (
        minimum_detectable_effect as minimum_detectable_effect,
    )
    from evenhand.metrics.power import (
        power_of as power_of,
    )
    from evenhand.metrics.power import (
        required_items as required_items,
    )
    from evenhand.metrics.power import (
        required_n as required_n,
    )
    from evenhand.metrics.power import (
        required_repeats as required_repeats,
    )
    from evenhand.metrics.power import (
        sd_of_problem_means as sd_of_problem_means,
    )
    from evenhand.metrics.repeats import (
        pass_at_k as pass_at_k,
    )
    from evenhand.metrics.repeats import (
        pass_at_k_interval as pass_at_k_interval,
    )
    from evenhand.metrics.repeats import (
        pass_hat_k as pass_hat_k,
    )
    from evenhand.metrics.repeats import (
        pass_hat_k_interval as pass_hat_k_interval,
    )
    from evenhand.metrics.repeats import (
        problem_pass_at_k_interval as problem_pass_at_k_interval,
    )
    from evenhand.metrics.repeats import (
        problem_pass_hat_k_interval as problem_pass_hat_k_interval,
    )
    from evenhand.metrics.repeats import (
        repeats_interval as repeats_interval,
    )
    from evenhand.metrics.repeats import (
        variance_split as variance_split,
    )
    from evenhand.metrics.types import (
        CategoryScore as CategoryScore,
    )
    from evenhand.metrics.types import (
        Interval as Interval,
    )
    from evenhand.metrics.types import (
        NonInferiority as NonInferiority,
    )
    from evenhand.metrics.types import (
        TestResult as TestResult,
    )
    from evenhand.metrics.types import (
        VarianceSplit as VarianceSplit,
    )

# name -> module that defines it
_PUBLIC = {
    "CategoryScore": "types",
    "Interval": "types",
    "NonInferiority": "types",
    "TestResult": "types",
    "VarianceSplit": "types",
    "as_fraction": "exact",
    "benjamini_hochberg": "multiplicity",
    "bootstrap_ci": "bootstrap",
    "category_breakdown": "aggregation",
    "clustered_minimum_detectable_effect": "power",
    "clustered_power_of": "power",
    "cohens_d_paired": "effects",
    "compare_exactly": "exact",
    "exact_mean": "exact",
    "exact_sum": "exact",
    "holm": "multiplicity",
    "matched_odds_ratio": "effects",
    "mcnemar": "paired",
    "mean_interval": "intervals",
    "minimum_detectable_effect": "power",
    "non_inferiority": "differences",
    "paired_difference": "paired",
    "pass_at_k": "repeats",
    "pass_at_k_interval": "repeats",
    "pass_hat_k": "repeats",
    "pass_hat_k_interval": "repeats",
    "permutation_test": "paired",
    "power_of": "power",
    "problem_pass_at_k_interval": "repeats",
    "problem_pass_hat_k_interval": "repeats",
    "proportion_interval": "intervals",
    "repeats_interval": "repeats",
    "required_items": "power",
    "required_n": "power",
    "required_repeats": "power",
    "sd_of_problem_means": "power",
    "sign_test": "paired",
    "variance_split": "repeats",
    "win_rate": "effects",
}

__all__ = [
    "CategoryScore",
    "Interval",
    "NonInferiority",
    "TestResult",
    "VarianceSplit",
    "as_fraction",
    "benjamini_hochberg",
    "bootstrap_ci",
    "category_breakdown",
    "clustered_minimum_detectable_effect",
    "clustered_power_of",
    "cohens_d_paired",
    "compare_exactly",
    "exact_mean",
    "exact_sum",
    "holm",
    "matched_odds_ratio",
    "mcnemar",
    "mean_interval",
    "minimum_detectable_effect",
    "non_inferiority",
    "paired_difference",
    "pass_at_k",
    "pass_at_k_interval",
    "pass_hat_k",
    "pass_hat_k_interval",
    "permutation_test",
    "power_of",
    "problem_pass_at_k_interval",
    "problem_pass_hat_k_interval",
    "proportion_interval",
    "repeats_interval",
    "required_items",
    "required_n",
    "required_repeats",
    "sd_of_problem_means",
    "sign_test",
    "variance_split",
    "win_rate",
]


def __getattr__(name: str) -> Any:
    try:
        module = _PUBLIC[name]
    except KeyError:
        raise AttributeError(f"module 'evenhand.metrics' has no attribute {name!r}") from None
    value = getattr(import_module(f"evenhand.metrics.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

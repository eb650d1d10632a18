"""Statistics on numpy: estimates with their uncertainty, tests, power. Pure functions, no I/O, seeded.

The names below are loaded on first use; numpy and `scipy.special` come with them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.metrics.aggregation import category_breakdown as category_breakdown
    from evenhand.metrics.bootstrap import bootstrap_ci as bootstrap_ci
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
    from evenhand.metrics.repeats import pass_at_k as pass_at_k
    from evenhand.metrics.repeats import pass_hat_k as pass_hat_k
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
    "compare_exactly": "exact",
    "exact_mean": "exact",
    "exact_sum": "exact",
    "holm": "multiplicity",
    "mcnemar": "paired",
    "mean_interval": "intervals",
    "paired_difference": "paired",
    "pass_at_k": "repeats",
    "pass_hat_k": "repeats",
    "permutation_test": "paired",
    "proportion_interval": "intervals",
    "sign_test": "paired",
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
    "compare_exactly",
    "exact_mean",
    "exact_sum",
    "holm",
    "mcnemar",
    "mean_interval",
    "paired_difference",
    "pass_at_k",
    "pass_hat_k",
    "permutation_test",
    "proportion_interval",
    "sign_test",
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

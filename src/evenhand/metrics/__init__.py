"""Statistics on numpy: estimates with their uncertainty, tests, power. Pure functions, no I/O, seeded.

The names below are loaded on first use; numpy and `scipy.special` come with them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.metrics.aggregation import category_breakdown as category_breakdown
    from evenhand.metrics.agreement import (
        cohen_kappa as cohen_kappa,
    )
    from evenhand.metrics.agreement import (
        fleiss_kappa as fleiss_kappa,
    )
    from evenhand.metrics.agreement import (
        krippendorff_alpha as krippendorff_alpha,
    )
    from evenhand.metrics.bootstrap import bootstrap_ci as bootstrap_ci
    from evenhand.metrics.correction import ppi_mean as ppi_mean
    from evenhand.metrics.correction import rogan_gladen as rogan_gladen
    from evenhand.metrics.differences import (
        non_inferiority as non_inferiority,
    )
    from evenhand.metrics.differences import (
        unpaired_difference as unpaired_difference,
    )
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
    from evenhand.metrics.ranking import Ranked as Ranked
    from evenhand.metrics.ranking import Ranking as Ranking
    from evenhand.metrics.ranking import bradley_terry as bradley_terry
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
    from evenhand.metrics.sequential import (
        ConfidenceSequence as ConfidenceSequence,
    )
    from evenhand.metrics.sequential import (
        SequentialTest as SequentialTest,
    )
    from evenhand.metrics.sequential import (
        confidence_sequence as confidence_sequence,
    )
    from evenhand.metrics.sequential import (
        paired_sequential_test as paired_sequential_test,
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
    "ConfidenceSequence": "sequential",
    "Interval": "types",
    "NonInferiority": "types",
    "Ranked": "ranking",
    "Ranking": "ranking",
    "SequentialTest": "sequential",
    "TestResult": "types",
    "VarianceSplit": "types",
    "as_fraction": "exact",
    "benjamini_hochberg": "multiplicity",
    "bootstrap_ci": "bootstrap",
    "bradley_terry": "ranking",
    "category_breakdown": "aggregation",
    "clustered_minimum_detectable_effect": "power",
    "clustered_power_of": "power",
    "cohen_kappa": "agreement",
    "cohens_d_paired": "effects",
    "compare_exactly": "exact",
    "confidence_sequence": "sequential",
    "exact_mean": "exact",
    "exact_sum": "exact",
    "fleiss_kappa": "agreement",
    "holm": "multiplicity",
    "krippendorff_alpha": "agreement",
    "matched_odds_ratio": "effects",
    "mcnemar": "paired",
    "mean_interval": "intervals",
    "minimum_detectable_effect": "power",
    "non_inferiority": "differences",
    "paired_difference": "paired",
    "paired_sequential_test": "sequential",
    "pass_at_k": "repeats",
    "pass_at_k_interval": "repeats",
    "pass_hat_k": "repeats",
    "pass_hat_k_interval": "repeats",
    "permutation_test": "paired",
    "power_of": "power",
    "ppi_mean": "correction",
    "problem_pass_at_k_interval": "repeats",
    "problem_pass_hat_k_interval": "repeats",
    "proportion_interval": "intervals",
    "repeats_interval": "repeats",
    "required_items": "power",
    "required_n": "power",
    "required_repeats": "power",
    "rogan_gladen": "correction",
    "sd_of_problem_means": "power",
    "sign_test": "paired",
    "unpaired_difference": "differences",
    "variance_split": "repeats",
    "win_rate": "effects",
}

__all__ = [
    "CategoryScore",
    "ConfidenceSequence",
    "Interval",
    "NonInferiority",
    "Ranked",
    "Ranking",
    "SequentialTest",
    "TestResult",
    "VarianceSplit",
    "as_fraction",
    "benjamini_hochberg",
    "bootstrap_ci",
    "bradley_terry",
    "category_breakdown",
    "clustered_minimum_detectable_effect",
    "clustered_power_of",
    "cohen_kappa",
    "cohens_d_paired",
    "compare_exactly",
    "confidence_sequence",
    "exact_mean",
    "exact_sum",
    "fleiss_kappa",
    "holm",
    "krippendorff_alpha",
    "matched_odds_ratio",
    "mcnemar",
    "mean_interval",
    "minimum_detectable_effect",
    "non_inferiority",
    "paired_difference",
    "paired_sequential_test",
    "pass_at_k",
    "pass_at_k_interval",
    "pass_hat_k",
    "pass_hat_k_interval",
    "permutation_test",
    "power_of",
    "ppi_mean",
    "problem_pass_at_k_interval",
    "problem_pass_hat_k_interval",
    "proportion_interval",
    "repeats_interval",
    "required_items",
    "required_n",
    "required_repeats",
    "rogan_gladen",
    "sd_of_problem_means",
    "sign_test",
    "unpaired_difference",
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

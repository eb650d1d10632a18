"""Statistics on numpy: estimates with their uncertainty, tests, power. Pure functions, no I/O, seeded.

The names below are loaded on first use; numpy and `scipy.special` come with them.
"""

from typing import TYPE_CHECKING, Any

from evenhand.core.lazy_names import load_name

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
    "CategoryScore": "evenhand.metrics.types",
    "ConfidenceSequence": "evenhand.metrics.sequential",
    "Interval": "evenhand.metrics.types",
    "NonInferiority": "evenhand.metrics.types",
    "Ranked": "evenhand.metrics.ranking",
    "Ranking": "evenhand.metrics.ranking",
    "SequentialTest": "evenhand.metrics.sequential",
    "TestResult": "evenhand.metrics.types",
    "VarianceSplit": "evenhand.metrics.types",
    "as_fraction": "evenhand.metrics.exact",
    "benjamini_hochberg": "evenhand.metrics.multiplicity",
    "bootstrap_ci": "evenhand.metrics.bootstrap",
    "bradley_terry": "evenhand.metrics.ranking",
    "category_breakdown": "evenhand.metrics.aggregation",
    "clustered_minimum_detectable_effect": "evenhand.metrics.power",
    "clustered_power_of": "evenhand.metrics.power",
    "cohen_kappa": "evenhand.metrics.agreement",
    "cohens_d_paired": "evenhand.metrics.effects",
    "compare_exactly": "evenhand.metrics.exact",
    "confidence_sequence": "evenhand.metrics.sequential",
    "exact_mean": "evenhand.metrics.exact",
    "exact_sum": "evenhand.metrics.exact",
    "fleiss_kappa": "evenhand.metrics.agreement",
    "holm": "evenhand.metrics.multiplicity",
    "krippendorff_alpha": "evenhand.metrics.agreement",
    "matched_odds_ratio": "evenhand.metrics.effects",
    "mcnemar": "evenhand.metrics.paired",
    "mean_interval": "evenhand.metrics.intervals",
    "minimum_detectable_effect": "evenhand.metrics.power",
    "non_inferiority": "evenhand.metrics.differences",
    "paired_difference": "evenhand.metrics.paired",
    "paired_sequential_test": "evenhand.metrics.sequential",
    "pass_at_k": "evenhand.metrics.repeats",
    "pass_at_k_interval": "evenhand.metrics.repeats",
    "pass_hat_k": "evenhand.metrics.repeats",
    "pass_hat_k_interval": "evenhand.metrics.repeats",
    "permutation_test": "evenhand.metrics.paired",
    "power_of": "evenhand.metrics.power",
    "ppi_mean": "evenhand.metrics.correction",
    "problem_pass_at_k_interval": "evenhand.metrics.repeats",
    "problem_pass_hat_k_interval": "evenhand.metrics.repeats",
    "proportion_interval": "evenhand.metrics.intervals",
    "repeats_interval": "evenhand.metrics.repeats",
    "required_items": "evenhand.metrics.power",
    "required_n": "evenhand.metrics.power",
    "required_repeats": "evenhand.metrics.power",
    "rogan_gladen": "evenhand.metrics.correction",
    "sd_of_problem_means": "evenhand.metrics.power",
    "sign_test": "evenhand.metrics.paired",
    "unpaired_difference": "evenhand.metrics.differences",
    "variance_split": "evenhand.metrics.repeats",
    "win_rate": "evenhand.metrics.effects",
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
    return load_name(__name__, _PUBLIC, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

# ruff: noqa: I001  ruff would give every `name as name` a statement of its own
"""Statistics on numpy: estimates with their uncertainty, tests, power. Pure functions, no I/O, seeded.

The names are loaded on first use; numpy and `scipy.special` come with them.
"""

from typing import TYPE_CHECKING

from evenhand.core.lazy_names import lazy_names

if TYPE_CHECKING:  # the table below says the same at run time
    from evenhand.metrics.aggregation import category_breakdown as category_breakdown
    from evenhand.metrics.agreement import (
        cohen_kappa as cohen_kappa,
        fleiss_kappa as fleiss_kappa,
        krippendorff_alpha as krippendorff_alpha,
    )
    from evenhand.metrics.bootstrap import bootstrap_ci as bootstrap_ci
    from evenhand.metrics.components import (
        Reduction as Reduction,
        VarianceComponents as VarianceComponents,
        variance_components as variance_components,
        ways_to_reduce as ways_to_reduce,
    )
    from evenhand.metrics.correction import (
        ppi_difference as ppi_difference,
        ppi_mean as ppi_mean,
        rogan_gladen as rogan_gladen,
    )
    from evenhand.metrics.differences import (
        non_inferiority as non_inferiority,
        unpaired_difference as unpaired_difference,
    )
    from evenhand.metrics.effects import (
        cohens_d_paired as cohens_d_paired,
        matched_odds_ratio as matched_odds_ratio,
        win_rate as win_rate,
    )
    from evenhand.metrics.exact import (
        as_fraction as as_fraction,
        compare_exactly as compare_exactly,
        exact_mean as exact_mean,
        exact_sum as exact_sum,
    )
    from evenhand.metrics.intervals import (
        mean_interval as mean_interval,
        proportion_interval as proportion_interval,
    )
    from evenhand.metrics.multiplicity import benjamini_hochberg as benjamini_hochberg, holm as holm
    from evenhand.metrics.paired import (
        mcnemar as mcnemar,
        paired_difference as paired_difference,
        permutation_test as permutation_test,
        sign_test as sign_test,
    )
    from evenhand.metrics.power import (
        clustered_minimum_detectable_effect as clustered_minimum_detectable_effect,
        clustered_power_of as clustered_power_of,
        minimum_detectable_effect as minimum_detectable_effect,
        power_of as power_of,
        required_items as required_items,
        required_n as required_n,
        required_repeats as required_repeats,
        sd_of_problem_means as sd_of_problem_means,
    )
    from evenhand.metrics.ranking import Ranked as Ranked, Ranking as Ranking, bradley_terry as bradley_terry
    from evenhand.metrics.repeats import (
        pass_at_k as pass_at_k,
        pass_at_k_interval as pass_at_k_interval,
        pass_hat_k as pass_hat_k,
        pass_hat_k_interval as pass_hat_k_interval,
        problem_pass_at_k_interval as problem_pass_at_k_interval,
        problem_pass_hat_k_interval as problem_pass_hat_k_interval,
        repeats_interval as repeats_interval,
        variance_split as variance_split,
    )
    from evenhand.metrics.sequential import (
        ConfidenceSequence as ConfidenceSequence,
        SequentialTest as SequentialTest,
        confidence_sequence as confidence_sequence,
        paired_sequential_test as paired_sequential_test,
    )
    from evenhand.metrics.types import (
        CategoryScore as CategoryScore,
        Interval as Interval,
        NonInferiority as NonInferiority,
        TestResult as TestResult,
        VarianceSplit as VarianceSplit,
    )
else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "evenhand.metrics.aggregation": ("category_breakdown",),
            "evenhand.metrics.agreement": (
                "cohen_kappa",
                "fleiss_kappa",
                "krippendorff_alpha",
            ),
            "evenhand.metrics.bootstrap": ("bootstrap_ci",),
            "evenhand.metrics.components": (
                "Reduction",
                "VarianceComponents",
                "variance_components",
                "ways_to_reduce",
            ),
            "evenhand.metrics.correction": (
                "ppi_difference",
                "ppi_mean",
                "rogan_gladen",
            ),
            "evenhand.metrics.differences": (
                "non_inferiority",
                "unpaired_difference",
            ),
            "evenhand.metrics.effects": (
                "cohens_d_paired",
                "matched_odds_ratio",
                "win_rate",
            ),
            "evenhand.metrics.exact": (
                "as_fraction",
                "compare_exactly",
                "exact_mean",
                "exact_sum",
            ),
            "evenhand.metrics.intervals": (
                "mean_interval",
                "proportion_interval",
            ),
            "evenhand.metrics.multiplicity": (
                "benjamini_hochberg",
                "holm",
            ),
            "evenhand.metrics.paired": (
                "mcnemar",
                "paired_difference",
                "permutation_test",
                "sign_test",
            ),
            "evenhand.metrics.power": (
                "clustered_minimum_detectable_effect",
                "clustered_power_of",
                "minimum_detectable_effect",
                "power_of",
                "required_items",
                "required_n",
                "required_repeats",
                "sd_of_problem_means",
            ),
            "evenhand.metrics.ranking": (
                "Ranked",
                "Ranking",
                "bradley_terry",
            ),
            "evenhand.metrics.repeats": (
                "pass_at_k",
                "pass_at_k_interval",
                "pass_hat_k",
                "pass_hat_k_interval",
                "problem_pass_at_k_interval",
                "problem_pass_hat_k_interval",
                "repeats_interval",
                "variance_split",
            ),
            "evenhand.metrics.sequential": (
                "ConfidenceSequence",
                "SequentialTest",
                "confidence_sequence",
                "paired_sequential_test",
            ),
            "evenhand.metrics.types": (
                "CategoryScore",
                "Interval",
                "NonInferiority",
                "TestResult",
                "VarianceSplit",
            ),
        },
    )

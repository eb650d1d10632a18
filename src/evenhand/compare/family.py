"""Several benchmarks compared at once: the error rates of their verdicts, shared.

With ten unchanged benchmarks, each tested at 5 %, some BLOCK comes up in a third of cases. Drops and gains are
corrected by Holm, so that the chance of any false BLOCK, WARN or "really better" stays at α. That a large drop is ruled
out is corrected by Hochberg, which keeps the chance of any false PASS at its level when the benchmarks' problems are
independent, and asks nothing more where every benchmark passes alone.
"""

from collections.abc import Sequence

import numpy as np
from msgspec.structs import replace

from evenhand.compare.comparison import Comparison, Options, difference
from evenhand.compare.verdict import Family, decide
from evenhand.metrics.multiplicity import hochberg, holm
from evenhand.metrics.types import Interval


def correct_together(found: Sequence[Comparison], options: Options) -> list[Comparison]:
    """The comparisons with verdicts that hold for all of them at once; a single one as it is."""
    if len(found) < 2:
        return list(found)
    drops = holm([one.evidence.p_drop for one in found])
    rises = holm([one.evidence.p_rise for one in found])
    beyond = hochberg([one.p_beyond for one in found])
    level = 1 - (1 - options.confidence_level) / len(found)
    corrected = []
    for place, one in enumerate(found):
        family = Family(
            size=len(found),
            p_drop=float(drops[place]),
            p_rise=float(rises[place]),
            p_beyond=float(beyond[place]),
            simultaneous=_interval(one, replace(options, confidence_level=level)),
        )
        evidence = replace(one.evidence, family=family)
        corrected.append(replace(one, evidence=evidence, family=family, verdict=decide(evidence)))
    return corrected


def _interval(one: Comparison, options: Options) -> Interval:
    clusters = [item.cluster for item in one.items if item.cluster is not None]
    return difference(
        np.array([item.base for item in one.items]),
        np.array([item.candidate for item in one.items]),
        options,
        scale=one.evidence.scale,
        groups=clusters or None,
    )

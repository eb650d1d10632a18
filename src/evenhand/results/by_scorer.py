"""A run with several scorers, taken apart: one run per scorer, as comparisons want them."""

from collections.abc import Sequence

from msgspec.structs import replace

from evenhand.core.errors import UnknownName
from evenhand.core.outcome import Scored
from evenhand.results.reading import RunResults
from evenhand.results.records import scored_by

FURTHER = "scorer:"
"""Before the name of a further scorer, among the digests of a run."""


def scorers_of(run: RunResults) -> list[str]:
    """The scorers that the run names, the one of the headline first; empty when its lines name none."""
    named = [sample.scores for sample in run.samples if sample.scores]
    return list(dict.fromkeys(name for scores in named for name in scores))


def numeric_scorers(run: RunResults) -> list[str]:
    """The same without those that give labels only, which have no mean."""
    labelled: set[str] = set()
    numbered: set[str] = set()
    for scores in [sample.scores for sample in run.samples if sample.scores]:
        for name, outcome in scores.items():
            if isinstance(outcome, Scored):
                (labelled if isinstance(outcome.value, str) else numbered).add(name)
    return [name for name in scorers_of(run) if name not in labelled - numbered]


def with_scorer(run: RunResults, scorer: str) -> RunResults:
    """The run with one scorer's outcomes as its rewards."""
    name = f"{run.name} · {scorer}"
    found = [alone for sample in run.samples if (alone := scored_by(sample, scorer)) is not None]
    bundle = run.bundle
    if bundle is not None:
        hashes = {key: value for key, value in bundle.hashes.items() if not key.startswith(FURTHER)}
        own = bundle.hashes.get(f"{FURTHER}{scorer}")
        if own is not None:
            hashes["scorer"] = own
        identity = (bundle.config.get("scorers") or {}).get(scorer, bundle.config.get("scorer"))
        bundle = replace(
            bundle,
            benchmark=replace(bundle.benchmark, name=name),
            config={**bundle.config, "scorer": identity},
            hashes=hashes,
        )
    return replace(run, name=name, bundle=bundle, samples=found)


def pairs_by_scorer(
    base: RunResults, candidate: RunResults, wanted: Sequence[str] = ()
) -> tuple[dict[str, RunResults], dict[str, RunResults]]:
    """Both runs by scorer, where either has several or some are picked; else each as it is, under one name."""
    mine, theirs = numeric_scorers(base), numeric_scorers(candidate)
    known = list(dict.fromkeys([*mine, *theirs]))
    for name in wanted:
        if name not in known:
            raise UnknownName("scorer", name, known)
    named = len(scorers_of(base)) > 1 or len(scorers_of(candidate)) > 1
    if not named or not (mine and theirs):
        return {base.name: base}, {candidate.name: candidate}
    return tuple(  # type: ignore[return-value]  # two of them
        {f"{base.name} · {name}": with_scorer(run, name) for name in names if not wanted or name in wanted}
        for run, names in ((base, mine), (candidate, theirs))
    )

"""Reading the kept aggregates of an experiment: the cost does not grow with the number of scores."""

from msgspec import Struct

from evenhand.core.objects.experiments import Experiment
from evenhand.store.connection import Connection
from evenhand.store.experiments import get_experiment, item_count
from evenhand.store.projects import Scope
from evenhand.store.totals import (
    ClusterTotals,
    ScorerTotals,
    cluster_totals,
    label_totals,
    scorer_totals,
)
from evenhand.store.versions import VersionKey, VersionTotals, version_totals, versions_by_scorer


class KeptScorer(Struct, frozen=True, kw_only=True):
    """What is kept about one scorer in an experiment."""

    totals: ScorerTotals
    """Count, sums, least and greatest."""
    clusters: dict[tuple[int, int], ClusterTotals]
    """Items by their number of scores and of passes."""
    labels: dict[str, int]
    """How often each label was given."""
    versions: dict[VersionKey, VersionTotals]
    """What computed the scores, by version."""


class KeptSummary(Struct, frozen=True, kw_only=True):
    """What is kept about an experiment."""

    experiment: Experiment
    """The experiment itself."""
    item_count: int
    """How many items its dataset has; 0 once it is deleted."""
    scorers: dict[str, KeptScorer]
    """By name."""


def read_summary(
    connection: Connection, experiment_id: str, *, scope: Scope, scorer_name: str | None = None
) -> KeptSummary:
    """Everything that is kept about an experiment, or about one of its scorers."""
    names = None if scorer_name is None else [scorer_name]
    experiment = get_experiment(connection, experiment_id, scope=scope)
    labels = label_totals(connection, experiment_id)
    versions = versions_by_scorer(connection, experiment_id, names)
    scorers = {
        name: KeptScorer(
            totals=totals,
            clusters=cluster_totals(connection, experiment_id, name),
            labels=labels.get(name, {}),
            versions=versions.get(name, {}),
        )
        for (_, name), totals in sorted(scorer_totals(connection, [experiment_id], names).items())
    }
    return KeptSummary(
        experiment=experiment, item_count=item_count(connection, experiment) or 0, scorers=scorers
    )


def read_scorer(
    connection: Connection, experiment_id: str, scorer_name: str, *, scope: Scope
) -> tuple[ScorerTotals, dict[VersionKey, VersionTotals]]:
    """The totals of one scorer, all zero when it has scored nothing, and those of the versions that computed them."""
    get_experiment(connection, experiment_id, scope=scope)
    found = scorer_totals(connection, [experiment_id], [scorer_name])
    versions = version_totals(connection, [experiment_id], [scorer_name])
    return found.get((experiment_id, scorer_name), ScorerTotals()), versions

"""Which versions of a scorer an experiment's scores come from: kept in the score's own transaction, as exact sums.

Only computed scores are counted here. A submitted value has no version that the service knows.
"""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from evenhand.store.connection import Connection
from evenhand.store.totals import EXACT, ZERO, ScorerTotals, decimal_of

UPSERT_VERSION = """INSERT INTO version_totals (experiment_id, scorer_name, canonical_name, version, score_count, total, minimum,
    maximum, label_count, options, options_differ) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (experiment_id, scorer_name, canonical_name, version) DO UPDATE SET score_count = excluded.score_count,
    total = excluded.total, minimum = excluded.minimum, maximum = excluded.maximum, label_count = excluded.label_count,
    options = excluded.options, options_differ = excluded.options_differ"""
_COLUMNS = (
    "experiment_id, scorer_name, canonical_name, version, score_count, total, minimum, maximum, label_count,"
    " options, options_differ"
)


class VersionKey(NamedTuple):
    """One version of what computed scores under one name in one experiment."""

    experiment_id: str
    scorer_name: str
    canonical_name: str
    version: str

    @property
    def shown(self) -> str:
        """For people."""
        return f"{self.canonical_name} {self.version}"


class VersionTotals(NamedTuple):
    """All scores of one version."""

    score_count: int = 0
    total: Decimal = ZERO
    minimum: float | None = None
    maximum: float | None = None
    label_count: int = 0
    options: str = ""
    options_differ: int = 0


Versions = Mapping[VersionKey, VersionTotals]
"""What computed the scores of one name in one experiment."""


def mixed_versions(totals: ScorerTotals, versions: Versions) -> str | None:
    """Why the scores of one name in one experiment come from several functions; None when they do not.

    Of a value that was submitted beside computed ones, or stored before versions were kept, nobody knows what made it.
    """
    known = sum(one.score_count + one.label_count for one in versions.values())
    parts = [key.shown for key in versions]
    if versions and totals.score_count + totals.label_count > known:
        parts.append("an unknown version")
    return None if len(parts) < 2 else f"scores of {', '.join(parts[:-1])} and {parts[-1]}"


def mixed_options(versions: Versions) -> str | None:
    """Why the scores come from one function with several options; None when they do not."""
    for key, totals in versions.items():
        if totals.options_differ:
            return f"scores of {key.shown} with several options"
    return None


def why_mixed(totals: ScorerTotals, versions: Versions) -> str | None:
    """Why the scores are no single measure; None when they are: one version with one set of options, or values that
    were all submitted."""
    return mixed_versions(totals, versions) or mixed_options(versions)


class Computed(NamedTuple):
    """What these totals need of one new score."""

    value: float | str
    options: str


def with_computed(before: VersionTotals, scores: Iterable[Computed]) -> VersionTotals:
    """The totals with more scores counted in."""
    count, total, low, high, labels, options, differ = before
    for score in scores:
        options = options or score.options
        differ = differ or int(score.options != options)
        if isinstance(score.value, str):
            labels += 1
            continue
        count, total = count + 1, EXACT.add(total, decimal_of(score.value))
        low = score.value if low is None or score.value < low else low
        high = score.value if high is None or score.value > high else high
    return VersionTotals(count, total, low, high, labels, options, differ)


def add_to_versions(connection: Connection, scores: Mapping[VersionKey, Sequence[Computed]]) -> None:
    """Count new scores in; in the transaction that stores them."""
    stored = version_totals(
        connection, sorted({key.experiment_id for key in scores}), sorted({key.scorer_name for key in scores})
    )
    rows = []
    for key in sorted(scores):
        after = with_computed(stored.get(key, VersionTotals()), scores[key])
        rows.append(version_row(key, after))
    connection.run_many(UPSERT_VERSION, rows)


def version_row(key: VersionKey, totals: VersionTotals) -> tuple[str | int | float | None, ...]:
    """The values of `UPSERT_VERSION`."""
    return (
        *key, totals.score_count, str(totals.total), totals.minimum, totals.maximum, totals.label_count,
        totals.options, totals.options_differ,
    )  # fmt: skip


def version_totals(
    connection: Connection, experiment_ids: Sequence[str], scorer_names: Sequence[str] | None = None
) -> dict[VersionKey, VersionTotals]:
    """The totals of every version (or of those of the scorers named) in the experiments, in order."""
    select = f"SELECT {_COLUMNS} FROM version_totals WHERE experiment_id IN [?]"  # noqa: S608  constant columns
    if scorer_names is None:
        rows = connection.all(select, experiment_ids)
    else:
        rows = connection.all(f"{select} AND scorer_name IN [?]", experiment_ids, scorer_names)
    return {VersionKey(*row[:4]): VersionTotals(row[4], Decimal(row[5]), *row[6:]) for row in sorted(rows)}


def versions_by_scorer(
    connection: Connection, experiment_id: str, scorer_names: Sequence[str] | None = None
) -> dict[str, dict[VersionKey, VersionTotals]]:
    """One experiment's, by the name that requests gave the scorer."""
    found: dict[str, dict[VersionKey, VersionTotals]] = {}
    for key, totals in version_totals(connection, [experiment_id], scorer_names).items():
        found.setdefault(key.scorer_name, {})[key] = totals
    return found

"""A project at a glance."""

from datetime import datetime, timedelta
from fractions import Fraction

from evenhand.core.objects.project_summary import (
    CompletedExperiment,
    ExperimentCounts,
    ProjectSummary,
    QueueCounts,
    TraceCounts,
    TraceWindows,
)
from evenhand.core.spans import dollars, microseconds
from evenhand.core.timestamps import now
from evenhand.store.connection import Connection
from evenhand.store.totals import scorer_totals
from evenhand.store.trace_totals import totals_between
from evenhand.store.traces import key_from
from evenhand.store.versions import versions_by_scorer, why_mixed


def summarise_project(
    connection: Connection, project_id: str, instant: datetime | None = None
) -> ProjectSummary:
    """Counts as of now; the caller has checked that the project is there."""
    moment = instant or now()
    return ProjectSummary(
        project_id=project_id,
        traces=TraceWindows(
            last_24h=_traces_since(connection, project_id, moment - timedelta(hours=24)),
            last_7d=_traces_since(connection, project_id, moment - timedelta(days=7)),
        ),
        experiments=_experiments(connection, project_id),
        queue=queue_counts(connection, project_id),
    )


def _traces_since(connection: Connection, project_id: str, start: datetime) -> TraceCounts:
    found = totals_between(connection, project_id, key_from(microseconds(start) // 1000))
    count, errors, calls = found.trace_count, found.failed_count, found.cost_known + found.cost_unknown
    return TraceCounts(
        count=count,
        error_count=errors,
        error_rate=round(errors / count, 3) if count else 0.0,
        avg_duration_ms=round(found.duration_ms / found.timed_count, 3) if found.timed_count else None,
        tokens=found.tokens,
        cost_usd=dollars(found.total_pico) if found.cost_known else None,
        cost_known_share=round(found.cost_known / calls, 3) if calls else None,
    )


def _experiments(connection: Connection, project_id: str) -> ExperimentCounts:
    counts: dict[str, int] = dict(
        connection.all(
            "SELECT status, COUNT(*) FROM experiments WHERE project_id = ? GROUP BY status", project_id
        )
    )
    newest = connection.one(
        "SELECT id, name, completed_at FROM experiments WHERE project_id = ? AND status = 'completed'"
        " ORDER BY completed_at DESC, id DESC LIMIT 1",
        project_id,
    )
    return ExperimentCounts(
        created_count=counts.get("created", 0),
        running_count=counts.get("running", 0),
        completed_count=counts.get("completed", 0),
        most_recent_completed=None
        if newest is None
        else CompletedExperiment(
            id=newest[0], name=newest[1], completed_at=newest[2], mean_scores=_means(connection, newest[0])
        ),
    )


def _means(connection: Connection, experiment_id: str) -> dict[str, float]:
    # A mean over scores that are no single measure says nothing, and there is no room to say so: it is left out.
    versions = versions_by_scorer(connection, experiment_id)
    return {
        name: float(Fraction(totals.total) / totals.score_count)
        for (_, name), totals in sorted(scorer_totals(connection, [experiment_id]).items())
        if totals.score_count and why_mixed(totals, versions.get(name, {})) is None
    }


def queue_counts(connection: Connection, project_id: str) -> QueueCounts:
    """Traces in the review queue, without and with an annotation."""
    row = connection.one(
        "SELECT COUNT(CASE WHEN annotation_count = 0 THEN 1 END), COUNT(CASE WHEN annotation_count > 0 THEN 1 END)"
        " FROM traces WHERE project_id = ? AND queue_key IS NOT NULL",
        project_id,
    )
    assert row is not None
    return QueueCounts(pending_count=row[0], annotated_count=row[1])

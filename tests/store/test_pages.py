"""A page of a list costs what its owner's rows cost, however many rows others have, on both databases."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import psycopg
import pytest
from tests.plans import rows_read, watched_postgres, watched_sqlite
from tests.postgres import PostgresServer

from evenhand.store.annotations import list_annotations, project_of_annotations
from evenhand.store.audit import list_audit
from evenhand.store.backfills import list_backfills
from evenhand.store.connection import Connection, Value
from evenhand.store.database import changing
from evenhand.store.dataset_versions import list_changes, list_item_runs, list_versions
from evenhand.store.datasets import list_datasets, list_items
from evenhand.store.experiments import list_experiments
from evenhand.store.jobs import any_claimable, list_jobs, open_job_count
from evenhand.store.projects import list_projects
from evenhand.store.runs import RunFilter, list_runs
from evenhand.store.score_hours import list_hours, scorers_of_project
from evenhand.store.scores import (
    ScoreFilter,
    lengths_of_runs,
    list_project_scores,
    list_scores,
    scores_of_targets,
)
from evenhand.store.scoring_rules import list_rules
from evenhand.store.targets import Target, TargetName, find_targets
from evenhand.store.tokens import list_tokens
from evenhand.store.trace_marks import mark_of
from evenhand.store.trace_totals import TraceTotals, totals_between
from evenhand.store.traces import TraceFilter, find_trace, get_trace, list_queue, list_traces

INSTANT = "2026-01-01T00:00:00.000Z"
FEW = 60
MANY = 6_000
PAGE = 21
OWNERS = {"a": range(FEW), "many": range(FEW, FEW + MANY), "z": range(FEW + MANY, 2 * FEW + MANY)}
"""The names of three projects, and of one of each other owner; `a` has the oldest rows, `z` the newest."""


def key(n: int) -> str:
    return f"{n:08d}"


class Table(NamedTuple):
    """How a table is filled."""

    columns: str
    row: Callable[[str, int], tuple[Value, ...]]


TABLES = {
    "projects": Table("id, name, created_at", lambda who, n: (f"{who}-{key(n)}", "", "")),
    "tokens": Table(
        "id, name, project_id, role, secret_hash, created_at",
        lambda who, n: (key(n), "", who, "read", "", ""),
    ),
    "datasets": Table(
        "id, project_id, name, version, item_count, created_at, updated_at",
        lambda who, n: (key(n), who, key(n), 2, 0, "", ""),
    ),
    "dataset_items": Table(
        "id, dataset_id, version, input, created_at, removed_in",
        lambda who, n: (key(n), key(OWNERS[who][0]), 1 + n % 2, "1", "", 2 if n % 6 == 0 else None),
    ),
    "dataset_versions": Table(
        "dataset_id, version, added_count, removed_count, item_count, created_at",
        lambda who, n: (key(OWNERS[who][0]), n + 1, 0, 0, 0, ""),
    ),
    "backfills": Table(
        "id, project_id, rule_id, status, position, end_key, trace_count, job_count, created_at, updated_at",
        lambda who, n: (key(n), who, key(OWNERS[who][0]), "completed", "", "", 0, 0, "", ""),
    ),
    "audit_log": Table(
        "id, project_id, actor, action, object_type, object_id, details, created_at",
        lambda who, n: (key(n), who, "", "delete", "", "", "{}", ""),
    ),
    "score_hours": Table(
        "project_id, scorer_name, hour, score_count, total, squares, minimum, maximum, label_count",
        lambda who, n: (who, "s", f"h{key(n)}", 1, 0.0, 0.0, 0.0, (n % 10) / 10, 0),
    ),
    "experiments": Table(
        "id, project_id, name, dataset_id, dataset_version, status, auto_complete, run_count, covered_count, created_at",
        lambda who, n: (key(n), who, "", "", 1, "running", 0, 0, 0, ""),
    ),
    "runs": Table(
        "id, project_id, experiment_id, dataset_item_id, repeat_number, output, created_at",
        lambda who, n: (key(n), who, key(OWNERS[who][0]), key(n), 0, "1", ""),
    ),
    # Of a run each, of the owner's first run, or of a trace's span, which is called the same in every trace.
    "scores": Table(
        "id, project_id, target_type, target_id, trace_key, scorer_name, number, source, created_at",
        lambda who, n: (
            key(n), who, "span" if n % 4 == 2 else "run",
            {2: "root", 0: key(OWNERS[who][0])}.get(n % 4, key(n)), key(n) if n % 4 == 2 else None,
            "s", (n % 11) / 10, "custom", INSTANT,
        ),
    ),
    "traces": Table(
        "trace_key, project_id, id, created_at, root_span_id, root_name, root_duration_ms, metadata, facets, models,"
        " span_count, error_count, tokens, queue_key, annotation_count, started_us",
        lambda who, n: (
            key(n), who, f"trace {n}", "", "root", f"name {n % 7}", float(n % 900), "{}", f'\n["k","{n % 5}"]\n',
            f'\n"m{n % 3}"\n', 1, int(n % 10 == 0), 5, key(n), int(n % 8 == 0), n,
        ),
    ),
    "trace_totals": Table(
        f"project_id, stretch, {', '.join(TraceTotals._fields)}", lambda who, n: (who, key(n), *TraceTotals(1))
    ),
    "trace_marks": Table(
        "project_id, mark, stretch", lambda who, n: (who, mark_of("name", f"name {n % 7}"), key(n))
    ),
    "spans": Table(
        "trace_key, project_id, id, name, start_us, metadata, clock_skew, received_at",
        lambda who, n: (key(n), who, "root", "", n, "{}", 0, ""),
    ),
    "annotations": Table(
        "id, project_id, trace_id, span_id, annotator, created_at",
        lambda who, n: (key(n), who, f"trace {OWNERS[who][0]}", "s" if n % 2 else None, "", ""),
    ),
    "jobs": Table(
        "id, project_id, target_type, target_id, scorer_name, config, status, attempts, open_at, created_at, updated_at",
        lambda who, n: (
            key(n), who, "run", "", "s", "{}", "pending" if who == "a" else "failed", 0, n if who == "a" else None,
            "", "",
        ),
    ),
    "scoring_rules": Table(
        "id, project_id, name, filter, sample_rate, scorer_name, config, created_at, paused",
        lambda who, n: (key(n), who, key(n), "{}", 1.0, "s", "{}", "", 0),
    ),
}  # fmt: skip


def fill(url: str, who: str) -> None:
    with changing(url) as connection:
        for name, table in TABLES.items():
            values = [value for n in OWNERS[who] for value in table.row(who, n)]
            connection.insert_many(name, {}, table.columns.split(", "), values)
        connection.run("INSERT INTO span_blocks (number, span_count) VALUES (0, 1) ON CONFLICT DO NOTHING")


Question = Callable[[Connection, str, str | None], Any]
"""Asked of a connection, for an owner, from a key on."""


def traces(**narrow: Any) -> Question:
    return lambda connection, who, place: list_traces(
        connection, project_id=who, narrow=TraceFilter(**narrow), before=place, limit=PAGE
    )


def runs(**wanted: Any) -> Question:
    return lambda connection, who, place: list_runs(
        connection,
        key(OWNERS[who][0]),
        scope=who,
        wanted=RunFilter(**wanted),
        after=None if place is None else (("0.5", place) if wanted.get("by_value") else (place,)),
        limit=PAGE,
    )


def first_run(who: str) -> Target:
    return Target(type="run", id=key(OWNERS[who][0]), project_id=who)


LISTS: dict[str, Question] = {
    "projects": lambda c, who, place: list_projects(c, scope=f"{who}-{key(3)}", after=place, limit=PAGE),
    "all projects": lambda c, who, place: list_projects(c, scope=None, after=place, limit=PAGE),
    "tokens": lambda c, who, place: list_tokens(c, scope=who, after=place, limit=PAGE),
    "all tokens": lambda c, who, place: list_tokens(c, scope=None, after=place, limit=PAGE),
    "datasets": lambda c, who, place: list_datasets(c, project_id=who, before=place, limit=PAGE),
    "items": lambda c, who, place: list_items(c, key(OWNERS[who][0]), scope=who, after=place, limit=PAGE),
    "items of a version": lambda c, who, place: list_items(
        c, key(OWNERS[who][0]), scope=who, after=place, limit=PAGE, version=1
    ),
    "versions": lambda c, who, place: list_versions(
        c, key(OWNERS[who][0]), scope=who, before=None, limit=PAGE
    ),
    "changes": lambda c, who, place: list_changes(
        c, key(OWNERS[who][0]), scope=who, start=1, end=2, after=None, limit=PAGE
    ),
    "changes further on": lambda c, who, place: list_changes(
        c, key(OWNERS[who][0]), scope=who, start=1, end=2, after=("removed", 2, key(3)), limit=PAGE
    ),
    "runs of an item": lambda c, who, place: list_item_runs(
        c, key(OWNERS[who][0]), scope=who, before=place, limit=PAGE
    ),
    "backfills": lambda c, who, place: list_backfills(
        c, key(OWNERS[who][0]), scope=who, before=place, limit=PAGE
    ),
    "audit": lambda c, who, place: list_audit(c, project_id=who, before=place, limit=PAGE),
    "scores of a project": lambda c, who, place: list_project_scores(
        c, project_id=who, narrow=ScoreFilter(), before=(INSTANT, place) if place else None, limit=PAGE
    ),
    "scores of a scorer": lambda c, who, place: list_project_scores(
        c,
        project_id=who,
        narrow=ScoreFilter(scorer_name="s"),
        before=(INSTANT, place) if place else None,
        limit=PAGE,
    ),
    "scores by value": lambda c, who, place: list_project_scores(
        c,
        project_id=who,
        narrow=ScoreFilter(scorer_name="s", min_value=0.95),
        before=(INSTANT, place) if place else None,
        limit=PAGE,
    ),
    "scores by no value": lambda c, who, place: list_project_scores(
        c, project_id=who, narrow=ScoreFilter(scorer_name="s", min_value=1.0), before=None, limit=PAGE
    ),
    "hours": lambda c, who, place: list_hours(c, project_id=who, scorer_name="s"),
    "scorers": lambda c, who, place: scorers_of_project(c, who),
    "experiments": lambda c, who, place: list_experiments(c, project_id=who, before=place, limit=PAGE),
    "runs": runs(),
    "runs that were scored": runs(scorer_name="s"),
    "runs from a value on": runs(scorer_name="s", min_value=0.5),
    "runs by value": runs(scorer_name="s", by_value=True),
    "runs of no scorer": runs(scorer_name="nobody"),
    "scores": lambda c, who, place: list_scores(
        c, target=first_run(who), scorer_name=None, after=place, limit=PAGE
    ),
    "scores of many": lambda c, who, place: scores_of_targets(
        c, lengths_of_runs(c, [key(n) for n in OWNERS[who][1:PAGE]]), None
    ),
    "traces": traces(),
    "traces before": traces(before=key(FEW // 2)),
    "traces after": traces(after=key(FEW + MANY + FEW // 2)),
    "traces with errors": traces(has_error=True),
    "traces without errors": traces(has_error=False),
    "traces in the queue": traces(in_queue=True),
    "traces outside the queue": traces(in_queue=False),
    "traces by name": traces(name="name 3"),
    "traces of no name": traces(name="nobody"),
    "traces by model": traces(model="m1"),
    "traces by duration": traces(min_duration_ms=500.0),
    "traces by metadata": traces(metadata=(("k", "3"),)),
    "traces by their own time": lambda c, who, place: list_traces(
        c,
        project_id=who,
        narrow=TraceFilter(started_after=OWNERS[who][0], started_before=OWNERS[who][-1]),
        before=None if place is None else f"{int(place)} {place}",
        limit=PAGE,
    ),
    "a trace": lambda c, who, place: get_trace(c, f"trace {OWNERS[who][2]}", scope=who),
    "a trace of any project": lambda c, who, place: find_trace(c, f"trace {OWNERS[who][3]}", scope=None),
    "totals": lambda c, who, place: totals_between(c, who, key(OWNERS[who][0]), key(OWNERS[who][-1])),
    "a span": lambda c, who, place: find_targets(c, [TargetName("span", "root", who)]),
    "queue": lambda c, who, place: list_queue(c, project_id=who, status=None, after=place, limit=PAGE),
    "pending": lambda c, who, place: list_queue(c, project_id=who, status="pending", after=place, limit=PAGE),
    "annotated": lambda c, who, place: list_queue(
        c, project_id=who, status="annotated", after=place, limit=PAGE
    ),
    "annotations": lambda c, who, place: list_annotations(
        c, project_id=who, trace_id=f"trace {OWNERS[who][0]}", span_id=None, after=place, limit=PAGE
    ),
    "annotations of a span": lambda c, who, place: list_annotations(
        c, project_id=who, trace_id=f"trace {OWNERS[who][0]}", span_id="s", after=place, limit=PAGE
    ),
    "annotations of no trace": lambda c, who, place: project_of_annotations(c, "nobody"),
    "jobs": lambda c, who, place: list_jobs(c, project_id=who, status=None, before=place, limit=PAGE),
    "failed jobs": lambda c, who, place: list_jobs(
        c, project_id=who, status="failed", before=place, limit=PAGE
    ),
    "open jobs": lambda c, who, place: (any_claimable(c), open_job_count(c)),
    "rules": lambda c, who, place: list_rules(c, project_id=who, before=place, limit=PAGE),
}
SORTED = {"runs by value", "a trace"}
"""What no index has in order; these read all of their owner's rows."""


def asked() -> Iterator[tuple[str, str, Question, str | None]]:
    for name, question in LISTS.items():
        for who in ("a", "z"):
            for place in (None, key(OWNERS[who][FEW // 2])):
                yield name, who, question, place


@pytest.mark.xdist_group("postgresql")
def test_a_small_project_never_reads_the_rows_of_a_large_one(postgres_server: PostgresServer) -> None:
    """Whatever PostgreSQL believes about the tables, and for plans that are made once for all values."""
    with postgres_server.database() as url, psycopg.connect(url, autocommit=True) as plain:
        fill(url, "a")
        for table in TABLES:
            plain.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)".encode())
        plain.execute("ANALYZE")
        fill(url, "many")
        fill(url, "z")
        assert over_limit(url) == [], "the statistics are from before the large project"
        plain.execute("DELETE FROM pg_statistic WHERE starelid >= 16384")
        plain.execute("UPDATE pg_class SET reltuples = -1, relpages = 0 WHERE oid >= 16384 AND relkind = 'r'")
        assert over_limit(url) == [], "there are no statistics"
        plain.execute("ANALYZE")
        assert over_limit(url) == [], "the statistics are right"


def over_limit(url: str) -> list[tuple[str, str, bool, int]]:
    """The questions that look at a good part of the large owner, with how many."""
    found: list[tuple[str, str, bool, int]] = []
    with watched_postgres(url) as connection:
        for name, who, question, place in asked():
            connection.asked.clear()
            question(connection, who, place)
            for statement in list(connection.asked):
                for generic in (False, True):
                    plan = connection.plan(statement, generic=generic)
                    # Readers take a whole table only where there is no index at all.
                    if rows_read(plan) > MANY / 4 or "Seq Scan" in str(plan):
                        found.append((name, who, generic, rows_read(plan)))
    return found


def test_every_page_comes_from_an_index_of_the_embedded_database(tmp_path: Path) -> None:
    path = tmp_path / "evenhand.db"
    for who in OWNERS:
        fill(f"sqlite:///{path}", who)
    with watched_sqlite(path) as connection:
        for name, who, question, place in asked():
            connection.plans.clear()
            question(connection, who, place)
            assert connection.plans
            for sql, steps in connection.plans:
                assert not [step for step in steps if step.startswith("SCAN ") and "json_each" not in step], (
                    sql
                )
                # An order by the primary key alone would mean to walk over the rows of others.
                if name not in SORTED and " LIMIT " in sql:
                    assert not [step for step in steps if "TEMP B-TREE" in step], (sql, steps)

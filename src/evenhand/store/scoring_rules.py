"""Online scoring rules: which spans get scored as they come in."""

import hashlib
from collections.abc import Callable, Iterable, Sequence

import msgspec
from msgspec import Raw

from evenhand.core.errors import Refusal
from evenhand.core.ids import new_id
from evenhand.core.jsontext import encode_text
from evenhand.core.objects.datasets import Deleted
from evenhand.core.objects.jobs import Rule, RuleFilter
from evenhand.core.spans import SpanRecord
from evenhand.core.timestamps import format_instant, now
from evenhand.store.audit import note_deletion
from evenhand.store.connection import Connection, Row
from evenhand.store.jobs import NewJob
from evenhand.store.pages import LAST, as_cut, bounded_rows, newest_first
from evenhand.store.projects import Scope, not_found

_COLUMNS = "id, project_id, name, filter, sample_rate, scorer_name, config, created_at, paused, updated_at"
_NEWEST_FIRST = newest_first("project_id", "id", limited=False)


def create_rule(
    connection: Connection,
    *,
    project_id: str,
    name: str,
    narrow: RuleFilter,
    sample_rate: float,
    scorer_name: str,
    config: str,
) -> Rule:
    """The project must be there already."""
    if connection.one("SELECT 1 FROM scoring_rules WHERE project_id = ? AND name = ?", project_id, name):
        raise Refusal("CONFLICT", "The project has a rule of this name already.", {"name": name})
    stamp = format_instant(now())
    row: Row = (
        new_id(),
        project_id,
        name,
        encode_text(narrow),
        sample_rate,
        scorer_name,
        config,
        stamp,
        0,
        stamp,
    )
    connection.run(
        f"INSERT INTO scoring_rules ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",  # noqa: S608  constant columns
        *row,
    )
    return _rule(row)


def get_rule(connection: Connection, rule_id: str, *, scope: Scope) -> Rule:
    row = connection.one(f"SELECT {_COLUMNS} FROM scoring_rules WHERE id = ?", rule_id)  # noqa: S608  constant columns
    if row is None or (scope is not None and row[1] != scope):
        raise not_found("rule", rule_id)
    return _rule(row)


def list_rules(connection: Connection, *, project_id: str, before: str | None, limit: int) -> list[Rule]:
    """Newest first."""
    rows = bounded_rows(
        connection,
        _COLUMNS,
        ("filter", "config"),
        f"FROM scoring_rules WHERE {_NEWEST_FIRST}",
        [project_id, before or LAST, project_id],
        limit,
    )
    return as_cut(rows, [_rule(row) for row in rows])


def change_rule(
    connection: Connection, rule_id: str, *, paused: bool | None, sample_rate: float | None, scope: Scope
) -> Rule:
    """Let a rule rest or go on, or change its share; None leaves things as they are."""
    rule = get_rule(connection, rule_id, scope=scope)
    connection.run(
        "UPDATE scoring_rules SET paused = ?, sample_rate = ?, updated_at = ? WHERE id = ?",
        int(rule.paused if paused is None else paused),
        rule.sample_rate if sample_rate is None else sample_rate,
        format_instant(now()),
        rule_id,
    )
    return get_rule(connection, rule_id, scope=scope)


def delete_rule(connection: Connection, rule_id: str, *, scope: Scope, actor: str) -> Deleted:
    """The rule and its backfills; scores and jobs that it asked for stay."""
    rule = get_rule(connection, rule_id, scope=scope)
    connection.run("DELETE FROM scoring_rules WHERE id = ?", rule_id)
    connection.run("DELETE FROM backfills WHERE rule_id = ?", rule_id)
    note_deletion(connection, rule.project_id, actor, "rule", rule_id, {"name": rule.name})
    return Deleted(deleted=True, id=rule_id)


def ask_rules(connection: Connection, project_id: str) -> Callable[[], list[Rule]]:
    """All rules of a project that do not rest, as `Connection.ask` does it."""
    rows = connection.ask(
        f"SELECT {_COLUMNS} FROM scoring_rules WHERE project_id = ? AND paused = 0",  # noqa: S608  constant columns
        project_id,
    )
    return lambda: [_rule(row) for row in rows()]


def jobs_for(rules: Sequence[Rule], spans: Sequence[SpanRecord], keys: dict[str, str]) -> list[NewJob]:
    """One job for each rule and each new span that it matches."""
    return [
        NewJob(
            project_id=rule.project_id,
            target_type="span",
            target_id=span.id,
            trace_key=keys[span.trace_id],
            scorer_name=rule.scorer_name,
            config=bytes(rule.config).decode(),
            rule_id=rule.id,
        )
        for rule in rules
        for span in _matching(rule, spans)
    ]


def _matching(rule: Rule, spans: Iterable[SpanRecord]) -> Iterable[SpanRecord]:
    return (span for span in spans if matches(rule.filter, span) and sampled(span.trace_id, rule.sample_rate))


def sampled(trace_id: str, rate: float) -> bool:
    """Whether a trace is in the sample: the id alone decides, so every span, server and retry agrees.

    A trace in a sample of 10 % is in every larger sample too.
    """
    draw = int.from_bytes(hashlib.sha256(trace_id.encode()).digest()[:8], "big")
    return draw < rate * 2.0**64


def matches(narrow: RuleFilter, span: SpanRecord) -> bool:
    """Whether every field that is given matches."""
    if narrow.name is not None and span.name != narrow.name:
        return False
    if narrow.model is not None and span.model != narrow.model:
        return False
    if narrow.has_error is not None and narrow.has_error != (span.error is not None):
        return False
    if narrow.is_root is not None and narrow.is_root != (span.parent_span_id is None):
        return False
    if narrow.min_duration_ms is not None and (span.duration_ms or 0) < narrow.min_duration_ms:
        return False
    if not narrow.metadata:
        return True
    entries = msgspec.json.decode(span.metadata)
    return all(name in entries and _same(entries[name], value) for name, value in narrow.metadata.items())


def _same(one: object, other: object) -> bool:
    # True == 1 in Python, but not in JSON.
    return one == other and isinstance(one, bool) == isinstance(other, bool)


def _rule(row: Row) -> Rule:
    return Rule(
        id=row[0],
        project_id=row[1],
        name=row[2],
        filter=msgspec.json.decode(row[3], type=RuleFilter),
        sample_rate=row[4],
        scorer_name=row[5],
        config=Raw(row[6].encode()),
        created_at=row[7],
        paused=bool(row[8]),
        updated_at=row[9] or row[7],
    )

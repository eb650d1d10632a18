"""Online scoring rules: spans that match on ingest are scored, without slowing the ingest."""

from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct, field

from evenhand.core.objects.datasets import Deleted
from evenhand.core.objects.jobs import Backfill, Rule, RuleFilter
from evenhand.core.spans import microseconds
from evenhand.server.api.datasets import ProjectQuery
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, Page, json_answer
from evenhand.server.http.fields import Name, instant_given, object_text, trimmed
from evenhand.server.http.paging import Paging, page_of
from evenhand.server.http.routes import Route
from evenhand.server.jobs.computing import run_off_loop
from evenhand.store import scoring_rules as store
from evenhand.store.backfills import (
    Asked,
    cancel_backfill,
    create_backfill,
    get_backfill,
    list_backfills,
)
from evenhand.store.projects import in_project
from evenhand.store.traces import key_from

LISTING = "rules"
BACKFILLS = "backfills"
EVERY = RuleFilter()


class RuleCreate(Struct, frozen=True, kw_only=True):
    """A rule to be made."""

    project_id: Name
    """The project whose spans it scores."""
    name: Name
    """Unique in its project."""
    scorer_name: Name
    """A scorer that the service can run."""
    filter: RuleFilter | None = None
    """Which spans; absent for all."""
    sample_rate: Annotated[float, Meta(ge=0, le=1)] | None = None
    """The share of traces, from 0 to 1 (all, when absent); a trace is in or out by its id alone."""
    config: Raw = field(default_factory=Raw)
    """The scorer's parameters; `expected_output` among them where it needs one."""


class RuleChange(Struct, frozen=True, kw_only=True):
    """What changes about a rule; what is absent or null stays."""

    paused: bool | None = None
    """Whether it rests: spans that come in are not scored."""
    sample_rate: Annotated[float, Meta(ge=0, le=1)] | None = None
    """The share of traces, from 0 to 1."""


class BackfillCreate(Struct, frozen=True, kw_only=True):
    """Which stored traces a rule is applied to; all that are there when nothing is said."""

    after: str | None = None
    """Those that arrived after this instant (ISO 8601)."""
    before: str | None = None
    """Those that arrived before this instant (ISO 8601)."""


async def create(call: Call, body: RuleCreate) -> Answer:
    name = trimmed(body.name, "name")
    config = object_text(body.config, "config") or "{}"
    await run_off_loop(lambda: call.service.scorers.prepare(body.scorer_name, msgspec.json.decode(config)))
    create_rule = partial(
        store.create_rule,
        project_id=body.project_id,
        name=name,
        narrow=body.filter or EVERY,
        sample_rate=1.0 if body.sample_rate is None else body.sample_rate,
        scorer_name=body.scorer_name,
        config=config,
    )
    return await call.write(partial(in_project, owner=call.owner(body.project_id), work=create_rule))


async def list_all(call: Call, query: ProjectQuery) -> Answer:
    project_id = call.listed_project(query.project_id)
    limit, after = query.checked_limit(), query.after(LISTING)
    rows = await call.read(
        lambda connection: store.list_rules(
            connection, project_id=project_id, before=after[0] if after else None, limit=limit + 1
        )
    )
    return json_answer(page_of(rows, limit, LISTING, lambda rule: (rule.id,)))


async def get(call: Call) -> Answer:
    rule_id = call.params["rule_id"]
    return json_answer(
        await call.read(lambda connection: store.get_rule(connection, rule_id, scope=call.scope))
    )


async def change(call: Call, body: RuleChange) -> Answer:
    return await call.write(
        partial(
            store.change_rule,
            rule_id=call.params["rule_id"],
            paused=body.paused,
            sample_rate=body.sample_rate,
            scope=call.scope,
        )
    )


async def delete(call: Call) -> Answer:
    rule_id = call.params["rule_id"]
    return await call.write(
        partial(store.delete_rule, rule_id=rule_id, scope=call.scope, actor=call.access.token_id)
    )


async def start_backfill(call: Call, body: BackfillCreate) -> Answer:
    start = None if body.after is None else instant_given("after", body.after)
    end = None if body.before is None else instant_given("before", body.before)
    asked = Asked(
        rule_id=call.params["rule_id"],
        start_key="" if start is None else key_from(microseconds(start) // 1000 + 1),
        end_key=None if end is None else key_from(-(-microseconds(end) // 1000)),
    )
    answer = await call.write(partial(create_backfill, asked=asked, scope=call.scope))
    call.service.wake_backfills()
    return answer


async def backfills(call: Call, query: Paging) -> Answer:
    rule_id = call.params["rule_id"]
    limit, after = query.checked_limit(), query.after(BACKFILLS)
    rows = await call.read(
        lambda connection: list_backfills(
            connection, rule_id, scope=call.scope, before=after[0] if after else None, limit=limit + 1
        )
    )
    return json_answer(page_of(rows, limit, BACKFILLS, lambda backfill: (backfill.id,)))


async def backfill(call: Call) -> Answer:
    rule_id, backfill_id = call.params["rule_id"], call.params["backfill_id"]
    return json_answer(
        await call.read(
            lambda connection: get_backfill(connection, backfill_id, scope=call.scope, rule_id=rule_id)
        )
    )


async def cancel(call: Call) -> Answer:
    rule_id, backfill_id = call.params["rule_id"], call.params["backfill_id"]
    return await call.write(
        partial(cancel_backfill, rule_id=rule_id, backfill_id=backfill_id, scope=call.scope)
    )


ROUTES = (
    Route(
        operation="create_rule",
        method="POST",
        path="/v1/rules",
        handler=create,
        audience="token:write",
        request=RuleCreate,
        response=Rule,
        status=201,
        errors=("NOT_FOUND", "CONFLICT", "INVALID_SCORER_CONFIG"),
        summary="Have matching spans scored as they come in",
        tag="Rules",
    ),
    Route(
        operation="list_rules",
        method="GET",
        path="/v1/rules",
        handler=list_all,
        audience="token:read",
        query=ProjectQuery,
        response=Page[Rule],
        errors=("PROJECT_REQUIRED", "NOT_FOUND"),
        summary="List a project's rules, newest first",
        tag="Rules",
    ),
    Route(
        operation="get_rule",
        method="GET",
        path="/v1/rules/{rule_id}",
        handler=get,
        audience="token:read",
        response=Rule,
        errors=("NOT_FOUND",),
        summary="Read a rule",
        tag="Rules",
    ),
    Route(
        operation="delete_rule",
        method="DELETE",
        path="/v1/rules/{rule_id}",
        handler=delete,
        audience="token:write",
        response=Deleted,
        errors=("NOT_FOUND",),
        summary="Delete a rule; its scores stay",
        tag="Rules",
    ),
    Route(
        operation="update_rule",
        method="PATCH",
        path="/v1/rules/{rule_id}",
        handler=change,
        audience="token:write",
        request=RuleChange,
        response=Rule,
        errors=("NOT_FOUND",),
        summary="Pause a rule, let it go on, or change its share",
        tag="Rules",
    ),
    Route(
        operation="create_backfill",
        method="POST",
        path="/v1/rules/{rule_id}/backfills",
        handler=start_backfill,
        audience="token:write",
        request=BackfillCreate,
        response=Backfill,
        status=201,
        errors=("NOT_FOUND",),
        summary="Apply a rule to spans that are stored already",
        tag="Rules",
    ),
    Route(
        operation="list_backfills",
        method="GET",
        path="/v1/rules/{rule_id}/backfills",
        handler=backfills,
        audience="token:read",
        query=Paging,
        response=Page[Backfill],
        errors=("NOT_FOUND",),
        summary="List a rule's backfills, newest first",
        tag="Rules",
    ),
    Route(
        operation="get_backfill",
        method="GET",
        path="/v1/rules/{rule_id}/backfills/{backfill_id}",
        handler=backfill,
        audience="token:read",
        response=Backfill,
        errors=("NOT_FOUND",),
        summary="Read a backfill: how far it is",
        tag="Rules",
    ),
    Route(
        operation="cancel_backfill",
        method="DELETE",
        path="/v1/rules/{rule_id}/backfills/{backfill_id}",
        handler=cancel,
        audience="token:write",
        response=Backfill,
        errors=("NOT_FOUND",),
        summary="Stop a backfill; jobs that it made stay",
        tag="Rules",
    ),
)

"""Online scoring rules: spans that match on ingest are scored, without slowing the ingest."""

from functools import partial
from typing import Annotated

import msgspec
from msgspec import Meta, Raw, Struct, field

from evenhand.core.objects.datasets import Deleted
from evenhand.core.objects.jobs import Rule, RuleFilter
from evenhand.server.api.datasets import ProjectQuery
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, Page, json_answer
from evenhand.server.http.fields import Name, object_text, trimmed
from evenhand.server.http.paging import page_of
from evenhand.server.http.routes import Route
from evenhand.server.jobs.computing import run_off_loop
from evenhand.store import scoring_rules as store
from evenhand.store.projects import in_project

LISTING = "rules"
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


async def delete(call: Call) -> Answer:
    rule_id = call.params["rule_id"]
    return await call.write(partial(store.delete_rule, rule_id=rule_id, scope=call.scope))


ROUTES = (
    Route(
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
        method="DELETE",
        path="/v1/rules/{rule_id}",
        handler=delete,
        audience="token:write",
        response=Deleted,
        errors=("NOT_FOUND",),
        summary="Delete a rule; its scores stay",
        tag="Rules",
    ),
)

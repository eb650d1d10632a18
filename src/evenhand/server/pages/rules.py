"""Online rules: which spans are scored as they arrive, at which rate; pause, backfill."""

from collections.abc import Sequence
from functools import partial
from typing import Annotated, ClassVar

import msgspec
from msgspec import Meta, Struct

from evenhand.core.errors import Refusal
from evenhand.core.objects.jobs import Backfill, Rule, RuleFilter
from evenhand.core.timestamps import now
from evenhand.reports.numbers import percent
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.http.paging import make_cursor, read_cursor
from evenhand.server.jobs.computing import run_off_loop
from evenhand.server.pages.frame import (
    ListQuery,
    NoFields,
    PageContext,
    age_of,
    form_route,
    here_of,
    page_route,
    redirect,
    respond,
)
from evenhand.server.pages.grid import Cell, Column, Grid, Row
from evenhand.server.pages.links import project_path
from evenhand.server.pages.values import formatted
from evenhand.store import scoring_rules as store
from evenhand.store.backfills import Asked, create_backfill, list_backfills
from evenhand.store.connection import Connection
from evenhand.store.pages import has_more
from evenhand.store.projects import in_project

LISTING = "rules page"
PAGE_ROWS = 50


class RulesQuery(ListQuery, frozen=True, kw_only=True):
    """Where the page of the list starts, and whether the form is open."""

    new: bool = False
    """The form for a new rule is open."""


class RuleCard(Struct, frozen=True, kw_only=True):
    """A rule as the page shows it."""

    rule: Rule
    spans: str
    """Which spans, in words."""
    config: str
    """Its parameters as text; empty for none."""
    age: str
    rate: str
    backfill: Backfill | None
    """The newest one."""
    path: str


class RulesPage(PageContext, frozen=True, kw_only=True):
    """A page of the list, and the form for a new rule."""

    template: ClassVar[str] = "rules.html"
    section: ClassVar[str] = "rules"

    rules: Sequence[RuleCard]
    scorers: Sequence[str]
    new: bool
    next: str
    first: str
    path: str

    def table(self) -> Grid:
        names = ("Name", "State", "Scorer", "Scores", "Rate", "Parameters", "Backfill", "Made at")
        return Grid(
            caption="Online rules, newest first",
            columns=[Column(name=name) for name in names],
            rows=[Row(cells=_cells(card)) for card in self.rules],
        )


def _cells(card: RuleCard) -> list[Cell]:
    rule = card.rule
    return [
        Cell(text=rule.name),
        Cell(text="paused" if rule.paused else "on"),
        Cell(text=rule.scorer_name),
        Cell(text=card.spans),
        Cell(value=rule.sample_rate),
        Cell(text=card.config),
        Cell(text=card.backfill.status if card.backfill else ""),
        Cell(text=rule.created_at),
    ]


async def rules(call: Call, query: RulesQuery) -> Answer:
    project_id = call.params["project_id"]
    moment = now()
    start = read_cursor(query.cursor, LISTING, 1)[0] if query.cursor else None
    here = here_of(call, query)
    names = sorted(call.service.scorers.names)

    def work(connection: Connection) -> RulesPage:
        found = store.list_rules(connection, project_id=project_id, before=start, limit=PAGE_ROWS + 1)
        more = has_more(found, PAGE_ROWS)
        cards = []
        for rule in found[:PAGE_ROWS]:
            backfills = list_backfills(connection, rule.id, scope=project_id, before=None, limit=1)
            config = msgspec.json.decode(bytes(rule.config))
            cards.append(
                RuleCard(
                    rule=rule,
                    spans=in_words(rule.filter),
                    config=formatted(config) if config else "",
                    age=age_of(rule.created_at, moment),
                    rate=percent(rule.sample_rate),
                    backfill=backfills[0] if backfills else None,
                    path=project_path(project_id, "rules", rule.id),
                )
            )
        return RulesPage(
            title="Online rules",
            here=here,
            rules=cards,
            scorers=names,
            new=query.new,
            next=here(cursor=make_cursor(LISTING, [found[:PAGE_ROWS][-1].id])) if more else "",
            first=here() if query.cursor else "",
            path=project_path(project_id, "rules"),
        )

    return await respond(call, work, query)


def in_words(narrow: RuleFilter) -> str:
    """Which spans a rule is for."""
    parts = []
    if narrow.name is not None:
        parts.append(f"named {narrow.name}")
    if narrow.model is not None:
        parts.append(f"of model {narrow.model}")
    if narrow.is_root is not None:
        parts.append("that are roots" if narrow.is_root else "that are no roots")
    if narrow.has_error is not None:
        parts.append("that failed" if narrow.has_error else "that did not fail")
    if narrow.min_duration_ms is not None:
        parts.append(f"that took at least {narrow.min_duration_ms:g} ms")
    parts += [f"with {key} = {value}" for key, value in narrow.metadata.items()]
    return f"spans {', '.join(parts)}" if parts else "every span"


class RuleForm(Struct, frozen=True, kw_only=True):
    """A new rule."""

    name: str
    scorer_name: str
    config: str = ""
    """JSON."""
    percent: Annotated[float, Meta(ge=0, le=100)] = 100.0
    span_name: str = ""
    model: str = ""
    only: str = ""
    """`roots`, `errors` or nothing."""


async def create(call: Call, form: RuleForm) -> Answer:
    project_id = call.params["project_id"]
    name = form.name.strip()
    if not name or len(name) > 500:
        raise Refusal("INVALID_REQUEST", "A rule needs a name of at most 500 characters.", {"field": "name"})
    config = form.config.strip() or "{}"
    try:
        given = msgspec.json.decode(config, type=dict)
    except (msgspec.DecodeError, msgspec.ValidationError):
        raise Refusal(
            "INVALID_SCORER_CONFIG", "The parameters are not a JSON object.", {"field": "config"}
        ) from None
    await run_off_loop(lambda: call.service.scorers.prepare(form.scorer_name, given))
    narrow = RuleFilter(
        name=form.span_name or None,
        model=form.model or None,
        is_root=True if form.only == "roots" else None,
        has_error=True if form.only == "errors" else None,
    )
    create_rule = partial(
        store.create_rule,
        project_id=project_id,
        name=name,
        narrow=narrow,
        sample_rate=form.percent / 100,
        scorer_name=form.scorer_name,
        config=config,
    )
    await call.service.database.write(partial(in_project, owner=call.owner(project_id), work=create_rule))
    return await redirect(call, project_path(project_id, "rules"), f"Rule “{name[:60]}” made.")


class RuleChange(Struct, frozen=True, kw_only=True):
    """What changes about a rule."""

    paused: bool | None = None
    percent: Annotated[float, Meta(ge=0, le=100)] | None = None


async def change(call: Call, form: RuleChange) -> Answer:
    project_id = call.params["project_id"]
    done = await call.service.database.write(
        partial(
            store.change_rule,
            rule_id=call.params["rule_id"],
            paused=form.paused,
            sample_rate=None if form.percent is None else form.percent / 100,
            scope=project_id,
        )
    )
    said = "rests now" if done.paused else f"scores {percent(done.sample_rate)} of traces"
    return await redirect(call, project_path(project_id, "rules"), f"Rule “{done.name[:60]}” {said}.")


async def backfill(call: Call, form: NoFields) -> Answer:
    project_id = call.params["project_id"]
    asked = Asked(rule_id=call.params["rule_id"], start_key="", end_key=None)
    await call.service.database.write(partial(create_backfill, asked=asked, scope=project_id))
    call.service.wake_backfills()
    return await redirect(call, project_path(project_id, "rules"), "The rule is applied to what is stored.")


async def delete(call: Call, form: NoFields) -> Answer:
    project_id = call.params["project_id"]
    await call.service.database.write(
        partial(
            store.delete_rule, rule_id=call.params["rule_id"], scope=project_id, actor=call.access.token_id
        )
    )
    return await redirect(call, project_path(project_id, "rules"), "Rule deleted; its scores stay.")


_RULES = "/projects/{project_id}/rules"
ROUTES = (
    page_route(_RULES, rules, query=RulesQuery, summary="Online rules"),
    form_route(_RULES, create, RuleForm, summary="Make a rule"),
    form_route(f"{_RULES}/{{rule_id}}", change, RuleChange, summary="Pause a rule, or change its rate"),
    form_route(f"{_RULES}/{{rule_id}}/backfill", backfill, NoFields, summary="Apply a rule to stored spans"),
    form_route(f"{_RULES}/{{rule_id}}/delete", delete, NoFields, summary="Delete a rule"),
)

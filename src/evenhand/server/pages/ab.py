"""A/B reports: of two experiments, or of an uploaded `analysis.json`. The sections are those of `evenhand ab analyze`."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct

from evenhand.core.errors import InputError, Refusal
from evenhand.core.objects.ab_reports import StoredReport
from evenhand.core.objects.experiments import Experiment
from evenhand.core.timestamps import now
from evenhand.reports.components import Section
from evenhand.reports.numbers import counted
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.http.forms import Upload
from evenhand.server.http.paging import make_cursor, read_cursor
from evenhand.server.pages.ab_records import MOST_RUNS, SOLVED, Arms, Reports, read_arms, why_not
from evenhand.server.pages.frame import (
    Crumb,
    ListPage,
    ListQuery,
    NoFields,
    PageContext,
    PageQuery,
    age_of,
    form_route,
    here_of,
    page_route,
    person_of,
    redirect,
    respond,
)
from evenhand.server.pages.grid import Cell, Column, Grid, Row
from evenhand.server.pages.links import Here, project_path
from evenhand.store import ab_reports as store
from evenhand.store.connection import Connection
from evenhand.store.experiments import get_experiment, list_experiments
from evenhand.store.writer import Work

if TYPE_CHECKING:
    from evenhand.ab.report import AbReport

LISTING = "A/B reports page"
PAGE_ROWS = 50
MAX_FILE = 2 * 1024 * 1024
"""Bytes of an uploaded file: one that `evenhand ab analyze` wrote has some ten thousand."""
MAX_TEXT = 300


class ReportsQuery(ListQuery, frozen=True, kw_only=True):
    """Which part of the list."""


class ReportsPage(ListPage, frozen=True, kw_only=True):
    """The uploaded reports, and what makes another."""

    template: ClassVar[str] = "ab_reports.html"
    section: ClassVar[str] = "ab"

    experiments: Sequence[Experiment]
    """To choose two from."""
    path: str
    """The page's own address."""


async def reports(call: Call, query: ReportsQuery) -> Answer:
    project_id, moment = call.params["project_id"], now()
    start = read_cursor(query.cursor, LISTING, 1)[0] if query.cursor else None
    here = here_of(call, query)

    def work(connection: Connection) -> ReportsPage:
        found = store.list_reports(connection, project_id=project_id, before=start, limit=PAGE_ROWS + 1)
        shown = found[:PAGE_ROWS]
        return ReportsPage(
            title="A/B reports",
            here=here,
            grid=_grid(shown, project_id, moment),
            experiments=list_experiments(connection, project_id=project_id, before=None, limit=PAGE_ROWS),
            path=project_path(project_id, "ab"),
            next=here(cursor=make_cursor(LISTING, [shown[-1].id])) if len(found) > PAGE_ROWS else "",
            first=here() if query.cursor else "",
        )

    return await respond(call, work, query)


def _grid(found: Sequence[StoredReport], project_id: str, moment: datetime) -> Grid:
    columns = [
        Column(name="Arms", kind="cut"),
        Column(name="Decision"),
        Column(name="Runs", kind="num"),
        Column(name="Uploaded by"),
        Column(name="Age", kind="num", order="descending"),
    ]
    rows = [
        Row(
            href=project_path(project_id, "ab", one.id),
            cells=[
                Cell(text=one.title),
                Cell(text=one.decision[:60], value=one.decision),
                Cell(text=f"{one.run_count:,}", value=one.run_count),
                Cell(text=one.made_by),
                Cell(text=age_of(one.created_at, moment), instant=one.created_at, value=one.created_at),
            ],
        )
        for one in found
    ]
    return Grid(caption="Uploaded A/B reports, newest first", columns=columns, rows=rows)


class AbPage(PageContext, frozen=True, kw_only=True):
    """One report."""

    template: ClassVar[str] = "ab.html"
    section: ClassVar[str] = "ab"

    sections: Sequence[Section]
    """The report; empty where there is none."""
    facts: Sequence[str]
    """Short words under the title."""
    trouble: str = ""
    """Why there is no report."""
    notes: Sequence[str] = ()
    """What is not in it."""
    arms: Arms | None = None
    """Of two experiments: what says what success is."""
    compare: str = ""
    """Of two experiments: the address of their comparison."""
    swap: str = ""
    """Of two experiments: the address with the arms swapped."""
    remove: str = ""
    """Of an uploaded report: where it is deleted."""


async def report(call: Call, query: PageQuery) -> Answer:
    ids = [call.params["report_id"]]
    work = await open_report(call, call.params["project_id"], ids, query, here_of(call, query))
    return await respond(call, work, query)


async def open_report(
    call: Call, project_id: str, ids: Sequence[str], query: PageQuery, here: Here
) -> Work[AbPage]:
    """What reads the page of an uploaded report, in its project or behind a share link."""
    from evenhand.ab.report import read_analysis  # numpy: not needed to start
    from evenhand.reports.ab import ab_facts, ab_sections

    [report_id] = ids
    kept, content = await call.read(
        lambda connection: store.get_report(connection, report_id, project_id=project_id)
    )
    found = read_analysis(content.encode())
    page = AbPage(
        title=kept.title,
        here=here,
        crumbs=(Crumb("A/B reports", project_path(project_id, "ab")),),
        shared_as=("ab", report_id),
        sections=ab_sections(found),
        facts=[*ab_facts(found), f"uploaded by {kept.made_by}", f"analysed {found.generated_at_utc[:40]}"],
        notes=[
            "analysis.json has no single runs: pictures of tasks and runs are in the page that --html writes."
        ],
        remove=project_path(project_id, "ab", report_id, "delete"),
    )
    return lambda connection: page


class UploadForm(Struct, frozen=True, kw_only=True):
    """An `analysis.json`."""

    file: Upload | None = None
    """Its content."""


async def upload(call: Call, form: UploadForm) -> Answer:
    project_id = call.params["project_id"]
    content = b"" if form.file is None else form.file.content
    if not content.strip():
        raise Refusal("INVALID_REQUEST", "Choose the analysis.json that `evenhand ab analyze` wrote.")
    if len(content) > MAX_FILE:
        raise Refusal(
            "PAYLOAD_TOO_LARGE", f"The file has {len(content):,} bytes; at most {MAX_FILE:,} are taken."
        )
    found, title = await asyncio.to_thread(_checked, content)
    made = await call.service.database.write(
        partial(
            store.keep_report,
            project_id=project_id,
            title=title,
            decision=found.decision[:MAX_TEXT],
            run_count=found.run_count,
            content=content.decode(),
            made_by=person_of(call.access),
        )
    )
    return await redirect(call, project_path(project_id, "ab", made.id), "The report was uploaded.")


def _checked(content: bytes) -> "tuple[AbReport, str]":
    """The report and its title. It is drawn once, so that nothing is stored that no page could show."""
    from evenhand.ab.report import read_analysis
    from evenhand.reports.ab import ab_sections, ab_title

    if b"\x00" in content or b"\\u0000" in content:
        raise InputError("this is no analysis.json: it has the character NUL")
    found = read_analysis(content)
    ab_sections(found)
    return found, ab_title(found)[:MAX_TEXT]


async def delete(call: Call, form: NoFields) -> Answer:
    project_id = call.params["project_id"]
    gone = await call.service.database.write(
        partial(
            store.delete_report,
            report_id=call.params["report_id"],
            project_id=project_id,
            actor=call.access.token_id,
        )
    )
    return await redirect(call, project_path(project_id, "ab"), f"“{gone.title[:60]}” was deleted.")


class ArmsQuery(PageQuery, frozen=True, kw_only=True):
    """Which experiments, and what success is."""

    scorer: str = ""
    """The scorer that says it."""


class ChosenArms(Struct, frozen=True, kw_only=True):
    """The experiments that were chosen."""

    control: str = ""
    treatment: str = ""


async def choose_arms(call: Call, query: ChosenArms) -> Answer:
    """Go on to the report of two experiments."""
    project_id = call.params["project_id"]
    if not query.control or not query.treatment or query.control == query.treatment:
        return await redirect(call, project_path(project_id, "ab"), "Choose two different experiments.")
    return await redirect(call, project_path(project_id, "ab", query.control, query.treatment))


_KEPT = Reports()


async def arms_report(call: Call, query: ArmsQuery) -> Answer:
    from evenhand.reports.ab import ab_facts, ab_sections  # numpy: not needed to start

    project_id = call.params["project_id"]
    control_id, treatment_id = call.params["control_id"], call.params["treatment_id"]

    def read(connection: Connection) -> Arms:
        control = get_experiment(connection, control_id, scope=project_id)
        treatment = get_experiment(connection, treatment_id, scope=project_id)
        return read_arms(connection, control, treatment, query.scorer, project_id)

    arms = await call.search(read)
    trouble = why_not(arms)
    found = None if trouble else await asyncio.to_thread(_KEPT.of, arms)
    page = AbPage(
        title=f"{arms.treatment} against {arms.control}",
        here=here_of(call, query),
        crumbs=(Crumb("A/B reports", project_path(project_id, "ab")),),
        sections=[] if found is None else ab_sections(found),
        facts=[] if found is None else ab_facts(found),
        trouble=trouble,
        notes=_left_out(arms),
        arms=arms,
        compare=project_path(project_id, "compare", control_id, treatment_id),
        swap=project_path(project_id, "ab", treatment_id, control_id),
    )
    return await respond(call, lambda connection: page, query)


def _left_out(arms: Arms) -> list[str]:
    notes = []
    if arms.scorer:
        notes.append(f"Success: {arms.scorer} is at least {SOLVED:g}.")
    if arms.unscored:
        notes.append(
            f"{counted(arms.unscored, 'run')} without a number of {arms.scorer or 'a scorer'} left out."
        )
    if arms.undated:
        notes.append(f"{counted(arms.undated, 'run')} without a known duration left out.")
    if arms.cut:
        notes.append(f"Only the first {MOST_RUNS:,} runs of an experiment are read here.")
    return notes


_AB = "/projects/{project_id}/ab"
ROUTES = (
    page_route(_AB, reports, query=ReportsQuery, summary="A/B reports"),
    page_route(f"{_AB}/of", choose_arms, query=ChosenArms, summary="Choose two experiments as arms"),
    form_route(_AB, upload, UploadForm, summary="Upload an analysis.json"),
    page_route(f"{_AB}/{{report_id}}", report, query=PageQuery, summary="An uploaded A/B report"),
    form_route(f"{_AB}/{{report_id}}/delete", delete, NoFields, summary="Delete an uploaded A/B report"),
    page_route(
        f"{_AB}/{{control_id}}/{{treatment_id}}",
        arms_report,
        query=ArmsQuery,
        summary="Two experiments as the arms of an A/B comparison",
    ),
)

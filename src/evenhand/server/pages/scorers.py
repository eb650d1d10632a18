"""The scorers that this server knows: what each measures, its version and its options."""

from typing import ClassVar

import msgspec

from evenhand.core.errors import Refusal
from evenhand.core.objects.scorers import ScorerInfo
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.jobs.computing import run_off_loop
from evenhand.server.pages.frame import Crumb, PageContext, PageQuery, here_of, page_route, respond
from evenhand.server.pages.grid import Cell, Column, Grid, Row
from evenhand.server.pages.links import project_path
from evenhand.server.pages.values import Shown, show_value


class ScorersPage(PageContext, frozen=True, kw_only=True):
    """Every scorer."""

    template: ClassVar[str] = "scorers.html"
    section: ClassVar[str] = "scorers"

    grid: Grid

    def table(self) -> Grid:
        return self.grid


class ScorerPage(PageContext, frozen=True, kw_only=True):
    """One scorer."""

    template: ClassVar[str] = "scorer.html"
    section: ClassVar[str] = "scorers"

    scorer: ScorerInfo
    options: Shown
    agreement: str


async def scorers(call: Call, query: PageQuery) -> Answer:
    project_id = call.params["project_id"]
    infos = await run_off_loop(call.service.scorers.infos)
    grid = Grid(
        caption="Scorers by name",
        columns=[
            Column(name="Scorer"),
            Column(name="Version"),
            Column(name="Measures", kind="cut"),
            Column(name="Needs an expected output"),
            Column(name="Runs"),
        ],
        rows=[
            Row(
                href=project_path(project_id, "scorers", one.name),
                cells=[
                    Cell(text=one.name),
                    Cell(text=one.version or "—"),
                    Cell(text=one.summary or "—"),
                    Cell(text={True: "yes", False: "no", None: "—"}[one.needs_expected_output]),
                    Cell(text=_runs(one)),
                ],
            )
            for one in infos
        ],
    )
    page = ScorersPage(title="Scorers", here=here_of(call, query), grid=grid)
    return await respond(call, lambda _: page, query)


def _runs(one: ScorerInfo) -> str:
    if not one.enabled:
        return "not enabled here"
    return "as a job" if one.runs_as_job else "at once"


async def scorer(call: Call) -> Answer:
    project_id, name = call.params["project_id"], call.params["scorer_name"]
    infos = await run_off_loop(call.service.scorers.infos)
    found = next((one for one in infos if one.name == name), None)
    if found is None:
        raise Refusal("NOT_FOUND", f"There is no scorer '{name[:200]}'.")
    page = ScorerPage(
        title=found.name,
        here=here_of(call),
        crumbs=(Crumb("Scorers", project_path(project_id, "scorers")),),
        scorer=found,
        options=show_value(None if found.options is None else msgspec.json.encode(found.options), full=True),
        agreement=project_path(project_id, "agreement"),
    )
    return await respond(call, lambda _: page)


_SCORERS = "/projects/{project_id}/scorers"
ROUTES = (
    page_route(_SCORERS, scorers, query=PageQuery, summary="The scorers"),
    page_route(f"{_SCORERS}/{{scorer_name}}", scorer, summary="A scorer"),
)

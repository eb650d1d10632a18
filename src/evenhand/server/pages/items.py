"""The history of a dataset item: every experiment that ran it, a dot for each repeat."""

from collections.abc import Sequence
from typing import ClassVar

from msgspec import Struct

from evenhand.core.objects.datasets import Dataset, DatasetItem
from evenhand.core.objects.experiments import ItemRun
from evenhand.reports.numbers import number
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer
from evenhand.server.pages.frame import Crumb, PageContext, PageQuery, here_of, page_route, respond
from evenhand.server.pages.grid import Cell, Column, Grid, Row
from evenhand.server.pages.links import project_path
from evenhand.server.pages.values import Shown, one_line, show_value
from evenhand.store.connection import Connection
from evenhand.store.dataset_versions import list_item_runs
from evenhand.store.datasets import get_dataset, get_item
from evenhand.store.pages import has_more

MAX_RUNS = 500


class ItemQuery(PageQuery, frozen=True, kw_only=True):
    """What is shown of an item."""

    scorer: str = ""
    """The scorer whose values are the dots; the most common one when empty."""


class Attempt(Struct, frozen=True, kw_only=True):
    """An item in one experiment."""

    experiment: str
    href: str
    version: int
    created_at: str
    values: Sequence[float | str | None]
    """One for each repeat; None where the scorer gave none."""
    answers: Sequence[tuple[str, int, str]]
    """Different answers with how often they came, and the address of a trace."""


class ItemPage(PageContext, frozen=True, kw_only=True):
    """One item over time."""

    template: ClassVar[str] = "item.html"
    section: ClassVar[str] = "datasets"

    item: DatasetItem
    dataset: Dataset
    input: Shown
    expected: Shown
    metadata: Shown
    badges: Sequence[tuple[str, str]]
    """What the history shows, with a tone."""
    attempts: Sequence[Attempt]
    scorer: str
    scorers: Sequence[str]
    cut: bool
    """Whether older runs are left out."""
    grid: Grid

    def table(self) -> Grid:
        return self.grid


async def item(call: Call, query: ItemQuery) -> Answer:
    project_id, item_id = call.params["project_id"], call.params["item_id"]
    here = here_of(call, query)

    def work(connection: Connection) -> ItemPage:
        found = get_item(connection, item_id, scope=project_id)
        dataset = get_dataset(connection, found.dataset_id, scope=project_id)
        runs = list_item_runs(connection, item_id, scope=project_id, before=None, limit=MAX_RUNS + 1)
        names = [score.scorer_name for run in runs for score in run.scores]
        scorers = sorted(set(names), key=lambda name: (-names.count(name), name))
        scorer = query.scorer if query.scorer in scorers else (scorers[0] if scorers else "")
        attempts = _attempts(runs[:MAX_RUNS], scorer, project_id)
        return ItemPage(
            title=one_line(found.input, 80),
            here=here,
            crumbs=(
                Crumb("Datasets", project_path(project_id, "datasets")),
                Crumb(dataset.name, project_path(project_id, "datasets", dataset.id)),
            ),
            item=found,
            dataset=dataset,
            input=show_value(found.input),
            expected=show_value(found.expected_output),
            metadata=show_value(found.metadata),
            badges=badges_of(attempts, removed=found.removed_in is not None),
            attempts=attempts,
            scorer=scorer,
            scorers=scorers,
            cut=has_more(runs, MAX_RUNS),
            grid=_grid(attempts, scorer),
        )

    return await respond(call, work, query)


def _attempts(runs: Sequence[ItemRun], scorer: str, project_id: str) -> list[Attempt]:
    """One for each experiment, newest first."""
    by_experiment: dict[str, list[ItemRun]] = {}
    for run in runs:
        by_experiment.setdefault(run.experiment_id, []).append(run)
    found = []
    for experiment_id, own in sorted(by_experiment.items(), reverse=True):
        own.sort(key=lambda run: run.repeat)
        answers: dict[str, tuple[int, str]] = {}
        for run in own:
            text = one_line(run.output)
            count, trace = answers.get(text, (0, ""))
            if not trace and run.trace_id is not None:
                trace = project_path(project_id, "traces", run.trace_id)
            answers[text] = (count + 1, trace)
        found.append(
            Attempt(
                experiment=own[0].experiment_name,
                href=project_path(project_id, "experiments", experiment_id),
                version=own[0].dataset_version,
                created_at=own[0].created_at,
                values=[_value(run, scorer) for run in own],
                answers=[(text, count, trace) for text, (count, trace) in answers.items()],
            )
        )
    return found


def _value(run: ItemRun, scorer: str) -> float | str | None:
    newest = next((score for score in reversed(run.scores) if score.scorer_name == scorer), None)
    return None if newest is None else newest.value


def badges_of(attempts: Sequence[Attempt], *, removed: bool) -> list[tuple[str, str]]:
    """*always fails*, *newly fails*, *unstable*: from numbers alone; a missing score says nothing."""
    found = [("removed from the dataset", "plain")] if removed else []
    numbers = [[value for value in one.values if isinstance(value, float | int)] for one in attempts]
    scored = [values for values in numbers if values]
    if not scored:
        return found
    newest, *older = scored
    if all(value <= 0 for values in scored for value in values) and len(scored) > 1:
        found.append(("✕ always fails", "bad"))
    elif all(value <= 0 for value in newest) and any(value > 0 for values in older[:1] for value in values):
        found.append(("▼ newly fails", "bad"))
    if len(set(newest)) > 1:
        found.append(("≈ unstable", "warn"))
    return found


def _grid(attempts: Sequence[Attempt], scorer: str) -> Grid:
    """The history as it is exported."""
    return Grid(
        caption="History",
        columns=[
            Column(name=name) for name in ("experiment", "version", "created_at", "repeat", scorer or "score")
        ],
        rows=[
            Row(
                cells=[
                    Cell(text=one.experiment),
                    Cell(text=str(one.version), value=one.version),
                    Cell(text=one.created_at),
                    Cell(text=str(repeat), value=repeat),
                    Cell(
                        text="" if value is None else value if isinstance(value, str) else number(value),
                        value=value,
                    ),
                ]
            )
            for one in attempts
            for repeat, value in enumerate(one.values)
        ],
    )


ROUTES = (
    page_route(
        "/projects/{project_id}/items/{item_id}", item, query=ItemQuery, summary="The history of an item"
    ),
)

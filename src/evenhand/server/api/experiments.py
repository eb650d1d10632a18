"""Experiments: made, listed, completed; and what is said about them as a whole."""

import asyncio
from functools import partial
from typing import Annotated, Literal

from msgspec import Meta, Raw, Struct, field

from evenhand.core.objects.datasets import Deleted
from evenhand.core.objects.experiments import (
    Experiment,
    ExperimentComparison,
    ExperimentSummary,
    ThresholdResult,
)
from evenhand.server.api.datasets import ProjectQuery
from evenhand.server.call import Call
from evenhand.server.http.answers import Answer, Page, json_answer
from evenhand.server.http.fields import Name, object_text, trimmed
from evenhand.server.http.paging import page_of
from evenhand.server.http.routes import Route
from evenhand.store import experiments as store
from evenhand.store.deleting import delete_experiment
from evenhand.store.projects import in_project
from evenhand.store.summaries import read_scorer, read_summary

LISTING = "experiments"


class ExperimentCreate(Struct, frozen=True, kw_only=True):
    """An experiment to be made."""

    project_id: Name
    """The project that it will belong to."""
    name: Name
    """For people; white space around it is dropped."""
    dataset_id: Name
    """The dataset whose items will be run."""
    metadata: Raw = field(default_factory=Raw)
    """A JSON object."""
    auto_complete: bool | None = None
    """Whether it completes by itself once every item has a run; true when absent."""


class ThresholdAsk(Struct, frozen=True, kw_only=True):
    """A threshold to be checked; nothing is stored."""

    scorer_name: Name
    """Whose scores."""
    metric: Literal["mean", "min", "max"]
    """Which number of theirs."""
    threshold: Annotated[float, Meta(ge=-1e9, le=1e9)]
    """What it is compared with, as an exact decimal."""
    comparison: Literal["gte", "gt", "lte", "lt"] | None = None
    """How; `gte` when absent."""
    force: bool = False
    """Whether to decide over scores of several versions; a caveat then says so."""


class CompareQuery(Struct, frozen=True, kw_only=True):
    """What a comparison shows."""

    scorer_name: str | None = None
    """Only this scorer."""
    per_item: bool = True
    """Whether to list every item."""
    max_drop: Annotated[float, Meta(ge=0, le=1)] = 0.05
    """The drop that is tolerated."""
    min_coverage: Annotated[float, Meta(ge=0, le=1)] = 0.98
    """The part of the items that each experiment must have scored for a PASS, unless the worst case passes too."""
    force: bool = False
    """Whether to compare what is not comparable; a caveat then says what differs."""


async def create(call: Call, body: ExperimentCreate) -> Answer:
    name, metadata = trimmed(body.name, "name"), object_text(body.metadata, "metadata")
    create_experiment = partial(
        store.create_experiment,
        project_id=body.project_id,
        name=name,
        dataset_id=body.dataset_id,
        metadata=metadata,
        auto_complete=body.auto_complete is not False,
    )
    return await call.write(partial(in_project, owner=call.owner(body.project_id), work=create_experiment))


async def list_all(call: Call, query: ProjectQuery) -> Answer:
    project_id = call.listed_project(query.project_id)
    limit, after = query.checked_limit(), query.after(LISTING)
    rows = await call.read(
        lambda connection: store.list_experiments(
            connection, project_id=project_id, before=after[0] if after else None, limit=limit + 1
        )
    )
    return json_answer(page_of(rows, limit, LISTING, lambda experiment: (experiment.id,)))


async def get(call: Call) -> Answer:
    experiment_id = call.params["experiment_id"]
    return json_answer(
        await call.read(lambda connection: store.get_experiment(connection, experiment_id, scope=call.scope))
    )


async def delete(call: Call) -> Answer:
    answer = await call.write(
        partial(
            delete_experiment,
            experiment_id=call.params["experiment_id"],
            scope=call.scope,
            actor=call.access.token_id,
        )
    )
    call.service.wake_removals()
    return answer


async def complete(call: Call) -> Answer:
    experiment_id = call.params["experiment_id"]
    return await call.write(partial(store.complete_experiment, experiment_id=experiment_id, scope=call.scope))


async def summary(call: Call) -> Answer:
    from evenhand.server.api.summaries import summarise  # numpy: half of the time it takes to start

    experiment_id = call.params["experiment_id"]
    kept = await call.read(lambda connection: read_summary(connection, experiment_id, scope=call.scope))
    return json_answer(summarise(kept))


async def comparison(call: Call, query: CompareQuery) -> Answer:
    from evenhand.compare.comparison import Options  # as above
    from evenhand.server.api.comparing import compare, read_sides

    base_id, other_id = call.params["experiment_id"], call.params["other_id"]
    sides = await call.search(
        lambda connection: read_sides(connection, base_id, other_id, query.scorer_name, scope=call.scope)
    )
    options = Options(max_drop=query.max_drop, min_coverage=query.min_coverage, force=query.force)
    return json_answer(await asyncio.to_thread(compare, sides, options, per_item=query.per_item))


async def threshold(call: Call, body: ThresholdAsk) -> Answer:
    from evenhand.server.api.summaries import evaluate_threshold  # as above

    experiment_id = call.params["experiment_id"]
    totals, versions = await call.read(
        lambda connection: read_scorer(connection, experiment_id, body.scorer_name, scope=call.scope)
    )
    return await call.respond_idempotently(
        evaluate_threshold(
            totals,
            versions,
            scorer_name=body.scorer_name,
            metric=body.metric,
            threshold=body.threshold,
            comparison=body.comparison or "gte",
            force=body.force,
        )
    )


ROUTES = (
    Route(
        operation="create_experiment",
        method="POST",
        path="/v1/experiments",
        handler=create,
        audience="token:write",
        request=ExperimentCreate,
        response=Experiment,
        status=201,
        errors=("NOT_FOUND",),
        summary="Make an experiment on a dataset",
        tag="Experiments",
    ),
    Route(
        operation="list_experiments",
        method="GET",
        path="/v1/experiments",
        handler=list_all,
        audience="token:read",
        query=ProjectQuery,
        response=Page[Experiment],
        errors=("PROJECT_REQUIRED", "NOT_FOUND"),
        summary="List a project's experiments, newest first",
        tag="Experiments",
    ),
    Route(
        operation="get_experiment",
        method="GET",
        path="/v1/experiments/{experiment_id}",
        handler=get,
        audience="token:read",
        response=Experiment,
        errors=("NOT_FOUND",),
        summary="Read an experiment",
        tag="Experiments",
    ),
    Route(
        operation="delete_experiment",
        method="DELETE",
        path="/v1/experiments/{experiment_id}",
        handler=delete,
        audience="token:write",
        response=Deleted,
        errors=("NOT_FOUND",),
        summary="Delete an experiment with its runs and their scores",
        tag="Experiments",
    ),
    Route(
        operation="complete_experiment",
        method="POST",
        path="/v1/experiments/{experiment_id}/complete",
        handler=complete,
        audience="token:write",
        response=Experiment,
        errors=("NOT_FOUND", "EXPERIMENT_COMPLETED"),
        summary="Complete an experiment",
        tag="Experiments",
    ),
    Route(
        operation="get_experiment_summary",
        method="GET",
        path="/v1/experiments/{experiment_id}/summary",
        handler=summary,
        audience="token:read",
        response=ExperimentSummary,
        errors=("NOT_FOUND",),
        summary="An experiment in numbers",
        tag="Experiments",
    ),
    Route(
        operation="compare_experiments",
        method="GET",
        path="/v1/experiments/{experiment_id}/compare/{other_id}",
        handler=comparison,
        audience="token:read",
        query=CompareQuery,
        response=ExperimentComparison,
        errors=("NOT_FOUND", "INCOMPATIBLE_EXPERIMENTS"),
        summary="Two experiments on one dataset, item by item",
        tag="Experiments",
    ),
    Route(
        operation="check_threshold",
        method="POST",
        path="/v1/experiments/{experiment_id}/threshold",
        handler=threshold,
        audience="token:read",
        request=ThresholdAsk,
        response=ThresholdResult,
        errors=("NOT_FOUND", "UNSUPPORTED_THRESHOLD_TYPE", "MIXED_SCORER_VERSIONS"),
        summary="Does a scorer's number reach a threshold? Compared as exact decimals; nothing is stored",
        tag="Experiments",
    ),
)

"""The route table: the rows of all resources. A new resource adds its rows here and nowhere else."""

from evenhand.server.api import (
    annotations,
    audit,
    dataset_import,
    dataset_versions,
    datasets,
    experiments,
    health,
    jobs,
    otlp,
    project_summary,
    projects,
    queue,
    rules,
    runs,
    scorers,
    scores,
    tokens,
    traces,
)
from evenhand.server.http.routes import Route
from evenhand.server.pages import landing


def all_routes() -> tuple[Route, ...]:
    """Every endpoint of the service."""
    return (
        *health.ROUTES,
        *landing.ROUTES,
        *projects.ROUTES,
        *tokens.ROUTES,
        *audit.ROUTES,
        *datasets.ROUTES,
        *dataset_versions.ROUTES,
        *dataset_import.ROUTES,
        *experiments.ROUTES,
        *runs.ROUTES,
        *scorers.ROUTES,
        *scores.ROUTES,
        *traces.ROUTES,
        *otlp.ROUTES,
        *annotations.ROUTES,
        *queue.ROUTES,
        *project_summary.ROUTES,
        *jobs.ROUTES,
        *rules.ROUTES,
    )

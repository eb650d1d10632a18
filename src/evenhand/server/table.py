"""The route table: the rows of all resources. A new resource adds its rows here and nowhere else."""

from evenhand.server.api import (
    annotations,
    audit,
    dataset_import,
    dataset_versions,
    datasets,
    experiments,
    exports,
    health,
    jobs,
    otlp,
    people,
    project_summary,
    projects,
    queue,
    review_queues,
    rules,
    runs,
    scorers,
    scores,
    search,
    sessions,
    tokens,
    traces,
)
from evenhand.server.http.routes import Route
from evenhand.server.pages import (
    ab,
    agreement,
    assets,
    comparison,
    dashboard,
    front,
    items,
    live,
    queue_forms,
    review_queue,
    scorer,
    shares,
    views,
)
from evenhand.server.pages import datasets as dataset_pages
from evenhand.server.pages import experiments as experiment_pages
from evenhand.server.pages import jobs as job_pages
from evenhand.server.pages import queue as queue_pages
from evenhand.server.pages import rules as rule_pages
from evenhand.server.pages import scorers as scorer_pages
from evenhand.server.pages import search as search_page
from evenhand.server.pages import sessions as session_pages
from evenhand.server.pages import settings as settings_page
from evenhand.server.pages import trace as trace_page
from evenhand.server.pages import traces as trace_pages


def all_routes() -> tuple[Route, ...]:
    """Every endpoint of the service."""
    return (
        *health.ROUTES,
        *assets.ROUTES,
        *front.ROUTES,
        *dashboard.ROUTES,
        *trace_pages.ROUTES,
        *experiment_pages.ROUTES,
        *comparison.ROUTES,
        *dataset_pages.ROUTES,
        *items.ROUTES,
        *trace_page.ROUTES,
        *session_pages.ROUTES,
        *job_pages.ROUTES,
        *rule_pages.ROUTES,
        *queue_pages.ROUTES,
        *queue_forms.ROUTES,
        *review_queue.ROUTES,
        *agreement.ROUTES,
        *scorer_pages.ROUTES,
        *scorer.ROUTES,
        *settings_page.ROUTES,
        *search_page.ROUTES,
        *shares.ROUTES,
        *ab.ROUTES,
        *live.ROUTES,
        *views.ROUTES,
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
        *sessions.ROUTES,
        *otlp.ROUTES,
        *annotations.ROUTES,
        *queue.ROUTES,
        *people.ROUTES,
        *review_queues.ROUTES,
        *project_summary.ROUTES,
        *jobs.ROUTES,
        *rules.ROUTES,
        *search.ROUTES,
        *exports.ROUTES,
    )

"""The route table: the rows of all resources. A new resource adds its rows here and nowhere else."""

from evenhand.server.api import datasets, health, projects, tokens
from evenhand.server.routes import Route


def all_routes() -> tuple[Route, ...]:
    """Every endpoint of the service."""
    return (
        *health.ROUTES,
        *projects.ROUTES,
        *tokens.ROUTES,
        *datasets.ROUTES,
    )

"""Evenhand turns AI outputs into measurements, and measurements into decisions.

The public names are those in ``__all__``, loaded on first use, so that ``import evenhand`` costs next to
nothing. Everything else may move between releases.
"""

from typing import Any

from evenhand.core.lazy_names import load_name
from evenhand.scoring import PUBLIC

__version__ = "0.1.0"

# name -> module that defines it. The scorer `json_schema` is not among the names of `evenhand.scoring`: there it is
# the module.
_PUBLIC: dict[str, str] = {
    **PUBLIC,
    "ArtifactCollector": "evenhand.evaluation.failures",
    "Benchmark": "evenhand.benchmarks.definition",
    "benchmark": "evenhand.benchmarks.definition",
    "json_schema": "evenhand.scoring.json_schema",
}

__all__ = sorted(["__version__", *_PUBLIC])  # noqa: PLE0605  docs/reference.md pins the list


def __getattr__(name: str) -> Any:
    return load_name(__name__, _PUBLIC, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

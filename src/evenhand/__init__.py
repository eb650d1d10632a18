# ruff: noqa: I001  ruff would give every `name as name` a statement of its own
"""Evenhand turns AI outputs into measurements, and measurements into decisions.

The public names are those in ``__all__``, loaded on first use, so that ``import evenhand`` costs next to
nothing. Everything else may move between releases.
"""

from typing import TYPE_CHECKING

from evenhand.core.lazy_names import lazy_names

__version__ = "0.1.0"

if TYPE_CHECKING:  # the table below says the same at run time
    from evenhand.benchmarks.definition import Benchmark as Benchmark, benchmark as benchmark
    from evenhand.evaluation.evaluate import aevaluate as aevaluate, evaluate as evaluate
    from evenhand.evaluation.failures import ArtifactCollector as ArtifactCollector
    from evenhand.evaluation.result import Result as Result
    from evenhand.models.reasoning import split_reasoning as split_reasoning
    from evenhand.scoring import *  # noqa: F403  every name of the package
    from evenhand.scoring.json_schema import json_schema as json_schema
else:
    from evenhand.scoring import __all__ as _scoring_names

    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "evenhand.benchmarks.definition": ("Benchmark", "benchmark"),
            "evenhand.evaluation.evaluate": ("aevaluate", "evaluate"),
            "evenhand.evaluation.failures": ("ArtifactCollector",),
            "evenhand.evaluation.result": ("Result",),
            "evenhand.models.reasoning": ("split_reasoning",),
            "evenhand.scoring": tuple(_scoring_names),
            "evenhand.scoring.json_schema": ("json_schema",),
        },
    )
    __all__ = sorted(["__version__", *__all__])  # noqa: PLE0605  docs/reference.md describes every one

"""Evenhand turns AI outputs into measurements, and measurements into decisions.

The public names are those in ``__all__``, loaded on first use, so that ``import evenhand`` costs next to
nothing. Everything else may move between releases.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# name -> module that defines it
_PUBLIC: dict[str, str] = {
    "ArtifactCollector": "evenhand.evaluation.failures",
    "Benchmark": "evenhand.benchmarks.definition",
    "Judge": "evenhand.scoring.judging.engine",
    "JudgeScoringConfig": "evenhand.scoring.judging.config",
    "Scorer": "evenhand.scoring.definition",
    "ScorerInput": "evenhand.scoring.types",
    "benchmark": "evenhand.benchmarks.definition",
    "build_judge_prompt": "evenhand.scoring.judging.prompts",
    "code_sandbox": "evenhand.scoring.code_execution",
    "exact_match": "evenhand.scoring.text",
    "fuzzy_match": "evenhand.scoring.text",
    "get_scorer": "evenhand.scoring.registry",
    "judge_samples": "evenhand.scoring.judging.pipeline",
    "judge_score": "evenhand.scoring.judge",
    "needs_judge": "evenhand.scoring.judge",
    "parse_judge_response": "evenhand.scoring.judging.verdicts",
    "score_sample": "evenhand.scoring.apply",
    "score_sample_async": "evenhand.scoring.apply",
    "scorer": "evenhand.scoring.definition",
    "scorer_names": "evenhand.scoring.registry",
}

__all__ = [
    "ArtifactCollector",
    "Benchmark",
    "Judge",
    "JudgeScoringConfig",
    "Scorer",
    "ScorerInput",
    "__version__",
    "benchmark",
    "build_judge_prompt",
    "code_sandbox",
    "exact_match",
    "fuzzy_match",
    "get_scorer",
    "judge_samples",
    "judge_score",
    "needs_judge",
    "parse_judge_response",
    "score_sample",
    "score_sample_async",
    "scorer",
    "scorer_names",
]


def __getattr__(name: str) -> Any:
    try:
        module = _PUBLIC[name]
    except KeyError:
        raise AttributeError(f"module 'evenhand' has no attribute {name!r}") from None
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

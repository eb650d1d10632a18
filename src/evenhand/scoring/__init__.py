"""Scorers: functions from a sample to a measurement."""

from importlib import import_module
from typing import Any

# name -> module that defines it, loaded on first use
_PUBLIC: dict[str, str] = {
    "Scorer": "evenhand.scoring.definition",
    "ScorerInput": "evenhand.scoring.types",
    "exact_match": "evenhand.scoring.text",
    "fuzzy_match": "evenhand.scoring.text",
    "get_scorer": "evenhand.scoring.registry",
    "score_sample": "evenhand.scoring.apply",
    "score_sample_async": "evenhand.scoring.apply",
    "scorer": "evenhand.scoring.definition",
    "scorer_names": "evenhand.scoring.registry",
}


def __getattr__(name: str) -> Any:
    try:
        module = _PUBLIC[name]
    except KeyError:
        raise AttributeError(f"module 'evenhand.scoring' has no attribute {name!r}") from None
    value = getattr(import_module(module), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_PUBLIC})

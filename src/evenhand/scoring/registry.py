"""Scorers by name: the built-in ones and those that installed packages offer as entry points."""

import threading
from importlib import import_module
from importlib.metadata import entry_points

from evenhand.core.errors import OptionError, UnknownName
from evenhand.scoring.definition import Option, Scorer, scorer

__all__ = [
    "BUILT_IN",
    "ENTRY_POINTS",
    "Option",
    "Scorer",
    "get_scorer",
    "register_scorer",
    "scorer",
    "scorer_names",
]

ENTRY_POINTS = "evenhand.scorers"
"""The entry-point group in which packages offer scorers: name = "module:scorer"."""

# name -> module that defines it, imported when the scorer is first asked for
BUILT_IN: dict[str, str] = {
    "answer_line": "evenhand.scoring.pattern",
    "bleu": "evenhand.scoring.overlap",
    "code_sandbox": "evenhand.scoring.code_execution",
    "embedding_similarity": "evenhand.scoring.embedding",
    "exact_match": "evenhand.scoring.text",
    "fuzzy_match": "evenhand.scoring.text",
    "includes_all": "evenhand.scoring.text",
    "includes_any": "evenhand.scoring.text",
    "json_diff": "evenhand.scoring.structure",
    "json_schema": "evenhand.scoring.json_schema",
    "levenshtein": "evenhand.scoring.overlap",
    "list_match": "evenhand.scoring.structure",
    "math_equal": "evenhand.scoring.symbolic",
    "multichoice_regex": "evenhand.scoring.pattern",
    "needs_judge": "evenhand.scoring.judge",
    "numeric_match": "evenhand.scoring.pattern",
    "numeric_tolerance": "evenhand.scoring.pattern",
    "regex_match": "evenhand.scoring.pattern",
    "rouge_l": "evenhand.scoring.overlap",
    "token_f1": "evenhand.scoring.overlap",
    "tool_call_match": "evenhand.scoring.tool_calls",
}

_registered: dict[str, Scorer] = {}
_lock = threading.Lock()


def get_scorer(name: str) -> Scorer:
    """The scorer of this name; `UnknownName`, with the nearest names, when there is none."""
    found = _registered.get(name)
    if found is not None:
        return found
    if name in BUILT_IN:
        loaded = getattr(import_module(BUILT_IN[name]), name)
        assert isinstance(loaded, Scorer)
        return _remember(name, loaded)
    for point in entry_points(group=ENTRY_POINTS):
        if point.name == name:
            return _remember(name, _from_entry_point(point.name, point.load()))
    raise UnknownName("scorer", name, scorer_names())


def register_scorer(new: Scorer) -> Scorer:
    """Make a scorer known by its name in this process; a name can be taken only once."""
    if new.name in BUILT_IN or _registered.get(new.name, new) is not new:
        raise OptionError(f"a scorer named '{new.name}' exists already")
    return _remember(new.name, new)


def scorer_names() -> list[str]:
    """Every name that `get_scorer` knows, sorted."""
    offered = (point.name for point in entry_points(group=ENTRY_POINTS))
    return sorted({*BUILT_IN, *_registered, *offered})


def _remember(name: str, found: Scorer) -> Scorer:
    with _lock:
        return _registered.setdefault(name, found)


def _from_entry_point(name: str, loaded: object) -> Scorer:
    if isinstance(loaded, Scorer):
        return loaded
    if callable(loaded):
        return scorer(name=name)(loaded)
    raise OptionError(f"entry point '{name}' of '{ENTRY_POINTS}' is not a scorer")

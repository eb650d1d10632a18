"""Scorers by name: the built-in ones and those that installed packages offer as entry points.

One registry serves the library, the command line, the runner and the service. The service's contract calls two of
them by other names: `exact_match` on the wire is `strict_match` here, and the library's `exact_match` is
`normalized_match` there.
"""

import threading
from importlib.metadata import entry_points

from evenhand.core.errors import OptionError, UnknownName
from evenhand.core.lazy_names import public_names
from evenhand.scoring import built_in
from evenhand.scoring.definition import Option, P, R, Scorer, scorer

__all__ = [
    "ALIASES",
    "BUILT_IN",
    "ENTRY_POINTS",
    "WIRE_NAMES",
    "Option",
    "Scorer",
    "canonical_name",
    "get_scorer",
    "get_wire_scorer",
    "offered_names",
    "register_scorer",
    "scorer",
    "scorer_names",
    "wire_name",
]

ENTRY_POINTS = "evenhand.scorers"
"""The entry-point group in which packages offer scorers: name = "module:scorer"."""

BUILT_IN = frozenset(public_names(built_in))
"""The names of the built-in scorers."""

ALIASES = {"normalized_match": "exact_match"}
"""Second names, which mean the same in the library and on the wire."""
WIRE_NAMES = {"exact_match": "strict_match"}
"""Names that the service's contract gives to another scorer than the library does."""

_registered: dict[str, Scorer] = {}
_lock = threading.Lock()


def get_scorer(name: str) -> Scorer:
    """The scorer of this name; `UnknownName`, with the nearest names, when there is none."""
    name = ALIASES.get(name, name)
    found = _registered.get(name)
    if found is not None:
        return found
    if name in BUILT_IN:
        loaded = getattr(built_in, name)
        assert isinstance(loaded, Scorer)
        return _remember(name, loaded)
    for point in entry_points(group=ENTRY_POINTS):
        if point.name == name:
            return _remember(name, _from_entry_point(point.name, point.load()))
    raise UnknownName("scorer", name, scorer_names())


def get_wire_scorer(name: str) -> Scorer:
    """The scorer that a request to the service means by this name."""
    return get_scorer(WIRE_NAMES.get(name, name))


def canonical_name(name: str) -> str:
    """The one name of a scorer of the registry that means the same in the library and on the wire."""
    return next((second for second, first in ALIASES.items() if first == name), name)


def wire_name(name: str) -> str:
    """The name by which requests to the service know a scorer of the registry best."""
    return next((wire for wire, own in WIRE_NAMES.items() if own == name), canonical_name(name))


def register_scorer(new: Scorer[P, R]) -> Scorer[P, R]:
    """Make a scorer known by its name in this process; a name can be taken only once."""
    if new.name in {*BUILT_IN, *ALIASES} or _registered.get(new.name, new) is not new:
        raise OptionError(f"a scorer named '{new.name}' exists already")
    _remember(new.name, new)
    return new


def scorer_names() -> list[str]:
    """The name of every scorer, sorted; second names are left out."""
    return sorted({*BUILT_IN, *_registered, *offered_names()})


def offered_names() -> set[str]:
    """The names that installed packages offer. Nothing of theirs is loaded."""
    return {point.name for point in entry_points(group=ENTRY_POINTS)} - {*BUILT_IN, *ALIASES}


def _remember(name: str, found: Scorer) -> Scorer:
    with _lock:
        return _registered.setdefault(name, found)


def _from_entry_point(name: str, loaded: object) -> Scorer:
    if isinstance(loaded, Scorer):
        return loaded
    if callable(loaded):
        return scorer(name=name)(loaded)
    raise OptionError(f"entry point '{name}' of '{ENTRY_POINTS}' is not a scorer")

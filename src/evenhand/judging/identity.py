"""Who judged: one hash for everything that could change a judgement."""

import hashlib
from collections.abc import Iterable
from typing import Any

from evenhand.core.errors import Incomparable
from evenhand.core.jsontext import canonical
from evenhand.judging.config import JudgeScoringConfig
from evenhand.judging.judgements import PARSER_VERSION


def judge_identity(model: str, config: JudgeScoringConfig) -> str:
    """A stable hash of model, parameters, rubric and parser version; the display name is left out."""
    parts = {name: getattr(config, name) for name in config.__struct_fields__ if name != "name"}
    return identity_of({"model": model, "config": parts, "parser": PARSER_VERSION})


def identity_of(parts: Any) -> str:
    """A short stable hash of anything that JSON can carry."""
    return "judge-" + hashlib.sha256(canonical(parts)).hexdigest()[:16]


def one_identity(identities: Iterable[str | None]) -> str | None:
    """The identity that all scores share; `Incomparable` when they come from different judges."""
    different = sorted({identity for identity in identities if identity is not None})
    if len(different) > 1:
        raise Incomparable(
            [
                f"scores come from {len(different)} different judges ({', '.join(different)}); do not average them"
            ]
        )
    return different[0] if different else None

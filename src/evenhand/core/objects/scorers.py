"""Scorers as the service lists them."""

from typing import Any

from msgspec import Struct


class ScorerInfo(Struct, frozen=True, kw_only=True):
    """One scorer that can compute scores."""

    name: str
    """What requests call it."""
    canonical_name: str
    """Its one name in the library and here, as scores record it."""
    version: str | None
    """Scores of different versions are not comparable; null while it is not enabled and of an installed package."""
    summary: str | None
    """What it measures."""
    needs_expected_output: bool | None
    """Whether a target without an expected output has no score."""
    options: dict[str, Any] | None
    """What `config` may hold beside `expected_output`: JSON Schema, draft 2020-12."""
    runs_as_job: bool | None
    """Whether it runs as a job: the answer is 202, or the score with `?wait=`."""
    enabled: bool
    """Whether this server runs it."""
    built_in: bool
    """Whether it comes with Evenhand; others come from installed packages."""


class ScorerList(Struct, frozen=True, kw_only=True):
    """Every scorer."""

    items: list[ScorerInfo]
    """By name."""

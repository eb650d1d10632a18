"""A suite made ready: every variant as a run of the pipeline, and what they are held against."""

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from evenhand.compare.policy import Policy
from evenhand.core.errors import OptionError, UnknownName
from evenhand.evaluation.config import PlannedRun


class Variant(Struct, frozen=True, kw_only=True):
    """One prompt put to one model."""

    name: str
    """What the grid calls it."""
    prompt: str
    """The prompt's name; empty for a benchmark, which has its own."""
    model: str
    """The model's name."""
    planned: PlannedRun
    """The run."""

    @property
    def folder(self) -> str:
        """Its folder within that of the suite."""
        return slug(self.name)


class VariantSuite(Struct, frozen=True, kw_only=True):
    """A whole suite."""

    name: str
    """What it is called."""
    variants: list[Variant]
    """In the order of the file."""
    baseline: str | Path | None = None
    """The variant, or the folder of an earlier run, that the others are held against."""
    margin: float = 0.05
    """The drop that would be tolerated."""
    policy: Policy | None = None
    """In place of the margin: limits by scorer."""
    output: Path | None = None
    """The folder that the file names."""
    tests: bool = False
    """Whether every row is a test that must pass, as in promptfoo."""
    notes: list[str] = field(default_factory=list)
    """What the reader must know."""

    @property
    def candidates(self) -> list[Variant]:
        """Those that get a verdict."""
        return [] if self.baseline is None else [one for one in self.variants if one.name != self.baseline]


def slug(name: str) -> str:
    """The name as that of a folder."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-")[:100] or "variant"


def variant_names(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """A name for each pair of prompt and model: only what differs, where that is enough."""
    found = list(pairs)
    prompts, models = {prompt for prompt, _ in found}, {model for _, model in found}
    if len(prompts) <= 1:
        return [model for _, model in found]
    if len(models) <= 1:
        return [prompt for prompt, _ in found]
    return [f"{prompt} · {model}" for prompt, model in found]


def check_folders(variants: Iterable[Variant]) -> None:
    """Two variants in one folder would overwrite each other."""
    seen: dict[str, str] = {}
    for one in variants:
        if one.folder.casefold() in seen:
            raise OptionError(
                f"the variants '{seen[one.folder.casefold()]}' and '{one.name}' have the same name for files; rename one"
            )
        seen[one.folder.casefold()] = one.name


def chosen_baseline(given: Any, variants: list[Variant], home: Path) -> str | Path | None:
    """The baseline that a file names: a variant, `{prompt: ..., model: ...}`, `{folder: ...}`, or by default the first."""
    if given is None or given is False:
        return variants[0].name if len(variants) > 1 and given is None else None
    if isinstance(given, dict):
        if set(given) == {"folder"}:
            return home / str(given["folder"])
        if not set(given) <= {"prompt", "model"} or not given:
            raise OptionError("baseline: name a variant, or {prompt: ..., model: ...}, or {folder: ...}")
        fitting = [one for one in variants if matches(one, given)]
        if len(fitting) != 1:
            raise OptionError(f"baseline: {len(fitting)} variants are {given}; name exactly one")
        return fitting[0].name
    name = str(given)
    fitting = [one for one in variants if name in (one.name, one.model, one.prompt)]
    exact = [one for one in fitting if one.name == name]
    if len(exact or fitting) != 1:
        raise UnknownName("variant", name, [one.name for one in variants])
    return (exact or fitting)[0].name


def matches(variant: Variant, wanted: dict[str, Any]) -> bool:
    """Whether the variant has this prompt and this model, as far as they are named."""
    return all(getattr(variant, str(key)) == str(value) for key, value in wanted.items())

"""What may differ between two runs (the treatment), and what must be the same for a comparison to mean anything."""

from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from evenhand.core.jsontext import encode_text
from evenhand.core.terminal import preview
from evenhand.results import RunResults

# What must be equal, and what to say when it is not.
ASPECTS = {
    "benchmark": "the benchmark definition",
    "dataset": "the dataset",
    "scorer": "the scorer or its version",
    "judge": "the judge",
}
SHOWN = 120
"""How many characters of a value are shown."""


class Change(Struct, frozen=True, kw_only=True):
    """One part of the treatment: something that was changed on purpose between the runs."""

    name: str
    """What: `model`, `prompt`, `system prompt`, `temperature`, ..."""
    base: str
    """Its value in the base."""
    candidate: str
    """Its value in the candidate."""

    def __str__(self) -> str:
        return f"{self.name}: {self.base} → {self.candidate}"


def treatment(base: RunResults, candidate: RunResults) -> list[Change]:
    """Model, prompt, system prompt, sampling and whatever else the runs say about the system under test, where they
    differ; empty when they are the same, or when the files do not tell."""
    if base.bundle is None or candidate.bundle is None:
        return []
    mine, theirs = dict(_treated(base.bundle.config)), dict(_treated(candidate.bundle.config))
    found = [
        Change(name=name, base=_shown(mine[name]), candidate=_shown(theirs[name]))
        for name in mine
        # What only one side tells is unknown, not different.
        if name in theirs and mine[name] != theirs[name]
    ]
    left, right = (run.bundle.hashes.get("prompt") for run in (base, candidate) if run.bundle)
    if left and right and left != right and not any("prompt" in one.name for one in found):
        found.append(Change(name="prompt", base=left[:12], candidate=right[:12]))
    return found


def _treated(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    model = config.get("model")
    if isinstance(model, dict):
        yield "model", model.get("id")
        yield "model's address", model.get("url")
    elif model is not None:
        yield "model", model
    for name in ("prompt", "system_prompt"):
        if name in config:
            yield name.replace("_", " "), config[name]
    for name, value in (config.get("sampling") or {}).items():
        yield name.replace("_", " "), value
    for name, value in (config.get("treatment") or {}).items():
        yield name, value


def _shown(value: Any) -> str:
    if value in (None, (), [], {}, ""):
        return "not set"
    return preview(value if isinstance(value, str) else encode_text(value), SHOWN)


def differences(base: RunResults, candidate: RunResults) -> list[str]:
    """What differs and must not; empty when the runs are comparable as far as the files tell."""
    if base.bundle is None or candidate.bundle is None:
        return []
    left, right = base.bundle, candidate.bundle
    found = []
    if left.benchmark.name != right.benchmark.name:
        found.append(f"the benchmark ('{left.benchmark.name}' against '{right.benchmark.name}')")
    for aspect, words in ASPECTS.items():
        mine, theirs = left.hashes.get(aspect), right.hashes.get(aspect)
        if mine and theirs and mine != theirs:
            detail = _detail(aspect, left.config, right.config)
            found.append(f"{words}{detail or f' ({mine[:12]} against {theirs[:12]})'}")
    return found


def unknowns(base: RunResults, candidate: RunResults) -> list[str]:
    """What the files do not tell, so that nobody takes silence for equality."""
    found = []
    for side, run in (("base", base), ("candidate", candidate)):
        if run.bundle is None:
            found.append(f"the {side} has no bundle: dataset, scorer and judge cannot be checked")
        elif not run.bundle.hashes:
            found.append(f"the {side}'s bundle has no digests: dataset, scorer and judge cannot be checked")
        elif set(run.bundle.hashes) == {"judge"}:
            found.append(f"the {side} is a file of judgements: its judge can be checked, its data cannot")
        if run.bundle is not None and _was_stopped(run.bundle.config):
            found.append(
                f"the {side} was stopped as soon as it was decided: intervals and tests for a run of fixed length are too "
                "sure of themselves here; look with --sequential, or continue the run"
            )
    return found


def judge_words(base: RunResults, candidate: RunResults) -> list[str]:
    """What a verdict takes for granted where the scores are a judge's; empty where they are not."""
    if not any(run.bundle is not None and run.bundle.hashes.get("judge") for run in (base, candidate)):
        return []
    return [
        (
            "the scores are a judge's, and the verdict is about them: an error that the judge makes on both sides makes a drop "
            "look smaller than it is; `evenhand judge compare` corrects the difference with human labels"
        )
    ]


def uneven_words(base: RunResults, candidate: RunResults) -> list[str]:
    """That one side has repeats which the other never made, where it has."""
    mine, theirs = ({one.repeat for one in run.samples} for run in (base, candidate))
    if mine == theirs:
        return []
    return ["one side has repeats that the other never made: only the shared repeats are compared"]


def _was_stopped(config: dict[str, Any]) -> bool:
    stopping = config.get("stopping")
    return isinstance(stopping, dict) and stopping.get("asked", 0) < stopping.get("samples", 0)


def _detail(aspect: str, left: dict[str, Any], right: dict[str, Any]) -> str:
    """The values behind two digests, where the configuration holds them."""
    mine, theirs = left.get(aspect), right.get(aspect)
    if isinstance(mine, dict) and isinstance(theirs, dict):
        changed = [
            f"{key}: {mine.get(key)!r} against {theirs.get(key)!r}"
            for key in sorted(mine.keys() | theirs.keys())
            if mine.get(key) != theirs.get(key)
        ]
        return f" ({'; '.join(changed)})" if changed else ""
    return f" ({mine!r} against {theirs!r})" if mine != theirs else ""

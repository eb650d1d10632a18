"""Whether two runs measured the same thing."""

from typing import Any

from evenhand.results import RunResults

# What must be equal, and what to say when it is not. The model is what a comparison is about, so it may differ.
ASPECTS = {
    "benchmark": "the benchmark definition",
    "dataset": "the dataset",
    "prompt": "the prompt",
    "scorer": "the scorer or its version",
    "judge": "the judge",
    "sampling": "the sampling parameters",
}


def differences(base: RunResults, candidate: RunResults) -> list[str]:
    """What differs between the runs beyond the model; empty when they are comparable as far as the files tell."""
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
            found.append(f"the {side} has no bundle: dataset, prompt, scorer and judge cannot be checked")
        elif not run.bundle.hashes:
            found.append(
                f"the {side}'s bundle has no digests: dataset, prompt, scorer and judge cannot be checked"
            )
    return found


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

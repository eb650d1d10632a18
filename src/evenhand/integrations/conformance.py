"""What every importer must do, whichever tool it reads; run it on files that the tool really wrote."""

import math
import shutil
from collections.abc import Iterator
from pathlib import Path

from evenhand.core.errors import InputError
from evenhand.core.outcome import Scored
from evenhand.integrations.foreign_json import read_head
from evenhand.integrations.port import ImportedRun, Importer

CUTS = 25
"""At how many places a file is cut off to see what is made of half of it."""


def faults(importer: Importer, path: Path, scratch: Path) -> Iterator[str]:
    """What is wrong with `importer` on `path`, in words; nothing when all is well. `scratch` is an empty folder."""
    if not importer.recognises(path, read_head(path)):
        yield "it does not recognise the file"
    runs = importer.read(path)
    if not runs:
        yield "it finds no run"
    if importer.read(path) != runs:
        yield "reading twice gives two things"
    for run in runs:
        yield from _run_faults(run)
    if path.is_file():
        yield from _half_files(importer, path, scratch)


def _run_faults(run: ImportedRun) -> Iterator[str]:
    name = run.variant or run.name
    if not run.samples:
        yield f"{name}: no samples"
    keys = [(sample.item, sample.repeat) for sample in run.samples]
    if len(set(keys)) != len(keys):
        yield f"{name}: two samples of one item and repeat"
    if not any(sample.outcomes for sample in run.samples):
        yield f"{name}: no outcome at all"
    for sample in run.samples:
        for scorer, outcome in sample.outcomes.items():
            value = outcome.value if isinstance(outcome, Scored) else None
            if isinstance(value, float) and not math.isfinite(value):
                yield f"{name}: {scorer} of {sample.item} is {value}"
    for figure in run.figures:
        if not figure.rule:
            yield f"{name}: {figure.name} has no rule"
        if figure.printed is not None and figure.reproduced is None:
            yield f"{name}: {figure.name} is not reproduced"
        elif figure.printed is not None and not math.isclose(
            figure.printed, figure.reproduced or 0.0, abs_tol=1e-9
        ):
            yield f"{name}: {figure.name} is {figure.printed} in the file and {figure.reproduced} computed again"


def _half_files(importer: Importer, path: Path, scratch: Path) -> Iterator[str]:
    """Half a file is refused with a reason, or (lines that are whole) read as far as it goes."""
    shutil.copytree(path.parent, scratch / "cut", dirs_exist_ok=True)
    cut = scratch / "cut" / path.name
    whole = path.read_bytes()
    for part in range(CUTS):
        cut.write_bytes(whole[: len(whole) * part // CUTS])
        try:
            importer.read(cut)
        except InputError:
            continue
        except Exception as error:
            yield f"half a file ends in {type(error).__name__}: {error}"
        else:
            if path.suffix != ".jsonl":
                yield f"{part}/{CUTS} of the file is taken for a whole one"

"""The importers that there are, and finding the one for a file."""

from pathlib import Path

from evenhand.core.errors import InputError, MissingFile, UnknownName
from evenhand.integrations.deepeval import DeepEval
from evenhand.integrations.foreign_json import read_head
from evenhand.integrations.inspect_ai import InspectAi
from evenhand.integrations.lm_eval import LmEval
from evenhand.integrations.nemo import NemoEvaluator
from evenhand.integrations.port import ImportedRun, Importer
from evenhand.integrations.promptfoo import Promptfoo
from evenhand.integrations.scores_file import ScoresFile

IMPORTERS: tuple[Importer, ...] = (
    Promptfoo(),
    InspectAi(),
    LmEval(),
    DeepEval(),
    ScoresFile(),
    NemoEvaluator(),
)


def find_importer(path: Path, format_: str | None = None) -> Importer | None:
    """The importer for `path`: the one of that name, or the first that recognises the file; None when none does."""
    if format_ is not None:
        for importer in IMPORTERS:
            if importer.name == format_:
                return importer
        raise UnknownName("format", format_, [importer.name for importer in IMPORTERS])
    head = read_head(path)
    return next((importer for importer in IMPORTERS if importer.recognises(path, head)), None)


def read_foreign(path: Path, format_: str | None = None) -> list[ImportedRun]:
    """The runs in a file of any tool that is known."""
    if not path.exists():
        raise MissingFile("no such file or folder", path=path)
    importer = find_importer(path, format_)
    if importer is None:
        names = ", ".join(one.name for one in IMPORTERS)
        raise InputError(f"no tool is known that writes such a file; known are {names}", path=path)
    return importer.read(path)

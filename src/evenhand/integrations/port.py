"""What an importer gives: the samples of another tool's file with their three outcomes kept apart.

A tool's own figure depends on its own rule for samples that failed: some leave them out, some count them as wrong.
An importer reproduces that figure under that rule and names the rule; the outcomes themselves stay as they are.
"""

from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct, field

from evenhand.core.outcome import Outcome
from evenhand.results.records import Usage


class Figure(Struct, frozen=True, kw_only=True):
    """A number that the other tool printed, and the same number computed again."""

    name: str
    """What the tool calls it."""
    printed: float | None
    """As it stands in the file; None when the file does not hold it."""
    reproduced: float | None
    """Computed from the samples under the tool's own rule; None when it cannot be."""
    rule: str
    """That rule in one sentence: above all, what becomes of samples without a score."""


class ImportedSample(Struct, frozen=True, kw_only=True):
    """One answer to one item."""

    item: str
    """Identifies the item; equal in two files when it is the same item."""
    repeat: int = 0
    """Which of several answers to the item this is."""
    input: Any = None
    """What was asked."""
    output: str | None = None
    """What was answered."""
    expected: Any = None
    """The target."""
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    """What each scorer came to, by the scorer's name."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """The item's other fields."""
    usage: Usage | None = None
    """What the answer cost."""


class ImportedRun(Struct, frozen=True, kw_only=True):
    """One variant (a model, or a prompt with a model) on one set of items."""

    tool: str
    """The tool that wrote the file."""
    name: str
    """The task or benchmark."""
    variant: str = ""
    """What tells this run from the others in the same file; empty when there is only one."""
    treatment: dict[str, Any] = field(default_factory=dict)
    """What may differ between two runs: model, prompt, sampling."""
    scorers: dict[str, Any] = field(default_factory=dict)
    """Each scorer's own configuration, which must not differ."""
    samples: list[ImportedSample]
    """Every sample, failed ones too."""
    figures: list[Figure] = field(default_factory=list)
    """What the tool itself printed."""
    unmapped: list[str] = field(default_factory=list)
    """What is in the file and could not be brought over, in words."""

    def outcomes(self, scorer: str) -> list[Outcome]:
        """What a scorer came to on every sample that has an outcome of it."""
        return [sample.outcomes[scorer] for sample in self.samples if scorer in sample.outcomes]


class Importer(Protocol):
    """Reads the files of one tool."""

    @property
    def name(self) -> str:
        """The tool's name, as `--format` takes it."""
        ...

    def recognises(self, path: Path, head: bytes) -> bool:
        """Whether `path`, a file that starts with `head` or a folder, was written by this tool."""
        ...

    def read(self, path: Path) -> list[ImportedRun]:
        """The runs in the file; `InputError` says what is wrong with it."""
        ...

"""What every scorer is given."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(slots=True)
class ScorerInput:
    """One response to be scored."""

    response: str
    """What the model answered."""
    target: Any = ""
    """The expected answer."""
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """The row's other fields: alternative answers, tests, categories."""
    config: Mapping[str, Any] = field(default_factory=dict)
    """Options of the scorer for this sample."""
    sandbox: Any = None
    """The sandbox in which code of this sample runs; None means the configured one."""

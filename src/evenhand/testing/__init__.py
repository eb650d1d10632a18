"""For tests of your own: a chat endpoint with scripted answers and faults. Described in docs/testing.md."""

from evenhand.testing.faults import FaultKind, FaultPlan
from evenhand.testing.mock_model import MockModel
from evenhand.testing.script import Line, MockAnswer, MockCall, Script, read_script, with_nonce

__all__ = [
    "FaultKind",
    "FaultPlan",
    "Line",
    "MockAnswer",
    "MockCall",
    "MockModel",
    "Script",
    "read_script",
    "with_nonce",
]

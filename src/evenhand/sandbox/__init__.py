"""Running model-written code: one port, several back ends, one conformance kit."""

from evenhand.sandbox.port import Execution, Limits, Program, Sandbox, Usage, Verdict
from evenhand.sandbox.selection import default_sandbox, open_sandbox

__all__ = [
    "Execution",
    "Limits",
    "Program",
    "Sandbox",
    "Usage",
    "Verdict",
    "default_sandbox",
    "open_sandbox",
]

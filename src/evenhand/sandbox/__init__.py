"""Running model-written code: one port, several back ends, one conformance kit."""

from evenhand.sandbox.port import Execution, Grade, Program, ResourceLimits, ResourceUsage, Sandbox
from evenhand.sandbox.selection import default_sandbox, open_sandbox

__all__ = [
    "Execution",
    "Grade",
    "Program",
    "ResourceLimits",
    "ResourceUsage",
    "Sandbox",
    "default_sandbox",
    "open_sandbox",
]

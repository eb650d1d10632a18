"""Which back end runs model-written code."""

import atexit
import os
import threading
from collections.abc import Callable

from evenhand.core.errors import OptionError, SandboxUnavailable
from evenhand.sandbox.bubblewrap import Bubblewrap
from evenhand.sandbox.pool import Backend, Pool
from evenhand.sandbox.port import Sandbox

HOW_TO_INSTALL = (
    "install bubblewrap (apt-get install bubblewrap) or a Docker-compatible engine (apt-get install docker.io); "
    "`evenhand doctor` says what is missing"
)
BACKENDS: dict[str, Callable[[], Backend]] = {"bubblewrap": Bubblewrap}
_lock = threading.Lock()
_open: dict[tuple[int, str], Pool] = {}


def open_sandbox(choice: str = "auto", *, parallel: int | None = None) -> Sandbox:
    """A sandbox of the chosen kind; `SandboxUnavailable` when this machine has none."""
    if choice != "auto" and choice not in BACKENDS:
        raise OptionError(f"unknown sandbox '{choice}'; it can be auto, {', '.join(BACKENDS)}")
    reasons = []
    for name in BACKENDS if choice == "auto" else [choice]:
        try:
            return Pool(BACKENDS[name](), parallel=parallel)
        except SandboxUnavailable as error:
            reasons.append(str(error))
    raise SandboxUnavailable(
        f"no sandbox can run model-written code here ({'; '.join(reasons)}): {HOW_TO_INSTALL}"
    )


def default_sandbox(choice: str = "auto") -> Sandbox:
    """One sandbox of each kind for the whole process, opened at first use and closed when the process ends."""
    with _lock:
        # A forked child has none of the threads of its parent's pool.
        key = (os.getpid(), choice)
        if key not in _open:
            pool = open_sandbox(choice)
            assert isinstance(pool, Pool)
            _open[key] = pool
            atexit.register(pool.close)
        return _open[key]

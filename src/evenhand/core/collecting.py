"""Large results without the garbage collector: it would look at every one of them again and again, and find nothing."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def without_collection() -> Iterator[None]:
    """No automatic collection inside; what is no longer used is freed as always, only circles wait."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()

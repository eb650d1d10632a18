"""Compiled templates, kept where Python keeps compiled modules.

Compiling the templates of a report takes 40 ms of processor time, which is a tenth of a short run.
"""

import os
import sys
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path
from pickle import UnpicklingError

import jinja2
from jinja2.bccache import Bucket, BytecodeCache


class CompiledTemplates(BytecodeCache):
    """Files beside the `.pyc` files of the package: written unless Python is told to write none, and never needed.

    Jinja2 checks a template's text and the Python version before it uses one. What else decides the code is in the
    name: the version of Jinja2, and when `module`, the file that sets the options of the environment, was changed.
    """

    def __init__(self, module: str) -> None:
        self._folder: Path | None = None
        with suppress(OSError, NotImplementedError):  # in an archive, or without compiled files at all
            self._made_for = f"{jinja2.__version__}-{os.stat(module).st_mtime_ns:x}"
            self._folder = Path(cache_from_source(module)).parent

    def load_bytecode(self, bucket: Bucket) -> None:
        if (path := self._path(bucket)) is None:
            return
        # A damaged file counts as none.
        with suppress(OSError, EOFError, ValueError, UnpicklingError), path.open("rb") as file:
            bucket.load_bytecode(file)

    def dump_bytecode(self, bucket: Bucket) -> None:
        path = self._path(bucket)
        if path is None or sys.dont_write_bytecode:
            return
        temporary = path.with_suffix(f".{os.getpid()}.tmp")
        with suppress(OSError):  # an installation that cannot be written to
            path.parent.mkdir(parents=True, exist_ok=True)
            with temporary.open("wb") as file:
                bucket.write_bytecode(file)
            temporary.replace(path)

    def _path(self, bucket: Bucket) -> Path | None:
        if self._folder is None:
            return None
        return self._folder / f"{bucket.key}.{self._made_for}.template"

"""Finding benchmarks: built in, from other packages, or in a Python file."""

import importlib.util
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import sha256
from importlib.metadata import entry_points
from pathlib import Path

from msgspec.structs import replace

from evenhand.benchmarks import built_in
from evenhand.benchmarks.definition import Benchmark
from evenhand.core.errors import InputError, MissingFile, UnknownName
from evenhand.core.lazy_names import public_names

ENTRY_POINTS = "evenhand.benchmarks"

BUILT_IN = frozenset(public_names(built_in))
"""The names of the built-in benchmarks."""


def benchmark_names() -> list[str]:
    """Every name that `get_benchmark` knows."""
    return sorted({*BUILT_IN, *(point.name for point in entry_points(group=ENTRY_POINTS))})


def get_benchmark(name: str) -> Benchmark:
    """The benchmark of that name; `UnknownName` suggests the nearest."""
    if name in BUILT_IN:
        made = getattr(built_in, name)
        assert isinstance(made, Benchmark)
        return made
    for point in entry_points(group=ENTRY_POINTS, name=name):
        try:
            made = point.load()
        except Exception as error:
            raise InputError(f"benchmark '{name}' of {point.value} cannot be loaded: {error}") from error
        if not isinstance(made, Benchmark):
            raise InputError(f"the entry point '{name}' ({point.value}) is not a benchmark")
        return made
    raise UnknownName("benchmark", name, benchmark_names())


def find_benchmarks(spec: str) -> list[Benchmark]:
    """What `--bench` names: a benchmark, all benchmarks of `file.py`, or one of them as `file.py:name`."""
    path, _, wanted = spec.partition(".py:")
    if not spec.endswith(".py") and not wanted:
        return [get_benchmark(spec)]
    found = load_file(Path(f"{path}.py") if wanted else Path(spec))
    if not wanted:
        return found
    chosen = [made for made in found if made.name == wanted]
    if not chosen:
        raise UnknownName("benchmark", wanted, [made.name for made in found])
    return chosen


def load_file(path: Path) -> list[Benchmark]:
    """The benchmarks that a Python file defines, in the order of their definition."""
    if not path.is_file():
        raise MissingFile("no such file", path=path)
    resolved = path.resolve()
    name = f"evenhand_file_{sha256(str(resolved).encode()).hexdigest()[:12]}"
    loaded = importlib.util.spec_from_file_location(name, resolved)
    assert loaded is not None
    assert loaded.loader is not None
    module = importlib.util.module_from_spec(loaded)
    sys.modules[name] = module
    try:
        with _importable(resolved.parent):
            loaded.loader.exec_module(module)
    except SyntaxError as error:
        raise InputError(f"{error.msg}", path=path, line=error.lineno) from None
    except Exception as error:
        raise InputError(
            f"{type(error).__name__}: {error}", path=path, line=_line_of(error, resolved)
        ) from error
    found = [value for value in vars(module).values() if isinstance(value, Benchmark)]
    if not found:
        raise InputError("defines no benchmark; put @benchmark(...) above a @scorer function", path=path)
    names = [made.name for made in found]
    if len(set(names)) < len(names):
        raise InputError(f"defines two benchmarks of one name: {', '.join(sorted(names))}", path=path)
    return [replace(made, home=resolved.parent) for made in found]


def _line_of(error: Exception, path: Path) -> int | None:
    trace, line = error.__traceback__, None
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == str(path):
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    # As `python file.py` would: modules beside the file can be imported.
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))

"""Whether the Python packages that a benchmark needs are installed."""

import re
from importlib.metadata import PackageNotFoundError, version

from evenhand.benchmarks.definition import Benchmark
from evenhand.core.errors import OptionError, Unavailable

_REQUIREMENT = re.compile(
    r"\s*([A-Za-z0-9][A-Za-z0-9._-]*)\s*(?:\[[^\]]*\])?\s*(?:(>=|==|<=|!=|<|>)\s*([\w.]+))?\s*"
)


def check_requirements(benchmark: Benchmark) -> None:
    """`Unavailable` with the command that installs what is missing."""
    missing = [text for text in benchmark.requirements if not _installed(text)]
    if missing:
        quoted = " ".join(f"'{text}'" for text in missing)
        raise Unavailable(
            f"benchmark '{benchmark.name}' needs {', '.join(missing)}; install with: pip install {quoted}"
        )


def _installed(requirement: str) -> bool:
    match = _REQUIREMENT.fullmatch(requirement)
    if match is None:
        raise OptionError(f"'{requirement}' is not a requirement; write 'name' or 'name>=version'")
    name, comparison, wanted = match.groups()
    try:
        found = _numbers(version(name))
    except PackageNotFoundError:
        return False
    if comparison is None:
        return True
    limit = _numbers(wanted)
    length = max(len(found), len(limit))
    have, need = (part + (0,) * (length - len(part)) for part in (found, limit))
    return {
        ">=": have >= need,
        "<=": have <= need,
        ">": have > need,
        "<": have < need,
        "==": have == need,
        "!=": have != need,
    }[comparison]


def _numbers(text: str) -> tuple[int, ...]:
    match = re.match(r"\d+(?:\.\d+)*", text)
    return tuple(int(part) for part in match.group().split(".")) if match else ()

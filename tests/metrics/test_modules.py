"""What importing costs, and that the examples in the docstrings and docs run."""

import doctest
import re
import subprocess
import sys
from pathlib import Path

from evenhand.metrics import exact, repeats

DOCS = Path(__file__).resolve().parents[2] / "docs" / "metrics.md"


def test_the_package_itself_loads_nothing_heavy() -> None:
    program = "import sys, evenhand.metrics; print(int('numpy' in sys.modules))"
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "0"


def test_statistics_never_load_scipy_stats() -> None:
    program = (
        "import sys\n"
        "from evenhand.metrics import *\n"
        "mean_interval([1, 0, 1]); bootstrap_ci([0.1, 0.2, 0.4]); power_of(0.1, 1, 50)\n"
        "print(int('scipy.stats' in sys.modules), int('numpy' in sys.modules))"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert found.stdout.split() == ["0", "1"]


def test_docstring_examples() -> None:
    for module in (exact, repeats):
        result = doctest.testmod(module)
        assert result.attempted > 0
        assert result.failed == 0


def test_every_function_in_the_docs_exists() -> None:
    import evenhand.metrics

    table = DOCS.read_text(encoding="utf-8").split("## Which method when")[1].split("### How")[0]
    names = set(re.findall(r"`(\w+)[`(]", table)) - {"values_by_problem"}
    assert names
    assert {name for name in names if not hasattr(evenhand.metrics, name)} == set()

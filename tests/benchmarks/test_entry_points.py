"""Benchmarks of other packages, found by their entry points: a real package on the path."""

from pathlib import Path

import pytest

from evenhand.benchmarks import benchmark_names, get_benchmark
from evenhand.core.errors import InputError

MODULE = """
from evenhand import benchmark, exact_match, scorer


@benchmark(name="theirs", dataset=list, prompt="{q}")
@scorer
def theirs(sample):
    return exact_match(sample)


wrong = 5
"""
ENTRIES = """[evenhand.benchmarks]
theirs = benchmarks_of_a_neighbour:theirs
not_one = benchmarks_of_a_neighbour:wrong
not_there = benchmarks_of_a_neighbour:gone
"""


def test_a_package_offers_benchmarks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "benchmarks_of_a_neighbour.py").write_text(MODULE)
    info = tmp_path / "neighbour-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: neighbour\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(ENTRIES)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert {"theirs", "gsm8k"} <= set(benchmark_names())
    assert get_benchmark("theirs").name == "theirs"
    with pytest.raises(InputError, match="is not a benchmark"):
        get_benchmark("not_one")
    with pytest.raises(InputError, match="cannot be loaded"):
        get_benchmark("not_there")

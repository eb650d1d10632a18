"""Benchmarks: a dataset, a prompt and a scorer under one name."""

from evenhand.benchmarks.definition import Benchmark, Problem, Turn, benchmark
from evenhand.benchmarks.registry import benchmark_names, find_benchmarks, get_benchmark

__all__ = [
    "Benchmark",
    "Problem",
    "Turn",
    "benchmark",
    "benchmark_names",
    "find_benchmarks",
    "get_benchmark",
]

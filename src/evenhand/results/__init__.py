"""Run artifacts on disk: bundles and results files, read and written; NeMo Evaluator's files load too."""

from evenhand.results.bundle import BenchmarkSummary, Bundle, CategorySummary, MetricValue
from evenhand.results.reading import RunResults, read_run, read_samples, run_folders
from evenhand.results.records import SampleError, SampleResult, Usage
from evenhand.results.writing import JsonlFile, write_json, write_text

__all__ = [
    "BenchmarkSummary",
    "Bundle",
    "CategorySummary",
    "JsonlFile",
    "MetricValue",
    "RunResults",
    "SampleError",
    "SampleResult",
    "Usage",
    "read_run",
    "read_samples",
    "run_folders",
    "write_json",
    "write_text",
]

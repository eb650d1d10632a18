"""JSON Schemas of the artifacts, made from the types that write them."""

from typing import Any

import msgspec

from evenhand.evaluation.artifacts import Trajectory
from evenhand.evaluation.failures import FailureAnalysis
from evenhand.evaluation.runtime import RuntimeStats
from evenhand.results.bundle import Bundle
from evenhand.results.records import SampleResult

DIALECT = "https://json-schema.org/draft/2020-12/schema"
ARTIFACTS: dict[str, tuple[type, str]] = {
    "bundle": (Bundle, "eval-*.json: what a run was and what it came to"),
    "results": (SampleResult, "one line of results.jsonl"),
    "trajectories": (Trajectory, "one line of trajectories.jsonl"),
    "runtime_stats": (RuntimeStats, "runtime_stats.json"),
    "failure_analysis": (FailureAnalysis, "failure_analysis.json"),
}


def artifact_schemas() -> dict[str, dict[str, Any]]:
    """Artifact name to JSON Schema (draft 2020-12)."""
    found = {}
    for name, (kind, title) in ARTIFACTS.items():
        found[name] = {"$schema": DIALECT, "title": title, **msgspec.json.schema(kind)}
    return found

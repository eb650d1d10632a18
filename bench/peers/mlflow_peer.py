"""MLflow: scores are assessments (feedback) of traces."""

import json
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.http_load import http_request
from bench.peers.peer import call, copy_row, free_port, start, wait_for


class Mlflow:
    """`mlflow server` with one worker and its SQLite file."""

    name = "MLflow"

    def __init__(self, programs: Path, folder: Path) -> None:
        self.port = free_port()
        self.otlp_headers: Mapping[str, str] = {"x-mlflow-experiment-id": "0"}
        self.file = folder / "mlflow.db"
        command = [
            str(programs / "mlflow"), "server", "--backend-store-uri", f"sqlite:///{self.file}",
            "--artifacts-destination", str(folder / "artifacts"), "--host", "127.0.0.1", "--port", str(self.port),
            "--workers", "1",
        ]  # fmt: skip
        path = f"{programs}:/usr/local/bin:/usr/bin:/bin"
        self.process = start(command, folder, {"PATH": path})

    def wait(self) -> None:
        wait_for(self.process, self.port, "/health")

    def dataset(self, items: int) -> float:
        rows = [{"inputs": {"input": n}, "expectations": {"expected_output": "x"}} for n in range(items)]
        started = time.perf_counter()
        made = call(self.port, "POST", "/api/3.0/mlflow/datasets/create", {"name": "bench"})["dataset"]
        path = f"/api/3.0/mlflow/datasets/{made['dataset_id']}/records"
        stored = call(self.port, "POST", path, {"records": json.dumps(rows)})
        assert int(stored["inserted_count"]) == items
        return time.perf_counter() - started

    def score_requests(self, count: int) -> list[bytes]:
        path = f"/api/3.0/mlflow/traces/{self._trace()}/assessments"
        return [
            http_request("POST", path, "none", json.dumps(self._score(f"s{n}")).encode())
            for n in range(count)
        ]

    def _score(self, name: str) -> dict[str, Any]:
        moment = "2026-01-01T00:00:00Z"
        assessment = {
            "assessment_name": name,
            "trace_id": self._trace(),
            "source": {"source_type": "CODE", "source_id": "bench"},
            "create_time": moment,
            "last_update_time": moment,
            "feedback": {"value": 0.5},
            "rationale": "as expected",
        }
        return {"assessment": assessment}

    def _trace(self) -> str:
        with sqlite3.connect(f"file:{self.file}?mode=ro", uri=True) as database:
            return str(database.execute("SELECT min(request_id) FROM trace_info").fetchone()[0])

    def stored_spans(self) -> int:
        with sqlite3.connect(f"file:{self.file}?mode=ro", uri=True) as database:
            return int(database.execute("SELECT count(*) FROM spans").fetchone()[0])

    def fill_scores(self, count: int) -> None:
        path = f"/api/3.0/mlflow/traces/{self._trace()}/assessments"
        call(self.port, "POST", path, self._score("filled"))
        with sqlite3.connect(self.file, timeout=60) as database:
            copy_row(database, "trace_info", {"request_id": "'tr-copy' || n"}, count)
            changed = {
                "assessment_id": "'a-copy' || n",
                "trace_id": "'tr-copy' || n",
                "name": "'filled'",
                "value": "(n % 11) / 10.0",
            }
            copy_row(database, "assessments", changed, count - 1)

    def summary(self) -> float:
        # The metric of the values has no count: that is a second question.
        self._metric("assessment_value", "AVG", "MIN", "MAX")
        return self._metric("assessment_count", "COUNT")["COUNT"]

    def _metric(self, name: str, *aggregations: str) -> dict[str, float]:
        body = {
            "experiment_ids": ["0"],
            "view_type": "ASSESSMENTS",
            "metric_name": name,
            "aggregations": [{"aggregation_type": kind} for kind in aggregations],
            "filters": ['assessment.name = "filled"'],
        }
        answer = call(self.port, "POST", "/api/3.0/mlflow/traces/metrics", body)
        values: dict[str, float] = answer["data_points"][0]["values"]
        return values

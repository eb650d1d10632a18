"""Arize Phoenix: scores are evaluations of experiment runs."""

import json
import sqlite3
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from bench.http_load import http_request
from bench.peers.peer import call, copy_row, free_port, start, wait_for

MOMENT = "2026-01-01T00:00:00+00:00"


class Phoenix:
    """`phoenix serve` with its SQLite file."""

    name = "Phoenix"

    def __init__(self, programs: Path, folder: Path) -> None:
        self.port = free_port()
        self.otlp_headers: Mapping[str, str] = {}
        self.file = folder / "phoenix.db"
        environment = {
            "PHOENIX_WORKING_DIR": str(folder),
            "PHOENIX_SQL_DATABASE_URL": f"sqlite:///{self.file}",
            "PHOENIX_HOST": "127.0.0.1",
            "PHOENIX_PORT": str(self.port),
            "PHOENIX_GRPC_PORT": str(free_port()),
        }
        self.process = start([str(programs / "phoenix"), "serve"], folder, environment)
        self.experiment = ""
        self.run = ""

    def wait(self) -> None:
        wait_for(self.process, self.port, "/healthz")

    def dataset(self, items: int) -> float:
        body = {
            "action": "create",
            "name": "bench",
            "inputs": [{"input": n} for n in range(items)],
            "outputs": [{"expected_output": "x"} for _ in range(items)],
            "metadata": [{} for _ in range(items)],
        }
        started = time.perf_counter()
        dataset = call(self.port, "POST", "/v1/datasets/upload?sync=true", body)["data"]["dataset_id"]
        taken = time.perf_counter() - started
        made = call(self.port, "POST", f"/v1/datasets/{dataset}/experiments", {"name": "bench"})
        self.experiment = made["data"]["id"]
        examples = call(self.port, "GET", f"/v1/datasets/{dataset}/examples")["data"]["examples"]
        assert len(examples) == items
        run = {
            "dataset_example_id": examples[0]["id"],
            "output": "x",
            "repetition_number": 1,
            "start_time": MOMENT,
            "end_time": MOMENT,
        }
        self.run = call(self.port, "POST", f"/v1/experiments/{self.experiment}/runs", run)["data"]["id"]
        return taken

    def score_requests(self, count: int) -> list[bytes]:
        # A run has one evaluation of a name, so every request has a name of its own.
        return [
            http_request(
                "POST", "/v1/experiment_evaluations", "none", json.dumps(self._score(f"s{n}")).encode()
            )
            for n in range(count)
        ]

    def _score(self, name: str) -> dict[str, Any]:
        return {
            "experiment_run_id": self.run,
            "name": name,
            "annotator_kind": "CODE",
            "start_time": MOMENT,
            "end_time": MOMENT,
            "result": {"score": 0.5, "explanation": "as expected"},
        }

    def stored_spans(self) -> int:
        with sqlite3.connect(f"file:{self.file}?mode=ro", uri=True) as database:
            return int(database.execute("SELECT count(*) FROM spans").fetchone()[0])

    def fill_scores(self, count: int) -> None:
        call(self.port, "POST", "/v1/experiment_evaluations", self._score("filled"))
        with sqlite3.connect(self.file, timeout=60) as database:
            newest = "(SELECT max(id) FROM experiment_runs)"
            first = int(database.execute(f"SELECT {newest}").fetchone()[0])
            copy_row(database, "experiment_runs", {"repetition_number": "n + 1"}, count, left_out="id")
            changed = {"experiment_run_id": f"{first} + n", "score": "(n % 11) / 10.0", "name": "'filled'"}
            copy_row(database, "experiment_run_annotations", changed, count - 1, left_out="id")

    def summary(self) -> float:
        query = (
            "query ($id: ID!) { node(id: $id) { ... on Experiment { annotationSummaries(annotationName: "
            '"filled") { meanScore minScore maxScore scoreCount } } } }'
        )
        answer = call(self.port, "POST", "/graphql", {"query": query, "variables": {"id": self.experiment}})
        return float(answer["data"]["node"]["annotationSummaries"][0]["scoreCount"])

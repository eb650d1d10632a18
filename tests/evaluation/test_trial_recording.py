"""The arms of an A/B comparison in a real service."""

import json
from pathlib import Path

from tests.evaluation.runs import evenhand
from tests.service import ADMIN, running_service

from evenhand.client import ServiceClient
from evenhand.core.secret import Secret


def record(task: str, arm: str, repeat: int, success: bool, **more: object) -> dict[str, object]:
    return {
        "task_id": task,
        "arm": arm,
        "repeat": repeat,
        "success": success,
        "duration_seconds": 2.5,
        "total_cost_usd": None,
        "input_tokens": 10,
        "output_tokens": 5,
        "cache_read_tokens": 0,
        "cache_write_tokens": 0,
        **more,
    }


def test_arms_become_experiments_on_one_dataset_and_are_compared_there(tmp_path: Path) -> None:
    """with: t1 passes twice, t2 fails; without: t1 passes once of two, t2 is an infrastructure failure."""
    rows = [
        record("t1", "with_x", 1, True),
        record("t1", "with_x", 2, True),
        record("t2", "with_x", 1, False),
        record("t1", "without_x", 1, True),
        record("t1", "without_x", 2, False),
        record("t2", "without_x", 1, False, infra_failure=True),
    ]
    file = tmp_path / "collected.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with running_service(f"sqlite:///{tmp_path / 'service.db'}") as service:
        arguments = (
            "ab",
            "record",
            file,
            service.url,
            "--token",
            ADMIN,
            "--name",
            "tool x",
            "--format",
            "json",
        )
        first, again = evenhand(*arguments), evenhand(*arguments)
        assert first.returncode == 0, first.stderr
        experiments = json.loads(first.stdout)["experiments"]
        assert json.loads(again.stdout)["experiments"] == experiments
        with ServiceClient(service.url, Secret(ADMIN)) as client:
            assert len(list(client.listed("/v1/datasets", project_id="default"))) == 1
            summary = client.experiment_summary(experiments["with_x"])
            assert summary["scores_by_scorer"]["success"]["scored_run_count"] == 3
            base, candidate = experiments["without_x"], experiments["with_x"]
            [compared] = client.get(f"/v1/experiments/{base}/compare/{candidate}")["scorer_comparisons"]
            assert (compared["base_mean"], compared["improved_count"], compared["only_in_compare"]) == (
                0.5,
                1,
                1,
            )
            [run] = [
                r for r in client.listed(f"/v1/experiments/{candidate}/runs") if not r["output"]["success"]
            ]
            assert run["output"]["duration_seconds"] == 2.5
            assert "total_cost_usd" not in run["output"]

"""The arms of an A/B comparison as experiments on one dataset of the scoring service."""

from collections.abc import Iterator
from hashlib import sha256
from typing import Any

import numpy as np

from evenhand.ab.table import RunTable
from evenhand.client.service import ServiceClient
from evenhand.core import jsontext

BATCH = 500
"""Runs per call."""
SCORER = "success"
"""The name under which success (1) and failure (0) are kept."""


def record_arms(table: RunTable, client: ServiceClient, project: str, name: str) -> dict[str, str]:
    """Send every arm as an experiment; arm → experiment id. Sending the same runs again changes nothing.

    A run's output holds what was measured. Runs that failed for infrastructure reasons are left out, as they are
    from the analysis.
    """
    items = _dataset(table, client, project, name)
    found = {}
    for place, arm in enumerate(table.arms):
        runs = list(_runs(table, place, items))
        content = sha256(jsontext.canonical([project, name, arm, runs])).hexdigest()[:40]
        experiment = client.create_experiment(
            project, f"{name} · {arm}", items[""], {"arm": arm, "source": "ab"}, key=f"{content}-experiment"
        )
        for start in range(0, len(runs), BATCH):
            client.submit_runs(experiment["id"], runs[start : start + BATCH], key=f"{content}-runs-{start}")
        client.complete_experiment(experiment["id"], key=f"{content}-complete")
        found[arm] = str(experiment["id"])
    return found


def _dataset(table: RunTable, client: ServiceClient, project: str, name: str) -> dict[str, str]:
    """Task → item id, and the dataset's own id under the empty name, which no task has."""
    digest = sha256(jsontext.canonical(list(table.tasks))).hexdigest()[:12]
    title = f"{name} {digest}"
    dataset = client.find_dataset(project, title)
    if dataset is None:
        tasks = [{"input": {"task_id": task}, "metadata": {"task_id": task}} for task in table.tasks]
        dataset = client.create_dataset(project, title, tasks, description="Tasks of an A/B comparison")
    items = {item["metadata"]["task_id"]: str(item["id"]) for item in client.dataset_items(dataset["id"])}
    return {**items, "": str(dataset["id"])}


def _runs(table: RunTable, place: int, items: dict[str, str]) -> Iterator[dict[str, Any]]:
    for row in np.flatnonzero((table.arm == place) & ~table.infra).tolist():
        success = bool(table.success[row])
        amounts = {
            name: float(column[row]) for name, column in table.amounts.items() if not np.isnan(column[row])
        }
        yield {
            "dataset_item_id": items[table.tasks[int(table.task[row])]],
            "repeat": int(table.repeat[row]) - 1,
            "output": {"success": success, **amounts},
            "scores": [{"scorer_name": SCORER, "value": 1.0 if success else 0.0}],
        }

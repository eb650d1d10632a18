"""A history of writes while the server or its database is killed again and again, and what must be true of it.

Several clients write; every write carries a key of its own. What a client was told is remembered:

- told yes (2xx): it must be there, exactly once;
- told no (4xx): it must not be there;
- told nothing (the connection broke, 5xx): it may be there once, or not at all. A write with an Idempotency-Key is then
  sent again until there is an answer, and must be there exactly once like any other acknowledged one.

At the end everything is read back through the API, and every aggregate is compared with a recount.
"""

import http.client
import random
import threading
import time
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from tests.ab_suites import wait_for
from tests.service_harness import Client, Reply, span

from evenhand.core.ids import new_id

CLIENTS = 8
RUNS = 24
SCORERS = ("alpha", "beta")


class History:
    """What the clients were told, by kind of write."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.acknowledged: dict[str, set[str]] = {}
        self.refused: dict[str, set[str]] = {}
        self.unknown: dict[str, set[str]] = {}
        self.faults: list[str] = []

    def note(self, kind: str, key: str, reply: Reply | None) -> None:
        with self._lock:
            if reply is None or reply.status >= 500:
                self.unknown.setdefault(kind, set()).add(key)
            elif reply.status < 300:
                self.acknowledged.setdefault(kind, set()).add(key)
            else:
                self.refused.setdefault(kind, set()).add(key)
            if reply is not None and reply.status == 500:
                self.faults.append(f"{kind}: {reply.raw[:300]!r}")

    def counts(self) -> dict[str, int]:
        with self._lock:
            return {
                "acknowledged": sum(map(len, self.acknowledged.values())),
                "refused": sum(map(len, self.refused.values())),
                "unknown": sum(map(len, self.unknown.values())),
            }

    def found(self, kind: str, key: str) -> None:
        """A later look told that an unanswered write was stored."""
        with self._lock:
            self.unknown[kind].discard(key)
            self.acknowledged.setdefault(kind, set()).add(key)


class Stage:
    """What the clients write to: one dataset, one experiment with runs, one trace."""

    def __init__(self, address: str) -> None:
        client = Client(address)
        self.address = address
        self.dataset, _ = client.dataset()
        self.base, items = client.dataset([{"input": n, "expected_output": n} for n in range(RUNS)])
        self.items = items
        self.experiment = client.experiment(self.base, auto_complete=False)
        self.runs = client.runs(
            self.experiment, [{"dataset_item_id": item, "output": n} for n, item in enumerate(items)]
        )
        self.trace, self.root = client.trace()
        client.close()


class Worker(threading.Thread):
    """One client that writes until it is told to stop."""

    def __init__(self, stage: Stage, history: History, seed: int) -> None:
        super().__init__(daemon=True)
        self._stage = stage
        self._history = history
        self._random = random.Random(seed)
        # What met a dying server may have been stored: to send it again without a key would double it.
        self._client = Client(stage.address, resend=False)
        self._number = seed
        self.stop = threading.Event()

    def run(self) -> None:
        writes: list[Callable[[], None]] = [
            self._score, self._score, self._batch, self._item, self._run, self._span, self._annotation, self._bad,
        ]  # fmt: skip
        while not self.stop.is_set():
            self._random.choice(writes)()
        self._client.close()

    def _send(self, kind: str, key: str, path: str, body: Any, *, sure: bool = False) -> Reply | None:
        """`sure`: with an Idempotency-Key, sent again until there is an answer."""
        headers = {"Idempotency_Key": key} if sure else {}
        while True:
            try:
                reply: Reply | None = self._client.post(path, body, **headers)
            except (OSError, http.client.HTTPException):
                reply = None
            failed = reply is None or reply.status >= 500
            if failed:
                time.sleep(0.02)
            if not (failed and sure) or self.stop.is_set():
                break
        self._history.note(kind, key, reply)
        return reply

    def _value(self) -> float:
        return round(self._random.random(), 2)

    def _score(self) -> None:
        key = new_id()
        body = {
            "target_id": self._random.choice(self._stage.runs),
            "target_type": "run",
            "scorer_name": self._random.choice(SCORERS),
            "value": self._value(),
            "rationale": key,
        }
        self._send("score", key, "/v1/scores", body, sure=self._random.random() < 0.5)

    def _batch(self) -> None:
        key = new_id()
        scores = [
            {
                "target_id": run,
                "target_type": "run",
                "scorer_name": "batch",
                "value": self._value(),
                "rationale": key,
            }
            for run in self._random.sample(self._stage.runs, 5)
        ]
        self._send("batch", key, "/v1/scores/batch", {"scores": scores}, sure=self._random.random() < 0.5)

    def _item(self) -> None:
        key = new_id()
        path = f"/v1/datasets/{self._stage.dataset}/items"
        self._send("item", key, path, {"input": key}, sure=self._random.random() < 0.5)

    def _run(self) -> None:
        key = new_id()
        self._number += CLIENTS
        run = {
            "dataset_item_id": self._random.choice(self._stage.items),
            "repeat": self._number,
            "output": key,
            "scores": [{"scorer_name": "inline", "value": self._value(), "rationale": key}],
        }
        path = f"/v1/experiments/{self._stage.experiment}/runs"
        self._send("run", key, path, {"runs": [run]}, sure=self._random.random() < 0.5)

    def _span(self) -> None:
        one = span(trace_id=self._stage.trace, parent_span_id=self._stage.root)
        sent = self._send("span", one["id"], "/v1/traces/ingest", {"spans": [one]})
        if sent is None or sent.status >= 500:
            # A retry without a key is told by the span's own id whether the first try was stored.
            self._resend(one)

    def _resend(self, one: dict[str, Any]) -> None:
        while not self.stop.is_set():
            try:
                reply = self._client.post("/v1/traces/ingest", {"spans": [one]})
            except (OSError, http.client.HTTPException):
                time.sleep(0.02)
                continue
            if reply.status == 201 or reply.status == 409:
                self._history.found("span", one["id"])
                return
            time.sleep(0.02)

    def _annotation(self) -> None:
        key = new_id()
        body = {"trace_id": self._stage.trace, "annotator": "a", "notes": key}
        self._send("annotation", key, "/v1/annotations", body, sure=self._random.random() < 0.5)

    def _bad(self) -> None:
        """Writes that the contract refuses; half of each is right, and must not be stored either."""
        key = new_id()
        choice = self._random.randrange(3)
        if choice == 0:
            body = {"target_id": self._stage.runs[0], "target_type": "run", "scorer_name": "alpha"}
            self._send("score", key, "/v1/scores", {**body, "value": 1.5, "rationale": key})
        elif choice == 1:
            good = span(id=key, trace_id=self._stage.trace, parent_span_id=self._stage.root)
            bad = span(metadata={"nested": {}})
            self._send("span", key, "/v1/traces/ingest", {"spans": [good, bad]})
        else:
            good_run = {
                "dataset_item_id": self._stage.items[0],
                "repeat": self._number + 10**9,
                "output": key,
            }
            bad_run = {"dataset_item_id": "no-such", "output": key}
            path = f"/v1/experiments/{self._stage.experiment}/runs"
            self._send("run", key, path, {"runs": [good_run, bad_run]})


def check(stage: Stage, history: History) -> dict[str, int]:
    """Compare what the clients were told with what is there; the number of checked writes by kind."""
    assert not history.faults, history.faults[:3]
    client = Client(stage.address)
    found: dict[str, Counter[str]] = {
        kind: Counter() for kind in ("item", "run", "span", "annotation", "score", "batch")
    }
    for item in client.pages(f"/v1/datasets/{stage.dataset}/items", limit=200):
        found["item"][item["input"]] += 1
    scores = _read_runs(client, stage, found)
    trace = client.get(f"/v1/traces/{stage.trace}").body
    for row in trace["spans"]:
        found["span"][row["id"]] += 1
    assert trace["span_count"] == len(trace["spans"])
    found["span"].pop(stage.root)
    for row in client.pages("/v1/annotations", trace_id=stage.trace, limit=200):
        found["annotation"][row["notes"]] += 1
    for kind, seen in found.items():
        _compare(kind, seen, history, copies=5 if kind == "batch" else 1)
    _recount(client, stage, scores)
    dataset = client.get(f"/v1/datasets/{stage.dataset}").body
    assert dataset["item_count"] == sum(found["item"].values())
    assert dataset["version"] == 1 + dataset["item_count"]
    client.close()
    return {kind: len(seen) for kind, seen in found.items()}


def _read_runs(client: Client, stage: Stage, found: dict[str, Counter[str]]) -> dict[str, list[float]]:
    """Counts runs and scores by key; the values by scorer."""
    values: dict[str, list[float]] = {}
    original = set(stage.runs)
    for run in client.pages(f"/v1/experiments/{stage.experiment}/runs", limit=200):
        if run["id"] not in original:
            found["run"][run["output"]] += 1
            assert [score["rationale"] for score in run["scores"]] == [run["output"]]
        for score in run["scores"]:
            values.setdefault(score["scorer_name"], []).append(score["value"])
            if score["scorer_name"] != "inline":
                found["batch" if score["scorer_name"] == "batch" else "score"][score["rationale"]] += 1
    return values


def _compare(kind: str, seen: Counter[str], history: History, *, copies: int) -> None:
    acknowledged = history.acknowledged.get(kind, set())
    lost = [key for key in acknowledged if seen[key] == 0]
    assert not lost, f"{kind}: {len(lost)} acknowledged writes are lost: {lost[:3]}"
    wrong = [key for key in seen if seen[key] != copies]
    assert not wrong, f"{kind}: {len(wrong)} writes are there more than once or in part: {wrong[:3]}"
    intruders = history.refused.get(kind, set()) & set(seen)
    assert not intruders, f"{kind}: {len(intruders)} refused writes are there: {list(intruders)[:3]}"
    strange = set(seen) - acknowledged - history.unknown.get(kind, set())
    assert not strange, f"{kind}: {len(strange)} writes are there that nobody made: {list(strange)[:3]}"


def _recount(client: Client, stage: Stage, values: dict[str, list[float]]) -> None:
    """The kept aggregates against the scores themselves, in exact decimals."""
    summary = client.get(f"/v1/experiments/{stage.experiment}/summary").body["scores_by_scorer"]
    assert set(summary) == set(values)
    for name, numbers in values.items():
        exact = sum((Fraction(repr(number)) for number in numbers), Fraction(0)) / len(numbers)
        row = summary[name]
        assert (row["mean"], row["min"], row["max"]) == (float(exact), min(numbers), max(numbers)), name


def drive(stage: Stage, disturb: Callable[[], None], *, cycles: int, seconds: float) -> History:
    """Let the clients write while `disturb` happens once in each cycle, each time after new writes were stored."""
    history = History()

    def write_on() -> None:
        before = history.counts()["acknowledged"]
        time.sleep(seconds)
        wait_for(lambda: history.counts()["acknowledged"] >= before + 4, 120)

    workers = [Worker(stage, history, seed) for seed in range(CLIENTS)]
    for worker in workers:
        worker.start()
    try:
        for _ in range(cycles):
            write_on()
            disturb()
        write_on()
        wait_for(lambda: history.counts()["refused"] > 0, 120)
    finally:
        for worker in workers:
            worker.stop.set()
        for worker in workers:
            worker.join(timeout=240)
    assert not any(worker.is_alive() for worker in workers)
    return history

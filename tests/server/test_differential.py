"""The same random calls, valid and invalid, to both databases: the same answers, but for ids and times."""

import json
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from tests.postgres import PostgresServer
from tests.service import ADMIN, running_service
from tests.service_harness import Client, Reply, part

UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}")
INSTANT = re.compile(r"20[2-9]\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")
TEXTS = [
    "", " ", "a", "Paris", "  paris ", "ü", "日本", "😀" * 3, "a\nb", "\t", "nul\x00", "' OR 1=1 --", "%", "_", "\\", '"',
    "x" * 300, "\u202e", "A", "a.b", "/", "..", "\x1f", "\x7f", "null", "true", "0", "ﬀ", "İ", "ß",
]  # fmt: skip
NUMBERS = [
    0,
    1,
    -1,
    0.5,
    0.1,
    1.0,
    1e-300,
    1e300,
    2**53 + 1,
    2**63,
    2**64,
    -(2**63),
    10**40,
    0.30000000000000004,
    -0.0,
]
SCALARS: list[Any] = [None, True, False, *TEXTS, *NUMBERS]


class Caller:
    """One service and the objects that were made on it, in order."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.made: dict[str, list[str]] = {}
        self._names: dict[str, str] = {}

    def id_of(self, kind: str, index: int) -> str:
        made = self.made.get(kind, [])
        return made[index % len(made)] if made else f"no-{kind}"

    def send(self, method: str, path: str, body: Any, headers: dict[str, str]) -> Reply:
        filled = re.sub(r"<(\w+):(\d+)>", lambda m: part(self.id_of(m[1], int(m[2]))), path)
        data = None
        if body is not None:
            text = body if isinstance(body, str) else json.dumps(body)
            data = re.sub(r"<(\w+):(\d+)>", lambda m: self.id_of(m[1], int(m[2])), text).encode(
                "utf-8", "surrogatepass"
            )
        return self.client.request(method, filled, data, headers)

    def normal(self, reply: Reply) -> str:
        """The answer with server-made ids by order of appearance, without times and cursors."""
        text = reply.raw.decode()
        text = re.sub(r'"next_cursor":"[^"]*"', '"next_cursor":"C"', text)
        text = INSTANT.sub("T", text)
        return UUID.sub(lambda m: self._names.setdefault(m[0], f"#{len(self._names)}"), text)

    def note(self, reply: Reply) -> None:
        if reply.status != 201:
            return
        body = reply.body
        for kind, found in kinds_of(body):
            self.made.setdefault(kind, []).append(found)


def kinds_of(body: Any) -> list[tuple[str, str]]:
    """Which kind of object a 201 made."""
    if "run_ids" in body:
        return [("run", one) for one in body["run_ids"]]
    if "trace_ids" in body:
        return [("trace", one) for one in body["trace_ids"]]
    for field, kind in (
        ("annotator", "annotation"),
        ("scorer_name", "score"),
        ("item_count", "dataset"),
        ("auto_complete", "experiment"),
        ("dataset_version", "experiment"),
        ("expected_output", "item"),
    ):
        if field in body:
            return [(kind, body["id"])]
    return []


class Generator:
    """Random calls; the same seed gives the same calls."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.span_ids: list[tuple[str, str]] = []

    def call(self) -> tuple[str, str, Any, dict[str, str]]:
        kinds = [
            self.dataset, self.item, self.item, self.experiment, self.runs, self.runs, self.score, self.score, self.score,
            self.spans, self.spans, self.annotation, self.read, self.read, self.listing, self.threshold, self.queue,
            self.imported, self.broken, self.delete, self.batch, self.rule, self.to_item, self.complete,
        ]  # fmt: skip
        method, path, body = self.random.choice(kinds)()
        headers = {"Content-Type": "application/json"}
        if path.endswith("/import"):
            headers["Content-Type"] = "application/x-ndjson"
        if isinstance(body, dict) and self.random.random() < 0.25:
            self.spoil(body)
        if method == "POST" and self.random.random() < 0.05:
            headers["Idempotency-Key"] = f"key-{self.random.randrange(20)}"
        return method, path, body, headers

    def ref(self, kind: str) -> str:
        return "no-such" if self.random.random() < 0.05 else f"<{kind}:{self.random.randrange(1000)}>"

    def text(self) -> str:
        return self.random.choice(TEXTS)

    def json(self, depth: int = 0) -> Any:
        if depth > 2 or self.random.random() < 0.6:
            return self.random.choice(SCALARS)
        if self.random.random() < 0.5:
            return [self.json(depth + 1) for _ in range(self.random.randrange(3))]
        return {self.text(): self.json(depth + 1) for _ in range(self.random.randrange(3))}

    def spoil(self, body: dict[str, Any]) -> None:
        """Something wrong somewhere: a field gone, or with a value of any kind."""
        if not body:
            return
        name = self.random.choice(list(body))
        inner = body[name]
        parts = [one for one in inner if isinstance(one, dict)] if isinstance(inner, list) else []
        if parts and self.random.random() < 0.7:
            self.spoil(self.random.choice(parts))
        elif self.random.random() < 0.3:
            del body[name]
        else:
            body[name] = self.json()

    def dataset(self) -> tuple[str, str, Any]:
        return (
            "POST",
            "/v1/datasets",
            {"project_id": "p", "name": self.text() + str(self.random.randrange(40))},
        )

    def item(self) -> tuple[str, str, Any]:
        body = {"input": self.json(), "expected_output": self.json(), "metadata": {self.text(): self.json()}}
        return "POST", f"/v1/datasets/{self.ref('dataset')}/items", body

    def experiment(self) -> tuple[str, str, Any]:
        body = {
            "project_id": "p",
            "name": "e",
            "dataset_id": self.ref("dataset"),
            "auto_complete": self.random.random() < 0.3,
        }
        return "POST", "/v1/experiments", body

    def runs(self) -> tuple[str, str, Any]:
        runs = [
            {
                "dataset_item_id": self.ref("item"),
                "output": self.random.choice([self.json(), "Paris", "x"]),
                "repeat": self.random.randrange(3),
                "scores": [
                    {"scorer_name": self.scorer(), "value": self.value()}
                    for _ in range(self.random.randrange(3))
                ],
            }
            for _ in range(self.random.choice([1, 1, 2]))
        ]
        return "POST", f"/v1/experiments/{self.ref('experiment')}/runs", {"runs": runs}

    def scorer(self) -> str:
        return self.random.choice(["a", "b", "ü", "exact_match", "human"])

    def value(self) -> Any:
        return self.random.choice(
            [0, 1, 0.5, 0.1, 0.25, 0.3, 1e-9, "good", "bad", "ü", 1.5, True, "", None, [1]]
        )

    def score(self) -> tuple[str, str, Any]:
        body: dict[str, Any] = {
            "target_id": self.ref("run"),
            "target_type": "run",
            "scorer_name": self.scorer(),
        }
        if self.random.random() < 0.3 and self.span_ids:
            body |= {"target_id": self.random.choice(self.span_ids)[0], "target_type": "span"}
        if self.random.random() < 0.4:
            rules: list[tuple[str, Any]] = [
                ("exact_match", {"case_sensitive": self.random.random() < 0.5}),
                ("contains", {"expected_output": self.text()}),
                (
                    "regex",
                    {"pattern": self.random.choice(["a", "[", "^P.*s$", "(?i)paris", "ü+", "\\d", "x{2}"])},
                ),
                ("unknown", {}),
            ]
            body["scorer_name"], body["config"] = self.random.choice(rules)
        else:
            body["value"] = self.value()
            body["rationale"] = self.text()
        return "POST", "/v1/scores", body

    def batch(self) -> tuple[str, str, Any]:
        return (
            "POST",
            "/v1/scores/batch",
            {"scores": [self.score()[2] for _ in range(self.random.randrange(4))]},
        )

    def spans(self) -> tuple[str, str, Any]:
        trace = f"t{self.random.randrange(60)}"
        spans = []
        for _ in range(self.random.choice([1, 2, 3])):
            known = [one for one, home in self.span_ids if home == trace]
            parent = self.random.choice([None, "s-later", *known, *[one for one, _ in self.span_ids[-2:]]])
            one = f"s{self.random.randrange(400)}"
            self.span_ids.append((one, trace))
            spans.append(
                {
                    "id": one,
                    "trace_id": trace,
                    "name": self.random.choice(["chat", "tool", self.text()]),
                    "start_time": self.random.choice(
                        ["2026-01-01T00:00:00Z", "2026-01-01T01:00:00.123456+01:00", "x"]
                    ),
                    "end_time": self.random.choice([None, "2026-01-01T00:00:01Z", "2025-01-01T00:00:00Z"]),
                    "parent_span_id": parent,
                    "input": self.json(),
                    "output": self.random.choice([self.json(), "Paris"]),
                    "model": self.random.choice([None, "m", self.text()]),
                    "metadata": {self.text(): self.random.choice(SCALARS)},
                    "tokens_input": self.random.choice([None, 0, 5, -1, 2**63]),
                }
            )
        return "POST", "/v1/traces/ingest", {"spans": spans, "project_id": "p"}

    def annotation(self) -> tuple[str, str, Any]:
        body = {
            "trace_id": self.ref("trace"),
            "annotator": self.random.choice(["ada", self.text()]),
            "label": self.random.choice([None, "ok", self.text()]),
            "correction": self.json(),
            "notes": self.random.choice([None, self.text()]),
        }
        return "POST", "/v1/annotations", body

    def to_item(self) -> tuple[str, str, Any]:
        path = f"/v1/annotations/{self.ref('annotation')}/to-dataset-item"
        return "POST", path, {"dataset_id": self.ref("dataset")}

    def read(self) -> tuple[str, str, Any]:
        paths = [
            f"/v1/datasets/{self.ref('dataset')}",
            f"/v1/experiments/{self.ref('experiment')}",
            f"/v1/experiments/{self.ref('experiment')}/summary",
            f"/v1/experiments/{self.ref('experiment')}/compare/{self.ref('experiment')}",
            f"/v1/traces/{self.ref('trace')}",
            f"/v1/annotations/{self.ref('annotation')}",
            "/v1/projects/p/summary",
        ]
        return "GET", self.random.choice(paths), None

    def listing(self) -> tuple[str, str, Any]:
        limit = self.random.choice([1, 3, 50, 200, 0, 201, "x"])
        name = part(self.text())
        paths = [
            f"/v1/datasets?project_id=p&limit={limit}",
            f"/v1/datasets/{self.ref('dataset')}/items?limit={limit}",
            f"/v1/experiments?project_id=p&limit={limit}",
            f"/v1/experiments/{self.ref('experiment')}/runs?limit={limit}",
            f"/v1/experiments/{self.ref('experiment')}/runs?limit={limit}&scorer_name=a&sort=-value",
            f"/v1/experiments/{self.ref('experiment')}/runs?scorer_name=a&min_value=0.2&max_value=0.9",
            f"/v1/traces?project_id=p&limit={limit}&name={name}",
            f"/v1/traces?project_id=p&limit={limit}&model={name}",
            f"/v1/traces?project_id=p&metadata.{name}={part(self.text())}",
            f"/v1/traces?project_id=p&has_error=false&min_duration_ms=500&limit={limit}",
            f"/v1/queue?project_id=p&limit={limit}&status={self.random.choice(['pending', 'annotated', 'x'])}",
            f"/v1/annotations?trace_id={self.ref('trace')}",
            f"/v1/scores?target_id={self.ref('run')}&limit={limit}",
            f"/v1/traces?project_id={name}",
            "/v1/traces",
        ]
        return "GET", self.random.choice(paths), None

    def threshold(self) -> tuple[str, str, Any]:
        body = {
            "scorer_name": self.scorer(),
            "metric": self.random.choice(["mean", "min", "max"]),
            "threshold": self.random.choice([0, 0.5, 0.1, 1, 0.30000000000000004]),
            "comparison": self.random.choice(["gte", "gt", "lte", "lt", "eq"]),
        }
        return "POST", f"/v1/experiments/{self.ref('experiment')}/threshold", body

    def queue(self) -> tuple[str, str, Any]:
        return self.random.choice(["POST", "DELETE"]), f"/v1/traces/{self.ref('trace')}/queue", None

    def imported(self) -> tuple[str, str, Any]:
        lines = [
            json.dumps({"input": self.json(), "metadata": self.json()}),
            "not json",
            "[1]",
            '{"input": 1e999}',
            "",
        ]
        body = "\n".join(self.random.choice(lines) for _ in range(4))
        return "POST", f"/v1/datasets/{self.ref('dataset')}/items/import", body

    def rule(self) -> tuple[str, str, Any]:
        body = {
            "project_id": "p",
            "name": f"r{self.random.randrange(9)}",
            "scorer_name": self.random.choice(["regex", "exact_match", "llm_judge"]),
            "config": self.random.choice([{"pattern": "a"}, {}, {"pattern": "["}]),
            "sample_rate": 0,
        }
        return "POST", "/v1/rules", body

    def complete(self) -> tuple[str, str, Any]:
        return "POST", f"/v1/experiments/{self.ref('experiment')}/complete", None

    def delete(self) -> tuple[str, str, Any]:
        kind = self.random.choice(["dataset", "trace"])
        if self.random.random() < 0.5:
            return "GET", f"/v1/{kind}s/{self.ref(kind)}", None
        return "DELETE", f"/v1/{kind}s/{self.ref(kind)}", None

    def broken(self) -> tuple[str, str, Any]:
        bodies = [
            "",
            "{",
            "[]",
            "null",
            '{"a": NaN}',
            '{"input": "\\ud800"}',
            '{"input": 1e400}',
            "\ud800",
            "9" * 5000,
        ]
        path = self.random.choice(["/v1/datasets", f"/v1/datasets/{self.ref('dataset')}/items", "/v1/scores"])
        return self.random.choice(["POST", "PUT"]), path, self.random.choice(bodies)


def compare(callers: list[Caller], generator: Generator, calls: int) -> Counter[int]:
    """Send every call to both; the answers by status."""
    statuses: Counter[int] = Counter()
    for number in range(calls):
        call = generator.call()
        replies = [caller.send(*call) for caller in callers]
        answers = [
            (reply.status, caller.normal(reply)) for caller, reply in zip(callers, replies, strict=True)
        ]
        assert answers[0] == answers[1], f"call {number}: {call}"
        assert replies[0].status < 500, f"call {number}: {call}: {answers[0]}"
        statuses[replies[0].status] += 1
        for caller, reply in zip(callers, replies, strict=True):
            caller.note(reply)
    return statuses


@pytest.mark.xdist_group("postgresql")
@pytest.mark.parametrize(
    ("seed", "calls"),
    [
        pytest.param(1, 2000, id="2000 calls"),
        *(pytest.param(seed, 2000, id=f"seed {seed}", marks=pytest.mark.slow) for seed in range(2, 7)),
    ],
)
def test_both_databases_give_the_same_answers(
    tmp_path: Path, postgres_server: PostgresServer, seed: int, calls: int
) -> None:
    with (
        postgres_server.database() as url,
        running_service(url) as postgresql,
        running_service(f"sqlite:///{tmp_path / 'evenhand.db'}") as sqlite,
    ):
        callers = [Caller(Client(service.url, ADMIN)) for service in (sqlite, postgresql)]
        try:
            statuses = compare(callers, Generator(seed), calls)
        finally:
            for caller in callers:
                caller.client.close()
        # both kinds of calls, and every kind of refusal, were among them
        assert statuses[201] > calls / 10, statuses
        assert {200, 201, 400, 404, 405, 409, 422} <= set(statuses), statuses

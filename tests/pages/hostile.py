"""A project in which everything that somebody can name, write or upload is a payload."""

from typing import Any

from tests.pages.payloads import PAYLOADS
from tests.service import ADMIN, ServiceUnderTest
from tests.service_harness import Client, span

from evenhand.store.connection import Connection
from evenhand.store.jobs import NewJob, add_jobs, claim_jobs, end_job
from evenhand.store.traces import find_trace

PROJECT = "hostile"
EVERYTHING = "\n".join(PAYLOADS)
JUDGE = PAYLOADS[0]
"""The name of a scorer that is a queue's judge."""


class Hostile:
    """The ids that paths need."""

    def __init__(self, service: ServiceUnderTest) -> None:
        self.client = Client(service.url, ADMIN, PROJECT)
        self.client.made("/v1/projects", {"id": PROJECT, "name": EVERYTHING[:240]})
        for one in PAYLOADS:
            self.client.made("/v1/projects", {"name": one[:240]})
        self._traces()
        self._datasets()
        self._experiments()
        self._people()
        self._review()
        self._rules()
        service.database.write_now(_failed_jobs)

    def _made(self, path: str, **body: Any) -> Any:
        return self.client.made(path, {"project_id": PROJECT, **body})

    def _traces(self) -> None:
        root = span(
            id="root", trace_id="all", name=PAYLOADS[0], model=PAYLOADS[1], session_id=PAYLOADS[2], user_id=PAYLOADS[3],
            input={"messages": [{"role": one[:60], "content": one} for one in PAYLOADS] + [{"role": "user", "content": EVERYTHING}]},
            output={one: [one] for one in PAYLOADS[:120]}, metadata={one: one for one in PAYLOADS},
            error={"message": EVERYTHING, "type": PAYLOADS[4], "stack": EVERYTHING},
            scores=[{"scorer_name": one[:200], "value": one, "rationale": one} for one in PAYLOADS],
        )  # fmt: skip
        children = [
            span(id=one[:200], trace_id="all", parent_span_id="root", name=one, model=one) for one in PAYLOADS
        ]
        assert self.client.spans(root, *children).status == 201
        listed = [
            span(
                trace_id=f"t{n}", name=one, model=one, session_id=one[:200], user_id=one[:200], input=one, output=one,
                scores=[{"scorer_name": JUDGE, "value": (n % 5) / 4, "rationale": one}],
            )
            for n, one in enumerate(PAYLOADS)
        ]  # fmt: skip
        assert self.client.spans(*listed).status == 201
        for n, one in enumerate(PAYLOADS):
            said = {"annotator": one[:240], "label": one, "correction": one, "notes": one}
            self._made("/v1/annotations", trace_id="all", **said)
            self.client.post(f"/v1/traces/t{n}/queue")
            if n % 2:
                self._made("/v1/annotations", trace_id=f"t{n}", **said)

    def _datasets(self) -> None:
        for one in PAYLOADS:
            self._made("/v1/datasets", name=one[:200].strip(), description=one)
        items = [
            {"input": one, "expected_output": one, "metadata": {one[:100]: one}}
            for one in [*PAYLOADS, EVERYTHING]
        ]
        self.dataset, self.items = self.client.dataset(items, name="item " + EVERYTHING[:200])
        assert self.client.delete(f"/v1/datasets/{self.dataset}/items/{self.items.pop(3)}").status == 200

    def _experiments(self) -> None:
        self.experiments = []
        for n, one in enumerate(PAYLOADS[:60]):
            body = {"name": one[:240], "dataset_id": self.dataset, "metadata": {"judge": one, one[:60]: one}}
            self.experiments.append(self._made("/v1/experiments", **body)["id"])
            runs = [
                {
                    "dataset_item_id": item,
                    "output": EVERYTHING if place == 0 else PAYLOADS[place % len(PAYLOADS)],
                    "scores": [
                        {"scorer_name": JUDGE, "value": (n + place) % 5 / 4, "rationale": PAYLOADS[place % len(PAYLOADS)]},
                        {"scorer_name": PAYLOADS[(n + place) % len(PAYLOADS)][:200], "value": one},
                    ],
                }
                for place, item in enumerate(self.items[: len(self.items) if n < 2 else 3])
            ]  # fmt: skip
            self.client.runs(self.experiments[-1], runs)

    def _people(self) -> None:
        for one in PAYLOADS:
            self._made("/v1/people", name=one[:240], role="review")
            self._made("/v1/tokens", name=one[:240], role="read")

    def _review(self) -> None:
        for one in PAYLOADS[:100]:
            self._made("/v1/queues", name=one[:200].strip(), description=one, judge_scorer=one[:100])
        labels = [one[:90].strip() for one in PAYLOADS]
        fields = [
            {"name": f"{n} {PAYLOADS[n][:60]}", "kind": "label", "title": PAYLOADS[n][:500], "labels": labels[50 * n : 50 * n + 50], "good": labels[50 * n : 50 * n + 25]}
            for n in range(3)
        ]  # fmt: skip
        form = {"fields": fields, "instructions": EVERYTHING[:10_000]}
        self.queue = self._made(
            "/v1/queues", name="Q" + EVERYTHING[:150], form=form, reviewers_per_item=2, judge_scorer=JUDGE
        )["id"]
        self.client.post(
            f"/v1/queues/{self.queue}/items", {"trace_ids": [f"t{n}" for n in range(len(PAYLOADS))]}
        )
        listed = list(self.client.pages(f"/v1/queues/{self.queue}/items", limit=200))
        for place, item in enumerate(listed[:40]):
            for who in (0, 1):
                answers = {
                    field["name"]: field["labels"][(place + who * (place % 3)) % 50] for field in fields
                }
                review = {"annotator": PAYLOADS[who][:240], "answers": answers, "notes": PAYLOADS[place]}
                path = f"/v1/queues/{self.queue}/items/{item['id']}/review"
                assert self.client.post(path, review).status == 201
        self.reviewed = listed[0]["id"]

    def _rules(self) -> None:
        for one in PAYLOADS:
            rule = {"name": one[:240], "filter": {"name": one, "model": one, "metadata": {one: one}}}
            self._made("/v1/rules", scorer_name="contains", config={"expected_output": one}, **rule)


def _failed_jobs(connection: Connection) -> None:
    """Jobs that failed with whatever a model replied."""
    trace_key = find_trace(connection, "all", scope=PROJECT)[0]
    job = NewJob(
        project_id=PROJECT, target_type="span", target_id="root", trace_key=trace_key, scorer_name=JUDGE, config="{}",
        rule_id=None,
    )  # fmt: skip
    add_jobs(connection, [job] * len(PAYLOADS))
    for claim, one in zip(
        claim_jobs(connection, limit=len(PAYLOADS), lease_ms=60_000), PAYLOADS, strict=True
    ):
        end_job(connection, claim, status="failed", outcome="failed", error="no_number", message=one, reply=one)  # fmt: skip

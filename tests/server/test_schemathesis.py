"""Generated calls from the OpenAPI document: no 5xx, and no answer outside the documented schema."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.service import ADMIN, running_service
from tests.service_harness import Client


@schemathesis.serializer("application/x-ndjson", "application/jsonl", "application/x-protobuf")
def as_bytes(context: schemathesis.SerializationContext, value: Any) -> bytes:
    """Bodies that are not JSON are sent as the text that was generated."""
    return str(value).encode("utf-8", "surrogatepass")


CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]


@pytest.mark.parametrize(
    "cases",
    [
        pytest.param(300, id="300 cases"),
        pytest.param(5_000, id="5000 cases", marks=[pytest.mark.slow, pytest.mark.timeout(3000)]),
    ],
)
def test_generated_calls_get_documented_answers(tmp_path: Path, cases: int) -> None:
    with running_service(f"sqlite:///{tmp_path / 'evenhand.db'}") as service:
        schema = schemathesis.openapi.from_dict(service.get("/openapi.json").body)
        operations: list[Any] = [result.ok() for result in cast(Iterable[Any], schema.get_all_operations())]
        seen: Counter[int] = Counter()
        real = stock(Client(service.url, ADMIN, "p"))
        for turn in range(10):
            missing = cases - sum(seen.values())
            if missing <= 0:
                break
            for operation in operations:
                drive(operation, service.url, -(-missing // len(operations)), seen, real, turn)
    assert sum(seen.values()) >= cases, seen
    assert not [status for status in seen if status >= 500], seen
    assert seen[200] + seen[201] > cases / 20, seen
    print(f"\n{sum(seen.values())} calls: {dict(seen)}")


def stock(client: Client) -> dict[str, str]:
    """One object of each kind, by the name of its parameter: made-up ids alone would only meet 404."""
    dataset, [item] = client.dataset(["q"])
    experiment = client.experiment(dataset, auto_complete=False)
    [run] = client.runs(experiment, [{"dataset_item_id": item, "output": "x"}])
    trace, _ = client.trace(input="q")
    annotation = client.made("/v1/annotations", {"trace_id": trace, "annotator": "a", "label": "x"})["id"]
    client.close()
    return {
        "project_id": "p",
        "dataset_id": dataset,
        "dataset_item_id": item,
        "experiment_id": experiment,
        "other_id": experiment,
        "target_id": run,
        "trace_id": trace,
        "annotation_id": annotation,
    }


def drive(
    operation: Any, url: str, examples: int, seen: Counter[int], real: dict[str, str], turn: int
) -> None:
    strategy = st.one_of(
        operation.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE),
        operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE),
    )

    @seed(turn)
    @given(case=strategy, with_real_ids=st.booleans())
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def one(case: Any, with_real_ids: bool) -> None:
        if with_real_ids:
            for part in (case.path_parameters, case.query, case.body):
                if isinstance(part, dict):
                    part.update({name: real[name] for name in part if name in real})
        response = case.call(base_url=url, headers={"Authorization": f"Bearer {ADMIN}"}, timeout=300)
        seen[response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    one()

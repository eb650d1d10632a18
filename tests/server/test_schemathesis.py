"""Generated calls from the OpenAPI document: no 5xx, and no answer outside the documented schema."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from tests.service import ADMIN, running_service


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
        per_operation = -(-cases // len(operations))
        seen: Counter[int] = Counter()
        for operation in operations:
            drive(operation, service.url, per_operation, seen)
    assert sum(seen.values()) >= cases * 0.9, seen
    assert not [status for status in seen if status >= 500], seen


def drive(operation: Any, url: str, examples: int, seen: Counter[int]) -> None:
    strategy = st.one_of(
        operation.as_strategy(generation_mode=schemathesis.GenerationMode.POSITIVE),
        operation.as_strategy(generation_mode=schemathesis.GenerationMode.NEGATIVE),
    )

    @given(case=strategy)
    @settings(
        max_examples=examples,
        deadline=None,
        database=None,
        derandomize=True,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def one(case: Any) -> None:
        response = case.call(base_url=url, headers={"Authorization": f"Bearer {ADMIN}"})
        seen[response.status_code] += 1
        case.validate_response(response, checks=CHECKS)

    one()

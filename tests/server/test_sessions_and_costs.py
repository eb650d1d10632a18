"""Sessions, users and costs: as fields, as filters, in lists and in sums, on both databases."""

import json
from contextlib import closing
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from tests.service_harness import ADMIN_TOKEN, Client, ServerProcess, span

from evenhand.core.ids import new_id
from evenhand.models.prices import find_row, picodollars, shipped_prices
from evenhand.server.ingest.costs import PriceBook, reported

COST_FIELDS = ("cost_usd", "cost_known_calls", "cost_unknown_calls")


def export(client: Client, *attributes: dict[str, Any], trace_id: str | None = None) -> str:
    """One OTLP span for each set of attributes, the first being the root; the trace's id."""
    trace_id = trace_id or new_id().replace("-", "")
    root = new_id().replace("-", "")[-16:]
    spans = [
        {
            "traceId": trace_id,
            "spanId": root if index == 0 else new_id().replace("-", "")[-16:],
            "parentSpanId": "" if index == 0 else root,
            "name": f"span {index}",
            "startTimeUnixNano": str(1_771_711_200_000_000_000 + index * 1_000_000),
            "endTimeUnixNano": str(1_771_711_201_000_000_000),
            "attributes": [{"key": key, "value": typed(value)} for key, value in given.items()],
        }
        for index, given in enumerate(attributes)
    ]
    body = json.dumps({"resourceSpans": [{"scopeSpans": [{"spans": spans}]}]}).encode()
    reply = client.post_raw("/v1/traces", body, x_project_id=client.project)
    assert (reply.status, reply.body) == (200, {}), reply.raw
    return trace_id


def typed(value: Any) -> dict[str, Any]:
    if isinstance(value, int):
        return {"intValue": str(value)}
    return {"doubleValue": value} if isinstance(value, float) else {"stringValue": value}


def read(client: Client, trace_id: str) -> Any:
    return client.get(f"/v1/traces/{trace_id}", project_id=client.project).body


def test_sessions_and_users_of_the_native_ingest_are_fields_and_filters(client: Client) -> None:
    session, user = f"s-{new_id()}", f"u-{new_id()}"
    first, _ = client.trace(session_id=session, user_id=user)
    second, _ = client.trace(session_id=session, user_id="someone else")
    client.trace()
    got = read(client, first)
    assert (got["session_id"], got["user_id"]) == (session, user)
    assert (got["spans"][0]["session_id"], got["spans"][0]["user_id"]) == (session, user)

    def listed(**asked: Any) -> list[str]:
        return [row["id"] for row in client.pages("/v1/traces", project_id=client.project, limit=1, **asked)]

    assert listed(session_id=session) == [second, first]
    assert listed(user_id=user) == [first]
    assert listed(session_id=session, user_id=user) == [first]
    assert listed(session_id="nobody's") == []
    assert listed(session_id=session, name="other") == []
    [row] = client.get("/v1/traces", project_id=client.project, user_id=user).body["items"]
    assert (row["session_id"], row["user_id"]) == (session, user)


@pytest.mark.parametrize(
    "name",
    [
        "session.id",
        "langfuse.session.id",
        "gen_ai.conversation.id",
        "traceloop.association.properties.session_id",
        "ai.telemetry.metadata.sessionId",
        "mlflow.trace.session",
    ],
)
def test_every_spelling_of_a_session(client: Client, name: str) -> None:
    trace_id = export(client, {name: "abc", "other": 1})
    got = read(client, trace_id)
    assert got["session_id"] == "abc"
    assert got["metadata"] == {"other": 1}


@pytest.mark.parametrize(
    "name",
    [
        "user.id",
        "enduser.id",
        "langfuse.user.id",
        "traceloop.association.properties.user_id",
        "ai.telemetry.metadata.userId",
        "mlflow.trace.user",
    ],
)
def test_every_spelling_of_a_user(client: Client, name: str) -> None:
    assert read(client, export(client, {name: "ada"}))["user_id"] == "ada"


def test_a_session_sums_up_its_traces(client: Client) -> None:
    session = new_id()
    paid = {"model": "gpt-4o-mini", "tokens_input": 1000, "tokens_output": 100, "session_id": session}
    client.trace(**paid, user_id="ada")
    client.trace(**{**paid, "model": "nobody-knows"}, user_id="bob", error={"message": "no"})
    client.trace(session_id=new_id())
    [_, got] = client.pages("/v1/sessions", project_id=client.project)
    assert got["first_at"] <= got["last_at"]
    assert got | {"first_at": "", "last_at": ""} == {
        "id": session,
        "project_id": client.project,
        "trace_count": 2,
        "error_count": 1,
        "user_ids": ["ada", "bob"],
        "first_at": "",
        "last_at": "",
        "tokens": 2200,
        "cost_usd": 0.00021,
        "cost_known_calls": 1,
        "cost_unknown_calls": 1,
    }


def test_a_session_that_is_named_late_is_the_traces(client: Client) -> None:
    trace_id, root = client.trace(tokens_input=5)
    assert read(client, trace_id)["session_id"] is None
    late = span(trace_id=trace_id, parent_span_id=root, session_id="late", user_id="ada")
    assert client.spans(late).status == 201
    other = span(trace_id=trace_id, parent_span_id=root, session_id="later", user_id="bob")
    assert client.spans(other).status == 201
    got = read(client, trace_id)
    assert (got["session_id"], got["user_id"]) == ("late", "ada")
    [session] = client.pages("/v1/sessions", project_id=client.project)
    assert (session["id"], session["trace_count"], session["tokens"]) == ("late", 1, 5)


def test_a_session_goes_with_its_last_trace(client: Client) -> None:
    session = new_id()
    one, two = (client.trace(session_id=session)[0] for _ in range(2))
    assert client.delete(f"/v1/traces/{one}").status == 200
    [left] = client.pages("/v1/sessions", project_id=client.project)
    assert (left["id"], left["trace_count"]) == (session, 1)
    assert client.delete(f"/v1/traces/{two}").status == 200
    assert list(client.pages("/v1/sessions", project_id=client.project)) == []


def test_sessions_of_two_projects_with_one_name_stay_apart(client: Client) -> None:
    client.trace(session_id="shared")
    with closing(client.again(project=new_id())) as other:
        other.trace(session_id="shared")
        other.trace(session_id="shared")
        [theirs] = other.pages("/v1/sessions", project_id=other.project)
    [ours] = client.pages("/v1/sessions", project_id=client.project)
    assert (ours["trace_count"], theirs["trace_count"]) == (1, 2)


def test_a_cost_that_was_given_wins_over_the_price_table(client: Client) -> None:
    trace_id, _ = client.trace(model="gpt-4o", tokens_input=10, tokens_output=10, cost_usd=0.1)
    [got] = read(client, trace_id)["spans"]
    assert (got["cost_usd"], got["cost_source"]) == (0.1, "reported")


def test_an_unknown_price_is_unknown_and_never_0(client: Client) -> None:
    trace_id, root = client.trace(model="my-own-model", tokens_input=10, tokens_output=10)
    got = read(client, trace_id)
    assert (got["spans"][0]["cost_usd"], got["spans"][0]["cost_source"]) == (None, None)
    assert [got[name] for name in COST_FIELDS] == [None, 0, 1]
    # Two tenths that are not 0.30000000000000004 in sum, a free call, and a span that is no call.
    for cost in (0.1, 0.2, 0.0):
        assert client.spans(span(trace_id=trace_id, parent_span_id=root, cost_usd=cost)).status == 201
    assert client.spans(span(trace_id=trace_id, parent_span_id=root)).status == 201
    assert [read(client, trace_id)[name] for name in COST_FIELDS] == [0.3, 3, 1]
    [row] = client.pages("/v1/traces", project_id=client.project)
    assert [row[name] for name in COST_FIELDS] == [0.3, 3, 1]


@pytest.mark.parametrize("cost", [-0.1, 1_000_001, "much", True])
def test_what_is_no_amount_of_money_is_refused(client: Client, cost: Any) -> None:
    reply = client.spans(span(cost_usd=cost))
    assert (reply.status, reply.code) == (400, "INVALID_SPAN")
    assert "cost_usd" in reply.body["error"]["message"]


def test_sums_of_impossible_costs_stop_at_what_can_be_stored(client: Client) -> None:
    trace_id, root = client.trace(cost_usd=1_000_000, session_id="rich")
    more = [span(trace_id=trace_id, parent_span_id=root, cost_usd=1_000_000) for _ in range(20)]
    assert client.spans(*more).status == 201
    assert client.spans(*(one | {"id": new_id()} for one in more)).status == 201
    assert read(client, trace_id)["cost_known_calls"] == 41
    for _ in range(3):
        client.trace(cost_usd=1_000_000, session_id="rich")
    [session] = client.pages("/v1/sessions", project_id=client.project)
    assert session["cost_usd"] > 4_000_000


REPORTED: list[tuple[dict[str, Any], float]] = [
    ({"gen_ai.usage.cost": 0.0123}, 0.0123),
    ({"llm.usage.total_cost": "0.25"}, 0.25),
    ({"llm.cost.total": 1}, 1.0),
    ({"operation.cost": 3.5e-07}, 3.5e-07),
    ({"langfuse.observation.cost_details": '{"input": 0.1, "output": 0.2, "total": 0.3}'}, 0.3),
    ({"langfuse.observation.cost_details": '{"input": 0.1, "output": 0.2}'}, 0.3),
]


@pytest.mark.parametrize(("attributes", "cost"), REPORTED)
def test_what_the_provider_reports_is_the_cost(
    client: Client, attributes: dict[str, Any], cost: float
) -> None:
    tokens = {
        "gen_ai.request.model": "gpt-4o",
        "gen_ai.usage.input_tokens": 1,
        "gen_ai.usage.output_tokens": 1,
    }
    [got] = read(client, export(client, {**tokens, **attributes}))["spans"]
    assert (got["cost_usd"], got["cost_source"]) == (cost, "reported")


def test_a_report_that_is_no_amount_is_kept_as_metadata(client: Client) -> None:
    for wrong in ("much", -1.0, '{"total": "x"}', "[1]", "1e999", "NaN"):
        [got] = read(client, export(client, {"gen_ai.usage.cost": wrong}))["spans"]
        assert got["cost_usd"] is None
        assert got["metadata"] == {"gen_ai.usage.cost": wrong}


def test_cached_tokens_cost_what_the_table_says(client: Client) -> None:
    row = shipped_prices()["gpt-4o-mini"]
    attributes = {
        "gen_ai.request.model": "gpt-4o-mini-2024-07-18",
        "gen_ai.usage.input_tokens": 1000,
        "gen_ai.usage.output_tokens": 10,
        "gen_ai.usage.cache_read.input_tokens": 400,
    }
    [got] = read(client, export(client, attributes))["spans"]
    assert row.cache_read is not None
    exact = (600 * row.input + 400 * row.cache_read + 10 * row.output) / 1_000_000
    assert Decimal(repr(got["cost_usd"])) == exact
    assert got["cost_source"] == "shipped"


def test_every_shipped_price_has_a_source_and_a_date() -> None:
    rows = shipped_prices()
    assert len(rows) > 100
    for name, row in rows.items():
        assert row.source.startswith("https://"), name
        assert len(row.as_of) == 10, name
        assert row.input >= 0, name


def test_costs_are_exact() -> None:
    row = find_row("openai/gpt-4o-mini", shipped_prices())
    assert row is not None
    assert picodollars(row, 1_000_001, 1) == 150_000_150_000 + 600_000
    # Longer prompts than a price holds for, more cached tokens than tokens, an unknown price of caching: unknown.
    long = shipped_prices()["gemini-2.5-pro"]
    assert long.up_to == 200_000
    assert picodollars(long, 200_000, 0) == 250_000_000_000
    assert picodollars(long, 200_001, 0) is None
    assert picodollars(row, 10, 0, cache_read=11) is None
    assert picodollars(row, 10, 0, cache_write=5) is None
    assert PriceBook().cost("gpt-4o", None, 5) == (None, None)
    assert reported(0.1) == 10**11
    assert reported("0.0000000000005") == 0  # half a picodollar, to even


def test_prices_of_ones_own(tmp_path: Path) -> None:
    config = tmp_path / "evenhand.toml"
    config.write_text(
        '[prices."house-1"]\ninput_usd = 0.1\noutput_usd = 0.2\n[prices.GPT-4o]\ninput_usd = 1\noutput_usd = 1\n'
    )
    server = ServerProcess(f"sqlite:///{tmp_path}/e.db", folder=tmp_path, options=["--config", str(config)])
    server.start()
    try:
        with closing(Client(server.address, ADMIN_TOKEN)) as client:
            for model, cost in (
                ("house-1", 0.0000003),
                ("acme/house-1", 0.0000003),
                ("gpt-4o-2024-08-06", 0.000002),
            ):
                trace_id, _ = client.trace(model=model, tokens_input=1, tokens_output=1)
                [got] = client.get(f"/v1/traces/{trace_id}").body["spans"]
                assert (got["cost_usd"], got["cost_source"]) == (cost, "configured")
    finally:
        server.stop()

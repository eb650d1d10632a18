"""The project's summary, on both databases."""

from datetime import timedelta

from tests.service import ServiceUnderTest
from tests.service_harness import Client, span

from evenhand.core.timestamps import now
from evenhand.store.project_summary import summarise_project


def test_an_empty_project(client: Client) -> None:
    got = client.get(f"/v1/projects/{client.project}/summary").body
    nothing = {
        "count": 0,
        "error_count": 0,
        "error_rate": 0,
        "avg_duration_ms": None,
        "tokens": 0,
        "cost_usd": None,
        "cost_known_share": None,
    }
    assert got["traces"] == {"last_24h": nothing, "last_7d": nothing}
    assert got["experiments"] == {
        "created_count": 0,
        "running_count": 0,
        "completed_count": 0,
        "most_recent_completed": None,
    }
    assert got["queue"] == {"pending_count": 0, "annotated_count": 0}


def test_traces_are_counted_with_errors_and_durations_of_roots(client: Client) -> None:
    first, root = client.trace(end_time="2026-02-21T22:00:01Z")
    client.trace(end_time="2026-02-21T22:00:02Z")
    client.trace()
    # the error of a child counts for its trace; its duration does not
    client.spans(
        span(trace_id=first, parent_span_id=root, end_time="2026-02-21T22:00:09Z", error={"message": "x"})
    )
    got = client.get(f"/v1/projects/{client.project}/summary").body["traces"]
    # 1 of 3 traces: 0.333 to three decimals; roots with a duration: (1000 + 2000) / 2
    expected = {
        "count": 3,
        "error_count": 1,
        "error_rate": 0.333,
        "avg_duration_ms": 1500,
        "tokens": 0,
        "cost_usd": None,
        "cost_known_share": None,
    }
    assert got == {"last_24h": expected, "last_7d": expected}


def test_the_cost_says_for_which_share_of_the_calls_it_is_known(client: Client) -> None:
    trace, root = client.trace(tokens_input=5, cost_usd=0.25)
    client.spans(
        span(trace_id=trace, parent_span_id=root, tokens_output=7, cost_usd=0.5),
        span(trace_id=trace, parent_span_id=root, tokens_output=1),
    )
    got = client.get(f"/v1/projects/{client.project}/summary").body["traces"]["last_24h"]
    assert (got["tokens"], got["cost_usd"], got["cost_known_share"]) == (13, 0.75, 0.667)


def test_the_windows_end_after_24_hours_and_7_days(client: Client, shared_service: ServiceUnderTest) -> None:
    client.trace()

    def counts(later: timedelta) -> tuple[int, int]:
        moment = now() + later
        got = shared_service.database.read_now(
            lambda connection: summarise_project(connection, client.project, moment)
        ).traces
        return got.last_24h.count, got.last_7d.count

    assert counts(timedelta(0)) == (1, 1)
    assert counts(timedelta(hours=23)) == (1, 1)
    assert counts(timedelta(hours=25)) == (0, 1)
    assert counts(timedelta(days=8)) == (0, 0)


def test_experiments_by_status_and_the_most_recent_completed(client: Client) -> None:
    dataset, items = client.dataset(["a", "b"])
    client.experiment(dataset)
    running = client.experiment(dataset)
    client.runs(running, [{"dataset_item_id": items[0], "output": 1}])
    for values in ([0.1, 0.2], [0.1, 0.3]):
        done = client.experiment(dataset)
        client.runs(
            done,
            [
                {
                    "dataset_item_id": item,
                    "output": 1,
                    "scores": [{"scorer_name": "s", "value": value}, {"scorer_name": "label", "value": "x"}],
                }
                for item, value in zip(items, values, strict=True)
            ],
        )
    got = client.get(f"/v1/projects/{client.project}/summary").body["experiments"]
    assert (got["created_count"], got["running_count"], got["completed_count"]) == (1, 1, 2)
    recent = got["most_recent_completed"]
    assert recent["id"] == done
    assert recent["completed_at"]
    # exact: (0.1 + 0.3) / 2; labels have no mean
    assert recent["mean_scores"] == {"s": 0.2}


def test_the_queue_is_counted(client: Client) -> None:
    made = [client.trace()[0] for _ in range(3)]
    for trace in made:
        client.post(f"/v1/traces/{trace}/queue")
    client.made("/v1/annotations", {"trace_id": made[0], "annotator": "a", "label": "x"})
    client.delete(f"/v1/traces/{made[2]}/queue")
    got = client.get(f"/v1/projects/{client.project}/summary").body["queue"]
    assert got == {"pending_count": 1, "annotated_count": 1}


def test_an_unknown_project_is_404(client: Client) -> None:
    assert client.get("/v1/projects/no-such/summary").code == "NOT_FOUND"

"""The demonstration holds what its description promises, and is the same every time."""

from pathlib import Path
from typing import Any

from click.testing import CliRunner
from tests.service import ServiceUnderTest, running_service

from evenhand.cli.db import command as db
from evenhand.server.demo import fill


def listed(service: ServiceUnderTest, path: str, **query: Any) -> list[Any]:
    found: list[Any] = []
    more: dict[str, Any] = {}
    while True:
        page = service.get(path, project_id="demo", limit=200, **query, **more).body
        found += page["items"]
        if page["next_cursor"] is None:
            return found
        more = {"cursor": page["next_cursor"]}


def test_the_demonstration_shows_everything(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'demo.db'}"
    with running_service(url) as service:
        assert service.database.write_now(fill) is True
        assert service.database.write_now(fill) is False  # there already
        traces = listed(service, "/v1/traces")
        assert len(traces) >= 200
        assert sum(trace["error_count"] > 0 for trace in traces) >= 10
        assert max(trace["span_count"] for trace in traces) > 200
        assert [trace for trace in traces if trace["root_span_id"] is None]
        assert len({trace["session_id"] for trace in traces} - {None}) > 20
        ages = sorted(trace["created_at"][:10] for trace in traces)
        assert ages[0] < ages[-1]  # over weeks, not all of today
        experiments = {one["name"]: one["id"] for one in listed(service, "/v1/experiments")}
        base = experiments["prompt v3"]
        worse = service.get(f"/v1/experiments/{base}/compare/{experiments['prompt v4, small model']}").body
        by_name = {one["scorer_name"]: one for one in worse["scorer_comparisons"]}
        assert by_name["exact_match"]["ci_upper"] < 0  # the regression to find
        assert by_name["exact_match"]["regressed_count"] >= 10
        other = service.get(f"/v1/experiments/{base}/compare/{experiments['prompt v4, new judge']}").body
        by_name = {one["scorer_name"]: one for one in other["scorer_comparisons"]}
        assert "a1f3" in by_name["helpfulness"]["not_comparable"]
        runs = listed(service, f"/v1/experiments/{base}/runs")
        assert {run["repeat"] for run in runs} == {0, 1, 2}
        assert service.get(f"/v1/traces/{runs[0]['trace_id']}").status == 200
        queue = listed(service, "/v1/queue")
        assert {one["status"] for one in queue} == {"pending", "annotated"}
        said = [
            one
            for item in queue
            for one in service.get("/v1/annotations", trace_id=item["trace_id"]).body["items"]
        ]
        assert len({one["annotator"] for one in said}) == 2
        assert len(listed(service, "/v1/rules")) == 2
        [job] = listed(service, "/v1/jobs")
        assert (job["status"], job["message"]) == ("failed", "The reply holds no number from 1 to 5.")
    done = CliRunner().invoke(db, ["check", "--database", url])
    assert (done.exit_code, done.output) == (0, "Everything agrees with a recount.\n")


def test_it_is_the_same_every_time(tmp_path: Path) -> None:
    shown = []
    for name in ("a", "b"):
        with running_service(f"sqlite:///{tmp_path / name}.db") as service:
            service.database.write_now(fill)
            traces = listed(service, "/v1/traces")
            shown.append(sorted((t["id"], t["name"], t["span_count"], t["tokens"]) for t in traces))
    assert shown[0] == shown[1]

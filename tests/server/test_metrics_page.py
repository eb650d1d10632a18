"""`/metrics` is Prometheus's text format, and its numbers are exact."""

import re
from collections import defaultdict
from pathlib import Path

from tests.service_harness import Client

from evenhand.server.http.telemetry import Telemetry, render
from evenhand.store.database import open_database

SAMPLE = re.compile(r'([a-z_]+)(?:\{((?:[a-z]+="[^"\\\n]*",?)+)\})? (\S+)')
SUFFIX = re.compile(r"_(bucket|sum|count)$")


def samples(text: str) -> dict[str, dict[str, float]]:
    """By family, then by name and labels. Every sample must follow the type of its family."""
    found: defaultdict[str, dict[str, float]] = defaultdict(dict)
    kinds: dict[str, str] = {}
    assert text.endswith("\n")
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in kinds
            kinds[name] = kind
            continue
        if line.startswith("# HELP "):
            continue
        match = SAMPLE.fullmatch(line)
        assert match is not None, line
        name, labels, value = match[1], match[2] or "", float(match[3])
        family = SUFFIX.sub("", name) if SUFFIX.sub("", name) in kinds else name
        assert family in kinds, line
        assert (kinds[family] == "histogram") == (family != name)
        assert f"{name}{{{labels}}}" not in found[family], line
        found[family][f"{name}{{{labels}}}"] = value
    return found


def test_metrics_are_prometheus_text_and_count_the_requests(client: Client) -> None:
    for _ in range(3):
        client.dataset()
    reply = client.get("/metrics")
    assert reply.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    found = samples(reply.raw.decode())
    made = found["evenhand_requests_total"][
        'evenhand_requests_total{method="POST",path="/v1/datasets",status="201"}'
    ]
    assert made >= 3
    assert found["evenhand_writes_total"]["evenhand_writes_total{}"] >= 3
    times = found["evenhand_request_seconds"]
    labels = 'method="POST",path="/v1/datasets"'
    buckets = [
        value for key, value in times.items() if key.startswith(f"evenhand_request_seconds_bucket{{{labels}")
    ]
    assert len(buckets) > 5
    assert buckets == sorted(buckets)
    assert buckets[-1] == times[f"evenhand_request_seconds_count{{{labels}}}"] >= 3
    assert times[f"evenhand_request_seconds_sum{{{labels}}}"] > 0


def test_numbers_beyond_a_million_are_exact(tmp_path: Path) -> None:
    database = open_database(f"sqlite:///{tmp_path / 'e.db'}")
    try:
        telemetry = Telemetry()
        telemetry.refused_overload = 123_456_789
        found = samples(render(telemetry, database.writer, 2_345_678_901).decode())
    finally:
        database.close()
    assert found["evenhand_body_bytes"] == {"evenhand_body_bytes{}": 2_345_678_901}
    assert found["evenhand_requests_refused_total"] == {"evenhand_requests_refused_total{}": 123_456_789}

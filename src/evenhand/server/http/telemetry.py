"""Counters and latencies in Prometheus's text format. Labels are route templates and statuses, never data."""

from bisect import bisect_left
from collections import defaultdict

from evenhand.store.writer import Writer

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
METRICS_TYPE = b"text/plain; version=0.0.4; charset=utf-8"


class Telemetry:
    """Counts requests; touched by the event loop's thread only."""

    def __init__(self) -> None:
        self.requests: defaultdict[tuple[str, str, int], int] = defaultdict(int)
        self.seconds: defaultdict[tuple[str, str], list[float]] = defaultdict(
            lambda: [0.0] * (len(BUCKETS) + 2)
        )
        self.under_way = 0
        self.refused_overload = 0

    def record(self, method: str, path: str, status: int, seconds: float) -> None:
        self.requests[(method, path, status)] += 1
        slots = self.seconds[(method, path)]
        slots[bisect_left(BUCKETS, seconds)] += 1
        slots[-1] += seconds


def render(telemetry: Telemetry, writer: Writer, body_bytes: int) -> bytes:
    """The metrics page."""
    lines: list[str] = []

    def simple(name: str, kind: str, text: str, value: float) -> None:
        lines.extend((f"# HELP {name} {text}", f"# TYPE {name} {kind}", f"{name} {value!r}"))

    simple("evenhand_requests_under_way", "gauge", "Requests being answered.", telemetry.under_way)
    simple("evenhand_body_bytes", "gauge", "Bytes of bodies in memory.", body_bytes)
    simple("evenhand_writes_waiting", "gauge", "Writes waiting for the writer.", writer.waiting)
    simple("evenhand_writes_total", "counter", "Pieces of work that the writer has done.", writer.write_count)
    simple("evenhand_commits_total", "counter", "Transactions that they shared.", writer.commit_count)
    simple(
        "evenhand_writes_refused_total", "counter", "Writes refused: the queue was full.", writer.refused_busy
    )
    simple(
        "evenhand_writer_reopened_total",
        "counter",
        "Times that the writer opened the database again after a failure.",
        writer.reopened,
    )
    simple(
        "evenhand_requests_refused_total",
        "counter",
        "Requests refused: too many under way.",
        telemetry.refused_overload,
    )
    lines += [
        "# HELP evenhand_requests_total Requests by route and status.",
        "# TYPE evenhand_requests_total counter",
    ]
    for (method, path, status), count in sorted(telemetry.requests.items()):
        lines.append(f'evenhand_requests_total{{method="{method}",path="{path}",status="{status}"}} {count}')
    lines += [
        "# HELP evenhand_request_seconds Time to answer, by route.",
        "# TYPE evenhand_request_seconds histogram",
    ]
    for (method, path), slots in sorted(telemetry.seconds.items()):
        total = 0.0
        labels = f'method="{method}",path="{path}"'
        for bound, in_bucket in zip((*map(str, BUCKETS), "+Inf"), slots, strict=False):
            total += in_bucket
            lines.append(f'evenhand_request_seconds_bucket{{{labels},le="{bound}"}} {total!r}')
        lines.append(f"evenhand_request_seconds_sum{{{labels}}} {slots[-1]!r}")
        lines.append(f"evenhand_request_seconds_count{{{labels}}} {total!r}")
    return ("\n".join(lines) + "\n").encode()

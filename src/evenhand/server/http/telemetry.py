"""Counters and latencies in Prometheus's text format. Labels are route templates and statuses, never data."""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

from evenhand.models.counters import EndpointCounters
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
        self.streams_open = 0

    def record(self, method: str, path: str, status: int, seconds: float) -> None:
        self.requests[(method, path, status)] += 1
        slots = self.seconds[(method, path)]
        slots[bisect_left(BUCKETS, seconds)] += 1
        slots[-1] += seconds


class JobFigures(NamedTuple):
    """What the metrics say about jobs and the models that they ask."""

    waiting: list[tuple[str, int, float]]
    """Of the jobs that have not ended: status, number, and the age of the oldest in seconds."""
    ended: Mapping[str, int]
    """Jobs that this server worked on, by what came of it."""
    models: Mapping[str, EndpointCounters]
    """What judge models were asked for, by name."""


def render_jobs(figures: JobFigures) -> bytes:
    """The part of the metrics page about jobs."""
    lines: list[str] = []

    def family(name: str, kind: str, text: str, rows: Iterable[tuple[str, float]]) -> None:
        lines.extend((f"# HELP {name} {text}", f"# TYPE {name} {kind}"))
        lines.extend(f"{name}{labels} {value!r}" for labels, value in rows)

    statuses = {"pending": (0, 0.0), "running": (0, 0.0)} | {row[0]: row[1:] for row in figures.waiting}
    family(
        "evenhand_jobs", "gauge", "Jobs that have not ended.",
        ((f'{{status="{status}"}}', row[0]) for status, row in statuses.items()),
    )  # fmt: skip
    family(
        "evenhand_job_oldest_seconds", "gauge", "Age of the oldest job that has not ended.",
        [("", max(row[1] for row in statuses.values()))],
    )  # fmt: skip
    family(
        "evenhand_jobs_worked_total", "counter", "Attempts at jobs by this server, by what came of them.",
        ((f'{{outcome="{name}"}}', figures.ended.get(name, 0)) for name in ("scored", "unscored", "failed", "retried")),
    )  # fmt: skip
    models = [(f'{{model="{_label(name)}"}}', usage) for name, usage in sorted(figures.models.items())]
    for name, text, read in _USAGE:
        family(name, "counter", text, ((labels, read(usage)) for labels, usage in models))
    return ("\n".join(lines) + "\n").encode()


_USAGE: tuple[tuple[str, str, Callable[[EndpointCounters], float]], ...] = (
    ("evenhand_judge_requests_total", "Requests sent to a judge model.", lambda usage: usage.requests),
    ("evenhand_judge_errors_total", "Questions without a reply.", lambda usage: sum(usage.gave_up.values())),
    ("evenhand_judge_input_tokens_total", "Tokens of the questions.", lambda usage: usage.input_tokens),
    ("evenhand_judge_output_tokens_total", "Tokens of the replies.", lambda usage: usage.output_tokens),
    (
        "evenhand_judge_cost_usd_total",
        "Price of the replies, where one is known.",
        lambda usage: usage.cost_usd,
    ),
)


def _label(text: str) -> str:
    return "".join(character if character not in '"\\\n' else "_" for character in text)


def render(telemetry: Telemetry, writer: Writer, body_bytes: int) -> bytes:
    """The metrics page."""
    lines: list[str] = []

    def simple(name: str, kind: str, text: str, value: float) -> None:
        lines.extend((f"# HELP {name} {text}", f"# TYPE {name} {kind}", f"{name} {value!r}"))

    simple("evenhand_requests_under_way", "gauge", "Requests being answered.", telemetry.under_way)
    simple("evenhand_streams_open", "gauge", "Event streams of open pages.", telemetry.streams_open)
    simple("evenhand_body_bytes", "gauge", "Bytes of bodies in memory.", body_bytes)
    simple("evenhand_writes_waiting", "gauge", "Writes waiting for the writer.", writer.waiting)
    simple("evenhand_writes_total", "counter", "Pieces of work that the writer has done.", writer.write_count)
    simple("evenhand_commits_total", "counter", "Transactions that they shared.", writer.commit_count)
    simple(
        "evenhand_commit_seconds_total",
        "counter",
        "Time that those transactions took.",
        writer.commit_seconds,
    )
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

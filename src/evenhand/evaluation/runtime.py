"""`runtime_stats.json`: how long, how many tokens, how much."""

from array import array
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec import Struct

from evenhand.evaluation.records import Generated, Judged, Measured

PERCENTILES = (50, 90, 95, 99)


class Latency(Struct, frozen=True, kw_only=True):
    """Seconds of the model's calls that succeeded."""

    mean: float | None
    p50: float | None
    p90: float | None
    p95: float | None
    p99: float | None
    max: float | None


class Tokens(Struct, frozen=True, kw_only=True):
    """Tokens of one model, as its endpoint counted them."""

    input: int
    """Of questions."""
    output: int
    """Of answers."""


class RuntimeStats(Struct, frozen=True, kw_only=True):
    """The content of `runtime_stats.json`. Times and rates are of the last process that worked on the run."""

    elapsed_seconds: float
    """From the start of the process's work to its last answer."""
    samples_per_second: float | None
    """Samples finished by this process in that time."""
    output_tokens_per_second: float | None
    """Tokens of answers received by this process in that time."""
    latency_seconds: Latency
    """Of all calls of the run."""
    tokens: Tokens
    """Of the model under test."""
    judge_tokens: Tokens
    """Of the judge."""
    cost_usd: float | None
    """Of the model under test; null when no price is known."""
    judge_cost_usd: float | None
    """Of the judge; null when no price is known."""
    calls: int
    """Answers that the model gave."""
    retries: int
    """Requests that had to be sent again."""
    cached: int
    """Answers that came from the cache."""
    cut_off: int
    """Answers that were cut off, at the length limit or inside their thinking; right ones are among them."""
    errors: dict[str, int]
    """Samples without an answer, by reason."""
    scoring_seconds: float
    """Time spent in scorers, summed over samples."""
    adjusted: dict[str, int] = {}
    """Parameters that the endpoint does not take and what was done about each, with the number of answers."""


class RuntimeCollector:
    """Takes the steps of every sample."""

    def __init__(self) -> None:
        self.latencies = array("d")
        self.output_tokens = array("d")
        self._tokens = [0, 0]
        self._judge_tokens = [0, 0]
        self._cost: float | None = None
        self._judge_cost: float | None = None
        self._retries = self._cached = self._cut_off = 0
        self._errors: Counter[str] = Counter()
        self._adjusted: Counter[str] = Counter()
        self._scoring = 0.0

    def add(self, generated: Generated, measured: Measured | None, judged: Mapping[str, Judged]) -> None:
        self._retries += generated.attempts - 1
        self._tokens[0] += generated.input_tokens or 0
        self._tokens[1] += generated.output_tokens or 0
        if generated.cost_usd is not None:
            self._cost = (self._cost or 0.0) + generated.cost_usd
        self._adjusted.update(generated.adjusted)
        if generated.error is None:
            self.latencies.append(generated.latency_seconds)
            self._cached += generated.cached
            self._cut_off += generated.truncated or generated.finish_reason == "length"
            if generated.output_tokens is not None:
                self.output_tokens.append(generated.output_tokens)
        else:
            self._errors[generated.error] += 1
        asked: list[Measured | Judged] = [*judged.values()]
        if measured is not None:
            self._scoring += measured.seconds
            asked.append(measured)
        for one in asked:
            self._judge_tokens[0] += one.input_tokens
            self._judge_tokens[1] += one.output_tokens
            if one.cost_usd is not None:
                self._judge_cost = (self._judge_cost or 0.0) + one.cost_usd

    def stats(self, elapsed: float, samples: int, tokens: int) -> RuntimeStats:
        return RuntimeStats(
            elapsed_seconds=round(elapsed, 3),
            samples_per_second=round(samples / elapsed, 3) if elapsed > 0 else None,
            output_tokens_per_second=round(tokens / elapsed, 3) if elapsed > 0 else None,
            latency_seconds=self._latency(),
            tokens=Tokens(input=self._tokens[0], output=self._tokens[1]),
            judge_tokens=Tokens(input=self._judge_tokens[0], output=self._judge_tokens[1]),
            cost_usd=_dollars(self._cost),
            judge_cost_usd=_dollars(self._judge_cost),
            calls=len(self.latencies),
            retries=self._retries,
            cached=self._cached,
            cut_off=self._cut_off,
            errors=dict(sorted(self._errors.items())),
            scoring_seconds=round(self._scoring, 3),
            adjusted=dict(self._adjusted),
        )

    def _latency(self) -> Latency:
        if not self.latencies:
            return Latency(mean=None, p50=None, p90=None, p95=None, p99=None, max=None)
        ordered = sorted(self.latencies)
        p50, p90, p95, p99 = (round(percentile(ordered, share), 6) for share in PERCENTILES)
        mean = round(sum(ordered) / len(ordered), 6)
        return Latency(mean=mean, p50=p50, p90=p90, p95=p95, p99=p99, max=round(ordered[-1], 6))


def _dollars(cost: float | None) -> float | None:
    return None if cost is None else round(cost, 8)


def percentile(ordered: Sequence[float], share: float) -> float:
    """The value below which `share` per cent of sorted values lie, interpolated between neighbours."""
    place = (len(ordered) - 1) * share / 100
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (ordered[high] - ordered[low]) * (place - low)

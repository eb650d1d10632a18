"""How far a run is: one line that is rewritten on a terminal or in a notebook, a plain line now and then in a log."""

import math
import sys
import time

from evenhand.evaluation.ledger import Ledger

LOG_SECONDS = 10.0
"""How often a log gets a line."""


class ProgressLine:
    """Done, errors, score so far with its interval, tokens per second, cost, time left. Always on stderr."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._terminal = sys.stderr.isatty()
        self._notebook = "ipykernel" in sys.modules
        self._width = 0
        self._start: float | None = None
        self._first = (0, 0)
        self._next_log = LOG_SECONDS
        self._shown = False

    def tick(self, ledger: Ledger) -> None:
        now = time.monotonic()
        if self._start is None:
            self._start = now
            self._first = (ledger.durable, ledger.spent.output_tokens)
        elapsed = now - self._start
        if self._terminal or self._notebook:
            self._rewrite(self.text(ledger, elapsed))
            self._shown = True
        elif elapsed >= self._next_log:
            self._next_log = elapsed + LOG_SECONDS
            print(self.text(ledger, elapsed), file=sys.stderr, flush=True)

    def clear(self) -> None:
        """Leave the terminal as it was."""
        if self._shown:
            self._rewrite("")
            self._shown = False

    def _rewrite(self, text: str) -> None:
        # A notebook knows the carriage return, but not the code that clears a line.
        line = text.ljust(self._width) if self._notebook else f"\x1b[2K{text}"
        self._width = len(text)
        sys.stderr.write(f"\r{line}")
        sys.stderr.flush()

    def text(self, ledger: Ledger, elapsed: float) -> str:
        """The line itself."""
        parts = [f"{self._name} {ledger.durable:,}/{len(ledger):,}"]
        scored = ledger.scored
        if scored:
            mean = ledger.reward_sum / scored
            low, high = wilson(mean, scored)
            parts.append(f"score {mean:.3f} [{low:.3f}, {high:.3f}]")
        if ledger.failed:
            parts.append(f"{ledger.failed:,} failed")
        done = ledger.durable - self._first[0]
        if elapsed > 0.5:
            parts.append(f"{(ledger.spent.output_tokens - self._first[1]) / elapsed:,.0f} tok/s")
        if ledger.spent.priced:
            parts.append(f"${ledger.spent.cost_usd:.2f}")
        if done > 0 and elapsed > 0.5 and ledger.durable < len(ledger):
            parts.append(f"{_clock((len(ledger) - ledger.durable) * elapsed / done)} left")
        return "  ".join(parts)


def wilson(mean: float, n: int, z: float = 1.959963984540054) -> tuple[float, float]:
    """A quick interval for the line; the report has the exact one. Conservative for rewards between 0 and 1."""
    share = min(max(mean, 0.0), 1.0)
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
    return max(0.0, centre - half), min(1.0, centre + half)


def _clock(seconds: float) -> str:
    whole = round(seconds)
    hours, rest = divmod(whole, 3600)
    return f"{hours}:{rest // 60:02}:{rest % 60:02}" if hours else f"{rest // 60}:{rest % 60:02}"

"""How much may be in flight: concurrency that adapts to 429s, and budgets per minute."""

import asyncio
from collections import deque


class AdaptiveLimit:
    """Slots for requests: up to `maximum`, fewer while the endpoint answers 429, growing again after.

    The share of 429s decides, over windows of about as many requests as there are slots. A single 429 among
    many successes is noise, and halving on it (as TCP does on loss) would hold a healthy endpoint at a handful
    of requests.
    """

    TOLERATED = 0.1
    """Share of 429s below which the limit grows."""

    def __init__(self, maximum: int) -> None:
        self.maximum = maximum
        self.limit = float(maximum)
        self.slots = maximum
        """How many may be in flight at present: the limit in whole requests, at least one."""
        self.in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._seen = 0
        self._refused = 0

    def enter_at_once(self) -> bool:
        """Take a slot if one is free and nobody waits."""
        if self._waiting or self.in_flight >= self.slots:
            return False
        self.in_flight += 1
        return True

    async def enter(self) -> None:
        """Take a slot, after those who came before."""
        if self.enter_at_once():
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                # The slot was handed over in the same moment: pass it on.
                self.leave()
            raise

    def leave(self) -> None:
        """Give the slot back."""
        self.in_flight -= 1
        if self._waiting:
            self._wake()

    def observe(self, *, refused: bool) -> None:
        """Count one finished request; `refused` means 429."""
        self._seen += 1
        self._refused += refused
        if self._seen < max(10, self.slots):
            return
        share = self._refused / self._seen
        if share > self.TOLERATED:
            self.limit = max(1.0, self.limit * (1.0 - share / 2.0))
        else:
            self.limit = min(float(self.maximum), self.limit * 1.1 + 1.0)
        self.slots = max(1, int(self.limit))
        self._seen = self._refused = 0
        self._wake()

    def _wake(self) -> None:
        while self._waiting and self.in_flight < self.slots:
            turn = self._waiting.popleft()
            if not turn.done():
                self.in_flight += 1
                turn.set_result(None)


class PerMinute:
    """A bucket that fills at `amount` a minute and holds at most a second's worth or one call's."""

    def __init__(self, amount: float) -> None:
        self._rate = amount / 60.0
        self._depth = max(1.0, self._rate)
        self._level = self._depth
        self._at: float | None = None

    async def take(self, cost: float = 1.0) -> None:
        """Wait until `cost` may be spent; calls are served in the order of arrival."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if self._at is None:
            self._at = now
        self._level = min(self._depth, self._level + (now - self._at) * self._rate)
        self._at = now
        # The level may go below zero: a debt that later callers wait for, each behind the one before.
        self._level -= cost
        if self._level < 0:
            await asyncio.sleep(-self._level / self._rate)

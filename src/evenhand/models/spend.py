"""A hard cap on spending: no call is started that could take the sum past it."""

import asyncio
from collections import deque

from evenhand.core.errors import BudgetExceeded, OptionError


class SpendCap:
    """Shared by the calls of one or more endpoints in one event loop.

    Before a call its worst case is reserved; afterwards what it really cost is booked and the rest given back.
    A call that does not fit waits for those in flight, whose worst cases may come back; with none in flight it
    never will fit.
    """

    def __init__(self, cap_usd: float, *, spent_usd: float = 0.0) -> None:
        if cap_usd < 0:
            raise OptionError("the spend cap must not be negative")
        self.cap_usd = cap_usd
        self.spent_usd = spent_usd
        self.reserved_usd = 0.0
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def reserve(self, worst_usd: float) -> None:
        """Set `worst_usd` aside; `BudgetExceeded` when it can never fit."""
        while self.spent_usd + self.reserved_usd + worst_usd > self.cap_usd:
            if self._in_flight == 0:
                raise BudgetExceeded(
                    f"the spend cap of {self.cap_usd:.4f} USD is reached ({self.spent_usd:.4f} USD spent)",
                    kind="budget_exceeded",
                )
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
        self._in_flight += 1
        self.reserved_usd += worst_usd

    def settle(self, worst_usd: float, actual_usd: float) -> None:
        """Book what a reserved call cost."""
        self._in_flight -= 1
        self.reserved_usd = self.reserved_usd - worst_usd if self._in_flight else 0.0
        self.spent_usd += actual_usd
        waiting, self._waiting = self._waiting, deque()
        for turn in waiting:
            if not turn.done():
                turn.set_result(None)

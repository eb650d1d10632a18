"""Where every sample of a run stands: pending, generated, waiting for the judge, done."""

import math
from array import array

from msgspec import Struct

from evenhand.core.outcome import Failed, Outcome, Scored
from evenhand.evaluation.journal import Journal, Place, Places
from evenhand.evaluation.records import Generated, Judged, Measured, Step

PENDING, GENERATED, UNJUDGED, SCORED, UNSCORED, FAILED = range(6)
DONE = (SCORED, UNSCORED, FAILED)
NEEDS_JUDGE = "needs_judge"
# Asking again cannot help: the question or the scorer is at fault, not the infrastructure.
PERMANENT = frozenset(
    {
        "context_length",
        "content_filter",
        "bad_request",
        "bad_result",
        "scorer_error",
        "invalid_option",
        "no_test",
        "bad_test",
    }
)


class Spent(Struct, kw_only=True):
    """What a run has used so far, the work of earlier processes included."""

    calls: int = 0
    """Calls of the model that ended in an answer."""
    input_tokens: int = 0
    """Tokens of questions."""
    output_tokens: int = 0
    """Tokens of answers."""
    cost_usd: float = 0.0
    """Known prices, judge included."""
    priced: bool = False
    """Whether any price was known."""


class Ledger:
    """The state of every sample, rebuilt from the journal and kept in step with it."""

    def __init__(self, journal: Journal, samples: int) -> None:
        self.journal = journal
        self.state = bytearray(samples)
        self.rewards = array("d", [math.nan]) * samples
        self.generated = Places(samples)
        self.measured = Places(samples)
        self.judged = Places(samples)
        self.spent = Spent()
        self.reward_sum = 0.0
        self.durable = 0  # done and known to be on the disk: only this is shown as progress
        self._retryable = bytearray(samples)
        for step, place in journal.replay():
            if 0 <= step.key < samples:
                self._apply(step, place)
        self.durable = self.done()

    def __len__(self) -> int:
        return len(self.state)

    def add(self, step: Step) -> None:
        """Write a finished step down, then count it."""
        self._apply(step, self.journal.append(step))

    def reopen_failed(self) -> int:
        """Samples that failed for infrastructure reasons become pending again; how many."""
        count = 0
        for key, state in enumerate(self.state):
            if state == FAILED and self._retryable[key]:
                count += 1
                if key in self.judged:
                    self.state[key] = UNJUDGED
                elif key in self.measured:
                    self.state[key] = GENERATED
                else:
                    self.state[key] = PENDING
        return count

    def done(self) -> int:
        return self.scored + self.state.count(UNSCORED) + self.failed

    @property
    def scored(self) -> int:
        return self.state.count(SCORED)

    @property
    def failed(self) -> int:
        return self.state.count(FAILED)

    def generation(self, key: int) -> Generated:
        step = self.generated.read(self.journal, key)
        assert isinstance(step, Generated)
        return step

    def measurement(self, key: int) -> Measured | None:
        if key not in self.measured:
            return None
        step = self.measured.read(self.journal, key)
        assert isinstance(step, Measured)
        return step

    def any_judged(self) -> bool:
        """Whether a judge was asked about any sample."""
        return any(offset >= 0 for offset in self.judged.offsets)

    def judgement(self, key: int) -> Judged | None:
        if key not in self.judged:
            return None
        step = self.judged.read(self.journal, key)
        assert isinstance(step, Judged)
        return step

    def _apply(self, step: Step, place: Place) -> None:
        key = step.key
        match step:
            case Generated():
                self.generated.put(key, place)
                self.measured.drop(key)
                self.judged.drop(key)
                self._spend(step)
                if step.error is None:
                    self._set(key, GENERATED)
                else:
                    self._fail(key, step.error)
            case Measured():
                self.measured.put(key, place)
                self.judged.drop(key)
                self._conclude(key, step.outcome)
            case Judged():
                self.judged.put(key, place)
                self._spend(step)
                self._conclude(key, step.outcome)

    def _conclude(self, key: int, outcome: Outcome) -> None:
        if isinstance(outcome, Failed):
            self._fail(key, outcome.error)
        elif isinstance(outcome, Scored):
            self._set(key, SCORED, reward_of(outcome))
        else:
            self._set(key, UNJUDGED if outcome.reason == NEEDS_JUDGE and key not in self.judged else UNSCORED)

    def _fail(self, key: int, error: str) -> None:
        self._set(key, FAILED)
        self._retryable[key] = error not in PERMANENT

    def _set(self, key: int, state: int, reward: float = math.nan) -> None:
        if self.state[key] == SCORED and not math.isnan(self.rewards[key]):
            self.reward_sum -= self.rewards[key]
        self.state[key] = state
        self.rewards[key] = reward
        if not math.isnan(reward):
            self.reward_sum += reward

    def _spend(self, step: Generated | Judged) -> None:
        spent = self.spent
        if isinstance(step, Generated) and step.error is None:
            spent.calls += 1
        spent.input_tokens += step.input_tokens or 0
        spent.output_tokens += step.output_tokens or 0
        if step.cost_usd is not None:
            spent.priced = True
            spent.cost_usd += step.cost_usd


def reward_of(outcome: Scored) -> float:
    """The number of a score; NaN for a label, which has none."""
    return outcome.value if isinstance(outcome.value, float) else math.nan

"""Where every sample of a run stands: pending, generated, waiting for the judge, done."""

import math
from array import array

from msgspec import Struct

from evenhand.core.outcome import Failed, Outcome, Scored, Unscored
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
        "bad_output",
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


class _Waiting:
    """A sample that a judge has still to see."""

    __slots__ = ("headline", "scorers")

    def __init__(self, headline: Outcome, scorers: list[str]) -> None:
        self.headline = headline
        self.scorers = scorers


class Ledger:
    """The state of every sample, rebuilt from the journal and kept in step with it.

    A sample is done when every scorer has its last word on it; whether it counts as scored, unscored or failed here is
    said by the first scorer, whose name is empty in the journal.
    """

    def __init__(self, journal: Journal, samples: int) -> None:
        self.journal = journal
        self.state = bytearray(samples)
        self.rewards = array("d", [math.nan]) * samples
        self.generated = Places(samples)
        self.measured = Places(samples)
        self.judged: dict[str, Places] = {}
        self.spent = Spent()
        self.reward_sum = 0.0
        self.durable = 0  # done and known to be on the disk: only this is shown as progress
        self._retryable = bytearray(samples)
        self._waiting: dict[int, _Waiting] = {}
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
            if state in DONE and self._retryable[key]:
                count += 1
                self._reopen(key)
        return count

    def _reopen(self, key: int) -> None:
        measured = self.measurement(key)
        if measured is None:
            self.state[key] = PENDING
            return
        again = [name for name, step in self.judgements(key).items() if _may_retry(step.outcome)]
        for name in again:
            self.judged[name].drop(key)
        if any(_may_retry(outcome) for outcome in (measured.outcome, *measured.others.values())):
            self.state[key] = GENERATED
        else:
            self._waiting[key] = _Waiting(self._final(key, "", measured.outcome), again)
            self.state[key] = UNJUDGED

    def waiting_for_judge(self, key: int) -> list[str]:
        """The scorers that want the judge's word on a sample; the first scorer's name is empty."""
        waiting = self._waiting.get(key)
        return [] if waiting is None else list(waiting.scorers)

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
        return any(offset >= 0 for places in self.judged.values() for offset in places.offsets)

    def judgements(self, key: int) -> dict[str, Judged]:
        """What the judge said on a sample, by the scorer that asked; the first scorer's name is empty."""
        found = {}
        for name, places in self.judged.items():
            if key in places:
                step = places.read(self.journal, key)
                assert isinstance(step, Judged)
                found[name] = step
        return found

    def _apply(self, step: Step, place: Place) -> None:
        key = step.key
        match step:
            case Generated():
                self.generated.put(key, place)
                self.measured.drop(key)
                for places in self.judged.values():
                    places.drop(key)
                self._waiting.pop(key, None)
                self._spend(step)
                self._retryable[key] = step.error is not None and step.error not in PERMANENT
                self._set(key, GENERATED if step.error is None else FAILED)
            case Measured(refused=reason) if reason:
                self._spend(step)
            case Measured(outcome=Scored() as outcome, others=others) if not others:
                # Nearly every sample: one scorer, and it has a score.
                self.measured.put(key, place)
                self._spend(step)
                self._retryable[key] = False
                self._waiting.pop(key, None)
                self._set(key, SCORED, reward_of(outcome))
            case Measured():
                self.measured.put(key, place)
                self._spend(step)
                said = {"": step.outcome, **step.others}
                self._retryable[key] = any(map(_may_retry, said.values()))
                wanted = [name for name, one in said.items() if _wants_judge(one)]
                waiting = _Waiting(
                    self._final(key, "", step.outcome),
                    [name for name in wanted if name not in self.judged or key not in self.judged[name]],
                )
                self._waiting[key] = waiting
                self._conclude(key, waiting)
            case Judged():
                if step.scorer not in self.judged:
                    self.judged[step.scorer] = Places(len(self.state))
                self.judged[step.scorer].put(key, place)
                self._spend(step)
                measured = self.measurement(key)
                if measured is None:
                    return  # the line of the scorer is damaged: it is asked again, and then the judge
                said = {"": measured.outcome, **measured.others}
                last = {name: self._final(key, name, one) for name, one in said.items()}
                self._retryable[key] = any(map(_may_retry, last.values()))
                open_ = [name for name in self.waiting_for_judge(key) if name != step.scorer]
                self._waiting[key] = waiting = _Waiting(last[""], open_)
                self._conclude(key, waiting)

    def _final(self, key: int, scorer: str, outcome: Outcome) -> Outcome:
        """The judge's word where the scorer left it to the judge, and it was spoken."""
        places = self.judged.get(scorer)
        if not _wants_judge(outcome) or places is None or key not in places:
            return outcome
        step = places.read(self.journal, key)
        assert isinstance(step, Judged)
        return step.outcome

    def _conclude(self, key: int, waiting: _Waiting) -> None:
        if waiting.scorers:
            self._set(key, UNJUDGED)
            return
        self._waiting.pop(key, None)
        match waiting.headline:
            case Failed():
                self._set(key, FAILED)
            case Scored():
                self._set(key, SCORED, reward_of(waiting.headline))
            case _:
                self._set(key, UNSCORED)

    def _set(self, key: int, state: int, reward: float = math.nan) -> None:
        if self.state[key] == SCORED and not math.isnan(self.rewards[key]):
            self.reward_sum -= self.rewards[key]
        self.state[key] = state
        self.rewards[key] = reward
        if not math.isnan(reward):
            self.reward_sum += reward

    def _spend(self, step: Step) -> None:
        spent = self.spent
        if isinstance(step, Generated) and step.error is None:
            spent.calls += 1
        spent.input_tokens += step.input_tokens or 0
        spent.output_tokens += step.output_tokens or 0
        if step.cost_usd is not None:
            spent.priced = True
            spent.cost_usd += step.cost_usd


def _may_retry(outcome: Outcome) -> bool:
    return isinstance(outcome, Failed) and outcome.error not in PERMANENT


def _wants_judge(outcome: Outcome) -> bool:
    return isinstance(outcome, Unscored) and outcome.reason == NEEDS_JUDGE


def reward_of(outcome: Scored) -> float:
    """The number of a score; NaN for a label, which has none."""
    return outcome.value if isinstance(outcome.value, float) else math.nan

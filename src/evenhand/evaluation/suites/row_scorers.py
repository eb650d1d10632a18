"""Scorers as a suite file names them, and `checks`: the scorers that a row brings itself."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict, replace

from evenhand.core.errors import OptionError
from evenhand.core.jsontext import encode_text
from evenhand.core.outcome import Failed, Outcome, Scored, Unscored
from evenhand.evaluation.config import Service
from evenhand.evaluation.scorer_calls import note_call
from evenhand.judging.config import JudgeScoringConfig
from evenhand.judging.engine import Judge
from evenhand.models.port import ChatModel
from evenhand.scoring.apply import check_options, measure_sample
from evenhand.scoring.definition import NAME, Scorer
from evenhand.scoring.judge import needs_judge
from evenhand.scoring.registry import get_scorer
from evenhand.scoring.types import ScorerInput

CHECKS = "checks"
"""The column of what rows ask for themselves, and under which a scorer reads it: the row's key `scorers`."""
ROW_KEY = "scorers"
JUDGE = "judge"
"""The scorer that leaves the answer to the judge of the suite."""
PASS_FAIL = JudgeScoringConfig(
    name="rubric",
    max_score=1.0,
    threshold=0.5,
    rubric_template="Does the answer meet this criterion? Give 1 if it does and 0 if it does not.\n\n",
)


class Check(Struct, frozen=True, kw_only=True):
    """One scorer of a row."""

    name: str
    """What reports call it."""
    scorer: Scorer | None
    """What measures; None for the judge."""
    at_least: float
    """The value from which it is passed."""
    rubric: str = ""
    """What the judge is asked."""


def suite_scorers(given: Any) -> dict[str, Scorer]:
    """The scorers of a suite by column: a list of names and `NAME: {options}`, or a mapping of columns to them."""
    if isinstance(given, str):
        given = [given]
    entries: list[tuple[str | None, Any]]
    if isinstance(given, dict):
        entries = [(str(column), one) for column, one in given.items()]
    elif isinstance(given, list) and given:
        entries = [(None, one) for one in given]
    else:
        raise OptionError(
            "scorers must be a list of names, such as [exact_match, {contains: {case_sensitive: true}}]"
        )
    found: dict[str, Scorer] = {}
    for column, entry in entries:
        name, options = _spec(entry, column)
        if "at_least" in options:
            raise OptionError(
                f"scorer '{name}': 'at_least' is for scorers of rows; here the mean is shown as it is"
            )
        made = needs_judge if name == JUDGE else _configured(name, options)
        chosen = column or (JUDGE if name == JUDGE else made.name)
        if chosen in found or chosen == CHECKS:
            raise OptionError(
                f"two scorers are called '{chosen}'; name them: scorers: {{one: ..., two: ...}}"
            )
        if not NAME.fullmatch(chosen):
            raise OptionError(f"'{chosen}' cannot name a scorer: letters, digits, '_', '.', '-' only")
        found[chosen] = made.renamed(chosen)
    return found


def row_checks(given: Any, where: str) -> list[Check]:
    """The scorers of one row; `OptionError` names the row."""
    if not isinstance(given, list):
        given = [given]
    try:
        return [_check(entry) for entry in given]
    except OptionError as error:
        raise OptionError(f"{where}: {error}") from None


def _check(entry: Any) -> Check:
    name, options = _spec(entry, None)
    at_least = options.pop("at_least", None)
    if at_least is not None and (isinstance(at_least, bool) or not isinstance(at_least, int | float)):
        raise OptionError(f"scorer '{name}': 'at_least' is a number")
    if name == JUDGE:
        rubric = options.pop("rubric", None)
        if not isinstance(rubric, str) or not rubric.strip() or options:
            raise OptionError("a row's judge takes a rubric: {judge: 'is polite'}")
        return Check(name=JUDGE, scorer=None, at_least=0.5 if at_least is None else at_least, rubric=rubric)
    made = _configured(name, options)
    return Check(name=name, scorer=made, at_least=1.0 if at_least is None else float(at_least))


def _spec(entry: Any, column: str | None) -> tuple[str, dict[str, Any]]:
    if isinstance(entry, str):
        return entry, {}
    if column is not None and isinstance(entry, dict) and len(entry) != 1:
        return column, {str(key): value for key, value in entry.items()}
    if not isinstance(entry, dict) or len(entry) != 1:
        raise OptionError(
            f"a scorer is a name or {{NAME: {{option: value}}}}, not {encode_text(entry)[:100]}"
        )
    name, options = next(iter(entry.items()))
    if column is not None and not isinstance(options, dict):
        return column, {str(name): options}
    if options is None:
        return str(name), {}
    if isinstance(options, str) and name == JUDGE:
        return JUDGE, {"rubric": options}
    if not isinstance(options, dict):
        raise OptionError(f"scorer '{name}': options are a mapping, as in {{{name}: {{option: value}}}}")
    return str(name), {str(key): value for key, value in options.items()}


def _configured(name: str, options: Mapping[str, Any]) -> Scorer:
    if ".py" in name:
        raise OptionError(
            f"'{name}': a suite file runs no code; for a scorer of your own use eval run --scorer"
        )
    made = get_scorer(name).configure_from_json(options)
    check_options(made)
    return made


class Reviewer:
    """The judge of a suite, asked by scorers themselves: about one criterion at a time."""

    def __init__(self, service: Service, config: JudgeScoringConfig | None = None) -> None:
        self.service = service
        self._config = config or PASS_FAIL
        self._model: ChatModel | None = None

    def begin(self, connect: Callable[[Service], ChatModel]) -> None:
        """Ask through the run's connection to the judge, under the run's limits."""
        self._model = connect(self.service)

    async def grade(self, sample: ScorerInput, rubric: str, question: str) -> Outcome:
        """From 0 to 1, whether the answer meets the criterion."""
        assert self._model is not None  # the run has begun
        # Braces in a criterion are braces: only the rubric's own places are filled in.
        config = replace(self._config, rubric_template=self._config.rubric_template + _literal(rubric))
        asked = ScorerInput(response=sample.response, target="", metadata={"question": question})
        record = await Judge(self._model, config).judge(asked)
        note_call(record)
        return record.outcome

    @property
    def identity(self) -> dict[str, Any]:
        """What decides its judgements."""
        return {"model": self.service.id, **asdict(self._config)}


def _literal(rubric: str) -> str:
    return rubric.replace("{{", "{ {").replace("}}", "} }")


GradeRow = Callable[[ScorerInput], "Outcome | Awaitable[Outcome]"]


class RowScorer(Scorer):
    """A scorer whose work is told by the row itself; what the rows say is part of the data's digest."""

    def __init__(
        self,
        grade: Callable[..., Any],
        *,
        name: str,
        version: str = "1",
        reviewer: Reviewer | None = None,
        applies: Callable[[ScorerInput], bool] = lambda sample: True,
    ) -> None:
        super().__init__(grade, name=name, version=version, needs_target=False, options={}, slow=True)
        self.is_async = inspect.iscoroutinefunction(grade)
        self._reviewer = reviewer
        self._applies = applies

    def __call__(self, sample: ScorerInput, *args: Any, **kwargs: Any) -> Any:
        return self._function(sample)

    def applies(self, sample: ScorerInput) -> bool:
        return self._applies(sample)

    def begin(self, connect: Callable[[Service], ChatModel]) -> None:
        """Told by every run before its first sample: how to reach the judge that rows ask for."""
        if self._reviewer is not None:
            self._reviewer.begin(connect)

    @property
    def identity(self) -> dict[str, Any]:
        options = {} if self._reviewer is None else {"judge": self._reviewer.identity}
        return {"name": self.name, "version": self.version, "options": options}


def checks_scorer(reviewer: Reviewer | None) -> Scorer:
    """`checks`: 1 when the answer passes every scorer that its row brings."""
    made: dict[str, list[Check]] = {}

    def of(sample: ScorerInput) -> list[Check]:
        given = sample.metadata.get(ROW_KEY)
        key = encode_text(given)
        if key not in made:
            made[key] = row_checks(given, "the row") if given else []
        return made[key]

    async def grade(sample: ScorerInput) -> Outcome:
        outcomes: list[tuple[Check, Outcome]] = []
        for check in of(sample):
            if check.scorer is not None:
                outcomes.append((check, measure_sample(check.scorer, sample).outcome))
            elif reviewer is None:
                raise OptionError("a row asks the judge, and the suite names none")
            else:
                question = str(sample.metadata.get("question") or sample.input or "")
                outcomes.append((check, await reviewer.grade(sample, check.rubric, question)))
        return _together(outcomes)

    def grade_at_once(sample: ScorerInput) -> Outcome:
        found = [(one, measure_sample(one.scorer, sample).outcome) for one in of(sample) if one.scorer]
        return _together(found)

    return RowScorer(
        grade_at_once if reviewer is None else grade,
        name=CHECKS,
        reviewer=reviewer,
        applies=lambda sample: bool(sample.metadata.get(ROW_KEY)),
    )


def _together(outcomes: Sequence[tuple[Check, Outcome]]) -> Outcome:
    if not outcomes:
        return Unscored(reason="no_checks", message="the row brings no scorers")
    details = []
    passed = True
    for check, outcome in outcomes:
        if isinstance(outcome, Failed):
            return outcome
        if isinstance(outcome, Unscored):
            return replace(outcome, message=f"{check.name}: {outcome.message}")
        ok = isinstance(outcome.value, float) and outcome.value >= check.at_least
        passed = passed and ok
        details.append({"scorer": check.name, "value": outcome.value, "passed": ok})
    return Scored(value=1.0 if passed else 0.0, details={"checks": details})

"""Review queues: forms, items and what reviewers said."""

import math
from collections.abc import Sequence
from typing import Annotated, Any, Literal

from msgspec import Meta, Raw, Struct

from evenhand.core.errors import Refusal

Pick = Literal["oldest", "random", "informative"]
ReviewTarget = Literal["trace", "run", "pair"]
ItemStatus = Literal["open", "done", "flagged", "disagreed"]
ShortName = Annotated[str, Meta(min_length=1, max_length=100)]
LABELS = ("correct", "hallucination", "off-topic", "incomplete", "harmful", "other")


class Estimate(Struct, frozen=True, kw_only=True):
    """A number with its 95 % interval."""

    value: float
    """The estimate."""
    ci_lower: float
    """The lower end."""
    ci_upper: float
    """The upper end."""
    method: str
    """How the interval was made."""
    n: int
    """How many values went in."""


class FormField(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One question of a form."""

    name: ShortName
    """The answer's key."""
    kind: Literal["label", "scale", "text", "choice"]
    """`label` picks one of `labels` (or one's own where `own_label`), `scale` a number, `choice` A, B or tie."""
    title: Annotated[str, Meta(max_length=500)] = ""
    """What the reviewer reads."""
    labels: Annotated[tuple[ShortName, ...], Meta(max_length=50)] = ()
    """Of a `label` field: the suggestions, in the order of their keys 1, 2, 3, ..."""
    own_label: bool = False
    """Of a `label` field: another label may be typed."""
    good: Annotated[tuple[ShortName, ...], Meta(max_length=50)] = ()
    """Of a `label` field: the labels that count as 1; all others count as 0."""
    minimum: float | None = None
    """Of a `scale` field."""
    maximum: float | None = None
    """Of a `scale` field."""
    required: bool = False
    """Whether a review needs it."""


class Form(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What reviewers are asked."""

    fields: Annotated[tuple[FormField, ...], Meta(min_length=1, max_length=20)]
    """The questions; the first one that measures (a label, a scale or a choice) is the headline."""
    instructions: Annotated[str, Meta(max_length=10_000)] = ""
    """Shown above the form."""
    correction: bool = True
    """Whether a corrected answer can be given."""
    notes: bool = True
    """Whether notes can be given."""

    @property
    def headline(self) -> FormField | None:
        """The field that agreement and the corrected mean are about."""
        return next((field for field in self.fields if field.kind != "text"), None)


DEFAULT_FORM = Form(
    fields=(FormField(name="label", kind="label", labels=LABELS, own_label=True, good=("correct",)),)
)
"""The contract's six labels."""


def check_form(form: Form) -> None:
    """Refuse a form that cannot be filled in."""
    names = [field.name for field in form.fields]
    if len(set(names)) < len(names) or {"correction", "notes"} & set(names):
        raise _bad_form("the names of the fields must differ, also from 'correction' and 'notes'")
    for field in form.fields:
        if field.kind == "label" and not field.labels:
            raise _bad_form(f"the field '{field.name}' needs labels")
        if field.kind == "label" and not set(field.good) <= set(field.labels):
            raise _bad_form(f"'good' of the field '{field.name}' names a label that is not in 'labels'")
        if field.kind == "scale" and not (
            field.minimum is not None and field.maximum is not None and field.minimum < field.maximum
        ):
            raise _bad_form(f"the field '{field.name}' needs a minimum below its maximum")


def _bad_form(reason: str) -> Refusal:
    return Refusal("INVALID_REQUEST", f"'form': {reason}.", {"field": "form"})


def check_answers(form: Form, answers: dict[str, Any]) -> dict[str, Any]:
    """The answers that were given, each of its field's kind; `INVALID_REQUEST` or `EMPTY_ANNOTATION` otherwise."""
    fields = {field.name: field for field in form.fields}
    given = {name: value for name, value in answers.items() if value not in (None, "")}
    for name, value in given.items():
        field = fields.get(name)
        if field is None:
            raise _bad_answer(name, f"the form has no field '{name[:100]}'")
        _check_answer(field, value)
    missing = [field.name for field in form.fields if field.required and field.name not in given]
    if missing:
        raise _bad_answer(missing[0], f"'{missing[0]}' is required")
    return given


def _check_answer(field: FormField, value: Any) -> None:
    if field.kind == "scale":
        assert field.minimum is not None
        assert field.maximum is not None
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _bad_answer(field.name, "a number is expected")
        if not field.minimum <= value <= field.maximum:
            raise _bad_answer(field.name, f"a number from {field.minimum:g} to {field.maximum:g} is expected")
        return
    if not isinstance(value, str) or len(value) > (100_000 if field.kind == "text" else 250):
        raise _bad_answer(field.name, "a text is expected")
    if field.kind == "choice" and value not in ("A", "B", "tie"):
        raise _bad_answer(field.name, "A, B or tie is expected")
    if field.kind == "label" and not field.own_label and value not in field.labels:
        raise _bad_answer(field.name, f"one of {', '.join(field.labels)} is expected")


def _bad_answer(name: str, reason: str) -> Refusal:
    return Refusal("INVALID_REQUEST", f"'{name[:100]}': {reason}.", {"field": name[:100]})


def as_number(field: FormField, value: Any) -> float | None:
    """An answer on the scale from 0 to 1; None where the form does not say what it is worth."""
    if value is None:
        return None
    if field.kind == "scale":
        assert field.minimum is not None
        assert field.maximum is not None
        return (float(value) - field.minimum) / (field.maximum - field.minimum)
    if field.kind == "choice":
        return {"A": 0.0, "tie": 0.5, "B": 1.0}[value]
    return float(value in field.good) if field.kind == "label" and field.good else None


def label_weight(judged: float) -> float:
    """How much a person's answer to an item tells, given the judge's value in [0, 1]: most where the judge is undecided.

    An item that the judge is certain about keeps a weight: it may be wrong there too.
    """
    return 0.15 + math.sqrt(max(0.0, judged * (1.0 - judged)))


class ReviewQueue(Struct, frozen=True, kw_only=True):
    """A queue of items that people look at."""

    id: str
    """Made by the server."""
    project_id: str
    """Where it belongs."""
    name: str
    """Unique in its project."""
    description: str | None
    """For people."""
    form: Form
    """What reviewers are asked."""
    reviewers_per_item: int
    """How many reviews finish an item; with two or more, reviewers work blind."""
    reserve_seconds: int
    """How long an item is kept for the reviewer who got it."""
    pick: Pick
    """Which open item comes next: `oldest`, `random`, or `informative` (what narrows the corrected mean most)."""
    judge_scorer: str | None
    """The scorer whose values are compared with the reviewers' and corrected by them."""
    item_count: int
    """Items in the queue."""
    done_count: int
    """Items with all their reviews."""
    created_at: str
    """When it was made."""
    closed_at: str | None
    """Since when it hands out nothing more."""

    @property
    def blind(self) -> bool:
        """Whether reviewers see what others and the judge said only after they have submitted."""
        return self.reviewers_per_item > 1


class ReviewerCount(Struct, frozen=True, kw_only=True):
    """How much one reviewer has done."""

    annotator: str
    """Who."""
    review_count: int
    """Reviews in this queue."""


class QueueProgress(ReviewQueue, frozen=True, kw_only=True):
    """A queue and how far it has come."""

    reviewers: list[ReviewerCount]
    """By number of reviews, most first."""
    open_count: int
    """Items that need another review."""
    flagged_count: int
    """Items that somebody flagged."""


class Review(Struct, frozen=True, kw_only=True):
    """What one person said about one item."""

    id: str
    """Made by the server."""
    item_id: str
    """The item."""
    annotator: str
    """Who."""
    answers: dict[str, Any]
    """Field to answer; `correction` and `notes` too where they were given."""
    adjudication: bool
    """Whether it settles what others disagreed on."""
    annotation_id: str | None
    """The annotation of the trace that says the same."""
    created_at: str
    """When."""


def unsettled(form: Form, reviews: Sequence[Review]) -> bool:
    """Whether the reviewers' headline answers differ and nobody has settled it."""
    headline = form.headline
    if headline is None or any(review.adjudication for review in reviews):
        return False
    said = [review.answers[headline.name] for review in reviews if headline.name in review.answers]
    return any(answer != said[0] for answer in said)


class JudgeSaid(Struct, frozen=True, kw_only=True):
    """The judge's newest score of an item."""

    scorer_name: str
    """The scorer."""
    value: float | str
    """Its value."""
    rationale: str | None
    """Its reason."""
    version: str | None = None
    """What computed it, with its version; null for a submitted value."""


class Shown(Struct, frozen=True, kw_only=True):
    """One answer that a reviewer looks at."""

    input: Raw | None
    """What went in."""
    output: Raw | None
    """What came out."""
    trace_id: str | None
    """The trace, for those who may open it."""
    run_id: str | None = None
    """The run, where the item is one."""


class ReviewItem(Struct, frozen=True, kw_only=True):
    """An item of a queue as a reviewer sees it."""

    id: str
    """Made by the server."""
    queue_id: str
    """Its queue."""
    target_type: ReviewTarget
    """`trace`, `run`, or `pair` (two runs, A and B)."""
    target_id: str
    """The trace or run."""
    other_id: str | None
    """Of a pair: the run that is B."""
    shown: list[Shown]
    """What to look at; null fields where it is gone. A pair has two."""
    review_count: int
    """How many reviews it has."""
    status: ItemStatus
    """`open`, `done`, `flagged`, or `disagreed` (done, and not settled)."""
    why: str
    """Why this item and not another one; says nothing about what the judge said."""
    reviews: list[Review]
    """What was said; in a blind queue empty until the caller has submitted."""
    judge: JudgeSaid | None
    """What the judge said; likewise."""
    withheld: bool
    """Whether reviews and the judge's score are kept from the caller for now."""


class NextItem(Struct, frozen=True, kw_only=True):
    """The answer to asking for work."""

    item: ReviewItem | None
    """Null when there is nothing left for this reviewer."""
    reserved_until: str | None
    """Until then nobody else gets it in this reviewer's place."""
    left: int
    """Open items that this reviewer has not reviewed."""


class Submitted(Struct, frozen=True, kw_only=True):
    """The answer to a review."""

    review: Review
    """What was stored."""
    item: ReviewItem
    """The item with what others and the judge said."""


class ItemsAdded(Struct, frozen=True, kw_only=True):
    """The answer to adding items."""

    added: int
    """New items."""
    already: int
    """Items that the queue had."""


class PairAgreement(Struct, frozen=True, kw_only=True):
    """How far two reviewers agree."""

    first: str
    """One of them."""
    second: str
    """The other one."""
    items: int
    """Items that both reviewed."""
    agreed: int
    """Of these, with the same answer."""
    kappa: Estimate | None
    """Cohen's κ; null where it cannot be computed."""
    labels: list[str]
    """Rows and columns of the table."""
    confusion: list[list[int]]
    """Counts: a row for each answer of the first, a column for each of the second."""


class FieldAgreement(Struct, frozen=True, kw_only=True):
    """How far reviewers agree on one field."""

    name: str
    """The field."""
    items: int
    """Items with two or more answers."""
    alpha: Estimate | None
    """Krippendorff's α; null where it cannot be computed."""
    reason: str | None
    """Why there is no α."""
    pairs: list[PairAgreement]
    """Each two reviewers with an item in common."""


class CorrectedMean(Struct, frozen=True, kw_only=True):
    """What the judge's mean becomes with the reviewers' answers."""

    scorer_name: str
    """The judge's scorer."""
    items: int
    """Items with a value of the judge."""
    labelled: int
    """Of these, with an answer of a person."""
    judge_only: Estimate
    """The judge's mean over all items."""
    corrected: Estimate | None
    """What people would have said over all items; null with fewer than two labelled ones."""
    sentence: str
    """The same in words, with what more labels would bring."""


class Agreement(Struct, frozen=True, kw_only=True):
    """How far reviewers agree, and what that makes of the judge's mean."""

    queue_id: str
    """The queue."""
    fields: list[FieldAgreement]
    """One for each field that measures."""
    disagreements: list[str]
    """Items whose reviewers differ on the headline field and that nobody has settled: at most 200 ids."""
    disagreement_count: int
    """How many there are."""
    corrected: CorrectedMean | None
    """Null where the queue names no judge, or the judge scored nothing."""
    no_correction: str | None
    """Why there is no corrected mean."""


class Reviewed(Struct, frozen=True, kw_only=True):
    """One item with everything that agreement and correction need."""

    item_id: str
    """The item."""
    rank: float
    """Its place in the order of a weighted sample."""
    weight: float
    """Its weight there."""
    judge: JudgeSaid | None
    """The judge's newest score."""
    reviews: list[Review]
    """What people said, the settling answer included."""

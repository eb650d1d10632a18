"""What the reviewers' pages share: who reviews, and texts that people who read no JSON can judge."""

from datetime import datetime

import msgspec
from msgspec import Raw, Struct

from evenhand.core.objects.annotations import Annotation
from evenhand.server.http.auth import Access
from evenhand.server.pages.frame import age_of, person_of
from evenhand.server.pages.values import Message, read_messages, readable
from evenhand.store.reviews import Reviewer

FIRST = 500
"""Characters of a question that are shown at first."""
FIRST_OF_ANSWER = 2_000
NOTHING_GIVEN = "Please provide at least a label, correction, or notes"


class Text(Struct, frozen=True, kw_only=True):
    """A question or an answer."""

    first: str
    """What is shown at first."""
    rest: str = ""
    """What is folded."""
    chat: bool = False
    """Whether it is from a chat."""
    earlier: tuple[Message, ...] = ()
    """Messages before it, folded."""

    @property
    def whole(self) -> str:
        """Everything; empty for nothing."""
        return "" if self.first == "—" and not self.rest else self.first + self.rest


def question_text(raw: Raw | None) -> Text:
    """What was asked: of a chat the last user message."""
    found = readable(raw)
    return _cut(found.text, FIRST, chat=found.chat, earlier=found.earlier)


def answer_text(raw: Raw | None) -> Text:
    """What was answered: of a chat the last message that is not the user's."""
    found = readable(raw)
    if not found.chat or raw is None:
        return _cut(found.text, FIRST_OF_ANSWER)
    replies = [one for one in read_messages(msgspec.json.decode(bytes(raw))) if one.role != "user"]
    return _cut(replies[-1].text if replies else found.text, FIRST_OF_ANSWER, chat=True)


def _cut(text: str, length: int, *, chat: bool = False, earlier: tuple[Message, ...] = ()) -> Text:
    # A browser sends line breaks of a field as it likes; one form makes what comes back comparable.
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return Text(first=lines[:length], rest=lines[length:], chat=chat, earlier=earlier)


def reviewer_of(access: Access) -> Reviewer:
    """Who reviews on a page. Until they submit, leads see no more than others: they would be led too."""
    name = person_of(access)
    own = access.person_id or (access.token_id if access.reviewer is not None else f"name:{name}")
    return Reviewer(id=own, name=name, sees_all=False)


class Said(Struct, frozen=True, kw_only=True):
    """An earlier annotation, read-only."""

    annotator: str
    label: str
    correction: str
    notes: str
    age: str


def said(annotation: Annotation, moment: datetime) -> Said:
    """An annotation in words."""
    return Said(
        annotator=annotation.annotator,
        label=annotation.label or "",
        correction="" if annotation.correction is None else readable(annotation.correction).text,
        notes=annotation.notes or "",
        age=age_of(annotation.created_at, moment),
    )


def summary(labels: list[str]) -> str:
    """`3 correct, 1 off-topic, 1 without a label`, most frequent first."""
    counts: dict[str, int] = {}
    for label in labels:
        counts[label] = counts.get(label, 0) + 1
    ordered = sorted(counts.items(), key=lambda pair: (-pair[1], pair[0]))
    return ", ".join(f"{count} {label or 'without a label'}" for label, count in ordered)

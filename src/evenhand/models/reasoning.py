"""The thinking that reasoning models write into their replies, told apart from the answer.

A block of thinking begins with an opening tag and ends with the closing tag; blocks within blocks belong to the outer
one. Two things happen in practice: chat templates write the opening tag themselves, so that a reply begins with thinking
and has only the closing tag; and a reply that was cut off inside its thinking has only the opening tag. An opening tag
in the middle of a line counts when it follows a block, or when its own is closed, on this line or later, as in "Answer: A
<think>ok</think>"; a closing tag without an opening one counts at the start or end of a line, or right after a word. Any
other tag in the middle of a line, or in quotes, is a word of the answer, as in "close it with </think>".
"""

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from evenhand.core.errors import OptionError

THINK_TAGS = ("think",)
"""Tags of thinking unless told otherwise."""
_NAME = re.compile(r"[A-Za-z_][\w-]*")
_JOIN = "\n\n"


class Split(NamedTuple):
    """A reply in its two parts."""

    answer: str
    """What is left without the thinking."""
    reasoning: str | None = None
    """The thinking; None when there is none."""
    unclosed: bool = False
    """Whether the reply ends inside its thinking: there was no room for an answer."""


def split_reasoning(text: str, tags: Sequence[str] = THINK_TAGS) -> Split:
    """The answer and the thinking of a reply. A tag is a name (`think`) or a pair (`[THINK]...[/THINK]`)."""
    whole, thoughts, unclosed = text, list[str](), False
    for tag in tags:
        opening, closing, opened = _patterns(tag)
        if closing.search(text) is None and opening.search(text) is None:
            continue
        text, found, cut = _without(text, opening, closing, opened)
        thoughts += found
        unclosed = unclosed or cut
    if text is whole:
        return Split(text)
    return Split(text.strip(), _JOIN.join(thoughts) or None, unclosed)


def join_reasoning(*parts: str | None) -> str | None:
    """Thinking from several places as one text."""
    return _JOIN.join(part for part in parts if part) or None


def parse_tags(text: str) -> tuple[str, ...]:
    """Tags as they are typed: separated by commas; `none` for none."""
    tags = () if text.strip().lower() == "none" else tuple(tag.strip() for tag in text.split(","))
    check_tags(tags)
    return tags


def check_tags(tags: Sequence[str]) -> None:
    """`OptionError` for what is no tag."""
    for tag in tags:
        _patterns(tag)


def _without(
    text: str, opening: re.Pattern[str], closing: re.Pattern[str], opened: re.Pattern[str]
) -> tuple[str, list[str], bool]:
    answer, thoughts = [], []
    position = 0
    last_close = max((match.start() for match in opened.finditer(text)), default=-1)
    first_close, first_open = closing.search(text), _next_open(text, 0, opening, last_close)
    if first_close is not None and (first_open is None or first_close.start() < first_open.start()):
        # The chat template wrote the opening tag.
        thoughts.append(text[: first_close.start()].strip())
        position = first_close.end()
    while (begin := _next_open(text, position, opening, last_close)) is not None:
        answer.append(text[position : begin.start()])
        end = _block_end(text, begin.end(), opening, opened)
        if end is None:
            thoughts.append(text[begin.end() :].strip())
            return "".join(answer), [thought for thought in thoughts if thought], True
        thoughts.append(text[begin.end() : end.start()].strip())
        position = end.end()
    answer.append(text[position:])
    return "".join(answer), [thought for thought in thoughts if thought], False


def _next_open(text: str, position: int, opening: re.Pattern[str], last_close: int) -> re.Match[str] | None:
    """The next opening tag that begins a block: at the start of a line or right after a block, or closed later."""
    for number, match in enumerate(opening.finditer(text, position)):
        follows = number == 0 and not text[position : match.start()].strip()
        if follows or match.start("inside") < 0 or match.end() <= last_close:
            return match
    return None


def _block_end(
    text: str, position: int, opening: re.Pattern[str], opened: re.Pattern[str]
) -> re.Match[str] | None:
    """The closing tag of a block, past the blocks within it; inside a block a closing tag counts wherever it stands."""
    end = opened.search(text, position)
    while end is not None:
        inner = next(opening.finditer(text, position, end.start()), None)
        further = opened.search(text, end.end()) if inner else None
        # A tag that the thinking only speaks of has no closing tag of its own.
        if further is None or next(opening.finditer(text, end.end(), further.start()), None) is not None:
            return end
        position, end = inner.end() if inner else end.end(), further
    return end


@lru_cache(maxsize=64)
def _patterns(tag: str) -> tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str]]:
    """An opening tag, a closing tag without an opening one, and a closing tag inside a block."""
    if _NAME.fullmatch(tag):
        start, end = f"<{tag}>", f"</{tag}>"
    else:
        start, _, end = (part.strip() for part in tag.partition("..."))
        if not start or not end or start == end:
            raise OptionError(f"'{tag}' is not a thinking tag: write a name, or a pair such as <a>...</a>")
    opens, closes = re.escape(start), re.escape(end)
    return (
        re.compile(
            rf"^[ \t]*{opens}|(?<![`'\"“‘])(?P<inside>){opens}(?![`'\"”’])", re.IGNORECASE | re.MULTILINE
        ),
        re.compile(
            rf"^[ \t]*{closes}|{closes}[ \t]*$|(?<=[^\s`'\"“‘(<]){closes}(?![`'\"”’])",
            re.IGNORECASE | re.MULTILINE,
        ),
        re.compile(closes, re.IGNORECASE),
    )

"""Normal forms of text, so that answers differing only in case, punctuation, articles or spacing are equal."""

import re
import string
import unicodedata
from functools import lru_cache
from typing import Any

from evenhand.core.jsontext import canonical

ARTICLES = frozenset(("a", "an", "the"))
_ARTICLE_BYTES = frozenset(word.encode() for word in ARTICLES)
_PUNCTUATION = string.punctuation.encode()
# ASCII in one pass: lower case, and the separators 0x1c-0x1f as spaces, which str.split counts as white space
# and bytes.split does not.
_ASCII = bytes.maketrans(
    string.ascii_uppercase.encode() + b"\x1c\x1d\x1e\x1f", string.ascii_lowercase.encode() + b"    "
)
# How many combining marks may follow one another before a joiner is put between them, after the Stream-Safe Text
# Format of Unicode Annex 15. Without it, sorting 100,000 marks takes ten seconds.
_MARKS_IN_A_ROW = 100
_JOINER = "\u034f"


class _Dropped(dict[str, bool]):
    """Whether a character is punctuation, decided once per character."""

    def __missing__(self, char: str) -> bool:
        self[char] = char in string.punctuation or unicodedata.category(char).startswith("P")
        return self[char]


_DROPPED = _Dropped()


def text_of(value: Any) -> str:
    """A target as text: strings as they are, None as nothing, other JSON values in their canonical spelling."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    return canonical(value).decode("utf-8")


def normalize_text(text: str) -> str:
    """NFKC, lower case, no punctuation, no articles, single spaces.

    A text made of nothing else keeps its punctuation or its articles: "A" stays "a", and "?" stays "?", so that
    they do not equal each other or an empty answer.
    """
    if text.isascii():
        return b" ".join(ascii_words(text)).decode("ascii")
    return _normalize_any(text)


def same_normal_form(first: str, second: str) -> bool:
    """Whether two texts have one normal form."""
    if first.isascii() and second.isascii():
        return ascii_words(first) == ascii_words(second)
    return normalize_text(first) == normalize_text(second)


def spaced_text(text: str, case_sensitive: bool) -> str:
    """NFKC with single spaces, and case-folded unless case counts."""
    if not text.isascii():
        text = _nfkc(text)
    return " ".join((text if case_sensitive else text.casefold()).split())


def ascii_words(text: str) -> list[bytes]:
    """The words of the normal form of an ASCII text: the quick way to the same result."""
    data = text.encode("ascii")
    words = data.translate(_ASCII, _PUNCTUATION).split()
    if not words:
        return data.translate(_ASCII).split()
    kept = [word for word in words if word not in _ARTICLE_BYTES]
    return kept or words


def _normalize_any(text: str) -> str:
    lowered = _nfkc(text).lower()
    bare = lowered
    # Few different characters make up a text: dropping each in turn is quicker than asking about every place.
    for char in set(lowered):
        if _DROPPED[char]:
            bare = bare.replace(char, "")
    # Dropping a character can bring a letter and a combining mark together, hence NFKC once more.
    words = _nfkc(bare).split()
    if not words:
        return " ".join(_nfkc(lowered).split())
    kept = [word for word in words if word not in ARTICLES]
    return " ".join(kept or words)


def _nfkc(text: str) -> str:
    # A run longer than allowed covers one of these places; hardly any text has a mark at one of them.
    if any(map(_may_be_mark, text[_MARKS_IN_A_ROW::_MARKS_IN_A_ROW])):
        text = _long_runs().sub(_stream_safe, text)
    return unicodedata.normalize("NFKC", text)


def _may_be_mark(char: str) -> bool:
    return char > "\u02ff" and (unicodedata.combining(char) != 0 or _decomposes_to_marks(char))


def _stream_safe(match: re.Match[str]) -> str:
    run = match.group()
    return _JOINER.join(run[i : i + _MARKS_IN_A_ROW] for i in range(0, len(run), _MARKS_IN_A_ROW))


@lru_cache(maxsize=1)
def _long_runs() -> re.Pattern[str]:
    # Marks, and characters that decompose into some: a run of these is what NFKC has to sort.
    marks = [
        point
        for point in range(0x300, 0x20000)  # no mark has been given a higher number
        if _may_be_mark(chr(point))
    ]
    ranges: list[list[int]] = []
    for point in marks:
        if ranges and ranges[-1][1] == point - 1:
            ranges[-1][1] = point
        else:
            ranges.append([point, point])
    members = "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in ranges)
    return re.compile(f"[{members}]{{{_MARKS_IN_A_ROW + 1},}}")


def _decomposes_to_marks(char: str) -> bool:
    parts = unicodedata.normalize("NFKD", char)
    return parts != char and unicodedata.combining(parts[0]) != 0

r"""Normal forms of text, so that answers differing only in case, punctuation, articles or spacing are equal.

Punctuation is Unicode's categories P and Sc, "`" and "~". Mathematical symbols are not punctuation: x<y is not x>y,
C++ is not C; nor is C#: a # after a letter stays. Numbers keep their values:

* a minus (-, −, –) that touches a number stays, unless a letter, a digit or a closing bracket stands before it;
* the minus of an exponent stays (1e-5, 1.e-5), and a raised number after a number or a bracket is a power (10² is 10^2);
* ½ is 1/2, and 5½ is 5 1/2;
* a point that starts or continues a number stays (.5, 3.5, 1.2.3);
* between two digits /, :, * and dashes stay (1/2, 10:30, 2*3, 1914-1918; every dash is then "-");
* commas and apostrophes between thousands are dropped (1,000 and 1'000 are 1000), and so is a plus sign (+5);
* any other punctuation between two digits becomes a space, so that no two numbers become one.
"""

import re
import string
import unicodedata
from functools import lru_cache
from typing import Any

from evenhand.core.jsontext import spelled

ARTICLES = frozenset(("a", "an", "the"))
_ARTICLE_BYTES = frozenset(word.encode() for word in ARTICLES)

_SQUAD_SIGNS = string.punctuation.encode()
_APOSTROPHES = "'\u2019\u2018\u02bc"
# Signs that may belong to a number or a word: runs before a digit, and # after a letter.
# A run is tried at its start only, so that long ones take no quadratic time.
_MAY_STAY = re.compile(r"(?<![^\w\s])(?<!_)(?:[^\w\s]|_)++(?=\d)|(?<=[^\W\d_])#")
_DIGIT_OR_SHARP = re.compile(r"[\d#]")
_MAY_STAY_ASCII = re.compile(rb"[\x01-\x06!-/:-@\[-`{-~][0-9]|#")
_GROUPED = re.compile(r"(?<![\d,'\u2019])\d{1,3}(?:(?:,\d{3})+|(?:['\u2019]\d{3})+)(?![,'\u2019]?\d)")
_WITHOUT_GROUPING = str.maketrans("", "", ",'\u2019")
# What stays is put aside as control characters while other punctuation is dropped. Should a text hold such control
# characters itself, they are dropped like punctuation.
_STAYING, _PUT_ASIDE = "./:*-#", "\x01\x02\x03\x04\x05\x06"
_ASIDE, _BACK = str.maketrans(_STAYING, _PUT_ASIDE), str.maketrans(_PUT_ASIDE, _STAYING)
_WITHOUT_CONTROLS = str.maketrans(_PUT_ASIDE, "`" * len(_PUT_ASIDE))
_PUNCTUATION = bytes(set(_SQUAD_SIGNS) - set(b"+<=>^|"))
_DROPPED_BYTES = _PUNCTUATION + _PUT_ASIDE.encode()
# ASCII in one pass: lower case, and the separators 0x1c-0x1f as spaces, which str.split counts as white space
# and bytes.split does not.
_ASCII = bytes.maketrans(
    string.ascii_uppercase.encode() + b"\x1c\x1d\x1e\x1f", string.ascii_lowercase.encode() + b"    "
)
_ASCII_BACK = _ASCII.translate(bytes.maketrans(_PUT_ASIDE.encode(), _STAYING.encode()))
_ASCII_SEPARATED = bytes([32 if byte in _PUNCTUATION else to for byte, to in enumerate(_ASCII_BACK)])
_DIGITS = b"0123456789"
_MINUS = "-\u2212\u2013"
_NO_SIGN_AFTER = frozenset(")]}+")
_NOT_TO_TOUCH = frozenset("+" + _MINUS)
# How many combining marks may follow one another before a joiner is put between them, after the Stream-Safe Text
# Format of Unicode Annex 15. Without it, sorting 100,000 marks takes ten seconds.
_MARKS_IN_A_ROW = 100
_JOINER = "\u034f"
# After a letter a raised number is none of these: m² is m2, as NFKC has it.
_SUPERSCRIPT = re.compile("(?<=[\\d)\\]}])[\u207a\u207b]?[\u00b2\u00b3\u00b9\u2070\u2074-\u2079]+")
_VULGAR = "\u00bc-\u00be\u2150-\u215e\u2189"
_MIXED = re.compile(f"(?<=[\\d{_VULGAR}])(?=[{_VULGAR}])")


class _Dropped(dict[str, bool]):
    """Whether a character is dropped, decided once per character."""

    def __init__(self, also: str, categories: tuple[str, ...]) -> None:
        self._also = also
        self._categories = categories

    def __missing__(self, char: str) -> bool:
        self[char] = char in self._also or unicodedata.category(char).startswith(self._categories)
        return self[char]


_DROPPED = _Dropped("`~" + _PUT_ASIDE, ("P", "Sc"))
_SQUAD_DROPPED = _Dropped(string.punctuation, ("P",))


def text_of(value: Any) -> str:
    """A target as text: strings as they are, None as nothing, other JSON values in their one spelling."""
    if isinstance(value, str):
        return value
    return "" if value is None else spelled(value)


def normalize_text(text: str) -> str:
    """NFKC, lower case, no punctuation, no articles, single spaces; numbers keep their values.

    A text made of nothing else keeps its punctuation or its articles: "A" stays "a", and "?" stays "?", so that
    they do not equal each other or an empty answer.
    """
    if text.isascii():
        return b" ".join(_ascii_words(text)).decode("ascii")
    return _normalize_any(text)


def same_normal_form(first: str, second: str) -> bool:
    """Whether two texts have one normal form."""
    if first.isascii() and second.isascii():
        return _ascii_words(first) == _ascii_words(second)
    return normalize_text(first) == normalize_text(second)


def separated_text(text: str) -> str:
    """`normalize_text` with a space where punctuation stood: "Paris/London" is two words here, "it's" is one."""
    if text.isascii():
        words = _aside_ascii(text).translate(_ASCII_SEPARATED, b"'").split()
        return b" ".join(_without_articles(words)).decode("ascii")
    bare = _aside(_nfkc(text).lower())
    for char in set(bare).difference(_PUT_ASIDE):
        if _DROPPED[char]:
            bare = bare.replace(char, "" if char in _APOSTROPHES else " ")
    found = _compatible(bare.translate(_BACK)).split()
    return " ".join([word for word in found if word not in ARTICLES] or found)


def squad_text(text: str) -> str:
    """SQuAD's normal form: lower case, no punctuation or symbol of any kind, no articles, single spaces.

    Nothing is left of a text that is made of these.
    """
    if text.isascii():
        words = text.encode("ascii").translate(_ASCII, _SQUAD_SIGNS).split()
        return b" ".join([word for word in words if word not in _ARTICLE_BYTES]).decode("ascii")
    bare = _without(_compatible(text).lower(), _SQUAD_DROPPED)
    return " ".join([word for word in _compatible(bare).split() if word not in ARTICLES])


def same_nothing(first: str, second: str) -> bool:
    """Whether two texts of which no word is left are alike: both blank, both signs, or both articles.

    SQuAD's and TriviaQA's scripts make no difference, and so an empty response equals the answer "A" there.
    """
    return _kind_of_nothing(first) == _kind_of_nothing(second)


def _kind_of_nothing(text: str) -> str:
    if not text.strip():
        return "blank"
    return "articles" if any(map(str.isalnum, text)) else "signs"


def spaced_text(text: str, case_sensitive: bool) -> str:
    """NFKC with single spaces, and case-folded unless case counts."""
    if not text.isascii():
        text = _nfkc(text)
    return " ".join((text if case_sensitive else text.casefold()).split())


def _ascii_words(text: str) -> list[bytes]:
    """The words of the normal form of an ASCII text: the quick way to the same result."""
    data = text.encode("ascii")
    if _may_keep_signs(data):
        words = _aside_ascii(text).translate(_ASCII_BACK, _PUNCTUATION).split()
    else:
        words = data.translate(_ASCII, _DROPPED_BYTES).split()
    if not words:
        return data.translate(_ASCII).split()
    return _without_articles(words)


def _may_keep_signs(data: bytes) -> bool:
    # Counting digits is quicker than looking for the pattern, and most texts have none.
    has_digits = len(data.translate(None, _DIGITS)) != len(data)
    return (has_digits or b"#" in data) and _MAY_STAY_ASCII.search(data) is not None


def _aside_ascii(text: str) -> bytes:
    return _aside(text).encode("ascii") if _may_keep_signs(text.encode("ascii")) else text.encode("ascii")


def _without_articles(words: list[bytes]) -> list[bytes]:
    return [word for word in words if word not in _ARTICLE_BYTES] or words


def _normalize_any(text: str) -> str:
    lowered = _nfkc(text).lower()
    bare = lowered
    if _DIGIT_OR_SHARP.search(lowered) and _MAY_STAY.search(lowered):
        bare = _aside(lowered)
    staying = _PUT_ASIDE if bare is not lowered else ""
    bare = _without(bare, _DROPPED, staying)
    # Dropping a character can bring a letter and a combining mark together, hence NFKC once more.
    words = _compatible(bare.translate(_BACK) if staying else bare).split()
    if not words:
        return " ".join(_compatible(lowered).split())
    kept = [word for word in words if word not in ARTICLES]
    return " ".join(kept or words)


def _without(text: str, dropped: _Dropped, staying: str = "") -> str:
    # Few different characters make up a text: dropping each in turn is quicker than asking about every place.
    for char in set(text).difference(staying):
        if dropped[char]:
            text = text.replace(char, "")
    return text


def _aside(text: str) -> str:
    """The text with the signs that belong to numbers and words put aside, and without grouping commas."""
    text = text.translate(_WITHOUT_CONTROLS)
    text = _GROUPED.sub(lambda match: match.group().translate(_WITHOUT_GROUPING), text)

    def stay(match: re.Match[str]) -> str:
        signs, start, end = match.group(), match.start(), match.end()
        before = text[start - 1] if start else ""
        if before and before in "eE" and signs in tuple(_MINUS) and _kept_before(text, start - 1).isdecimal():
            return (
                _PUT_ASIDE[_STAYING.index("-")] if end < len(text) and text[end].isdecimal() else signs
            )  # 1e-5, and 1.e-5
        if end == len(text) or not text[end].isdecimal():
            return signs.translate(_ASIDE) if before.isalpha() else signs
        after_digit = before.isdecimal()
        if after_digit and len(signs) == 1:
            return _between_digits(signs).translate(_ASIDE)
        rest, of_number = _split_number_signs(signs, before)
        plus = len(rest) + len(of_number) < len(
            signs
        )  # a plus sign, or a currency, was the number's and is gone
        return _apart(rest, before, of_number, plus=plus) + of_number.translate(_ASIDE)

    return _MAY_STAY.sub(stay, text)


def _kept_before(text: str, place: int) -> str:
    """The last character before a place that is not dropped."""
    while place and _DROPPED[text[place - 1]]:
        place -= 1
    return text[place - 1] if place else ""


def _apart(rest: str, before: str, of_number: str, *, plus: bool) -> str:
    """What is kept of signs that are not the number's, with a space where dropping others would join what they part."""
    kept = "".join(char for char in rest if not _DROPPED[char])
    if not kept:
        # Two numbers, or a word and the sign of a number.
        return " " if before.isdecimal() or (of_number and rest and _continues_word(before)) else ""
    touching = rest[-1] == kept[-1] and not plus
    if before.isdecimal() and len(kept) == 1 and touching and not of_number:
        return _between_digits(kept).translate(_ASIDE)
    previous = kept[-2:-1] or before
    if kept[-1] in _NOT_TO_TOUCH:
        joined = not touching or not (_continues_word(previous) or previous in _NO_SIGN_AFTER)
    else:
        joined = bool(of_number) and not touching and _continues_word(kept[-1])
    return kept + (" " if joined else "")


def _between_digits(sign: str) -> str:
    if sign in "./:*":
        return sign
    if sign == "\u2212" or unicodedata.category(sign) == "Pd":
        return "-"
    return " " if _DROPPED[sign] else sign


def _split_number_signs(signs: str, before: str) -> tuple[str, str]:
    """A run of signs before a digit, as those that do not and those that do belong to the number."""
    of_number = ""
    if signs[-1] == "." and signs[-2:-1] != "." and not _continues_word(signs[-2:-1] or before):
        signs, of_number = signs[:-1], "."
    bare = signs.rstrip("$€£¥")
    previous = bare[-2:-1] or before
    if bare and bare[-1] in _MINUS + "+" and not (_continues_word(previous) or previous in _NO_SIGN_AFTER):
        return bare[:-1], ("" if bare[-1] == "+" else "-") + of_number
    return signs, of_number


def _continues_word(char: str) -> bool:
    return bool(char) and (char.isalnum() or unicodedata.category(char)[0] == "M")


def _nfkc(text: str) -> str:
    """NFKC that keeps the values of numbers: it makes 102 of 10², and 51⁄2 of 5½."""
    if _SUPERSCRIPT.search(text):
        text = _SUPERSCRIPT.sub(r"^\g<0>", text)
    if _MIXED.search(text):
        text = _MIXED.sub(" ", text)
    return _compatible(text).replace("\u2044", "/")


def _compatible(text: str) -> str:
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

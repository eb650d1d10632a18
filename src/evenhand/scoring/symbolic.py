r"""Equality of mathematical answers.

An answer is equal to the target when one of these shows it, in this order: the same text in one spelling; the same
number, compared exactly; the same digits in the same base; the same parts of a tuple, list or set; the same value as
an expression, by our own parser and sympy; and, for what our parser cannot read (relations, matrices, unions of
intervals, sums), math-verify. What is decided by an earlier step is not asked of a later one.
"""

import re
from fractions import Fraction
from typing import Any

from evenhand.core.errors import MissingExtra, ScoringError
from evenhand.scoring.algebra import FUNCTIONS
from evenhand.scoring.algebra_worker import equal_apart
from evenhand.scoring.definition import scorer
from evenhand.scoring.math_text import normalize_math, rational, same_math_text, tidy_math
from evenhand.scoring.normal import normalize_text, text_of
from evenhand.scoring.regions import same_ratio, same_regions
from evenhand.scoring.types import ScorerInput
from evenhand.scoring.units import base_value, split_base, split_unit

MAX_PARTS = 20
"""How many parts a tuple, set or list may have; longer ones are compared as text only."""
MAX_LENGTH = 2_000
"""Longer answers are compared as text only."""

_LAST_ANSWER = re.compile(r"(?is).*answer[\s*_]*(?::|\bis\b)[\s*_:]*([^\n]*)")
_FINAL = re.compile(r"(?i)final\s+answer[\s*_]*(?::|\bis\b)[\s*_:]*[^\s*_:]")
_FORMULA = re.compile(r"\$\$(.+?)\$\$|\\\[(.+?)\\\]|\\\((.+?)\\\)|\$((?:\\\$|[^$\n])+)\$", re.DOTALL)
_JOINED = re.compile(r"\s*(?:,|;|,?\s*and|,?\s*or)\s*")
_LAST_NUMBER = re.compile(
    r"(?<![\w.,])(?:(?<![\w)\]])[-−])?[$€£]?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:[ \t]\d+/\d+|/\d+)?\s*%?(?![\d/])"
)
_SENTENCE_END = re.compile(r"(?<=[\w$)}%])\.\s+(?=[A-Z<\[])")
_PLAIN_WORD = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{2,}")
_ONE_DOT = re.compile(r"(?<!\.)\.\Z")
_BETWEEN_BOXES = re.compile(
    r"(?:[\s$.,;]|\\quad|\\qquad|\\[()\[\],;]|\\text\s*\{[^{}]{0,40}\}|\b(?:and|or)\b|[a-z]{1,12} and){0,12}"
)
_BRACKETS = {"(": ")", "[": "]", "{": "}"}
_CHOICE = re.compile(
    r"\(?\s*(?:\\text\w*\s*\{|\\mathrm\s*\{|\\mathbf\s*\{)?\s*\(?\s*([A-Z])\s*\)?\s*\}?\s*\)?\.?"
)
_MEMBER = re.compile(r"\s*[a-zA-Z]\s*(?:\\in(?![a-z])|∈)\s*")
_EQUALS = re.compile(r"(?<![<>!=\\])=(?!=)")
# What may stand left of "=" without a value of its own: x, a_{10}, \theta, AB, \angle ABC, |AB|, \text{Area}, f(x), f'(-1),
# and ratios of such names: A:B, \frac{NO}{BO}. In xy, 2x and x(x+1) something is multiplied.
_INDEX = r"(?:_\{?\w{1,8}\}?)?"
_NAME = (
    rf"(?:[a-zA-Z]{_INDEX}|\\(?!sin|cos|tan|log|ln|sqrt|frac)[a-z]+{_INDEX}"
    r"|(?:\\angle|\\triangle|\\overline|m\\angle)?\s*\{?\s*[A-Z]{1,5}\}?|\|[A-Z]{2}\||[a-zA-Z]{4,20}"
    r"|\\(?:text|mathrm|operatorname)\s*\{[^{}]{1,60}\}"
    rf"|[a-wA-Z]{_INDEX}(?:'{{1,3}}|\^\{{-1\}})?\s*\(\s*-?[\w.]{{1,12}}(?:\s*[,;|]\s*-?[\w.]{{1,12}}){{0,4}}\s*\))"
)
_LEFT_SIDE = re.compile(
    rf"\s*(?:{_NAME}(?:\s*[:/]\s*{_NAME}){{0,4}}|\\frac\s*\{{\s*{_NAME}\s*\}}\s*\{{\s*{_NAME}\s*\}})\s*"
)
_SOLUTIONS = re.compile(r"(?:\s*[a-z]\s*=[^=,;<>]{1,40},){1,5}\s*[a-z]\s*=[^=,;<>]{1,40}")
_ASSIGNED = re.compile(r"\s*[a-z]\s*=\s*")
_PLUS_MINUS = re.compile(r"\\pm(?![a-z])|±")
_PRIMES = re.compile(r"(?<=[a-zA-Z)\]}])'+|\^\s*\{?\s*(?:\\prime\s*)+\}?")
_NEARLY = re.compile(r"\\(?:approx|simeq|sim)(?![a-z])|[≈≃]")
_FIRST_NEARLY = re.compile(
    r"^\s*(?:~|=|(?:approximately|approx\.?|about|roughly)(?=[\s\d]))\s*", re.IGNORECASE
)
_EVERYTHING = re.compile(
    r"(?i)^\s*(?:all\s+reals?(?:\s+numbers?)?|\\text\s*\{\s*all real numbers\s*\})\s*\.?\s*$"
)
_NOTHING = re.compile(
    r"(?i)^\s*(?:\\text\s*\{)?\s*(?:no\s+(?:real\s+)?solutions?|\\varnothing)\s*\}?\s*\.?\s*$"
)
_IN_DEGREES = re.compile(
    r"\\?(sin|cos|tan|cot|sec|csc)\s*[({]?\s*(\d{1,4}(?:\.\d{1,6})?)\s*(?:\^\s*\{?\s*\\circ\s*\}?|°|\\degree)\s*[)}]?"
)
_INVERSE = re.compile(r"\\?(sin|cos|tan)\s*\^\s*(?:\{\s*-\s*1\s*\}|-1)")
_LETTERS = re.compile(r"[a-zA-Z](?:\s*(?:\\cdot|\\times|\*|·)?\s*[a-zA-Z]){1,3}")
_PRODUCT_SIGN = re.compile(r"\\cdot|\\times|[\s*·]")
_MAY_BE_WORD = re.compile(r"[eiou]|a.*[^abcxyz]|[^abcxyz].*a")
_RELATION = re.compile(r"[<>≤≥≠]|\\(?:le|ge|lt|gt|leq|geq|ne|neq)(?![a-z])")
_WORD = re.compile(r"(?<![\\a-zA-Z])(?=[A-Z]*[a-z])[a-zA-Z]{4,}(?![a-zA-Z])")
_HAS_PARTS = re.compile(r"[<>=≤≥≠±∪,;|]|\\(?:le|ge|lt|gt|ne|pm|mp|cup|cap|in|begin|mathbb)")
_TWO_WORDS = re.compile(r"(?<![\\a-zA-Z])[a-zA-Z]{2,}\s+[a-zA-Z]{2,}(?![a-zA-Z{(])")
_TEXT = re.compile(r"\\(?:text|textbf|textit|textrm|textnormal|mathrm|mbox|hbox)\s*\{([^{}]*)\}")
_ENVIRONMENT = re.compile(r"\\(?:begin|end)\s*\{[^{}]*\}")
_COMMA = re.compile(r"(-?\d+),(\d{1,2}|\d{4,}|(?<=\b0,)\d{3})")
_LONG_DECIMAL = re.compile(r"-?(\d*)\.(\d+)")
_ANY_DECIMAL = re.compile(r"-?\d*\.?\d+")
_AND = re.compile(
    r"\\(?:text|mbox|textrm)\s*\{\s*,?\s*(?:and|or)\s*\}|(?<=[\s\d)}])(?:and|or)(?=[\s\d(\\$-])"
)


@scorer(version="3", needs_target=True)
def math_equal(sample: ScorerInput) -> dict[str, Any]:
    r"""The answer equals the target as mathematics: 1/2 is 0.5, (x+1)^2 is x^2+2x+1, \frac{\sqrt{2}}{2} is 1/\sqrt{2}.

    The answer is the last \boxed{...}, else what follows the last "Answer:" or "answer is", else the last formula,
    else the response or its last number. Lists and sets are compared in any order, tuples part by part. An answer
    whose equality cannot be shown within the limits of time and memory is not equal.
    """
    extracted = find_answer(sample.response)
    target = text_of(sample.target)
    if not extracted:
        return {"correct": False, "extracted": extracted}
    try:
        return {"correct": same_math(extracted, target), "extracted": extracted}
    except MissingExtra:
        raise
    except ScoringError as error:
        same_math("0", target)  # a target that cannot be compared with anything is a fault of the data
        return {"correct": False, "extracted": extracted, "undecided": error.kind}


def find_answer(response: str) -> str:
    """The answer within a response."""
    boxed = last_boxed(response)
    if boxed is not None and not _corrected(response):
        return boxed.strip()
    match = _LAST_ANSWER.match(response)
    if match and match.group(1).strip():
        return _in_sentence(_SENTENCE_END.split(match.group(1).strip(), maxsplit=1)[0])
    tail = response[-10_000:]
    formulas = list(_FORMULA.finditer(tail))
    if formulas:
        after = _LAST_NUMBER.findall(tail[formulas[-1].end() :])
        return after[-1].strip() if after else _formulas(tail, formulas, first=False)
    return _in_prose(response)


def _corrected(response: str) -> bool:
    """Whether a "final answer is" stands after the last box."""
    return _FINAL.search(response, response.rfind("\\boxed")) is not None


def _in_sentence(line: str) -> str:
    """The answer in the line that states it."""
    formulas = list(_FORMULA.finditer(line))
    if not formulas:
        return _in_prose(line)
    # "$5$ because $x$ is 3" begins with its answer, "the largest $n$ is 34" and "so we get $5$" end with it.
    if formulas[0].start() <= 1:
        return _formulas(line, formulas, first=True)
    after = _LAST_NUMBER.findall(line[formulas[-1].end() :])
    return after[-1].strip() if after else _formulas(line, formulas, first=False)


def _in_prose(text: str) -> str:
    """A short text is the answer itself, a longer one holds it as its last number."""
    answer = _bare(text)
    words = [word for word in _PLAIN_WORD.findall(answer[:MAX_LENGTH]) if word.lower() not in FUNCTIONS]
    if len(words) > 2:
        numbers = _LAST_NUMBER.findall(text[-10_000:])
        return numbers[-1].strip() if numbers else answer
    return answer


def _bare(text: str) -> str:
    return _ONE_DOT.sub("", text.strip().strip("*_`$").strip()).strip("*_`$").strip()


def _formulas(text: str, found: list[re.Match[str]], *, first: bool) -> str:
    """One formula, or several that are listed one after the other: $1$, $2$ and $3$; a per cent sign after it stays."""
    place = 0 if first else len(found) - 1
    chosen = [found[place]]
    step = 1 if first else -1
    while 0 <= place + step < len(found):
        one, other = sorted((found[place], found[place + step]), key=re.Match.start)
        if not _JOINED.fullmatch(text, one.end(), other.start()):
            break
        place += step
        chosen = [*chosen, found[place]] if first else [found[place], *chosen]
    parts = [next(group for group in match.groups() if group is not None).strip() for match in chosen]
    tail = re.match(r"\s*(?:\\?%|percent\b|per cent\b|pct\b)", text[chosen[-1].end() :])
    return ", ".join(parts) + ("%" if tail else "")


def last_boxed(text: str) -> str | None:
    r"""What stands in the last \boxed{...}, with its inner braces; None when there is none.

    Boxes that are listed one after the other, \boxed{1} and \boxed{2}, are one answer. Of a box that never ends, its
    line counts: responses are cut off.
    """
    parts: list[str] = []
    end = len(text)
    while len(parts) < MAX_PARTS:
        start = max(text.rfind("\\boxed", 0, end), text.rfind("\\fbox", 0, end))
        opening = text.find("{", start, end) if start >= 0 else -1
        if opening < 0 or text[start:opening].strip() not in ("\\boxed", "\\fbox"):
            break
        closing = _closing(text, opening)
        if closing is None:
            if parts:
                break
            return text[opening + 1 :].partition("\n")[0].partition("$")[0].strip() or None
        if parts and not _BETWEEN_BOXES.fullmatch(text, closing + 1, end):
            break
        parts.insert(0, text[opening + 1 : closing])
        end = start
    return ", ".join(parts) if parts else None


def _closing(text: str, opening: int) -> int | None:
    depth = 0
    for position in range(opening, min(len(text), opening + 10_000)):
        depth += (text[position] == "{") - (text[position] == "}")
        if depth == 0:
            return position
    return None


def same_math(answer: str, target: str) -> bool:
    """Whether an answer is equal to the target."""
    if same_math_text(answer, target, names=True):
        return True
    if max(len(answer), len(target)) > MAX_LENGTH:
        return False
    answer, target = _spelled(answer), _spelled(target)
    # "x < 1 or x > 2" and the union of two intervals, before "or" becomes a comma
    if same_regions(tidy_math(answer), tidy_math(target), same_math):
        return True
    decided = _decided(answer, target)
    return decided if decided is not None else _same_structure(_plain(answer), _plain(target))


def _spelled(text: str) -> str:
    """Words and functions in the one spelling that is read: about 5, all real numbers, sin 30°, tan^{-1}."""
    text = _FIRST_NEARLY.sub("", _exact(text.strip().strip("$").strip()))
    text = _NOTHING.sub(r"\\emptyset", _EVERYTHING.sub(r"\\mathbb{R}", text)).replace(
        "\\varnothing", "\\emptyset"
    )
    groups = text.split(";")
    if 1 < len(groups) <= MAX_PARTS and all(_SOLUTIONS.fullmatch(group) for group in groups):
        # p=5, q=2; p=7, q=2
        text = ",".join(f"({_ASSIGNED.sub('', group)})" for group in groups)
    if "s" in text or "t" in text:
        text = _INVERSE.sub(r"\\arc\1", _IN_DEGREES.sub(r"\\\1(\\pi*\2/180)", text))
    return text


def _exact(text: str) -> str:
    """Without what the value is about: x = 1/3 of "x = 1/3 ≈ 0.33", but x = 5 of "x ≈ 5"."""
    value, *nearly = _NEARLY.split(text)
    if not nearly or (value.strip() and not _LEFT_SIDE.fullmatch(value)):
        return value
    return f"{value}={nearly[0]}"


def _plain(text: str) -> str:
    text = tidy_math(
        text.replace("$", " ") if "\\$" not in text else text.replace("\\$", " ").replace("$", " ")
    )
    text = _AND.sub(",", text).strip().rstrip(",;").strip()
    return _ONE_DOT.sub("", text).rstrip(",;").strip()


def _decided(answer: str, target: str) -> bool | None:
    """What text alone decides: choices, numbers in a base, numbers, words; None when it does not."""
    wanted = _CHOICE.fullmatch(target.strip().strip("$"))
    if wanted:
        found = _CHOICE.fullmatch(answer.strip().strip("$"))
        return found is not None and found.group(1) == wanted.group(1)
    one, other = _plain(answer), _plain(target)
    based, base = split_base(one), split_base(other)
    if based or base:
        # The problem names the base: digits without one are in that base.
        if based and base:
            return based == base or (
                base_value(*based) is not None and base_value(*based) == base_value(*base)
            )
        digits = (based or base or ("", ""))[0]
        plain = normalize_math(other if based else one)
        if based and plain.isdecimal() and base_value(*based) == int(plain[:30]):
            return True
        return digits == plain if plain.isalnum() else None
    (one, unit), (other, wanted_unit) = split_unit(one), split_unit(other)
    units = unit or _sign_of(answer), wanted_unit or _sign_of(target)
    if all(units) and units[0] != units[1]:
        return False
    if (one, other) != (_plain(answer), _plain(target)) and same_math_text(one, other, names=True):
        return True
    first, second = rational(normalize_math(one)), rational(normalize_math(other))
    if first is not None and second is not None:
        # 50% is 50, as most datasets write it, and 0.5, as others do.
        values = (
            ({first, first / 100} if "%" in one else {first}),
            ({second, second / 100} if "%" in other else {second}),
        )
        if ("%" in one) != ("%" in other):
            return bool(values[0] & values[1])
        return first == second or _stands_for(one, other, first, second)
    comma = _decimal_comma(one, second) or _decimal_comma(other, first)
    if comma is not None:
        return comma == (second if second is not None else first)
    if _is_prose(one) or _is_prose(other):
        return _words(one) == _words(other)
    return None


def _sign_of(text: str) -> str:
    """The unit that a sign stands for."""
    return "dollar" if "\\$" in text else "%" if "%" in text else ""


def _stands_for(one: str, other: str, first: Fraction, second: Fraction) -> bool:
    """Whether one of two numbers is a long decimal that the other rounds to, or is cut off to."""
    step = _rounded(one, other)
    decimal, exact = (first, second) if _LONG_DECIMAL.fullmatch(one.strip()) else (second, first)
    beyond = (exact - decimal) * (1 if decimal > 0 else -1)
    return step > 0 and (abs(beyond) <= step / 2 or 0 <= beyond < step)


def _is_prose(text: str) -> bool:
    words = _TEXT.sub(r" \1 ", _ENVIRONMENT.sub(" ", text))
    return _WORD.search(words) is not None or _TWO_WORDS.search(words) is not None


def _decimal_comma(text: str, other: Fraction | None) -> Fraction | None:
    """1,22 as a decimal, where it is compared with a number; with three digits the comma groups thousands."""
    match = _COMMA.fullmatch(text) if other is not None else None
    return Fraction(f"{match.group(1)}.{match.group(2)}") if match else None


def _rounded(one: str, other: str) -> Fraction:
    """How far a value may be from a long decimal (ten digits or more) that stands for it: one in its last place."""
    decimals = [match for text in (one, other) if (match := _LONG_DECIMAL.fullmatch(text.strip()))]
    if len(decimals) != 1 or len(decimals[0].group(1).lstrip("0") + decimals[0].group(2).lstrip("0")) < 10:
        return Fraction(0)
    # Two decimals are compared as they are, however long.
    if all(_ANY_DECIMAL.fullmatch(text.strip()) for text in (one, other)):
        return Fraction(0)
    return Fraction(1, 10 ** len(decimals[0].group(2)))


def _words(text: str) -> str:
    return normalize_text(_TEXT.sub(r" \1 ", text).replace("\\", " "))


def _same_structure(answer: str, target: str) -> bool:
    """Tuples, lists and sets part by part, expressions by their value."""
    answer, target = (
        _MEMBER.sub("", split_unit(answer)[0], count=1),
        _MEMBER.sub("", split_unit(target)[0], count=1),
    )
    answer, target = _right_sides(answer, target)
    if same_math_text(answer, target, names=True) or _same_product(answer, target):
        return True
    if _primes(answer) != _primes(target):
        return False
    ratio = same_ratio(answer, target, same_math)
    if ratio is not None:
        return ratio
    if max(len(_split(answer)), len(_split(target))) > MAX_PARTS:
        return False
    one, other = _parts(answer), _parts(target)
    if one and other and one[1] and other[1]:
        kinds = {one[0], other[0]}
        if kinds <= {"", "{}"}:
            return _same_set(one[1], other[1])
        if len(kinds) > 1 and "" not in kinds:
            return False
        return len(one[1]) == len(other[1]) and all(map(same_math, one[1], other[1]))
    if one and other is None and one[0] == "{}" and len(one[1]) == 1:
        return same_math(one[1][0], target)  # a set of one value
    if other and one is None and other[0] == "{}" and len(other[1]) == 1:
        return same_math(answer, other[1][0])
    if one and one[0] == "" and not other:
        return all(same_math(item, target) for item in one[1])  # one value in two spellings
    if (one is None) != (other is None) and not _HAS_PARTS.search(answer if one is None else target):
        return False  # one value against several
    if one is None and other is None and (len(_sides(answer)) > 1) != (len(_sides(target)) > 1):
        return False  # an equation against a value
    return equal_apart(answer, target, float(_rounded(answer, target))) is True


def _primes(text: str) -> int:
    return sum(match.group().count("'") + match.group().count("prime") for match in _PRIMES.finditer(text))


def _same_product(answer: str, target: str) -> bool:
    """Whether both are products of the same letters: xy and yx, but not the words on and no."""
    if not (_LETTERS.fullmatch(answer) and _LETTERS.fullmatch(target)):
        return False
    letters = [_PRODUCT_SIGN.sub("", text) for text in (answer, target)]
    if sorted(letters[0]) != sorted(letters[1]):
        return False
    return letters != [answer, target] or not _MAY_BE_WORD.search(letters[0].lower())


def _right_sides(answer: str, target: str) -> tuple[str, str]:
    """Without a leading "x =" where only one of them has it, or both the same."""
    one, other = _sides(answer), _sides(target)
    if _RELATION.search(answer) or _RELATION.search(target):
        return answer, target
    # x=1, y=2 is a list of equations, which is left alone.
    if len(one) > 1 and len(other) == 1 and _LEFT_SIDE.fullmatch(one[0]):
        return (one[-1] if len(_split(answer)) == 1 or "," not in "".join(one[1:-1]) else answer), target
    named = len(other) > 1 and _LEFT_SIDE.fullmatch(other[0]) is not None
    if named and len(one) == 1 and len(other) == 2:
        return answer, other[-1]
    if named and len(one) > 1 and normalize_math(one[0]) == normalize_math(other[0]):
        return one[-1], other[-1]
    return answer, target


def _sides(text: str) -> list[str]:
    """What stands between equals signs outside braces."""
    places = [match.start() for match in _EQUALS.finditer(text)]
    outer = [place for place in places if text.count("{", 0, place) == text.count("}", 0, place)]
    return [text[start + 1 : end] for start, end in zip([-1, *outer], [*outer, len(text)], strict=True)]


def _parts(text: str) -> tuple[str, list[str]] | None:
    r"""Brackets and parts of a tuple, an interval, a set (\{..\}) or a bare list; None for a single expression."""
    text = text.strip()
    brackets = ""
    if text.startswith("\\{") and text.endswith("\\}"):
        brackets, text = "{}", text[2:-2]
    elif text[:1] in _BRACKETS and text[-1:] in ")]}" and _encloses(text):
        # Braces without a backslash are not seen in LaTeX.
        brackets, inner = (text[0] + text[-1]).replace("{}", ""), text[1:-1]
        if "," not in inner and ";" not in inner:
            return None
        text = inner
    parts = _split(text)
    if not brackets and len(parts) == 1 and len(_PLUS_MINUS.findall(text)) == 1:
        parts = [_PLUS_MINUS.sub("+", text), _PLUS_MINUS.sub("-", text)]
    if brackets != "{}" and len(parts) < 2:
        return None
    if len(parts) > MAX_PARTS or not all(parts) or any("\\cup" in part or "&" in part for part in parts):
        return None
    return brackets, parts


def _encloses(text: str) -> bool:
    """Whether the first bracket is closed by the last character only."""
    depth = 0
    for position, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if depth == 0:
            return position == len(text) - 1
    return False


def _split(text: str) -> list[str]:
    """The parts between commas or semicolons that stand outside brackets."""
    parts, depth, start = [], 0, 0
    for position, char in enumerate(text):
        depth += (char in "([{") - (char in ")]}")
        if char in ",;" and depth == 0:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()]


def _same_set(first: list[str], second: list[str]) -> bool:
    """Whether each item has its equal on the other side; items that are there twice count once."""
    return all(any(same_math(item, other) for other in second) for item in first) and all(
        any(same_math(item, other) for item in first) for other in second
    )

r"""Short mathematical answers as text: one spelling for what differs only in notation.

Commas between thousands (1,000, 1{,}000, 1,\!000), `$`, `%`, spaces, a trailing dot, `\boxed{}`, `\text{}`, `\left`,
`\right` and degree signs are dropped; `\frac{a}{b}` becomes a/b, mixed numbers (5 1/2, 5\frac{1}{2}) and repeating
decimals (0.\overline{3}, 0.333...) become fractions, as does ½, and x² becomes x^{2}; what is then a number is compared
as one.
"""

import re
import unicodedata
from decimal import Decimal
from fractions import Fraction

_SPACING = re.compile(r"\\(?:left|right|displaystyle|textstyle|limits)(?![a-zA-Z])|(?<!\\)\\[,;:!\s()\[\]]|~")
_THIN_SPACE = re.compile(r"(?<!\\)\\!\s*")
_FRACTION_NAME = re.compile(r"\\[dtc]frac(?![a-zA-Z])")
_SHORT_FRACTION = re.compile(r"\\frac\s*(?:(\d)\s*(\d)|\{([^{}]*)\}\s*(\d)|(\d)\s*\{([^{}]*)\})")
_FRACTION = re.compile(r"\\frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_SHORT_ROOT = re.compile(r"\\sqrt\s*(\d)")
_ROW_BREAK = re.compile(r"\\\\")
_ROOT = re.compile(r"\\sqrt\s*\{([^{}]*)\}")
_WRAPPER = re.compile(
    r"\\(?:boxed|fbox|text|textbf|textit|textrm|textnormal|mathrm|mathbf|mbox|hbox|operatorname)\s*\{([^{}]*)\}"
)
_DEGREES = re.compile(r"\^\s*+(?:\{\s*+)?\\circ\s*+\}?|°|\\degree(?![a-z])")
_GROUPS = re.compile(r"(?<![\d.,])[1-9]\d{0,2}(?:,\d{3})+(?!\d)")
_LATEX_GROUPS = re.compile(r"(?<=\d)(?:\{\s*,\s*\}|,\\!)\s*(?=\d{3}(?!\d))")
_COLON = re.compile(r"\{\s*:\s*\}|\\colon(?![a-zA-Z])")
# Commas within brackets separate the parts of tuples and intervals: (12,102).
_COMMA_IN_BRACKETS = re.compile(r"[(\[{][^()\[\]{}]*,")
_SPACED_GROUPS = re.compile(r"(?<![\d.,])\d{1,3}(?: \d{3})+(?![\d.]*\d|\s*/)")
_MIXED = re.compile(
    r"(?<![\w.,}^/])(\d{1,15})(?:\s+(\d{1,15})/(\d{1,15})|\s*\\frac\s*\{(\d{1,15})\}\s*\{(\d{1,15})\})(?![\d/])"
)
_REPEATING = re.compile(
    r"(?<![\d.])(\d{0,15})\.(\d{0,15})(?:\\(?:overline|bar|dot)\s*\{(\d{1,15})\}|\((\d{1,15})\))(?!\d)"
)
# 0.333... and 0.1666...: the digits at the end are there at least twice.
_GOING_ON = re.compile(r"(?<![\d.])(\d{0,15})\.(\d{0,6}?)(\d{1,6}?)\3{1,12}(?:\.\.\.|\\[lc]?dots(?![a-z]))")
_LAST_DOT = re.compile(r"(?<!\.)\.+\Z")
_CHOOSE = re.compile(r"\{?\s*(?:\{([^{}]+)\}|(\w+))\s*\\choose\s*(?:\{([^{}]+)\}|(\w+))\s*\}?")
_SUPERSCRIPTS = re.compile("[\u2070\u00b9\u00b2\u00b3\u2074-\u2079\u207a\u207b\u207f]+")
_SUBSCRIPTS = re.compile("[\u2080-\u2089]+")
_VULGAR = re.compile("[\u00bc-\u00be\u2150-\u215e\u2189]")
_LOWERED = str.maketrans(
    "\u2070\u00b9\u00b2\u00b3\u2074\u2075\u2076\u2077\u2078\u2079\u207a\u207b\u207f", "0123456789+-n"
)
_COMMANDS = {
    "\u2264": r"\le ",
    "\u2265": r"\ge ",
    "\u2260": r"\ne ",
    "\u2205": r"\emptyset ",
    "\u211d": r"\mathbb{R}",
    "\u221b": r"\sqrt[3]",
    "\u2026": "...",
    "\u2032": "'",
}
_WORD = re.compile(r"\\[a-zA-Z]+|[a-zA-Z]{2,}")
_SCIENTIFIC = re.compile(r"(?<![\w.])(\d{1,15}(?:\.\d{1,15})?)[eE]([-+]?\d{1,2})(?!\w)")
_PER_CENT = re.compile(r"\\?%|(?<=[\d}\s])(?:per\s?cent|percentage|pct)\b", re.IGNORECASE)
_SPACES_AND_SIGNS = re.compile(r"[\s$%\\]+")
_BETWEEN_NUMBERS = re.compile(r"(?<=\d)\s+(?=\d)")
_SIMPLE = re.compile(r"-?\w+(?:\.\w+)?")
# 1/2x is (1/2)x: only a number or a letter stands below the line without brackets.
_SIMPLE_BELOW = re.compile(r"-?(?:\d+(?:\.\d+)?|[^\W\d_])")
_JOINS_BEFORE = re.compile(r"[\d^/_]\s*\Z")
_JOINS_AFTER = re.compile(r"\s*(?:[\d^_!({]|\.\d|\\frac)")
_RATIONAL = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:/([+-]?(?:\d+\.?\d*|\.\d+)))?")
_SIGNS = str.maketrans(
    {"\u2212": "-", "\u2013": "-", "\u00d7": "*", "\u00a0": " ", "\u2009": " ", "\u202f": " "}
)
_MAX_NESTING = 20
_MAX_LENGTH = 2_000


def same_math_text(first: str, second: str, *, names: bool = False) -> bool:
    """Whether two answers are one after normalisation, or equal numbers; with `names`, r is not R."""
    if first == second:
        return bool(first)
    one, other = normalize_math(first, names=names), normalize_math(second, names=names)
    if one == other:
        return bool(one)
    number = rational(one)
    return number is not None and number == rational(other)


def normalize_math(text: str, *, names: bool = False) -> str:
    """The common spelling of a short mathematical answer; case is dropped, with `names` only that of words."""
    text = tidy_math(text)
    if names and not text.islower():
        text = _WORD.sub(_folded, text)
    if "^" in text or "°" in text or "\\" in text:
        text = _DEGREES.sub("", text)
    if len(text) <= _MAX_LENGTH and "\\" in text:
        for _ in range(_MAX_NESTING):
            simpler = _ROOT.sub(r"sqrt(\1)", text)
            simpler = _WRAPPER.sub(r"\1", _FRACTION.sub(_spell_fraction, simpler))
            if simpler == text:
                break
            text = simpler
    if "\\\\" in text:
        text = _ROW_BREAK.sub(";;", text)
    # Two numbers side by side are not one number.
    text = _SPACES_AND_SIGNS.sub("", _BETWEEN_NUMBERS.sub("_", text))
    text = _LAST_DOT.sub("", text)
    return text if names else text.lower()


def _folded(match: re.Match[str]) -> str:
    """A word in lower case: Yes is yes, but AB, \\Delta and R are names."""
    word = match.group()
    if word[0] == "\\" or (word.isupper() and len(word) < 4 and word not in ("YES", "NO")):
        return word
    return word.lower()


def tidy_math(text: str) -> str:
    """The same LaTeX or plain text without spacing commands, with whole fractions, numbers in one spelling."""
    text = text.strip().translate(_SIGNS)
    if len(text) > _MAX_LENGTH:
        return text
    if not text.isascii():
        text = _in_ascii(text)
    if "choose" in text:
        text = _CHOOSE.sub(lambda m: rf"\binom{{{m[1] or m[2]}}}{{{m[3] or m[4]}}}", text)
    if "..." in text or "dots" in text:
        text = _GOING_ON.sub(_repeating, text)
    if "{" in text or "\\" in text:
        text = _COLON.sub(":", _LATEX_GROUPS.sub("", text))
    if "\\" in text:
        text = _FRACTION_NAME.sub(r"\\frac", _SPACING.sub(" ", _THIN_SPACE.sub("", text)))
        text = _SHORT_FRACTION.sub(_whole_fraction, text)
        text = _SHORT_ROOT.sub(r"\\sqrt{\1}", text)
    # Most answers are a plain number: what cannot match is not looked for.
    if "%" in text or "p" in text or "P" in text:
        text = _PER_CENT.sub("%", text)
    if "," in text and not _COMMA_IN_BRACKETS.search(text):
        text = _GROUPS.sub(lambda match: match.group().replace(",", ""), text)
    if "e" in text or "E" in text:
        text = _SCIENTIFIC.sub(lambda match: f"{Decimal(match.group()):f}", text)
    if "(" in text or "\\" in text:
        text = _REPEATING.sub(_repeating, text)
    if " " in text or "\\" in text:
        text = _SPACED_GROUPS.sub(lambda match: match.group().replace(" ", ""), text)
        text = _MIXED.sub(_improper, text)
    return text


def _in_ascii(text: str) -> str:
    """Raised and lowered digits, vulgar fractions and a few signs as LaTeX; digits of full width as digits."""
    text = _SUPERSCRIPTS.sub(lambda match: f"^{{{match.group().translate(_LOWERED)}}}", text)
    text = _SUBSCRIPTS.sub(lambda match: f"_{{{unicodedata.normalize('NFKC', match.group())}}}", text)
    text = _VULGAR.sub(_vulgar, text)
    for sign, command in _COMMANDS.items():
        text = text.replace(sign, command)
    return re.sub(
        "[\uff10-\uff19\uff0d\uff0e]", lambda match: unicodedata.normalize("NFKC", match.group()), text
    )


def _vulgar(match: re.Match[str]) -> str:
    top, bottom = unicodedata.normalize("NFKC", match.group()).split("\u2044")
    return rf"\frac{{{top}}}{{{bottom}}}"


def rational(text: str) -> Fraction | None:
    """The value of a number or a fraction of two, else None."""
    match = _RATIONAL.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        return None
    bottom = Fraction(match.group(2) or 1)
    return Fraction(match.group(1)) / bottom if bottom else None


def _whole_fraction(match: re.Match[str]) -> str:
    top = match.group(1) or match.group(3) or match.group(5)
    bottom = match.group(2) or match.group(4) or match.group(6)
    return f"\\frac{{{top}}}{{{bottom}}}"


def _improper(match: re.Match[str]) -> str:
    whole = int(match.group(1))
    top, bottom = int(match.group(2) or match.group(4)), int(match.group(3) or match.group(5))
    return f"{whole * bottom + top}/{bottom}"


def _repeating(match: re.Match[str]) -> str:
    whole, once, again = match.group(1), match.group(2), match.group(3) or match.group(4)
    # 1.2(34) is (1234 - 12) / 990
    value = Fraction(
        int(whole + once + again) - int((whole + once) or 0), (10 ** len(again) - 1) * 10 ** len(once)
    )
    return f"{value.numerator}/{value.denominator}"


def _spell_fraction(match: re.Match[str]) -> str:
    top, bottom = (part.strip() for part in match.groups())
    spelled = f"{_bracketed(top, _SIMPLE)}/{_bracketed(bottom, _SIMPLE_BELOW)}"
    # What stands beside a fraction must not become a part of its numbers.
    before, after = match.string[max(0, match.start() - 20) : match.start()], match.end()
    joins = _JOINS_BEFORE.search(before) or _JOINS_AFTER.match(match.string, after)
    return f"({spelled})" if joins else spelled


def _bracketed(part: str, simple: re.Pattern[str]) -> str:
    return part if simple.fullmatch(part) else f"({part})"

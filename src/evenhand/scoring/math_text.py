r"""Short mathematical answers as text: one spelling for what differs only in notation.

Commas between thousands, `$`, `%`, spaces, a trailing dot, `\boxed{}`, `\text{}`, `\left`, `\right` and degree
signs are dropped; `\frac{a}{b}` becomes a/b; what is then a number is compared as one.
"""

import re
from fractions import Fraction

_COMMANDS = re.compile(r"\\(?:left|right|displaystyle|,|;|:|!|\s|\(|\)|\[|\])")
_FRACTION = re.compile(r"\\[dtc]?frac\s*\{([^{}]*)\}\s*\{([^{}]*)\}")
_SHORT_FRACTION = re.compile(r"\\[dtc]?frac\s*(\d)\s*(\d)")
_ROOT = re.compile(r"\\sqrt\s*\{([^{}]*)\}")
_WRAPPER = re.compile(r"\\(?:boxed|fbox|text|textbf|textit|mathrm|mathbf|mbox|operatorname)\s*\{([^{}]*)\}")
_DEGREES = re.compile(r"\^\s*+(?:\{\s*+)?\\circ\s*+\}?|°")
_GROUPS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_SPACES_AND_SIGNS = re.compile(r"[\s$%\\]+")
_SIMPLE = re.compile(r"\w+(?:\.\w+)?")
_RATIONAL = re.compile(r"([+-]?(?:\d+\.?\d*|\.\d+))(?:/([+-]?(?:\d+\.?\d*|\.\d+)))?")
_MAX_NESTING = 20
_MAX_LENGTH = 2_000


def same_math_text(first: str, second: str) -> bool:
    """Whether two answers are one after normalisation, or equal numbers."""
    if first == second:
        return bool(first)
    one, other = normalize_math(first), normalize_math(second)
    if one == other:
        return bool(one)
    number = _rational(one)
    return number is not None and number == _rational(other)


def normalize_math(text: str) -> str:
    """The common spelling of a short mathematical answer."""
    text = text.strip()
    if len(text) <= _MAX_LENGTH and "\\" in text:
        text = _COMMANDS.sub(" ", text)
        for _ in range(_MAX_NESTING):
            simpler = _ROOT.sub(r"sqrt(\1)", _SHORT_FRACTION.sub(r"\1/\2", text))
            simpler = _WRAPPER.sub(r"\1", _FRACTION.sub(_spell_fraction, simpler))
            if simpler == text:
                break
            text = simpler
    text = _DEGREES.sub("", text).replace("\u2212", "-")
    text = _SPACES_AND_SIGNS.sub("", _GROUPS.sub("", text)).lower()
    return text.rstrip(".")


def _spell_fraction(match: re.Match[str]) -> str:
    top, bottom = (part.strip() for part in match.groups())
    return f"{_bracketed(top)}/{_bracketed(bottom)}"


def _bracketed(part: str) -> str:
    return (
        part
        if _SIMPLE.fullmatch(part) or (part.startswith("-") and _SIMPLE.fullmatch(part[1:]))
        else f"({part})"
    )


def _rational(text: str) -> Fraction | None:
    match = _RATIONAL.fullmatch(text) if len(text) <= _MAX_LENGTH else None
    if match is None:
        return None
    bottom = Fraction(match.group(2) or 1)
    return Fraction(match.group(1)) / bottom if bottom else None

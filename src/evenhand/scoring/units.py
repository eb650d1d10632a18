"""Units at the end of a mathematical answer, and the base of a number."""

import re

_TEXT = r"\\(?:text|textrm|textnormal|textbf|mbox|hbox|mathrm|rm)\s*\{(?P<text>[^{}]*)\}"
_WHOLLY_TEXT = re.compile(rf"\s*{_TEXT}\s*")
_POWER = r"(?:\s*\^\s*\{?\s*(?P<power>\d)\s*\}?|(?P<sup>[²³]))?"
# A word that is not listed may change the value (5 million, 5 squared, 3i): it is never taken for a unit.
_UNITS = re.compile(
    "mm|cm|dm|km|m|in|ft|yd|mi|mg|g|kg|lb|oz|ml|l|s|ms|sec|min|h|hr|mph|kph|hz|kw|kwh|cm2|m2|km2|ft2|"
    "in2|cm3|m3|ft3|in3|inch|inches|foot|feet|yard|mile|meter|metre|millimeter|millimetre|centimeter|"
    "centimetre|kilometer|kilometre|gram|kilogram|pound|ounce|ton|liter|litre|milliliter|millilitre|"
    "gallon|quart|pint|cup|degree|radian|celsius|fahrenheit|kelvin|newton|joule|watt|volt|hertz|"
    "dollar|cent|usd|euro|eur|gbp|yen|rupee|unit|second|minute|hour|day|week|month|year|person|"
    "people|student|child|children|man|men|woman|women|boy|girl|way|time|step|point|digit|divisor|"
    "solution|value|number|integer|element|term|triangle|edge|vertex|vertices|face|side|diagonal|"
    "card|coin|page|book|ball|marble|apple|orange|cookie|game|team|car|room|seat|ticket|trip|tile|"
    "block|piece|item|object|outcome|arrangement|combination|permutation|subset|sequence|polynomial"
)
_TRAILING = re.compile(
    rf"(?P<value>.*[\d)}}\]%\w])\s*(?:{_TEXT}|(?<=[\d)}}])(?P<space>\s*)(?P<words>[a-zA-Z][a-zA-Z ./-]{{0,60}}[23]?))"
    rf"{_POWER}\s*\.?\s*$",
    re.DOTALL,
)
_NAMES = {
    **dict.fromkeys(["inch", "inches", "in"], "in"),
    **dict.fromkeys(["foot", "feet", "ft"], "ft"),
    **dict.fromkeys(["centimeter", "centimetre", "cm"], "cm"),
    **dict.fromkeys(["millimeter", "millimetre", "mm"], "mm"),
    **dict.fromkeys(["kilometer", "kilometre", "km"], "km"),
    **dict.fromkeys(["meter", "metre", "m"], "m"),
    **dict.fromkeys(["mile", "mi"], "mi"),
    **dict.fromkeys(["yard", "yd"], "yd"),
    **dict.fromkeys(["second", "sec", "s"], "s"),
    **dict.fromkeys(["minute", "min"], "min"),
    **dict.fromkeys(["hour", "hr", "h"], "h"),
    **dict.fromkeys(["pound", "lb", "lbs"], "lb"),
    **dict.fromkeys(["dollar", "usd"], "dollar"),
}
_BASED = re.compile(r"(?P<digits>[0-9A-Za-z]+)\s*_\s*\{?\s*(?:\\text\s*\{)?(?P<base>\d{1,2}|[a-z]+)\}?\s*\}?")
_HEXADECIMAL = re.compile("[0-9A-F]{2,20}")
_BASE_NAMES = {
    "two": "2",
    "three": "3",
    "four": "4",
    "five": "5",
    "six": "6",
    "seven": "7",
    "eight": "8",
    "nine": "9",
}


# 5 \frac{m}{s}: the letters are units only as such a pair.
_QUOTIENT = re.compile(
    r"(?<=[\d)}])\s*\\frac\s*\{\s*(?:\\(?:text|mathrm)\s*\{)?\s*(km|m|cm|mm|mi|miles?|ft|feet|in|kg|g|l|meters?)\s*\}?\s*\}"
    r"\s*\{\s*(?:\\(?:text|mathrm)\s*\{)?\s*(s|sec|seconds?|min|minutes?|h|hr|hours?|days?|l|m)\s*\}?\s*\}\s*$"
)


def split_unit(text: str) -> tuple[str, str]:
    """The value and its unit, in one spelling; an empty unit when there is none."""
    if "frac" in text and len(text) < 500:
        text = _QUOTIENT.sub(r" \1/\2", text)
    # \text{12 hours} is 12 hours.
    wholly = _WHOLLY_TEXT.fullmatch(text)
    match = _TRAILING.fullmatch(wholly["text"] if wholly else text) if len(text) < 500 else None
    if match is None:
        return text, ""
    words = [
        word.strip(".,")
        for word in (match["text"] or match["words"] or "")
        .lower()
        .replace("/", " per ")
        .replace("-", " ")
        .split()
    ]
    words = [word for word in words if word]
    power = match["power"] or {"²": "2", "³": "3", None: ""}[match["sup"]]
    if words and words[0] in ("square", "sq"):
        words, power = words[1:], power or "2"
    elif words and words[0] in ("cubic", "cu"):
        words, power = words[1:], power or "3"
    # In 5m the m is a variable; in "5 m" and 5\text{m} it is a unit.
    if match["text"] is None and not match["space"] and len(words) == 1 and len(words[0]) == 1:
        return text, ""
    named = [_singular(word) for word in words]
    if (
        not named
        or not all(_is_unit(*both) for both in zip(words, named, strict=True))
        or "per" in (named[0], named[-1])
    ):
        return text, ""
    return match["value"].strip(), " ".join(named) + power


def _is_unit(word: str, single: str) -> bool:
    return bool(_UNITS.fullmatch(word) or _UNITS.fullmatch(single)) or word == "per"


def _singular(word: str) -> str:
    single = word[:-1] if word.endswith("s") and len(word) > 3 else word
    return _NAMES.get(word) or _NAMES.get(single) or single


def split_base(text: str) -> tuple[str, str] | None:
    """The digits and the base of a number like 204_5, else None."""
    match = _BASED.fullmatch(text.strip())
    if match is None:
        return None
    base = _BASE_NAMES.get(match["base"], match["base"])
    # FF_{16} is a number, a_{12} and AB_1 are names.
    if not match["digits"][0].isdigit() and not (base == "16" and _HEXADECIMAL.fullmatch(match["digits"])):
        return None
    return (match["digits"].lower(), base) if base.isdigit() else None


def base_value(digits: str, base: str) -> int | None:
    """The number that digits are in a base; None when they are none."""
    try:
        return int(digits, int(base))
    except ValueError:
        return None

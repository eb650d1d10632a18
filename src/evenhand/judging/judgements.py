"""A judge's reply becomes a judgement, or an error that says why not. Nothing becomes 0 and nothing is clamped.

A judgement counts only in the demanded form and with the code of its own prompt. Anything else that looks like a
judgement was quoted from the judged text or made up, and is passed over with a warning.
"""

import json
import math
import re
from collections.abc import Iterable
from typing import Any, NoReturn

from msgspec import Struct

from evenhand.core.errors import JudgementError
from evenhand.judging.config import Choice, JudgeScoringConfig
from evenhand.judging.prompts import judgement_key

PARSER_VERSION = 2
"""Part of a judge's identity: raised whenever the same reply could be read differently."""

MAX_REPLY = 64 * 1024
MAX_OBJECTS = 200
# A sign counts only where no word or number ends just before it: "0-10" is 0 and 10.
NUMBER = re.compile(
    r"(?<![0-9A-Za-z.])[-+−]?(?:\d+(?:,\d{3})+(?!\d)|\d+)?(?:\.\d+|(?<=\d))(?:[eE][-+]?\d{1,4})?", re.ASCII
)
_SCORE = re.compile(r"([-+−]?(?:\d+\.?\d*|\.\d+))(?:\s*/\s*(\d+\.?\d*))?", re.ASCII)
_REPEATED = ("a key came twice",)
_OPENING = " \t\r\n*_`\"'()[]{}<>,:;!"
# A full stop may end a judgement; before one it is the point of ".5".
_CLOSING = _OPENING + "."


class Judgement(Struct, frozen=True, kw_only=True):
    """What a judge concluded about one sample."""

    reward: float
    """From 0 to 1 for scores; the choice's value for labels."""
    score: float | None = None
    """The number as the judge gave it."""
    label: str | None = None
    """The label that the judge chose."""
    reasoning: str = ""
    """The judge's reasons, where the form asks for them."""
    warnings: tuple[str, ...] = ()
    """`multiple_numbers`, `foreign_verdict`: things to know about the reply."""


def parse_judge_response(
    text: str, config: JudgeScoringConfig | None = None, *, nonce: str | None = None
) -> Judgement:
    """The judgement in a reply; `JudgementError` when there is none or more than one.

    With `nonce`, only a judgement that repeats it counts.
    """
    config = config or JudgeScoringConfig()
    if not text.strip():
        fail(text, "the reply is empty")
    if len(text) > MAX_REPLY:
        fail(text[:MAX_REPLY], f"the reply is longer than {MAX_REPLY} characters")
    match config.form:
        case "json":
            return _from_json(text, config, nonce)
        case "line":
            return _from_line(text, config, nonce)
        case "bare":
            return _from_label(text, config) if config.choices else _from_number(text, config)


def fail(reply: str, reason: str, kind: str = "grade_parse_failure") -> NoReturn:
    """Give up on a reply."""
    raise JudgementError(reason, reply=reply, kind=kind)


def json_objects(text: str) -> list[dict[Any, Any]]:
    """The JSON objects in a reply, outermost ones only, in order."""
    decoder = json.JSONDecoder(object_pairs_hook=_marking_repeats, parse_constant=_no_constant)
    found: list[dict[Any, Any]] = []
    position = text.find("{")
    for _ in range(MAX_OBJECTS):
        if position < 0:
            return found
        try:
            value, end = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            position = text.find("{", position + 1)
            continue
        if isinstance(value, dict):
            found.append(value)
        position = text.find("{", end)
    return found


def _marking_repeats(pairs: list[tuple[str, Any]]) -> dict[Any, Any]:
    built: dict[Any, Any] = {}
    for name, value in pairs:
        if name in built and built[name] != value:
            # A key of our own that no JSON text can hold as well: it is not a string.
            built[_REPEATED] = True
        built[name] = value
    return built


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _from_json(text: str, config: JudgeScoringConfig, nonce: str | None) -> Judgement:
    key = judgement_key(config)
    objects = [value for value in json_objects(text) if key in value]
    own = [value for value in objects if nonce is None or value.get("nonce") == nonce]
    if not own:
        fail(
            text,
            "it holds a verdict without the demanded code"
            if objects
            else f"it holds no JSON object with '{key}'",
        )
    if any(_REPEATED in value for value in own):
        fail(text, "its verdict holds a key twice with different values", "ambiguous_verdict")
    judgements = [_typed(value[key], config, text) for value in own]
    reasoning = own[-1].get("reasoning")
    return _only(
        judgements,
        text,
        reasoning=reasoning if isinstance(reasoning, str) else "",
        warnings=("foreign_verdict",) if len(own) < len(objects) else (),
    )


def _from_line(text: str, config: JudgeScoringConfig, nonce: str | None) -> Judgement:
    lines = re.findall(
        r"^[^\w\n]*VERDICT\b[ \t]*+([0-9a-f]{8,64})?[ \t*]*+[:=](.*)$", text, re.IGNORECASE | re.MULTILINE
    )
    own = [value for code, value in lines if nonce is None or code == nonce]
    if not own:
        fail(text, "it holds a verdict without the demanded code" if lines else "it holds no VERDICT line")
    judgements = [_typed(unwrapped(value), config, text) for value in own]
    reasoning = re.split(r"^[^\w\n]*VERDICT\b", text, maxsplit=1, flags=re.IGNORECASE | re.MULTILINE)[
        0
    ].strip()
    return _only(
        judgements, text, reasoning=reasoning, warnings=("foreign_verdict",) if len(own) < len(lines) else ()
    )


def _typed(value: Any, config: JudgeScoringConfig, text: str) -> Judgement:
    """The judgement that a value of the demanded kind stands for."""
    if config.choices:
        choice = find_choice(value, config.choices) if isinstance(value, str) else None
        if choice is None:
            fail(text, f"its verdict is none of {', '.join(c.label for c in config.choices)}")
        return Judgement(reward=choice.value, label=choice.label)
    if isinstance(value, str):
        return _ranged(_number(value, config, text), config, text)
    if isinstance(value, bool) or not isinstance(value, int | float):
        fail(text, "its verdict is not a number")
    try:
        return _ranged(float(value), config, text)
    except OverflowError:
        fail(text, "its score is out of range", "verdict_out_of_range")


def _number(value: str, config: JudgeScoringConfig, text: str) -> float:
    """A score as text: a number alone, or `number/max_score`."""
    match = _SCORE.fullmatch(value.strip())
    if match is None:
        fail(text, "its verdict is not a number")
    if match.group(2) is not None and float(match.group(2)) != config.max_score:
        fail(text, f"its score is out of {match.group(2)} where {config.max_score:g} was asked for")
    return float(match.group(1).replace("−", "-"))


def _ranged(score: float, config: JudgeScoringConfig, text: str) -> Judgement:
    if not math.isfinite(score) or not config.min_score <= score <= config.max_score:
        fail(
            text,
            f"its score {score:g} is outside {config.min_score:g} to {config.max_score:g}",
            "verdict_out_of_range",
        )
    return Judgement(reward=config.normalised(score), score=score)


def _only(
    judgements: Iterable[Judgement], text: str, *, reasoning: str, warnings: tuple[str, ...]
) -> Judgement:
    different = {(judgement.score, judgement.label): judgement for judgement in judgements}
    if len(different) > 1:
        fail(text, "it holds several different verdicts", "ambiguous_verdict")
    (only,) = different.values()
    return Judgement(
        reward=only.reward, score=only.score, label=only.label, reasoning=reasoning, warnings=warnings
    )


def unwrapped(text: str) -> str:
    """`text` without the marks that people and models put around a judgement."""
    return text.lstrip(_OPENING).rstrip(_CLOSING)


def find_choice(value: str, choices: Iterable[Choice]) -> Choice | None:
    """The choice that a text names by its label or letter, alone or as `A: LABEL`."""
    word = unwrapped(value).casefold()
    for choice in choices:
        label, letter = choice.label.casefold(), choice.letter.casefold()
        names = {label, label.replace("_", " ")}
        if letter:
            names |= {letter, f"{letter} ({label}", f"{letter}: {label}", f"{letter}) {label}"}
        if word in names:
            return choice
    return None


def numbers_in(text: str) -> list[float]:
    """The numbers in a text, in order."""
    return [float(found.replace(",", "").replace("−", "-")) for found in NUMBER.findall(text) if found]


def _from_number(text: str, config: JudgeScoringConfig) -> Judgement:
    found = numbers_in(text)
    if not found:
        fail(text, "it holds no number")
    # "8/10" and "8 out of 10" are one judgement: the second number is the scale itself.
    rest = [number for number in found[1:] if number not in (found[0], config.max_score)]
    judgement = _ranged(found[0], config, text)
    return Judgement(
        reward=judgement.reward, score=judgement.score, warnings=("multiple_numbers",) if rest else ()
    )


def _from_label(text: str, config: JudgeScoringConfig) -> Judgement:
    choice = find_choice(text, config.choices)
    if choice is None:
        # The longest name first: the words of a label must not be taken for a shorter one inside it.
        names = {name: c for c in config.choices for name in (c.label, c.label.replace("_", " "))}
        pattern = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True))
        lowered = {name.casefold(): c for name, c in names.items()}
        hits = re.findall(rf"(?<!\w)(?:{pattern})(?!\w)", text, re.IGNORECASE)
        named = {lowered[hit.casefold()].label: lowered[hit.casefold()] for hit in hits}
        if len(named) > 1:
            fail(text, "it names several labels", "ambiguous_verdict")
        if not named:
            fail(text, f"it names none of {', '.join(c.label for c in config.choices)}")
        (choice,) = named.values()
    return Judgement(reward=choice.value, label=choice.label)

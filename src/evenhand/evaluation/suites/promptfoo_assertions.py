"""promptfoo's assertions that need no JavaScript: the same pass or fail on the same output (read against 0.121)."""

import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import yaml
from msgspec import Struct

from evenhand.core.errors import OptionError
from evenhand.core.outcome import Failed, Outcome, Scored, Unscored
from evenhand.evaluation.suites.reading import check_keys, mapping
from evenhand.evaluation.suites.row_scorers import Reviewer, RowScorer
from evenhand.scoring.apply import measure_sample
from evenhand.scoring.bounded_regex import BoundedPattern
from evenhand.scoring.definition import Scorer
from evenhand.scoring.overlap import edit_distance
from evenhand.scoring.registry import get_scorer
from evenhand.scoring.types import ScorerInput

TESTS = "tests"
"""The column: 1 for a test that passes."""
ROW = "promptfoo"
"""Where a row holds its assertions."""
KEYS = ("type", "value", "threshold", "weight", "metric", "provider")
SET_KEYS = ("type", "assert", "threshold", "weight", "metric")
TYPES = (
    "equals", "contains", "icontains", "contains-any", "icontains-any", "contains-all", "icontains-all", "regex",
    "starts-with", "is-json", "contains-json", "latency", "cost", "levenshtein", "rouge-n", "word-count", "llm-rubric",
)  # fmt: skip
LISTS = ("contains-any", "icontains-any", "contains-all", "icontains-all")
MAX_TRIES = 200
"""How many braces of an answer are tried as the start of a JSON object."""
MAX_JSON = 100_000
MAX_DEPTH = 50
"""How deep the braces of an object may be; reading deeper ones takes long and then fails."""


class Graded(Struct, frozen=True, kw_only=True):
    """What one assertion, or a set of them, says."""

    passed: bool
    score: float
    reason: str = ""


class CannotTell(Exception):
    """An assertion without an answer: its error is the test's."""

    def __init__(self, outcome: Failed | Unscored) -> None:
        self.outcome = outcome
        super().__init__(str(outcome))


def check_assertion(given: Any, where: str, *, nested: bool = False) -> dict[str, Any]:
    """The assertion as it is kept; `OptionError` names what is not supported."""
    found = mapping(given, where)
    kind = found.get("type")
    if kind == "assert-set" and not nested:
        check_keys(found, SET_KEYS, where)
        inner = found.get("assert")
        if not isinstance(inner, list) or not inner:
            raise OptionError(f"{where}: an assert-set has a list 'assert'")
        _check_numbers(found, where)
        return {**found, "assert": [check_assertion(one, f"{where}, assert", nested=True) for one in inner]}
    base = str(kind).removeprefix("not-")
    if base not in TYPES:
        raise OptionError(
            f"{where}: the assertion type '{kind}' is not supported (supported: {', '.join(TYPES)}, assert-set, and not-)"
        )
    check_keys(found, KEYS, where)
    if "provider" in found and base != "llm-rubric":
        raise OptionError(f"{where}: 'provider' is for llm-rubric")
    _check_numbers(found, where)
    value = found.get("value")
    if base in ("latency", "cost") and "threshold" not in found:
        raise OptionError(f"{where}: {base} needs a threshold")
    if base in LISTS and not (isinstance(value, str | list) and value):
        raise OptionError(f"{where}: {base} needs a list of texts")
    texts = ("regex", "starts-with", "levenshtein", "rouge-n", "llm-rubric")
    if base in texts and not isinstance(value, str):
        raise OptionError(f"{where}: {base} needs a text as its value")
    if base in ("contains", "icontains") and (
        isinstance(value, bool) or not isinstance(value, str | int | float)
    ):
        raise OptionError(f"{where}: {base} needs a text or a number as its value")
    if base in ("equals", "word-count") and "value" not in found:
        raise OptionError(f"{where}: {base} needs a value")
    return found


def _check_numbers(found: Mapping[str, Any], where: str) -> None:
    for key in ("threshold", "weight"):
        value = found.get(key, 0)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise OptionError(f"{where}: '{key}' must be a number")


def asks_judge(assertions: Sequence[Mapping[str, Any]]) -> bool:
    """Whether any of them, also within sets, is for the judge."""
    return any(
        str(one["type"]).removeprefix("not-") == "llm-rubric" or asks_judge(one.get("assert", []))
        for one in assertions
    )


def tests_scorer(reviewer: Reviewer | None) -> Scorer:
    """`tests`: 1 when the row's assertions pass by promptfoo's rule, 0 when not."""

    async def grade(sample: ScorerInput) -> Outcome:
        return await _grade(sample, reviewer)

    return RowScorer(grade, name=TESTS, reviewer=reviewer)


async def _grade(sample: ScorerInput, reviewer: Reviewer | None) -> Outcome:
    test = sample.metadata[ROW]
    details: list[dict[str, Any]] = []
    try:
        found = await _all(test["assert"], test.get("threshold"), sample, reviewer, details)
    except CannotTell as error:
        return error.outcome
    return Scored(value=1.0 if found.passed else 0.0, details={"score": found.score, "assertions": details})


async def _all(
    assertions: Sequence[Mapping[str, Any]],
    threshold: float | None,
    sample: ScorerInput,
    reviewer: Reviewer | None,
    details: list[dict[str, Any]],
) -> Graded:
    if not assertions:
        return Graded(passed=True, score=1.0)
    total = weights = 0.0
    passed = True
    for one in assertions:
        if one["type"] == "assert-set":
            graded = await _all(one["assert"], one.get("threshold"), sample, reviewer, details)
        else:
            graded = await _one(one, sample, reviewer)
            details.append({"type": one["type"], "passed": graded.passed, "score": graded.score})
        weight = one.get("weight", 1)
        total += graded.score * weight
        weights += weight
        passed = passed and graded.passed
    score = total / weights if weights > 0 else 0.0
    return Graded(passed=passed if threshold is None else score >= threshold, score=score)


async def _one(assertion: Mapping[str, Any], sample: ScorerInput, reviewer: Reviewer | None) -> Graded:
    kind = str(assertion["type"])
    base = kind.removeprefix("not-")
    inverse = kind != base
    if base == "llm-rubric":
        graded = await _rubric(assertion, sample, reviewer, inverse=inverse)
    elif base == "rouge-n":
        score = rouge_1(sample.response.lower(), assertion["value"].lower())
        at_least = assertion.get("threshold", 0.75)
        graded = Graded(passed=(score >= at_least) != inverse, score=1 - score if inverse else score)
    elif base in ("is-json", "contains-json"):
        passed = (_is_json if base == "is-json" else _contains_json)(assertion, sample, inverse)
        graded = Graded(passed=passed, score=float(passed))
    else:
        passed = _holds(base, assertion, sample) != inverse
        graded = Graded(passed=passed, score=float(passed))
    return Graded(passed=True, score=graded.score) if assertion.get("weight") == 0 else graded


def _holds(base: str, assertion: Mapping[str, Any], sample: ScorerInput) -> bool:
    said, value = sample.response, assertion.get("value")
    if base.startswith("icontains"):
        said = said.lower()
    match base:
        case "equals":
            if value is None or isinstance(value, list | dict):
                parsed = _parsed(said)
                return parsed is not _NOTHING and deep_equal(value, parsed)
            return js_text(value) == said
        case "contains" | "icontains":
            wanted = js_text(value)
            if not wanted:
                raise CannotTell(Failed(error="bad_test", message=f"{base} has an empty value"))
            return (wanted.lower() if base == "icontains" else wanted) in said
        case "contains-any" | "icontains-any" | "contains-all" | "icontains-all":
            parts = split_commas(value) if isinstance(value, str) else [js_text(one) for one in value or []]
            if base.startswith("i"):
                parts = [part.lower() for part in parts]
            return (any if base.endswith("any") else all)(part in said for part in parts)
        case "regex":
            try:
                return BoundedPattern(python_pattern(str(value))).search(said)
            except OptionError as error:
                raise CannotTell(Failed(error="bad_test", message=str(error))) from None
        case "starts-with":
            return said.startswith(str(value))
        case "latency":
            return bool(_known(sample, "latency_seconds") * 1000 <= assertion["threshold"])
        case "cost":
            return bool(_known(sample, "cost_usd") <= assertion["threshold"])
        case "levenshtein":
            return bool(edit_distance(said, str(value)) <= assertion.get("threshold", 5))
        case _:
            return _counted(len(said.split()), value)


def _known(sample: ScorerInput, name: str) -> float:
    value = sample.usage.get(name)
    if value is None:
        raise CannotTell(Failed(error="bad_test", message=f"the answer's {name} is not known"))
    return float(value)


def _counted(words: int, value: Any) -> bool:
    if isinstance(value, dict):
        return bool(value.get("min", 0) <= words <= value.get("max", words))
    try:
        return words == float(value)
    except (TypeError, ValueError):
        raise CannotTell(
            Failed(error="bad_test", message="word-count needs a number, or min and max")
        ) from None


async def _rubric(
    assertion: Mapping[str, Any], sample: ScorerInput, reviewer: Reviewer | None, *, inverse: bool
) -> Graded:
    assert reviewer is not None  # checked when the file was read
    outcome = await reviewer.grade(
        sample, str(assertion["value"]), str(sample.metadata.get("question") or "")
    )
    if not isinstance(outcome, Scored) or not isinstance(outcome.value, float):
        raise CannotTell(
            outcome
            if isinstance(outcome, Failed | Unscored)
            else Failed(error="bad_result", message="no number")
        )
    passed = outcome.value >= assertion.get("threshold", 0.5)
    return Graded(passed=passed != inverse, score=1 - outcome.value if inverse else outcome.value)


# JSON

_NOTHING = object()


def _parsed(text: str) -> Any:
    def refuse(constant: str) -> Any:
        raise ValueError(constant)

    try:
        return json.loads(text, parse_constant=refuse)
    except (ValueError, RecursionError):
        return _NOTHING


def _is_json(assertion: Mapping[str, Any], sample: ScorerInput, inverse: bool) -> bool:
    if _parsed(sample.response) is _NOTHING:
        return inverse
    schema = _schema(assertion)
    return (True if schema is None else _conforms(sample.response, schema)) != inverse


def _contains_json(assertion: Mapping[str, Any], sample: ScorerInput, inverse: bool) -> bool:
    schema = _schema(assertion)
    passed = inverse
    for found in json_objects(sample.response):
        valid = schema is None or _conforms(json.dumps(found, default=str), schema)
        passed = valid != inverse
        if valid and schema is not None:
            break
    return passed


def _schema(assertion: Mapping[str, Any]) -> Any:
    value = assertion.get("value")
    if isinstance(value, str) and value:
        try:
            return yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise CannotTell(Failed(error="bad_test", message=f"the schema is not YAML: {error}")) from None
    return value or None


def _conforms(text: str, schema: Any) -> bool:
    outcome = measure_sample(
        get_scorer("json_schema").configure(schema=schema), ScorerInput(response=text)
    ).outcome
    if not isinstance(outcome, Scored):
        raise CannotTell(outcome)
    return outcome.value == 1.0


def json_objects(text: str) -> Iterator[Any]:
    """Objects in braces within a text, read as YAML, as promptfoo does; a last one may lack its closing braces."""
    place = tries = 0
    while (place := text.find("{", place)) >= 0:
        tries += 1
        if tries > MAX_TRIES:
            raise CannotTell(
                Failed(error="too_long", message="the answer has too many braces to look for JSON")
            )
        end, found = _object_at(text, place)
        if found is not None:
            yield found
        place = end


def _object_at(text: str, start: int) -> tuple[int, Any]:
    depth = 0
    last = min(start + MAX_JSON, len(text))
    for place in range(start, last):
        depth += (text[place] == "{") - (text[place] == "}")
        if depth > MAX_DEPTH:
            return start + 1, None
        if depth == 0 or place == last - 1:
            try:
                found = yaml.safe_load(text[start : place + 1] + "}" * depth)
            except (yaml.YAMLError, ValueError, RecursionError):
                return start + 1, None
            return (place + 1, found) if isinstance(found, dict | list) else (start + 1, None)
    return start + 1, None


def deep_equal(first: Any, second: Any) -> bool:
    """Equal as JSON: true is not 1."""
    if isinstance(first, bool) or isinstance(second, bool):
        return first is second
    if isinstance(first, dict) and isinstance(second, dict):
        same = {str(key): one for key, one in first.items()}
        return same.keys() == second.keys() and all(deep_equal(same[key], second[key]) for key in same)
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(deep_equal, first, second))
    if isinstance(first, int | float) and isinstance(second, int | float):
        return float(first) == float(second)
    return type(first) is type(second) and bool(first == second)


# Texts as JavaScript has them


def js_text(value: Any) -> str:
    """A value as JavaScript writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None:
        return ""
    if isinstance(value, float):
        return str(int(value)) if value.is_integer() and abs(value) < 1e21 else repr(value)
    if isinstance(value, dict | list):
        return json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=str)
    return str(value)


def split_commas(text: str) -> list[str]:
    """Values between commas; quoted ones may hold commas, and two quotes stand for one."""
    found = re.findall(r'\s*(?:"((?:[^"]|"")*)"\s*(?:,|$)|([^,]+)(?:,|$)|,)', text)
    return [
        quoted.replace('""', '"') if quoted else plain.strip()
        for quoted, plain in found
        if quoted or plain.strip()
    ]


def python_pattern(pattern: str) -> str:
    """A JavaScript pattern as Python reads it."""
    classes = {"d": "0-9", "w": "A-Za-z0-9_"}
    made: list[str] = []
    place, inside = 0, False
    while place < len(pattern):
        char = pattern[place]
        after = pattern[place + 1 : place + 2]
        if char == "\\" and after:
            if after in classes:
                made.append(classes[after] if inside else f"[{classes[after]}]")
            elif after.lower() in classes and not inside:
                made.append(f"[^{classes[after.lower()]}]")
            elif after == "k" and pattern[place + 2 : place + 3] == "<":
                end = pattern.find(">", place)
                made.append(f"(?P={pattern[place + 3 : end]})")
                place = end - 1
            else:
                made.append("/" if after == "/" else char + after)
            place += 2
            continue
        if char == "[" and not inside:
            inside = True
            if pattern.startswith("[^]", place):
                made.append(r"[\s\S]")
                inside = False
                place += 3
                continue
        elif char == "[":
            char = r"\["
        elif char == "]":
            inside = False
        elif char == "$" and not inside:
            char = r"\Z"
        elif (
            pattern.startswith("(?<", place)
            and pattern[place + 3 : place + 4] not in ("=", "!")
            and not inside
        ):
            made.append("(?P<")
            place += 3
            continue
        made.append(char)
        place += 1
    return "".join(made)


def rouge_1(candidate: str, reference: str) -> float:
    """ROUGE-1's F-measure with clipped counts, over Penn Treebank tokens."""
    mine, theirs = tokens(candidate), tokens(reference)
    overlap = sum((Counter(mine) & Counter(theirs)).values())
    if not overlap:
        return 0.0
    precision, recall = overlap / len(mine), overlap / len(theirs)
    return 2 * precision * recall / (precision + recall)


_STEPS = (
    (r"\.{3}", " ... "), (r"[:,](?!\d)", r" \g<0> "), (r"[;@#$%&]", r" \g<0> "),
    (r"([^.])(\.)([\])}>'\s]*)$", r"\1 \2\3 "), (r"[?!]", r" \g<0> "), (r"[\][(){}<>]", r" \g<0> "), (r"--", " -- "),
)  # fmt: skip
_CONTRACTIONS = (
    r"\b(can)(not)\b", r"\b(d)('ye)\b", r"\b(gim)(me)\b", r"\b(gon)(na)\b", r"\b(got)(ta)\b", r"\b(lem)(me)\b",
    r"\b(more)('n)\b", r"('t)(is)\b", r"('t)(was)\b", r"\b(wan)(na)\b",
)  # fmt: skip


def tokens(text: str) -> list[str]:
    """The text's tokens by the rules of the Penn Treebank."""
    made = re.sub(r"\s+", " ", text).strip()
    made = re.sub(r'(^|[\s(\[{<])(?:"|``)', r"\1 `` ", made)
    made = re.sub(r"\"|''", " '' ", made)
    for pattern, by in _STEPS:
        made = re.sub(pattern, by, made)
    made = f" {made} "
    made = re.sub(r"([^'])' ", r"\1 ' ", made)
    made = re.sub(r"'([smd]) ", r" '\1 ", made)
    made = re.sub(r"('ll|'re|'ve|n't) ", r" \1 ", made)
    for pattern in _CONTRACTIONS:
        made = re.sub(pattern, r" \1 \2 ", made)
    return made.split()

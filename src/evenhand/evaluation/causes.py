"""Why samples have no score, in the endpoint's or the scorer's own words: equal causes counted together, with advice.

Two messages have the same cause when they differ only in what varies from call to call: counts, times, ids, addresses.
"""

import re
from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from evenhand.core.terminal import preview
from evenhand.results.records import SampleError, SampleResult

MOST_CAUSES = 1_000
"""Distinct causes that are counted; what comes after them is counted as one."""
KEPT_CAUSES = 20
"""Causes that `failure_analysis.json` lists, the most frequent first."""
SHOWN_CAUSES = 5
"""Causes that a terminal shows."""
_WIDTH = 300
_COMPARED = 200

TRUNCATED_ADVICE = (
    "the answer was cut off before its end: raise the limit with --max-tokens, or ask for shorter answers"
)


class Cause(Struct, frozen=True, kw_only=True):
    """One reason why samples have no score."""

    kind: str
    """Machine-readable: `rate_limit`, `auth`, `scorer_error`, ..."""
    message: str
    """The first message of this cause."""
    count: int
    """Samples."""
    status: str = "failed"
    """`failed`, or `unscored` where there was nothing to score."""
    advice: str = ""
    """What helps against it; empty where nothing is known to."""


class Causes:
    """Counts causes, sample by sample."""

    def __init__(self) -> None:
        self._found: dict[tuple[str, str, str], Cause] = {}
        self._others = 0

    def add(self, sample: SampleResult) -> None:
        """Count a sample that has no score; others are ignored."""
        if sample.status not in ("failed", "unscored"):
            return
        error = sample.error
        kind, message = (
            (error.kind, error.message)
            if isinstance(error, SampleError)
            else ("", error or "no reason given")
        )
        key = (sample.status, kind, same_cause(message))
        known = self._found.get(key)
        if known is not None:
            self._found[key] = replace(known, count=known.count + 1)
        elif len(self._found) < MOST_CAUSES:
            inner = sample.scoring_details.get("kind")
            advice = advice_for(kind, message, inner=inner if isinstance(inner, str) else "")
            shown = preview(_PREFIX.sub("", message), _WIDTH)
            self._found[key] = Cause(kind=kind, message=shown, count=1, status=sample.status, advice=advice)
        else:
            self._others += 1

    def merge(self, causes: Iterable[Cause]) -> None:
        """Count what was counted elsewhere."""
        for cause in causes:
            key = (cause.status, cause.kind, same_cause(cause.message))
            known = self._found.get(key)
            count = cause.count + (known.count if known else 0)
            self._found[key] = replace(known or cause, count=count)

    def most_frequent(self) -> list[Cause]:
        """The causes to list: failures before what was unscored, then by their number."""
        ordered = sorted(
            self._found.values(), key=lambda one: (one.status, -one.count, one.kind, one.message)
        )
        kept, rest = ordered[:KEPT_CAUSES], ordered[KEPT_CAUSES:]
        others = self._others + sum(one.count for one in rest)
        if others:
            kept.append(Cause(kind="others", message="other causes, each less frequent", count=others))
        return kept


_PREFIX = re.compile(r"^no reply after \d+ attempts; the last: ")
# HTTP statuses tell causes apart and stay; ids, addresses and amounts go.
_VARIES = re.compile(
    r"(?P<kept>\(\d{3}\)|\banswered \d{3}\b)"
    r"|https?://\S+"
    r"|\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"
    r"|\b[A-Za-z]{2,12}[-_](?=[A-Za-z0-9]*\d)[A-Za-z0-9]{10,}\b"
    r"|\b(?=[0-9a-fA-F]*\d)(?=[0-9a-fA-F]*[a-fA-F])[0-9a-fA-F]{8,}\b"
    r"|\d[\d.,:]*(?<=\d)\s?(?:ms|s|m|h|%)?\b"
)


def same_cause(message: str) -> str:
    """`message` without what varies from call to call."""
    text = " ".join(_PREFIX.sub("", message[:1_000]).split())
    return _VARIES.sub(lambda found: found["kept"] or "#", text)[:_COMPARED]


# By kind; the word after a judge's failure is the kind of the error behind it. {key}, {id}, ... name the options of
# whoever was asked.
_ADVICE = {
    "auth": "the key was refused: check {key} (or {variable}), and that it may use this model",
    "not_found": "no such model or address: check {id}, and that {url} is the base of the API (it usually ends in /v1)",
    "quota": "the account behind the key has no credit left: top it up, or use another key with {key}",
    "context_length": "the question and the room for its answer are longer than the model's context: lower "
    "--max-tokens, shorten the prompt, or take a model with a longer context",
    "rate_limit": "the endpoint allows fewer requests: lower --concurrency or raise --tries; --resume asks again for "
    "what failed",
    "timeout": "the endpoint needs longer than --timeout allows: raise it, or lower --concurrency",
    "connection": "nothing answers there: check {url}, and that the server is running",
    "server_error": "the endpoint itself failed: look at its log; --resume asks again for what failed",
    "bad_reply": "what answers is not a chat completion: check that {url} is the base of the API (it usually ends in "
    "/v1), and that no proxy stands in between",
    "bad_request": "the endpoint does not take the request as it is; its message says why: sampling options and "
    "--extra-body are sent as given",
    "content_filter": "the endpoint's filter withheld the question or the answer: no retry helps",
    "redirect": "give the final address with {url}; a key is not sent on to another one",
    "certificate": "the endpoint's certificate is not valid for {url}: check the address",
    "budget_exceeded": "the spend cap was reached: raise --spend-cap-usd and continue with --resume",
    "judge_truncated": "the judge's reply was cut off before its judgement: raise --judge-max-tokens",
    "grade_parse_failure": "the judge's replies hold no judgement in the form that the rubric asks for: read them in "
    "the report, try a stronger judge, or another `form` in the rubric",
    "ambiguous_verdict": "the judge's replies hold several judgements: read them in the report, or ask for one in the "
    "rubric",
    "verdict_out_of_range": "the judge gives numbers outside the rubric's range: read its replies in the report",
    "sandbox_unavailable": "there is no sandbox to run programs in: `evenhand doctor` says what is missing",
    "sandbox_error": "the sandbox could not run the program: `evenhand doctor` tests it",
    "scorer_error": "the scorer raised an error: mend it and score the stored answers anew with `evenhand eval "
    "rescore`; no model is asked again",
    "bad_result": "the scorer's result is not a score: mend it and use `evenhand eval rescore`; no model is asked "
    "again",
    "scorer_timeout": "the scorer ran past its limit on these answers",
    "needs_judge": "these samples wait for a judge: name one with --judge, or --judge-url and --judge-id",
    "no_expected_output": "these rows have no target to compare with: check the dataset's target field",
}
_MODEL = {
    "url": "--model-url",
    "id": "--model-id (or --model)",
    "key": "--api-key",
    "variable": "EVENHAND_API_KEY, or the provider's own variable with --model",
}
_JUDGE = {
    "url": "--judge-url",
    "id": "--judge-id (or --judge)",
    "key": "--judge-api-key",
    "variable": "EVENHAND_JUDGE_API_KEY, or the provider's own variable with --judge",
}
_ASKED_JUDGE = frozenset({"judge_unavailable", "judge_refused", "judge_rejected"})


def advice_for(kind: str, message: str = "", *, inner: str = "", judge: bool = False) -> str:
    """What helps against an error; `inner` is the kind behind a judge's failure. Empty where nothing is known to."""
    if kind in _ASKED_JUDGE:
        kind, judge = inner, True
    if kind == "bad_request" and "does not exist" in message.lower():
        kind = "not_found"  # some gateways answer 400 for a model that they do not know
    found = _ADVICE.get(kind, "").format(**(_JUDGE if judge else _MODEL))
    return f"judge: {found}" if judge and found else found

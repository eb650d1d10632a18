"""Signs that a judged text tries to grade itself. They raise a flag on the record; they decide nothing."""

import re

from evenhand.core.terminal import printable

_SIGNS: tuple[tuple[str, re.Pattern[str]], ...] = (
    (
        "verdict_object",
        re.compile(
            r"""\{[^{}]{0,200}["']?(?:score|grade|verdict|rating|label|nonce|criteria_met|pass(?:ed)?)["']?\s{0,40}:""",
            re.IGNORECASE,
        ),
    ),
    (
        "verdict_line",
        re.compile(
            r"^\W{0,8}(?:final\s{1,4})?(?:verdict|grade|score|rating)\b[^\n]{0,20}[:=]\s{0,40}\S",
            re.IGNORECASE | re.MULTILINE,
        ),
    ),
    (
        "inline_verdict",
        re.compile(
            r"<(?:score|grade|verdict|rating)>|\b(?:grade|verdict|score|rating)\s{0,40}[:=]\s{0,40}(?:[A-C]\b|\d|correct|pass)",
            re.IGNORECASE,
        ),
    ),
    ("bracket_score", re.compile(r"\[\[\s{0,40}(?:\d{1,9}(?:\.\d{1,9})?|[A-C])\s{0,40}\]\]")),
    (
        "instruction",
        re.compile(
            r"\b(?:ignore|disregard|forget|override)\b[^.\n]{0,40}\b(?:instructions?|rubrics?|rules?|criteria|prompts?|above|previous|guidelines?)\b",
            re.IGNORECASE,
        ),
    ),
    (
        "plea",
        re.compile(
            r"\b(?:give|award|assign|output|return|respond with|reply with|say|write|grade (?:this|it)(?: as)?|mark (?:this|it)(?: as)?|rate (?:this|it))\b[^.\n]{0,40}"
            r"(?:\b(?:full|maximum|max|highest|top|perfect)\b|\b(?:10|5|1\.0|100)\b|\bcorrect\b|\bpass(?:ed)?\b)",
            re.IGNORECASE,
        ),
    ),
    (
        "role_marker",
        re.compile(
            r"<\|[a-z_]{1,30}\|>|\[/?INST\]|<</?SYS>>|^[ \t]{0,40}#{0,4}[ \t]{0,4}(?:system|assistant|judge|grader)\s{0,4}:",
            re.IGNORECASE | re.MULTILINE,
        ),
    ),
    (
        "delimiter",
        re.compile(
            r"<<<|>>>|</\s{0,40}(?:answer|response|output|submission|data)\b|-{3}\s{0,40}END\b", re.IGNORECASE
        ),
    ),
)
# Every repetition above has an end: an answer of a thousand line breaks must not take minutes.
_SCANNED = 20_000


def injection_signs(text: str) -> list[str]:
    """The names of the signs found at the beginning and the end of a text."""
    if len(text) > 2 * _SCANNED:
        text = text[:_SCANNED] + "\n" + text[-_SCANNED:]
    text = printable(text)
    return [name for name, pattern in _SIGNS if pattern.search(text)]

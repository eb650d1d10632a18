"""Text from outside, made safe for a terminal."""

import re

# C0 except tab and newline, DEL, C1, the bidirectional overrides that reorder what a person reads, and lone
# surrogates, which no terminal's encoding has.
_CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_ESCAPE_SEQUENCE = re.compile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|\\][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[@-_])")


def printable(text: str) -> str:
    """`text` without escape sequences and control characters."""
    if text.isprintable():
        return text
    return _CONTROL.sub("", _ESCAPE_SEQUENCE.sub("", text))


def printable_json(text: str) -> str:
    """JSON whose strings mean the same and hold no control character as it stands: they are written as `\\u009b`."""
    return _CONTROL.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def preview(text: str, width: int = 80) -> str:
    """One printable line of at most `width` characters."""
    line = " ".join(printable(text).split())
    return line if len(line) <= width else line[: width - 1] + "…"

r"""Regular expressions from users, which must not be able to hang anything.

Patterns are written as for Python's `re`. They run on RE2, whose time grows with the length of the text and
nothing else, wherever RE2 means the same by them; otherwise (look-around, back-references, Unicode classes over
non-ASCII text) on the `regex` package, which is stopped after `TIME_LIMIT`. One difference from `re` remains:
`\s` does not match the control characters 0x1c to 0x1f.
"""

import re
import time
import warnings
from collections.abc import Iterator
from functools import lru_cache
from re import _parser  # type: ignore[attr-defined,unused-ignore]  # the one reader that agrees with `re`
from typing import Any

from evenhand.core.errors import OptionError, ScorerTimeout, ScoringError

MAX_PATTERN = 1_000
"""How many characters a pattern may have."""
MAX_STEPS = 10_000
"""How many steps a pattern may have once its counted repetitions are written out, as engines do: a few characters,
`((a{1000}){1000}){1000}`, would otherwise fill any memory."""
MAX_TEXT = 1_000_000
"""How many characters a text may have that a user's pattern is run on."""
TIME_LIMIT = 1.0
"""Seconds after which matching one text is stopped."""

FLAGS = {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}
"""Letters for `flags`: ignore case, ^ and $ at every line, dot matches newline, verbose."""

# What the two engines read differently: character classes and word boundaries beyond ASCII, `$` before a final
# line break, ignoring case beyond ASCII, and white space such as the vertical tab.
_CLASS_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\[dDwWsSbB]")
_SCOPED_IGNORE_CASE = re.compile(r"\(\?[a-zA-Z]*i")
_ODD_SPACES = ("\x0b", "\x1c", "\x1d", "\x1e", "\x1f")
_REPEATS = (_parser.MAX_REPEAT, _parser.MIN_REPEAT, _parser.POSSESSIVE_REPEAT)
_ESCAPED = re.compile(r"\\.", re.DOTALL)


class BoundedPattern:
    """A compiled pattern; every use of it ends within the stated limits."""

    def __init__(self, pattern: str, flags: str = "") -> None:
        self.pattern = pattern
        self.flags = flags
        numeric = _flag_bits(flags)
        compiled = _check(pattern, numeric)
        self.groups = compiled.groups
        self._bits = numeric
        self._linear = _linear(pattern, flags)
        # The same for bytes, which spares RE2's wrapper the counting of characters.
        self._linear_ascii: Any = None if self._linear is None else _linear(pattern.encode(), flags)
        bare = _ESCAPED.sub("", pattern)
        self._ends = "$" in bare and not compiled.flags & re.MULTILINE
        self._ascii_only = bool(
            compiled.flags & re.IGNORECASE
            or _CLASS_ESCAPE.search(pattern)
            or _SCOPED_IGNORE_CASE.search(pattern)
        )
        self._backtracking: Any = None

    def search(self, text: str) -> bool:
        """Whether the pattern matches anywhere in `text`."""
        _check_text(text)
        if self._means_the_same(text):
            if text.isascii():
                return self._linear_ascii.search(text.encode()) is not None
            return self._linear.search(text) is not None
        try:
            return self._bounded().search(text, timeout=TIME_LIMIT, concurrent=True) is not None
        except TimeoutError:
            raise self._timed_out() from None

    def last(self, text: str) -> tuple[str | None, ...] | None:
        """The last match: the whole of it and its groups; None without a match."""
        _check_text(text)
        found = None
        deadline = time.monotonic() + TIME_LIMIT
        for count, match in enumerate(self._matches(text)):
            found = match
            if count % 1000 == 999 and time.monotonic() > deadline:
                raise self._timed_out()
        if found is None:
            return None
        # Places in bytes are places in the text, since only ASCII is matched as bytes.
        places = map(found.span, range(self.groups + 1))
        return tuple([None if start < 0 else text[start:end] for start, end in places])

    def _matches(self, text: str) -> Iterator[Any]:
        if self._means_the_same(text):
            if text.isascii():
                return iter(self._linear_ascii.finditer(text.encode()))
            return iter(self._linear.finditer(text))
        return self._backtracking_matches(text)

    def _backtracking_matches(self, text: str) -> Iterator[Any]:
        try:
            yield from self._bounded().finditer(text, timeout=TIME_LIMIT, concurrent=True)
        except TimeoutError:
            raise self._timed_out() from None

    def _means_the_same(self, text: str) -> bool:
        if self._linear is None or (self._ends and text.endswith("\n")):
            return False
        if text.isascii():
            return not self._ascii_only or not any(map(text.__contains__, _ODD_SPACES))
        return not self._ascii_only and _encodable(text)

    def _bounded(self) -> Any:
        if self._backtracking is None:
            import regex

            try:
                self._backtracking = regex.compile(self.pattern, flags=int(self._bits))
            except (regex.error, RecursionError, OverflowError) as error:
                raise OptionError(f"invalid pattern: {error}") from None
        return self._backtracking

    def _timed_out(self) -> ScorerTimeout:
        return ScorerTimeout(f"the pattern was stopped after {TIME_LIMIT:g} s: scorer timed out")


@lru_cache(maxsize=256)
def compile_bounded(pattern: str, flags: str = "") -> BoundedPattern:
    """The compiled pattern; `OptionError` when it is invalid or too long."""
    return BoundedPattern(pattern, flags)


def _flag_bits(flags: str) -> re.RegexFlag:
    bits = re.RegexFlag(0)
    for letter in flags:
        if letter not in FLAGS:
            raise OptionError(f"unknown flag '{letter}' in '{flags[:20]}'; the flags are {', '.join(FLAGS)}")
        bits |= FLAGS[letter]
    return bits


def _check(pattern: str, bits: re.RegexFlag) -> re.Pattern[str]:
    if len(pattern) > MAX_PATTERN:
        raise OptionError(f"the pattern has {len(pattern):,} characters; at most {MAX_PATTERN:,} are allowed")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if _steps(_parser.parse(pattern, int(bits))) > MAX_STEPS:
                raise OptionError(
                    f"the pattern has more than {MAX_STEPS:,} steps once its repetitions are written out"
                )
            return re.compile(pattern, bits)
    except (re.error, OverflowError, RecursionError) as error:
        raise OptionError(f"invalid pattern: {error}") from None


def _steps(parsed: Any) -> int:
    """How large a parsed pattern is with its counted repetitions written out; no more is counted than is too many."""
    steps, waiting = 0, [(parsed, 1)]
    while waiting and steps <= MAX_STEPS:
        part, times = waiting.pop()
        if isinstance(part, _parser.SubPattern):
            steps += times * len(part)
            waiting += [
                (inner, times * max(1, inner[0]) if kind in _REPEATS else times) for kind, inner in part
            ]
        elif isinstance(part, tuple | list):
            waiting += [(inner, times) for inner in part]
    return steps


def _linear(pattern: str | bytes, flags: str) -> Any:
    """The pattern for RE2, or None when RE2 cannot run it."""
    import re2

    options = re2.Options()
    options.log_errors = False
    # Larger ones take RE2 up to a second to write out, in which nothing else runs.
    options.max_mem = 2 * 1024 * 1024
    prefix = f"(?{''.join(sorted(set(flags)))})" if flags else ""
    try:
        whole = prefix.encode() + pattern if isinstance(pattern, bytes) else prefix + pattern
        return re2.compile(whole, options=options)
    except (re2.error, UnicodeEncodeError):
        return None


def _check_text(text: str) -> None:
    if len(text) > MAX_TEXT:
        raise ScoringError(
            f"the text has {len(text):,} characters; patterns run on at most {MAX_TEXT:,}",
            kind="response_too_long",
        )


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate
        return False
    return True

"""How much two texts have in common: edit distance, shared words, shared sequences."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from evenhand.core.errors import OptionError, ScoringError
from evenhand.scoring.definition import scorer
from evenhand.scoring.normal import same_nothing, squad_text
from evenhand.scoring.text import accepted_answers
from evenhand.scoring.types import ScorerInput

MAX_SYMBOLS = 50_000
"""Characters (edit distance) or words (ROUGE-L) per text; more would take seconds."""

_WORD = re.compile(r"[^\W_]+")
# The tokeniser of WMT's mteval-v13a, as a chain of replacements.
_ENTITIES = (
    ("<skipped>", ""),
    ("-\n", ""),
    ("\n", " "),
    ("&quot;", '"'),
    ("&amp;", "&"),
    ("&lt;", "<"),
    ("&gt;", ">"),
)
_SPLITS = (
    (re.compile(r"([\{-\~\[-\` -\&\(-\+\:-\@\/])"), r" \1 "),
    (re.compile(r"([^0-9])([\.,])"), r"\1 \2 "),
    (re.compile(r"([\.,])([^0-9])"), r" \1 \2"),
    (re.compile(r"([0-9])(-)"), r"\1 \2 "),
)


@scorer(needs_target=True)
def levenshtein(sample: ScorerInput, case_sensitive: bool = True) -> dict[str, Any]:
    """One minus the edit distance to the nearest accepted answer, divided by the longer length."""

    def similarity(answer: str) -> tuple[float, int]:
        first, second = sample.response, answer
        if not case_sensitive:
            first, second = first.casefold(), second.casefold()
        distance = edit_distance(first, second)
        longest = max(len(first), len(second))
        return (1.0 - distance / longest if longest else 1.0), -distance

    reward, distance = max(map(similarity, accepted_answers(sample)))
    return {"reward": reward, "distance": -distance}


@scorer(version="2", needs_target=True)
def token_f1(sample: ScorerInput) -> dict[str, Any]:
    """F1 of the words shared with the nearest accepted answer, normalised as SQuAD does.

    Where no word is left of both ("The" and "a"), it is 1, but an empty response is worth nothing against "a".
    """
    response = squad_text(sample.response).split()

    def f1(answer: str) -> tuple[float, float, float]:
        words = squad_text(answer).split()
        if not response or not words:
            same = float(response == words and same_nothing(sample.response, answer))
            return same, same, same
        shared = (Counter(response) & Counter(words)).total()
        return _f_measure(shared, len(response), len(words))

    reward, precision, recall = max(map(f1, accepted_answers(sample)))
    return {"reward": reward, "precision": precision, "recall": recall}


@scorer(needs_target=True)
def rouge_l(sample: ScorerInput) -> dict[str, Any]:
    """ROUGE-L: F1 of the longest common subsequence of words, the best over the accepted answers."""
    response = _WORD.findall(sample.response.lower())

    def f1(answer: str) -> tuple[float, float, float]:
        words = _WORD.findall(answer.lower())
        if not response or not words:
            return 0.0, 0.0, 0.0
        return _f_measure(common_subsequence(response, words), len(response), len(words))

    reward, precision, recall = max(map(f1, accepted_answers(sample)))
    return {"reward": reward, "precision": precision, "recall": recall}


@scorer(needs_target=True)
def bleu(sample: ScorerInput, max_n: int = 4) -> dict[str, Any]:
    """Sentence BLEU from 0 to 1: 13a tokens, exponential smoothing, only orders that the response is long enough for.

    The accepted answers are its references.
    """
    if not 1 <= max_n <= 10:
        raise OptionError(f"option 'max_n' must be from 1 to 10, not {max_n}")
    response = tokenize_13a(sample.response)
    references = [tokenize_13a(answer) for answer in accepted_answers(sample)]
    return {"reward": sentence_bleu(response, references, max_n=max_n)}


def edit_distance(first: str, second: str) -> int:
    """Levenshtein's distance, by Myers' bit vectors (J. ACM 46, 1999) in Hyyrö's form: one pass, one big integer."""
    _check_size(len(first), len(second), "characters")
    if len(first) > len(second):
        first, second = second, first
    if not first:
        return len(second)
    mask = _Masks(first).of
    full = (1 << len(first)) - 1
    top = 1 << (len(first) - 1)
    positive, negative, distance = full, 0, len(first)
    for symbol in second:
        equal = mask(symbol)
        diagonal = (((equal & positive) + positive) ^ positive) | equal | negative
        up = negative | (full & ~(diagonal | positive))
        down = positive & diagonal
        distance += bool(up & top) - bool(down & top)
        up = (up << 1 | 1) & full
        down = (down << 1) & full
        positive = down | (full & ~(diagonal | up))
        negative = up & diagonal
    return distance


def common_subsequence(first: Sequence[str], second: Sequence[str]) -> int:
    """Length of the longest common subsequence, by Hyyrö's bit vectors (2004)."""
    _check_size(len(first), len(second), "words")
    if len(first) > len(second):
        first, second = second, first
    mask = _Masks(first).of
    full = (1 << len(first)) - 1
    open_ = full
    for symbol in second:
        matched = open_ & mask(symbol)
        open_ = ((open_ + matched) | (open_ - matched)) & full
    return len(first) - open_.bit_count()


def tokenize_13a(text: str) -> list[str]:
    """Words and signs as WMT's mteval-v13a cuts them."""
    for old, new in _ENTITIES:
        text = text.replace(old, new)
    text = f" {text} "
    for pattern, replacement in _SPLITS:
        text = pattern.sub(replacement, text)
    return text.split()


def sentence_bleu(response: list[str], references: list[list[str]], *, max_n: int) -> float:
    """BLEU (Papineni et al. 2002) of one sentence; an order without a match counts 1/2, 1/4, ... of a match."""
    if not response:
        return 0.0
    logs = []
    smoothing = 1.0
    matches = 0
    for n in range(1, max_n + 1):
        total = len(response) - n + 1
        if total <= 0:
            break
        own = Counter(_grams(response, n))
        allowed: Counter[tuple[str, ...]] = Counter()
        for reference in references:
            allowed |= Counter(_grams(reference, n))
        shared = (own & allowed).total()
        matches += shared
        if shared == 0:
            smoothing *= 2
            logs.append(math.log(1 / (smoothing * total)))
        else:
            logs.append(math.log(shared / total))
    if matches == 0:
        return 0.0
    nearest = min((abs(len(r) - len(response)), len(r)) for r in references)[1]
    brevity = 1.0 if len(response) >= nearest else math.exp(1 - nearest / len(response))
    return min(1.0, brevity * math.exp(sum(logs) / len(logs)))


def _grams(words: list[str], n: int) -> Iterable[tuple[str, ...]]:
    return zip(*(words[i:] for i in range(n)), strict=False)


class _Masks:
    """For each symbol the positions at which it stands, as bits of an integer.

    Only the integers of frequent symbols are kept: fifty thousand different words would take gigabytes.
    """

    def __init__(self, symbols: Sequence[str]) -> None:
        self._width = len(symbols) // 8 + 1
        self._places: dict[str, list[int]] = {}
        for position, symbol in enumerate(symbols):
            self._places.setdefault(symbol, []).append(position)
        self._frequent = {s: self._bits(p) for s, p in self._places.items() if len(p) > 16}

    def of(self, symbol: str) -> int:
        """The mask of one symbol; 0 when it stands nowhere."""
        places = self._places.get(symbol)
        if places is None:
            return 0
        return self._bits(places) if len(places) <= 16 else self._frequent[symbol]

    def _bits(self, places: list[int]) -> int:
        if len(places) == 1:
            return 1 << places[0]
        bits = bytearray(self._width)
        for place in places:
            bits[place >> 3] |= 1 << (place & 7)
        return int.from_bytes(bits, "little")


def _f_measure(shared: int, found: int, expected: int) -> tuple[float, float, float]:
    precision, recall = shared / found, shared / expected
    return (2 * precision * recall / (precision + recall) if shared else 0.0), precision, recall


def _check_size(first: int, second: int, what: str) -> None:
    if max(first, second) > MAX_SYMBOLS:
        raise ScoringError(
            f"the texts have {first:,} and {second:,} {what}; at most {MAX_SYMBOLS:,} are compared",
            kind="response_too_long",
        )

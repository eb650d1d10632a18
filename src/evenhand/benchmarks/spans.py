"""DROP's own grades: exact match and F1 over bags of words, aligned span by span (Dua et al. 2019, section 5).

An answer is one or more spans. Spans are cut at spaces and hyphens; a word that reads as a number is compared as a
number, others lose case, punctuation and articles. Each predicted span is paired with one gold span so that the sum
of their F1 is largest; a pair whose gold span has numbers counts only if they share one. The F1 of the answer is the
mean over the pairs, with 0 for every span that has no partner. Of several gold answers the best counts.
"""

import re
import string
from collections.abc import Sequence

MAX_SPANS = 100
"""More predicted spans are read as one."""

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_LISTED = re.compile(r"\s*(?:[;|\n]|,(?!\d{3}(?!\d))|(?<!\w)and(?!\w)|(?<!\w)&(?!\w))\s*")


def grade(predicted: Sequence[str], golds: Sequence[Sequence[str]]) -> tuple[float, float]:
    """The best exact match (0 or 1) and the best F1 over the gold answers."""
    grades = [_metrics(predicted, gold) for gold in golds if gold and gold[0].strip()]
    return max((em for em, _ in grades), default=0.0), max((f1 for _, f1 in grades), default=0.0)


def readings(answer: str) -> list[list[str]]:
    """How the text of an answer may be read: as one span, and as the items of a list."""
    whole = [[answer]]
    items = [item for item in _LISTED.split(answer.strip()) if item]
    return [*whole, items] if 1 < len(items) <= MAX_SPANS else whole


def normal_words(text: str) -> list[str]:
    """The words of a span as DROP compares them."""
    words: list[str] = []
    for token in re.split("[ -]", text.lower()):
        number = _number(token) or _number(bare := token.translate(_PUNCTUATION))
        words += [number] if number else _ARTICLES.sub(" ", bare).split()
    return words


def _number(token: str) -> str | None:
    try:
        return str(float(token))
    except ValueError:
        return None


def _metrics(predicted: Sequence[str], gold: Sequence[str]) -> tuple[float, float]:
    found, wanted = [normal_words(span) for span in predicted], [normal_words(span) for span in gold]
    spelled = [" ".join(words) for words in found], [" ".join(words) for words in wanted]
    exact = set(spelled[0]) == set(spelled[1]) and len(found) == len(wanted)
    scores = [[_f1(set(span), set(other)) for span in found] for other in wanted]
    f1 = _best_pairing(scores) / max(len(found), len(wanted), 1)
    return float(exact), round(f1, 2)


def _f1(found: set[str], wanted: set[str]) -> float:
    numbers = {word for word in wanted if _number(word)}
    if numbers and not numbers & found:
        return 0.0
    shared = len(found & wanted)
    precision = shared / len(found) if found else 1.0
    recall = shared / len(wanted) if wanted else 1.0
    return 2 * precision * recall / (precision + recall) if precision + recall else 0.0


def _best_pairing(scores: list[list[float]]) -> float:
    if len(scores) == 1 or (scores and len(scores[0]) == 1):
        return max(score for row in scores for score in row)
    from scipy.optimize import linear_sum_assignment

    rows, columns = linear_sum_assignment(scores, maximize=True)
    return sum(scores[row][column] for row, column in zip(rows, columns, strict=True))

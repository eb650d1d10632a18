"""Similarity of meaning, with whatever embedding the caller brings."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

from evenhand.core.errors import OptionError, ScoringError
from evenhand.scoring.definition import scorer
from evenhand.scoring.normal import spaced_text, squad_text
from evenhand.scoring.text import accepted_answers
from evenhand.scoring.types import ScorerInput

Embed = Callable[[list[str]], Sequence[Sequence[float]]]
"""Texts in, one vector per text out."""


@scorer(needs_target=True, slow=True)
def embedding_similarity(
    sample: ScorerInput, embed: Embed | str, threshold: float | None = None
) -> dict[str, Any]:
    """Cosine similarity of the response with the nearest accepted answer; right or wrong when `threshold` is given.

    `embed` is a function from texts to vectors, or "char_ngrams": counts of character triples, which needs no
    model and knows spelling, not meaning. Negative similarities count as 0.
    """
    answers = accepted_answers(sample)
    if isinstance(embed, str):
        if embed != "char_ngrams":
            raise OptionError(f"unknown embedding '{embed}'; give a function, or the name char_ngrams")
        own = _triples(sample.response)
        similarities = [_cosine_of_counts(own, _triples(answer)) for answer in answers]
    else:
        vectors = [[float(x) for x in vector] for vector in embed([sample.response, *answers])]
        if len(vectors) != len(answers) + 1 or len({len(vector) for vector in vectors}) != 1:
            raise ScoringError(
                "the embedding gave vectors of different lengths, or too few", kind="bad_embedding"
            )
        similarities = [_cosine(vectors[0], vector) for vector in vectors[1:]]
    similarity = max(similarities)
    if threshold is None:
        return {"reward": similarity}
    return {"correct": similarity >= threshold, "similarity": similarity}


def _cosine(first: Sequence[float], second: Sequence[float]) -> float:
    norm = math.hypot(*first) * math.hypot(*second)
    if not math.isfinite(norm):
        raise ScoringError("the embedding gave a vector that is not finite", kind="bad_embedding")
    return _share(math.fsum(x * y for x, y in zip(first, second, strict=True)), norm)


def _triples(text: str) -> Counter[str]:
    padded = f" {squad_text(text) or spaced_text(text, case_sensitive=False)} "
    return Counter(padded[i : i + 3] for i in range(len(padded) - 2))


def _cosine_of_counts(first: Counter[str], second: Counter[str]) -> float:
    if len(first) > len(second):
        first, second = second, first
    dot = sum(count * second[triple] for triple, count in first.items())
    return _share(dot, math.sqrt(_square(first) * _square(second)))


def _square(counts: Counter[str]) -> int:
    return sum(count * count for count in counts.values())


def _share(dot: float, norm: float) -> float:
    return min(1.0, max(0.0, dot / norm)) if norm else 0.0

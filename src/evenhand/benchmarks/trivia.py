"""TriviaQA's own grades: exact match and F1 with any alias, after its normalisation (Joshi et al. 2017).

Lower case, underscores and punctuation (ASCII's and the quotes ‘ ’ ´ `) as spaces, no articles, single spaces.
"""

import re
import string
from collections import Counter
from collections.abc import Iterable

from evenhand.scoring.normal import same_nothing

_SIGNS = str.maketrans(dict.fromkeys(string.punctuation + "‘’´`", " "))
_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def normal_answer(text: str) -> str:
    """An answer as TriviaQA compares it."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_SIGNS)).split())


def grade(answer: str, aliases: Iterable[str]) -> tuple[bool, float]:
    """Whether the answer is one of the aliases, and the best F1 of its words.

    An answer of which no word is left ("The The") is one of the aliases of which none is left either, as in the
    authors' script; but an empty answer is not "A".
    """
    found = normal_answer(answer)
    accepted = [(alias, normal_answer(alias)) for alias in aliases if alias.strip()]
    exact = any(
        found == wanted and (bool(found) or same_nothing(answer, alias)) for alias, wanted in accepted
    )
    return exact, max((_f1(found.split(), wanted.split()) for _, wanted in accepted), default=0.0)


def _f1(found: list[str], wanted: list[str]) -> float:
    shared = (Counter(found) & Counter(wanted)).total()
    return 2 * shared / (len(found) + len(wanted)) if shared else 0.0

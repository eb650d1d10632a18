"""Answers that say nothing, and that judges are known to reward all the same ("master keys").

Zhao et al., "One Token to Fool LLM-as-a-Judge", arXiv 2507.08794: a lone colon or the opening of a solution
is graded as correct by strong judges in a large share of cases. Such an answer is worth 0 and is never sent.
A short answer such as "42" or "No" is an answer.
"""

import re
import unicodedata

OPENERS = frozenset(
    {
        "answer",
        "final answer",
        "here is the answer",
        "here is the solution",
        "lets solve this",
        "lets solve this problem step by step",
        "lets think",
        "lets think step by step",
        "my answer",
        "reasoning",
        "solution",
        "step by step solution",
        "the answer is",
        "the solution is",
        "thinking process",
        "thought process",
        "thoughts",
        "antwort",
        "lösung",
        "respuesta",
        "réponse",
        "solución",
        "かいせつ",
        "解",
        "解答",
        "答案",
    }
)
_OTHER = re.compile(r"[^\w\s]|_", re.UNICODE)


def is_degenerate(response: str, target: str = "") -> bool:
    """Whether the response holds no answer: nothing, punctuation only, or a bare opener.

    A response that is exactly the expected answer is an answer, whatever it looks like.
    """
    text = unicodedata.normalize("NFKC", response).strip()
    if text and text == unicodedata.normalize("NFKC", target).strip():
        return False
    if not any(unicodedata.category(character)[0] in "LNS" for character in text):
        return True
    words = " ".join(_OTHER.sub("", text.replace("’", "'")).casefold().split())
    return words in OPENERS

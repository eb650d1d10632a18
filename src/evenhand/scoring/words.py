"""Whether a text contains an answer as whole words.

Scripts without spaces between words (Chinese, Japanese, Thai, Lao, Khmer, Burmese) have no word boundaries to ask
for: there every character counts as a word. Korean particles are written onto the noun (서울은, 서울입니다), so an
answer that ends in Hangul must begin at a word's start and may end within the word. Digits have boundaries in every
script: 5 is not in 15. "Canberra's mayor" holds Canberra, and "l'Italie" holds Italie: a possessive s and the article
or preposition that French, Italian and Catalan write onto a word are no part of it.
"""

import re

from evenhand.scoring.normal import normalize_text, separated_text

# Their digits are left out: a number is a word in every script.
_UNSPACED = re.compile(
    "["
    "\u2e80-\u2fdf\u3005-\u3007\u3021-\u3029\u3038-\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
    "\u3040-\u30ff\u3100-\u312f\u31a0-\u31bf\u31f0-\u31ff"
    "\u0e00-\u0e4f\u0e5a-\u0ecf\u0eda-\u0eff"
    "\u1000-\u103f\u104a-\u108f\u109a-\u109f\ua9e0-\ua9ef\ua9fa-\ua9ff\uaa60-\uaa7f"
    "\u1780-\u17df\u17ea-\u17ff\u19e0-\u19ff"
    "]"
)
_HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\ua960-\ua97f\uac00-\ud7ff]$")
_APOSTROPHES = "'\u2019\u2018\u02bc\uff07"
_POSSESSIVE = re.compile(rf"(?<=\w)[{_APOSTROPHES}]s(?!\w)", re.IGNORECASE)
_ELIDED = re.compile(
    rf"(?<![\w{_APOSTROPHES}])(?:[ldjmtsnc]|qu|un|(?:d|n|s)?(?:ell|all)|sull|gl|quest|quell)[{_APOSTROPHES}](?=\w)",
    re.IGNORECASE,
)
_SYMBOLS = str.maketrans("=<>|", "    ")


class WholeWords:
    """A text made ready to be asked which answers it contains."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._joined = _padded(normalize_text(text))
        self._separated: str | None = None
        self._parted: str | None = None

    def contain(self, answer: str) -> bool:
        """Whether the answer stands in the text as whole words, with or without its punctuation."""
        wanted = normalize_text(answer)
        if not wanted:
            return False
        if _needle(wanted) in self._joined:
            return True
        if self._separated is None:
            self._separated = _padded(separated_text(self._text).translate(_SYMBOLS))
        # "x=5" contains 5, but x<y must not contain x>y: symbols separate only where the answer has none.
        spelled = separated_text(answer)
        if spelled != spelled.translate(_SYMBOLS):
            return False
        return _needle(spelled) in self._separated or _needle(spelled) in self._without_apostrophes()

    def _without_apostrophes(self) -> str:
        if self._parted is None:
            parted = _ELIDED.sub(" ", _POSSESSIVE.sub(" ", self._text))
            self._parted = _padded(separated_text(parted).translate(_SYMBOLS)) if parted != self._text else ""
        return self._parted


def _padded(text: str) -> str:
    return f" {_spread(text)} "


def _needle(answer: str) -> str:
    answer = _spread(answer)
    return f" {answer}" if _HANGUL.search(answer) else f" {answer} "


def _spread(text: str) -> str:
    """With spaces around every character of a script that has none between words."""
    if text.isascii() or not _UNSPACED.search(text):
        return text
    return " ".join(_UNSPACED.sub(r" \g<0> ", text).split())

r"""Reading the chosen letter of a multiple-choice answer.

What is read, the last one first: "Answer: B" with the word in any of the languages below and the letter plain or
inside Markdown, quotes, brackets, `$…$` or LaTeX commands, and `\boxed{B}`; without either, "the answer is B",
`<answer>B</answer>` or the letter under the heading "Answer"; without that, a response that is nothing but the
letter. A letter is never the start of a longer word ("Answer: Both"), nor the word A or I of a sentence ("Answer: I
cannot say"), and several letters ("Answer: A, B") are no choice.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

ANSWER_WORDS = (
    *("Answer", "Answers", "Answer is", "Choice", "Option"),
    # German, Dutch, Scandinavian
    *("Antwort", "Antwoord", "Svar"),
    # Romance
    *("Respuesta", "Risposta", "Resposta", "Réponse", "Răspuns"),
    # Slavic
    *("Ответ", "Відповідь", "Отговор", "Odpowiedź", "Odpověď", "Odgovor"),
    # other European
    *("Απάντηση", "Vastaus", "Válasz", "Cevap", "Yanıt"),
    # Arabic, Hebrew, Persian, Urdu
    *("الإجابة", "إجابة", "الإجابة النهائية", "الإجابة الصحيحة", "الإجابة الصحيحة هي", "الإجابة هي"),
    *("الجواب", "الجواب النهائي", "תשובה", "پاسخ", "جواب"),
    # Indic
    *("উত্তর", "उत्तर", "సమాధానం", "பதில்", "ഉത്തരം", "ಉತ್ತರ", "જવાબ", "ਜਵਾਬ"),
    # East and South-East Asian
    *("答案", "答", "答复", "答曰", "答え", "回答", "解答", "답변", "정답", "답"),
    *("คำตอบ", "Jawaban", "Đáp án", "Trả lời"),
    # Swahili, Yoruba
    *("Jibu", "Idahun", "Ìdáhùn", "Idáhùn", "Àdáhùn", "Àmọ̀nà", "Ànúgọ", "Àṣàyàn"),
)
"""How the prompts of multilingual benchmarks (MMMLU, MGSM), and answers to them, call the answer."""

OTHER_LETTERS = {
    **dict(zip("أبجد", "ABCD", strict=True)),
    **dict(zip("অবডঢ", "ABCD", strict=True)),
    **{chr(0xFF21 + place): chr(0x41 + place) for place in range(26)},
}
"""Letters that Arabic, Bengali and full-width answers use."""

_COLONS = ":：ঃ"
_BOXED = "\\boxed"
# What may stand between the word and the colon, and around the letter.
_FRAME = " \t\r\n*_`\"'“”‘’()[]{}$<>~\u00a0\u200b\u200c\u200d\u200e\u200f"
_LONGEST = 40
_WORDS = tuple(sorted({unicodedata.normalize("NFC", word).lower() for word in ANSWER_WORDS}))
_OPENING = (
    r"(?:[\s*_`\"'“”‘’(\[{$<>~\u200b-\u200f]"
    r"|\\(?:boxed|fbox|text(?:bf|it|rm)?|mathbf|mathrm|bf|rm|,|;|\(|\[)|(?:option|choice|letter)\b){0,60}+"
)
_CLOSING = r"[\s*_`\"'”’)\]}$>~.]{0,60}+"
# Scripts in which the next word may follow without a space: 答えはBです.
_UNSPACED = "[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff]"
_JOINS = r"(?:[,/&+;]|and\b|or\b|und\b|oder\b|et\b|ou\b|y\b|o\b|e\b|和|或|、)"
# A and I are words too: as choices they are followed by a reason, or by no word.
_NO_SENTENCE = (
    r"(?!(?<=[AaIi])[ \t]+(?!(?:because|since|is|as|due|given|by|for|which|based|according|was)\b)[a-z'])"
)
_SAID = re.compile(
    r"(?i)(?:\b(?:answer|option|choice|antwort|respuesta|réponse|resposta|risposta)\b|ответ|答案|答え|정답|답)"
    r"[^.\n:]{0,40}?(?:\b(?:is|be|ist|es|est|é|è)\b|是|为|為|は|은|는|[-–—=])"
    r"|<answer>|\banswer[*_# ]{0,6}\n"
)


@lru_cache(maxsize=32)
def choice_reader(letters: str) -> "ChoiceReader":
    """The reader of these letters."""
    return ChoiceReader(letters)


class ChoiceReader:
    """Reads one of several letters from a response."""

    def __init__(self, letters: str) -> None:
        others = "".join(other for other, letter in OTHER_LETTERS.items() if letter in letters)
        one = f"[{letters}{letters.lower()}{others}]"
        self._letter = re.compile(
            rf"(?i:{_OPENING})(?P<letter>{one})(?!(?!{_UNSPACED})[\w'’+#]|-[^\W\d]){_NO_SENTENCE}"
        )
        self._another = re.compile(
            rf"{_CLOSING}{_JOINS}(?i:{_OPENING})(?:{_JOINS})?\s*{one}(?!\w)(?={_CLOSING}(?:$|{_JOINS}))",
            re.MULTILINE,
        )
        self._alone = re.compile(rf"(?i:{_OPENING})(?P<letter>{one}){_CLOSING}")

    def read(self, text: str) -> str | None:
        """The chosen letter in upper case, or None."""
        for end in stated_places(text):
            match = self._letter.match(text, end)
            if match:
                return self._single(text, match)
        said = [match for place in _SAID.finditer(text) if (match := self._letter.match(text, place.end()))]
        if said:
            return self._single(text, said[-1])
        alone = self._alone.fullmatch(text.strip()) if len(text) < 200 else None
        return _plain(alone.group("letter")) if alone else None

    def _single(self, text: str, match: re.Match[str]) -> str | None:
        if self._another.match(text, match.end()):
            return None
        return _plain(match.group("letter"))


def _plain(letter: str) -> str:
    return OTHER_LETTERS.get(letter, letter).upper()


def stated_places(text: str) -> Iterator[int]:
    r"""Where an answer may begin: after the colon of "Answer:" and at \boxed, from the end of the text."""
    signs = ":" if text.isascii() else _COLONS
    boxed = text.rfind(_BOXED)
    end = len(text)
    while True:
        colon = max([text.rfind(sign, 0, end) for sign in signs])
        if boxed > colon:
            yield boxed
            boxed = text.rfind(_BOXED, 0, boxed)
        elif colon < 0:
            return
        else:
            before = text[max(0, colon - _LONGEST) : colon].rstrip(_FRAME).lower()
            if before.isascii() or unicodedata.is_normalized("NFC", before):
                found = before.endswith(_WORDS)
            else:
                found = unicodedata.normalize("NFC", before).endswith(_WORDS)
            if found:
                yield colon + 1
            end = colon

r"""Reading the chosen letter of a multiple-choice answer.

What is read: "Answer: B" with the word in any of the languages below and the letter plain or inside Markdown, quotes,
brackets, `$…$` or LaTeX commands, `\boxed{B}`, "the answer is B" and its like, `<answer>B</answer>`, the letter under
the heading "Answer"; the last of these counts, but an "answer is" in an "although" or "if" does not correct an "Answer:".
Without any of them, "B is correct" or "I choose B"; and without that, a response that is nothing but the letter, begins
with it ("B) Paris", "B because …") or ends with a line of its own for it. A letter is never the start of a longer word
("Answer: Both"), nor the word A or I of a sentence ("Answer: I cannot say"); several letters ("Answer: A, B", "A (or
B)", "A B C D") are no choice, and neither is a letter that is said to be wrong.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from evenhand.core.errors import OptionError

ANSWER_WORDS = (
    *("Answer", "Answers", "Answer is", "Choice", "Option"),
    # German, Dutch, Scandinavian
    *("Antwort", "Antwoord", "Svar"),
    # Romance
    *("Respuesta", "Risposta", "Resposta", "Réponse", "Răspuns"),
    *("Respuesta correcta", "Respuesta final", "Risposta corretta", "Risposta finale", "Resposta correta"),
    *("Resposta final", "Réponse correcte", "Réponse finale", "Bonne réponse"),
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
    *("答案是", "答案为", "答案為", "正解", "故选", "故選", "应选", "選擇", "选择"),
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
_FRAME = " \t\r\n*_`\"'“”‘’()[]{}$<>~«»「」『』【】\u00a0\u200b\u200c\u200d\u200e\u200f"
_LONGEST = 40
# In this order the most common one comes first.
_WORDS = tuple(dict.fromkeys(unicodedata.normalize("NFC", word).lower() for word in ANSWER_WORDS))
_WRONG = ("wrong ", "incorrect ", "false ")
_BRACKETED = re.compile(r"\s*[(\[][^()\[\]]{0,30}[)\]][*_\s]*$")
_OPENING = (
    r"(?:[\s*_`\"'“”‘’(\[{$<>~«»「」『』【】✅☑✔\ufe0f\u200b-\u200f]"
    r"|\\(?:boxed|fbox|text(?:bf|it|rm)?|mathbf|mathrm|bf|rm|,|;|\(|\[)"
    r"|(?:option|choice|letter|opci[oó]n|opção|opzione|letra|lettre|lettera|buchstabe|вариант|буква)\b|选项|選項){0,60}+"
)
_CLOSING = r"[\s*_`\"'”’)\]}$>~.»」』】]{0,60}+"
# Scripts in which the next word may follow without a space: 答えはBです.
_UNSPACED = "[\u0e00-\u0e7f\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7ff]"
_JOINS = (
    r"(?:[,/&+;|。、\\–—-]|\\text\s*\{\s*(?:and|or)\s*\}|(?:and(?:/or)?|or|und|oder|et|ou|y|o|e|to|through|и|или)\b"
    r"|和|或|与)"
)
_MAYBE = r"(?:\s*(?:maybe|perhaps|possibly|also|even|both)\b)?"
# A and I are words too: as choices they are followed by a reason, or by no word.
_NO_SENTENCE = r"(?!(?<=[AaIi])[ \t]+(?!(?:because|since|is|as|due|given|by|for|which|based|according|was|and|or)\b)[a-z'])"
_NEGATED = re.compile(
    rf"{_CLOSING}(?:is|was|are|would\s+be|seems|looks|can)"
    r"(?:n['’]t|not|\s+(?:clearly\s+|also\s+|definitely\s+)?(?:not|wrong|incorrect|false|untrue|impossible|never|out|ruled|eliminated))\b"
)
_SAID = re.compile(
    r"(?i)(?:\b(?:answer|option|choice|letter|antwort|antwoord|respuesta|réponse|resposta|risposta|jawaban|đáp án)\b"
    r"|ответ|答案|答え|正解|正确选项|정답|답|คำตอบ|الجواب|الإجابة|उत्तर)"
    r"[^.\n:]{0,40}?(?:\b(?:is|be|was|ist|lautet|es|est(?:\s+la)?|é|è|adalah|là|هو|هي)\b|是|为|為|は|은|는|คือ|[-–—=|])"
    r"|<answer>|\banswer[*_# ]{0,6}\n|\banswer['’]s\b|^\W{0,6}(?:answer\s{0,3}(?=[(\[])|ответ\s)|उत्तर\s"
    r"|(?:故|应|应该|答案|所以|因此|^)选择?(?!项)",
    re.MULTILINE,
)
_DENIED = re.compile(
    r"(?i)\b(?:not|cannot|never|neither|wrong|incorrect|false|isn|wasn|can|couldn|won)(?:['’]t)?\b|不"
)
_CLAUSE = re.compile(r"[.\n;:]")
_CAN = re.compile(r"(?i)\bcan\b(?!['’]t)")
_HEDGED = re.compile(
    r"(?i)\b(?:if|although|though|while|whether|why|suppose|think|thought|believe|assum\w+|claims?|say|says|said)\b"
)
# Weaker words, which count only where nothing stronger is said.
_CHOSEN = re.compile(
    r"(?i)\b(?:choose|pick|select|go(?:ing)?\s+with|opt\s+for|it['’]s|it\s+is|therefore|thus|hence|so)\b[,:]?"
)
_RIGHT = r"(?:is|was|would\s+be|must\s+be)\s+(?:clearly\s+|definitely\s+|therefore\s+)?(?:the\s+)?(?:only\s+|most\s+)?(?:correct|right|best|answer|accurate|appropriate)\b"
_JOINED_BEFORE = re.compile(
    r"(?i)(?:\b(?:n?or|and|neither|either|if|whether|not|than|think|says?)|(?<![\w'’])[A-J]\s*[,/&])[\s*_(\[]*$"
)
_LONGEST_SHORT = 2_000
"""Responses that only begin or end with a letter are read up to this many characters."""


@lru_cache(maxsize=32)
def choice_reader(letters: str) -> "ChoiceReader":
    """The reader of these letters."""
    if not letters.isalpha() or not letters.isascii():
        raise OptionError(f"option 'letters' must be letters from A to Z, not {letters!r:.80}")
    return ChoiceReader(letters.upper())


class ChoiceReader:
    """Reads one of several letters from a response."""

    def __init__(self, letters: str) -> None:
        others = "".join(other for other, letter in OTHER_LETTERS.items() if letter in letters)
        one = f"[{letters}{letters.lower()}{others}]"
        upper = f"[{letters}{others}]"
        self._letter = re.compile(
            rf"(?i:{_OPENING})(?P<letter>{one})(?!(?!{_UNSPACED})[\w+#]|['’]\w|-[^\W\d]|\.[A-Za-z]\.){_NO_SENTENCE}"
        )
        self._another = re.compile(
            rf"{_CLOSING}[?(]?\s*{_JOINS}{_MAYBE}(?i:{_OPENING})(?:{_JOINS})?\s*{one}(?!\w)"
            rf"(?={_CLOSING}[?)]*(?:$|{_JOINS}|(?:is|are)\b))|[ \t]+{upper}(?!\w)(?=[ \t]*(?:$|{upper}(?!\w)))",
            re.MULTILINE,
        )
        self._explained = re.compile(
            rf"{_CLOSING}[;,:]?\s*(?:{upper}(?!\w)[\s,/&]*(?:and\b|or\b)?\s*){{1,10}}(?:is|are)\b"
        )
        self._right = re.compile(rf"(?<!\w)[(*_]*(?P<letter>{upper})[)*_.]*\s+{_RIGHT}")
        self._last = re.compile(rf"(?i:{_OPENING})(?P<letter>{upper}){_CLOSING}(?:$|{_RIGHT})", re.MULTILINE)
        self._alone = re.compile(
            rf"(?i:{_OPENING})(?P<letter>{one})[\s*_`\"'”’)\]}}$>~.»」』】✅☑✔👍🎯\ufe0f/]{{0,60}}"
        )
        self._leading = re.compile(
            rf"(?i:{_OPENING})(?:(?P<letter>{one})(?:[*_]*[).\]:]+[*_\s]*[ \t]\S|\*\*\s*[:–—-]\s)"
            rf"|(?P<upper>{upper})(?:\s+[-–—:]\s|[*_]*,?\s+(?:because|since|as)\b))"
        )
        self._labels = re.compile(rf"(?<![\w'’]){upper}[*_]*[).:](?!\w)", re.MULTILINE)

    def read(self, text: str) -> str | None:
        """The chosen letter in upper case, or None."""
        stated = None
        for place in stated_places(text):
            if stated := self._letter.match(text, place):
                break
        # One character past a stated letter holds no other answer.
        alone = stated is not None and len(text) - stated.end() <= 1
        said = None if alone else self._said(text, stated.start() if stated else -1)
        found = said or stated
        if found:
            return self._single(text, found)
        right = [
            match for match in self._right.finditer(text) if not self._joined_before(text, match.start())
        ]
        if chosen := right or list(self._after(text, _CHOSEN)):
            return self._single(text, chosen[-1])
        return self._by_place(text.strip()) if len(text) < _LONGEST_SHORT else None

    def _said(self, text: str, after: int) -> re.Match[str] | None:
        """The last "answer is B"; past an "Answer:" only one that corrects it."""
        last = None
        for place in _SAID.finditer(text, max(0, after)):
            match = self._letter.match(text, place.end())
            if match is None:
                continue
            before = text[max(0, place.start() - 40) : place.start()]
            sentence = _CLAUSE.split(before)[-1]
            if _DENIED.search(_CAN.sub("", sentence[-14:] + place.group())):
                continue
            if after < 0 or not _HEDGED.search(sentence):
                last = match
        return last

    def _joined_before(self, text: str, start: int) -> bool:
        return _JOINED_BEFORE.search(text[max(0, start - 20) : start]) is not None

    def _after(self, text: str, words: re.Pattern[str]) -> Iterator[re.Match[str]]:
        for place in words.finditer(text):
            if match := self._last.match(text, place.end()):
                yield match

    def _by_place(self, text: str) -> str | None:
        """The letter that is the response, or its first or last line, or begins it."""
        if len(text) < 200 and (alone := self._alone.fullmatch(text)):
            return _plain(alone.group("letter"))
        lines = [line for line in text.splitlines() if line.strip()]
        lone = [match for line in lines if (match := self._alone.fullmatch(line.strip()))]
        if lone:
            whole = self._alone.fullmatch(lines[0].strip()) or self._alone.fullmatch(lines[-1].strip())
            return _plain(lone[0].group("letter")) if whole and len(lone) == 1 else None
        match = self._leading.match(text)
        if match is None or len(self._labels.findall(text)) > 1:
            return None
        group = "letter" if match["letter"] else "upper"
        rest = match.end(group)
        if _NEGATED.match(text, rest) or self._another.match(text, rest):
            return None
        return _plain(match[group])

    def _single(self, text: str, match: re.Match[str]) -> str | None:
        end = match.end()
        if end == len(text):
            return _plain(match["letter"])
        end = match.end("letter")
        if _NEGATED.match(text, end):
            return None
        if self._another.match(text, end) and not self._explained.match(text, end):
            return None
        return _plain(match.group("letter"))


def _plain(letter: str) -> str:
    return letter.upper() if letter.isascii() else OTHER_LETTERS[letter]


def stated_places(text: str) -> Iterator[int]:
    r"""Where an answer may begin: after the colon of "Answer:" and at \boxed, from the end of the text."""
    plain = text.isascii()
    boxed = text.rfind(_BOXED) if "\\" in text else -1
    end = len(text)
    while True:
        colon = text.rfind(":", 0, end) if plain else max([text.rfind(sign, 0, end) for sign in _COLONS])
        if boxed > colon:
            yield boxed
            boxed = text.rfind(_BOXED, 0, boxed)
        elif colon < 0:
            return
        else:
            before = text[max(0, colon - _LONGEST) : colon].lower()
            if ")" in before or "]" in before:
                before = _BRACKETED.sub("", before)
            before = before.rstrip(_FRAME)
            if not plain:
                before = unicodedata.normalize("NFC", before)
            if before.endswith(_WORDS) and not before.endswith(_WRONG, 0, -6):
                yield colon + 1
            end = colon

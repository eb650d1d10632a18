"""Text scorers: what normalisation drops and what it must not, the quick path against the plain one."""

import re
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.growth import grows_no_faster_than_linearly

from evenhand.scoring.normal import normalize_text, same_normal_form
from evenhand.scoring.text import exact_match, fuzzy_match, includes_all, includes_any
from evenhand.scoring.types import ScorerInput

ANY_TEXT = (
    st.text()
    | st.text(alphabet=st.sampled_from("aAnNtThHeE .,!?-_'\"\t\n\x1c\u00a0\u0301ﬁİẞßΣ+$"))
    | st.text(alphabet=st.sampled_from("0159 x.,-−–+/:*'’$€%()<=#\u0301"))
)
# Lone surrogates are text to Python.
WILD_TEXT = ANY_TEXT | st.text(alphabet=st.characters(exclude_categories=[]))


def plain_normal_form(text: str) -> str:
    """The definition, sign by sign, written with nothing but `unicodedata` and `re`."""
    powers = re.sub(r"(?<=[\d)\]}])([⁺⁻]?[²³¹⁰⁴-⁹]+)", r"^\1", text)
    mixed = re.sub("(?<=[\\d¼-¾⅐-⅞↉])(?=[¼-¾⅐-⅞↉])", " ", powers)
    lowered = unicodedata.normalize("NFKC", mixed).replace("⁄", "/").lower()
    ungrouped = re.sub(
        r"(?<![\d,'’])\d{1,3}((,\d{3})+|(['’]\d{3})+)(?![,'’]?\d)",
        lambda match: re.sub("[,'’]", "", match.group()),
        lowered,
    )
    words = unicodedata.normalize("NFKC", plain_signs(ungrouped)).split()
    if not words:
        return " ".join(unicodedata.normalize("NFKC", lowered).split())
    without = [word for word in words if not re.fullmatch("a|an|the", word)]
    return " ".join(without or words)


def is_punctuation(char: str) -> bool:
    return (
        char in "`~\x01\x02\x03\x04\x05\x06"
        or unicodedata.category(char)[0] == "P"
        or unicodedata.category(char) == "Sc"
    )


def is_sign(char: str) -> bool:
    return re.fullmatch(r"[^\w\s]|_", char) is not None


def plain_signs(text: str) -> str:
    """Signs in runs: what stands before a digit may belong to its number."""
    pieces = re.split(r"((?:[^\w\s]|_)+)", text)
    for place in range(1, len(pieces), 2):
        signs, before, after = pieces[place], pieces[place - 1][-1:], pieces[place + 1][:1]
        bare = "".join(char for char in signs if not is_punctuation(char))
        if not after.isdecimal():
            pieces[place] = "#" + bare if signs[0] == "#" and before.isalpha() else bare
            continue
        if signs in ("-", "−", "–") and after.isdecimal() and re.search(r"\de\Z", "".join(pieces[:place])):
            pieces[place] = "-"
            continue
        if before.isdecimal() and len(signs) == 1:
            if signs in "./:*":
                continue
            dash = unicodedata.category(signs) == "Pd" or signs == "−"
            pieces[place] = "-" if dash else (bare or " ")
            continue
        found = re.fullmatch(r"(?P<rest>.*?)(?P<sign>[-−–+][$€£¥]*)?(?P<point>\.)?", signs, re.DOTALL)
        assert found is not None
        rest, sign, point = found["rest"], found["sign"] or "", found["point"] or ""
        word = re.compile(r"[^\W_]|[\u0300-\u036f]")
        if point and ((sign == rest == "" and word.match(before)) or (rest + sign).endswith(".")):
            rest, point = rest + sign + point, ""
            sign = ""
        if point and (rest + sign) and unicodedata.category((rest + sign)[-1])[0] == "M":
            rest, point, sign = rest + sign + point, "", ""
        previous = (rest or before)[-1:]
        stays = sign and not (
            previous
            and (previous.isalnum() or unicodedata.category(previous)[0] == "M" or previous in ")]}+")
        )
        if sign and not stays:
            rest = rest + sign
        left = "".join(char for char in rest if not is_punctuation(char))
        kept = ("-" if stays and sign[0] != "+" else "") + point
        pieces[place] = plainly_apart(rest, left, before, kept, signs) + kept
    return "".join(pieces)


def plainly_apart(rest: str, left: str, before: str, kept: str, signs: str) -> str:
    """What is left of signs before a number, without joining what the dropped ones parted."""
    last, previous = (left or before)[-1:], (before + left)[-2:-1]
    dropped = (rest and is_punctuation(rest[-1])) or len(rest + kept) < len(signs)
    if not left:
        return " " if before.isdecimal() or (kept and rest and in_word(before)) else ""
    if left == "−" and before.isdecimal() and not dropped and not kept:
        return "-"
    if last in "+−":
        return left + (" " if dropped or not (in_word(previous) or previous == "+") else "")
    return left + (" " if dropped and kept and in_word(last) else "")


def in_word(char: str) -> bool:
    return bool(char) and (char.isalnum() or unicodedata.category(char)[0] == "M")


def exact(response: str, target: object) -> bool:
    result = exact_match(ScorerInput(response=response, target=target))
    assert set(result) == {"correct"}
    return bool(result["correct"])


def fuzzy(response: str, target: object, **metadata: object) -> bool:
    return bool(fuzzy_match(ScorerInput(response=response, target=target, metadata=metadata))["correct"])


@pytest.mark.parametrize(
    ("response", "target", "same"),
    [
        ("  Paris.  ", "paris", True),
        ("The Beatles", "beatles", True),
        ("an  apple\n", "Apple", True),
        ("Ｐａｒｉｓ", "paris", True),
        ("ﬁne", "fine", True),
        ("“Paris”…", "paris", True),
        ("café", "cafe\u0301", True),
        ("Paris", "London", False),
        ("theatre", "atre", False),
        ("42", 42, True),
        ("true", True, True),
        # Nothing but articles or punctuation must not become equal to everything of that kind.
        ("A", "A.", True),
        ("the", "A", False),
        ("", "A", False),
        ("?", "!", False),
        ("", "", True),
        ("", "...", False),
        # Values stay what they are.
        ("-5", "5", False),
        ("−5", "-5", True),
        ("–5", "-5", True),
        ("+5", "5", True),
        ("-$5", "-5", True),
        ("$-5.", "-5", True),
        ("(-5)", "5", False),
        ("3.5", "35", False),
        (".5", "5", False),
        ("-.5", ".5", False),
        ("1.2.3", "123", False),
        ("1,000", "1000", True),
        ("1'000'000", "1,000,000", True),
        ("1,5", "15", False),
        ("1,2,3", "1, 2, 3", True),
        ("1/2", "12", False),
        ("10:30", "1030", False),
        ("2*3", "23", False),
        ("1.e-5", "1e5", False),
        ("1.E-5", "1e-5", True),
        ("2$e–5", "2e5", False),
        ("2^3", "23", False),
        ("1914-1918", "19141918", False),
        ("1914–1918", "1914-1918", True),
        ("5(3)", "53", False),
        ("٣٫٥", "٣٥", False),
        ("x<y", "x>y", False),
        ("a=b", "ab", False),
        ("C++", "C", False),
        ("C#", "C", False),
        ("#paris", "Paris", True),
        ("$5", "5", True),
        ("€5", "5", True),
        ("5%", "5", True),
        ("5.", "5", True),
        ("**5**", "5", True),
        ("The Paris.", "paris", True),
        ("Covid-19", "covid19", True),
        ("No.5", "no5", True),
        ("well-known", "wellknown", True),
    ],
)
def test_exact_match(response: str, target: object, same: bool) -> None:
    assert exact(response, target) is same


@given(WILD_TEXT)
@example("e.\u0301")
@example("A")
@example("\x1c a \x1c")
@example("0\x060")
@example("é0\x060")
@example("1.e-5")
@example("é ٣—e−1")
def test_the_quick_normal_form_is_the_plain_one_and_is_stable(text: str) -> None:
    assert normalize_text(text) == plain_normal_form(text)


@given(ANY_TEXT)
@example("e.\u0301")
@example("A?–0")
@example("A?.5")
@example("+,5")
@example("a+,-5")
@example("1e?-5")
@example("½½")
@example("1.e−5")
@example("½-e⁻5")
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalize_text(text)
    assert normalize_text(once) == once


@given(WILD_TEXT, WILD_TEXT)
def test_exact_match_is_symmetric_and_reflexive(first: str, second: str) -> None:
    assert exact(first, second) == exact(second, first) == same_normal_form(first, second)
    assert exact(first, first)


def test_strict_exact_match_compares_as_is() -> None:
    for response, same in [("Paris", True), ("paris", False), ("Paris.", False), (" Paris", False)]:
        sample = ScorerInput(response=response, target="Paris")
        assert exact_match(sample, strict=True) == {"correct": same}
    assert exact_match(ScorerInput(response="42", target=42), strict=True) == {"correct": True}


@given(WILD_TEXT, WILD_TEXT)
def test_fuzzy_match_follows_from_exact_match_and_implies_containment(first: str, second: str) -> None:
    if exact(first, second) and normalize_text(first):
        assert fuzzy(first, second)
    either = ScorerInput(response=first, target=second)
    turned = ScorerInput(response=second, target=first)
    assert fuzzy_match(either, either_way=True)["correct"] == fuzzy_match(turned, either_way=True)["correct"]


@given(st.text(alphabet="abc xyz 015"), st.text(alphabet="abc xyz 015"))
def test_whole_words_are_a_contained_run_of_words(text: str, answer: str) -> None:
    words = [word for word in text.split() if word != "a"] or text.split()
    wanted = [word for word in answer.split() if word != "a"] or answer.split()
    runs = [words[i : i + len(wanted)] for i in range(len(words))]
    assert fuzzy(text, answer) == (bool(wanted) and wanted in runs)
    plain = fuzzy_match(ScorerInput(response=text, target=answer), whole_words=False)["correct"]
    assert plain == (bool(wanted) and " ".join(wanted) in " ".join(words))


@pytest.mark.parametrize(
    ("response", "target", "metadata", "correct"),
    [
        ("The capital is Canberra.", "Canberra", {}, True),
        ("", "Canberra", {}, False),
        ("   ", "", {}, False),
        ("Sydney", "", {}, False),
        ("Sydney", "Canberra", {"correct_answers": ["Melbourne", "sydney"]}, True),
        ("Sydney", "Canberra", {"correct_answers": "sydney"}, True),
        ("Sydney", "Canberra", {"correct_answers": [""]}, False),
        ("It was 1984", None, {"correct_answers": [1984]}, True),
        # The response inside the answer is no answer.
        ("e", "Canberra", {}, False),
        ("Canberra", "the city of Canberra", {}, False),
        # Whole words, however they are separated.
        ("a party", "art", {}, False),
        ("Canberra-based", "Canberra", {}, True),
        ("Paris/London", "Paris", {}, True),
        ("Paris,London", "London", {}, True),
        ("Paris—the capital", "Paris", {}, True),
        ("<answer>Paris</answer>", "Paris", {}, True),
        ("It's gold", "S", {}, False),
        ("Canberra's mayor", "Canberra", {}, True),
        ("It is Canberra’s.", "Canberra", {}, True),
        ("the players' union", "players", {}, True),
        ("the players' union", "player", {}, False),
        ("La capitale de l'Italie", "Italie", {}, True),
        ("Presqu'île", "île", {}, False),
        ("an O'Brien", "Brien", {}, False),
        ("it is 10²", "102", {}, False),
        ("it is 10²", "10^2", {}, True),
        ("50 m² in all", "50 m2", {}, True),
        ("½ of it", "1/2", {}, True),
        ("the U.S.A. won", "USA", {}, True),
        ("a well known man", "well-known", {}, True),
        ("O’Brien did", "O'Brien", {}, True),
        # Numbers are words too.
        ("It is 15", "5", {}, False),
        ("It is 3.5", "5", {}, False),
        ("It is -5", "5", {}, False),
        ("It is 1,500", "500", {}, False),
        ("It is 1,500", "1500", {}, True),
        ("at 10:30", "30", {}, False),
        ("x=5", "5", {}, True),
        ("x<y", "x>y", {}, False),
        ("I use C++", "C", {}, False),
        # No word boundaries: plain containment, but for digits.
        ("首都是北京。", "北京", {}, True),
        ("首都是南京。", "北京", {}, False),
        ("我有15个苹果", "5", {}, False),
        ("我有5个苹果", "5", {}, True),
        ("日本の首都は東京です", "東京", {}, True),
        ("答えはカナダです", "カナダ", {}, True),
        ("เมืองหลวงคือกรุงเทพมหานคร", "กรุงเทพ", {}, True),
        ("มี ๑๕ คน", "๕", {}, False),
        ("ນະຄອນຫຼວງແມ່ນວຽງຈັນ", "ວຽງຈັນ", {}, True),
        ("រាជធានីគឺភ្នំពេញ", "ភ្នំពេញ", {}, True),
        ("မြို့တော်သည်နေပြည်တော်ဖြစ်သည်", "နေပြည်တော်", {}, True),
        ("iPhone手机", "iPhone", {}, True),
        # Korean: particles are written onto the noun.
        ("수도는 서울입니다.", "서울", {}, True),
        ("수도는 서울이다", "울", {}, False),
        # Words in scripts that have them.
        ("Столица — Москва.", "Москва", {}, True),
        ("Москвабад", "Москва", {}, False),
        ("राजधानी दिल्ली है", "दिल्ली", {}, True),
    ],
)
def test_fuzzy_match(response: str, target: object, metadata: dict[str, object], correct: bool) -> None:
    assert fuzzy(response, target, **metadata) is correct


def test_fuzzy_match_options() -> None:
    party = ScorerInput(response="a party", target="art")
    assert fuzzy_match(party, whole_words=False)["correct"] is True
    inside = ScorerInput(response="Canberra", target="the city of Canberra")
    assert fuzzy_match(inside, either_way=True)["correct"] is True
    letter = ScorerInput(response="e", target="Canberra")
    assert fuzzy_match(letter, either_way=True)["correct"] is False
    assert fuzzy_match(letter, either_way=True, whole_words=False)["correct"] is True
    nothing = ScorerInput(response="", target="Canberra")
    assert fuzzy_match(nothing, either_way=True, whole_words=False)["correct"] is False


def test_a_million_combining_marks_take_no_quadratic_time() -> None:
    def compare(pairs: int) -> None:
        marks = "a" + "\u0301\u0323" * pairs
        assert exact(marks, marks + "b") is False

    assert grows_no_faster_than_linearly(compare, 250_000)


def test_includes() -> None:
    sample = ScorerInput(response="Red,  green and BLUE", target=["red", "blue"])
    assert includes_all(sample) == {"correct": True, "missing": []}
    assert includes_any(sample, values=["x", "green"]) == {"correct": True, "extracted": "green"}
    assert includes_all(sample, values=["red", "pink"]) == {"correct": False, "missing": ["pink"]}
    assert includes_any(sample, values=["RED"], case_sensitive=True)["correct"] is False
    for empty in ([], [""], [" "]):  # nothing to look for
        assert includes_all(sample, values=empty) == {"unscored": "no_expected_output"}
        assert includes_any(sample, values=empty) == {"unscored": "no_expected_output"}


def test_includes_keeps_the_values_of_raised_numbers() -> None:
    for text, value, there in [
        ("so 10²", "102", False),
        ("so 10²", "10^2", True),
        ("50 m²", "m2", True),
        ("½ cup", "1/2", True),
        ("5½ cups", "51", False),
    ]:
        sample = ScorerInput(response=text, target=value)
        assert includes_any(sample)["correct"] is includes_all(sample)["correct"] is there


def test_includes_needs_a_target_only_without_values() -> None:
    sample = ScorerInput(response="red", target=None)
    assert includes_any(sample, values=["red"])["correct"] is True
    assert includes_all(sample, values=["red"])["correct"] is True
    assert includes_any(sample) == includes_all(sample) == {"unscored": "no_expected_output"}


@pytest.mark.parametrize(
    ("response", "target"),
    [("1e-5", "1e5"), ("10²", "102"), ("(x+1)²", "x+12"), ("5½", "51/2"), ("10⁻²", "10-2"), ("1e−5", "1e5")],
)
def test_exponents_keep_their_values(response: str, target: str) -> None:
    assert exact_match(ScorerInput(response=response, target=target))["correct"] is False


def test_equal_exponents_are_equal() -> None:
    for response, target in (
        ("1e-5", "1E-5."),
        ("1e−5", "1e-5"),
        ("10²", "10^2"),
        ("½", "1/2"),
        ("5½", "5 1/2"),
        ("m²", "m2"),
    ):
        assert exact_match(ScorerInput(response=response, target=target))["correct"] is True

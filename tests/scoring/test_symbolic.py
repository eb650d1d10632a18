"""Mathematical equality: what is equal, what only looks so, and what must not run."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.growth import grows_no_faster_than_linearly

from evenhand.core.errors import InputError
from evenhand.core.outcome import Failed, Outcome, Scored
from evenhand.scoring.algebra import parse
from evenhand.scoring.apply import score_sample
from evenhand.scoring.symbolic import find_answer, math_equal, same_math
from evenhand.scoring.types import ScorerInput


def scored(response: str, target: str) -> Outcome:
    return score_sample(math_equal, ScorerInput(response=response, target=target))


@pytest.mark.parametrize(
    ("response", "target"),
    [
        ("1/2", "0.5"),
        ("(x+1)^2", "x^2 + 2x + 1"),
        (r"\frac{\sqrt{2}}{2}", r"1/\sqrt{2}"),
        (r"\sin^2 x + \cos^2 x", "1"),
        ("2xy", "2yx"),
        ("a-b", "-(b-a)"),
        (r"\sqrt[3]{8}", "2"),
        (r"\log_2 8", "3"),
        (r"e^{i\pi}+1", "0"),
        ("5!", "120"),
        ("2**10", "1024"),
        ("2^{1/2}", r"\sqrt2"),
        (r"\binom{5}{2}", "10"),
        ("|-3|", "3"),
        ("x_1+x_2", "x_2+x_1"),
        ("(1, 1/2)", "(1.0, 0.5)"),
        (r"\{1, 2\}", r"\{2, 1\}"),
        ("x = 5", "5"),
        ("f(x) = x+1", "1+x"),
        (r"5\text{ cm}", "5"),
        (r"90^\circ", "90"),
        ("1,000", "1000"),
        (r"So the answer is \boxed{\frac{3}{4}}.", "0.75"),
        ("Work...\nAnswer: 2x", "x*2"),
        # What competition graders accept.
        (r"\boxed{32,\!349}", "32349"),
        (r"\boxed{14{,}916}", "14916"),
        (r"\text{(C)}", "C"),
        ("(C)", r"\text{(C)}"),
        (r"x \ge 5", r"x \geq 5"),
        ("x >= 5", r"5 \leq x"),
        (r"5\frac{1}{2}", "5.5"),
        ("5 1/2", r"\frac{11}{2}"),
        (r"2\tfrac12", "2.5"),
        ("204_5", "204_{5}"),
        ("204", "204_5"),
        (r"15\mbox{ cm}^2", "15"),
        ("15", r"15\text{ cm}^2"),
        ("15 square centimeters", r"15\mbox{ cm}^2"),
        ("64 square feet", "64"),
        ("10 divisors", "10"),
        (r"So $\boxed{9}$ divisors", "9"),
        ("1e-3", "0.001"),
        (r"0.\overline{3}", "1/3"),
        ("1.2(34)", r"\frac{611}{495}"),
        (r"50\%", "50"),
        ("0.5", r"50\%"),
        ("50 percent", r"50\%"),
        ("90 degrees", r"90^\circ"),
        (r"[0, 1)", r"\left[0,1\right)"),
        (r"(-\infty, 2) \cup (3, \infty)", r"(-\infty,2)\cup(3,\infty)"),
        ("1, -2", "-2,1"),
        (r"\{-2, 1\}", "1,-2"),
        (r"1 \text{ and } 2", "1,2"),
        (r"$1$ and $2$", "1,2"),
        (r"\boxed{1} and \boxed{2}", "2, 1"),
        (r"1 \pm \sqrt{19}", r"1+\sqrt{19}, 1-\sqrt{19}"),
        (r"\begin{pmatrix} 1 & 2 \\ 3 & 4 \end{pmatrix}", r"\begin{bmatrix}1&2\\3&4\end{bmatrix}"),
        ("y = 2x + 1", "2x - y + 1 = 0"),
        (r"x \in [-2,7]", "[-2,7]"),
        ("(12, 102)", "(12,102)"),
        ("0.0833333333333333", r"\frac{1}{12}"),
        ("The total is 42.", "42"),
        ("First $x=3$, so the final answer is $7$.", "7"),
        (r"We get \boxed{5}. Wait. The final answer is 6.", "6"),
        ("Evelyn", r"\text{Evelyn}"),
        (r"\boxed{\frac{1}{2}x}", r"\frac{x}{2}"),
        (r"\boxed{\frac{1}{2x}}", r"\frac{1}{2}\cdot\frac{1}{x}"),
        (r"\boxed{\frac{1}{2}^\circ}", "0.5"),
        (r"\boxed{\sqrt51}", r"\sqrt{5}"),
        (r"\boxed{3\mathrm{i}}", "3i"),
        (r"\boxed{60\text{ miles per hour}}", "60"),
        (r"\boxed{60\text{ m/s}}", "60"),
        (r"\boxed{5 million}", r"5\text{ million}"),
        (r"\boxed{AB = 5}", "5"),
        (r"\boxed{a_{10} = 5}", "5"),
        (r"\boxed{\theta = 5}", "5"),
        (r"\boxed{f(-1) = 5}", "5"),
        (r"\boxed{P(A|B) = 1/2}", "0.5"),
        (r"\boxed{x = 1, 2}", "2, 1"),
    ],
)
def test_equal(response: str, target: str) -> None:
    assert scored(response, target) == Scored(value=1.0, extracted=find_answer(response))


@pytest.mark.parametrize(
    ("response", "target"),
    [
        ("3.14159", r"\pi"),
        ("0.333", "1/3"),
        ("x^2", "x^3"),
        ("x", "y"),
        ("x=5", "y=5"),
        ("(1,2)", "(2,1)"),
        ("[0,1)", "[0,1]"),
        ("listen", "silent"),
        ("no", "on"),
        ("10^30+1", "10^30"),
        ("1/0", "2"),
        ("", "1"),
        ("no idea", "1"),
        ("51/2", r"5\frac{1}{2}"),
        ("5 1/2", "51/2"),
        ("1 2", "12"),
        ("42", "52_8"),
        ("52_4", "52_8"),
        (r"15\mbox{ cm}^4", r"15\mbox{ cm}^2"),
        ("15 m", "15 cm"),
        ("0.333", r"0.\overline{3}"),
        ("5", r"50\%"),
        (".0000670", ".0000672"),
        (
            r"\begin{pmatrix} -1 & 8 \\ 0 & -1 \end{pmatrix}",
            r"\begin{pmatrix} -1 & 0 \\ 0 & -1 \end{pmatrix}",
        ),
        (r"\begin{pmatrix} 1 & 2 \end{pmatrix}", r"\begin{pmatrix} 1 \\ 2 \end{pmatrix}"),
        (r"x > 5", r"x \geq 5"),
        ("(3,1)", "(1,3)"),
        ("1,2,3", "1,2"),
        ("D", r"\text{(C)}"),
        ("(A), (B), (C)", "C"),
        ("way no", "no way"),
        ("Evelyn and Debra", r"\text{Evelyn}"),
        ("0, 1, 2, 3, 4, 5", "5"),
        # What stands beside a fraction or a root is no part of it.
        (r"\boxed{\frac{1}{2}x}", r"\frac{1}{2x}"),
        (r"\boxed{\frac{a}{b}c}", r"\frac{a}{bc}"),
        (r"\boxed{\frac{1}{2}5}", "1/25"),
        (r"\boxed{\frac{1}{2}\frac{3}{4}}", "1/23/4"),
        (r"\boxed{\sqrt51}", r"\sqrt{51}"),
        # Rows of a matrix are apart.
        (r"\boxed{\begin{pmatrix}1\\2\end{pmatrix}}", r"\begin{pmatrix}12\end{pmatrix}"),
        (r"\boxed{\begin{pmatrix}1&2\\3&4\end{pmatrix}}", r"\begin{pmatrix}1&23&4\end{pmatrix}"),
        (r"\boxed{1\\2}", "12"),
        # Words that are no units.
        (r"\boxed{5 million}", "5"),
        (r"\boxed{5}", "5 million"),
        (r"\boxed{5 hundred}", "5"),
        (r"\boxed{2\text{ dozen}}", "2"),
        (r"\boxed{5 squared}", "5"),
        (r"\boxed{5\text{ factorial}}", "5"),
        (r"\boxed{5\text{ plus 3}}", "5"),
        (r"\boxed{5\text{ is wrong}}", "5"),
        (r"\boxed{3\mathrm{i}}", "3"),
        (r"\boxed{\text{not } 5}", "5"),
        (r"\boxed{5m}", "5"),
        # Only a name left of "=" has no value of its own.
        (r"\boxed{2x=10}", "10"),
        (r"\boxed{10}", "2x=10"),
        (r"\boxed{x^2=25}", "25"),
        (r"\boxed{-x=5}", "5"),
        (r"\boxed{x-5=0}", "0"),
        (r"\boxed{x+y=5}", "5"),
        (r"\boxed{5}", "x+y=5"),
        (r"\boxed{xy=6}", "6"),
        (r"\boxed{x(x+1)=6}", "6"),
    ],
)
def test_different(response: str, target: str) -> None:
    assert scored(response, target) == Scored(value=0.0, extracted=find_answer(response))


@pytest.mark.parametrize(
    "hostile",
    [
        "__import__('os').system('touch /tmp/evenhand-was-here')",
        "().__class__.__bases__[0]",
        "9^9^9",
        "(10^99)^(10^99)",
        "100000000!",
        "((((x+1)^99+1)^99+1)^99+1)^99",
        "exp(exp(exp(exp(10))))",
        "x^" * 100 + "x",
        "(" * 1000,
        "x" * 100_000,
        "9" * 5_000,
        r"\frac{" * 300,
        "\\boxed{" * 5_000,
        "sin(" * 39 + "1" + ")" * 39,
        "tan(tan(tan(tan(10^99))))",
    ],
)
def test_hostile_answers_come_to_an_end_and_run_nothing(hostile: str) -> None:
    found = scored(hostile, "1")
    assert isinstance(found, Scored)
    assert found.value == 0.0
    # What could not be decided within the limits is told.
    assert set(found.details) <= {"undecided"}


def test_an_answer_that_exhausts_its_time_is_wrong_and_a_target_that_does_is_a_failure() -> None:
    endless = "((((x+1)^99+1)^99+1)^99+1)^99 + " + "+".join(f"x^{n}" for n in range(2, 40))
    found = scored(endless, "x+1")
    assert isinstance(found, Scored)
    assert found.value == 0.0
    assert found.details["undecided"] in ("scorer_timeout", "scorer_crash")
    data_fault = scored("x+1", endless)
    assert isinstance(data_fault, Failed)
    assert data_fault.error in ("scorer_timeout", "scorer_crash")


def test_half_a_character_is_wrong_and_no_error() -> None:
    for text in ("\ud800", "\\boxed{\ud800}", "x+\udfff"):
        assert math_equal(ScorerInput(response=text, target="x^2"))["correct"] is False


def test_looking_for_the_last_number_takes_linear_time() -> None:
    prose = "I think the cat sat on the mat. "
    # Only the last 10,000 characters are looked at, so that a single answer could hide a quadratic cost.
    assert grows_no_faster_than_linearly(
        lambda size: [find_answer(prose * (size // len(prose))) for _ in range(5)], 10_000
    )


@given(st.text(alphabet="0123456789xyz+-*/^()!|\\{}_[]. frac"))
def test_the_parser_gives_a_tree_or_an_input_error(text: str) -> None:
    with suppress(InputError):
        assert parse(text)


EXPRESSIONS = st.recursive(
    st.integers(-9, 9).map(str) | st.sampled_from(["x", "y"]),
    lambda inner: st.tuples(inner, st.sampled_from(["+", "-", "*"]), inner).map(
        lambda t: f"({t[0]}{t[1]}{t[2]})"
    ),
    max_leaves=6,
)


@given(EXPRESSIONS, EXPRESSIONS)
@settings(max_examples=40)
def test_equality_is_reflexive_symmetric_and_respects_rewriting(first: str, second: str) -> None:
    assert same_math(first, f"0 + 1*({first})")
    assert same_math(first, second) == same_math(second, first)
    assert same_math(f"({first})*({second})", f"({second})({first})")

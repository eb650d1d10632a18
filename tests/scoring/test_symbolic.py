"""Mathematical equality: what is equal, what only looks so, and what must not run."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
    assert found == Scored(value=0.0, extracted=find_answer(hostile)) or (
        isinstance(found, Failed) and found.error in ("scorer_timeout", "scorer_crash")
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

"""Prompt templates hold column names and nothing that runs."""

import pytest

from evenhand.benchmarks.template import Template
from evenhand.core.errors import InputError, OptionError


def test_columns_are_filled_in() -> None:
    template = Template("{question}\n\nChoices: {choices} {n}")
    assert template.columns == ("question", "choices", "n")
    assert (
        template.render({"question": "Why?", "choices": ["a", "b"], "n": 3}) == 'Why?\n\nChoices: ["a","b"] 3'
    )


def test_doubled_braces_are_braces() -> None:
    assert Template('Reply as {{"x": {n}}}').render({"n": 1}) == 'Reply as {"x": 1}'


def test_values_are_not_templates_themselves() -> None:
    assert Template("{a}").render({"a": "{b} {a.__class__}", "b": "no"}) == "{b} {a.__class__}"


@pytest.mark.parametrize("text", ["{a.__class__}", "{a[0]}", "{a!r}", "{a:>10}"])
def test_python_formatting_is_only_an_odd_column_name(text: str) -> None:
    """`str.format` would reach into the value; here the column simply does not exist."""
    with pytest.raises(InputError, match="needs the column"):
        Template(text).render({"a": "secret"})


@pytest.mark.parametrize("text", ["{", "}", "{}", "{ }", "a } b", "{a\nb}"])
def test_a_lone_brace_is_found_at_once(text: str) -> None:
    with pytest.raises(OptionError, match="lone"):
        Template(text)


def test_a_missing_column_names_the_nearest() -> None:
    with pytest.raises(InputError, match=r"'qestion'.*did you mean 'question'\?.*columns: answer, question"):
        Template("{qestion}").check({"question", "answer"})


@pytest.mark.parametrize("text", ['Answer {q} as {"answer": 1}', r"What is \frac{a}{b}?"])
def test_literal_braces_get_a_hint(text: str) -> None:
    with pytest.raises(InputError, match=r"write \{\{ and \}\} where braces are meant as braces"):
        Template(text).render({"q": "one"})
    with pytest.raises(InputError, match="did you mean 'question'"):
        Template("{questoin}").render({"question": "one"})

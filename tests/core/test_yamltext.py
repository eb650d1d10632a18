"""YAML as people write it, and what must not pass in silence."""

import pytest
import yaml

from evenhand.core import yamltext


@pytest.mark.parametrize(
    "text",
    [
        "a: 1\nb: {a: 2}\n1: x\n'1': y\n",
        "z: &z {x: 1}\ndeep: {deeper: &a {<<: *z, x: 2}}\nb: {<<: *a, x: 3}\n",
        "[1, 2.5, null, true, text]",
        "",
    ],
)
def test_the_same_as_the_safe_loader(text: str) -> None:
    assert yamltext.load(text) == yaml.safe_load(text)


@pytest.mark.parametrize(
    ("text", "key", "line"),
    [
        ("a: 1\nb: 2\na: 3\n", "a", 3),
        ("x:\n  - {b: 1, c: 2, 'b': 3}\n", "b", 2),
        ('{"a": 1, "a": 1}', "a", 1),
    ],
)
def test_a_key_that_is_there_twice_is_refused_with_its_line(text: str, key: str, line: int) -> None:
    with pytest.raises(yaml.MarkedYAMLError) as caught:
        yamltext.load(text)
    assert caught.value.problem == f"duplicate key '{key}'"
    assert caught.value.problem_mark is not None
    assert caught.value.problem_mark.line + 1 == line


def test_nothing_but_plain_values_is_made() -> None:
    with pytest.raises(yaml.YAMLError):
        yamltext.load("!!python/object/apply:os.getcwd []")

"""What tells two scorers apart: what decides grades, and nothing else."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from evenhand import exact_match, fuzzy_match
from evenhand.scoring.fingerprint import fingerprint

BENCH = '''
from evenhand import benchmark, fuzzy_match, scorer

def tidy(text):
    return text.strip()

@benchmark(name="b", dataset=list, prompt="{prompt}")
@scorer
def grade(sample):
    """Grade it."""
    {body}
    return fuzzy_match(sample)
'''


@pytest.fixture
def load(tmp_path: Path) -> object:
    def made(text: str, name: str = "user_bench") -> ModuleType:
        path = tmp_path / f"{name}{len(list(tmp_path.iterdir()))}.py"
        path.write_text(text)
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
        return module

    return made


def bench(load: object, prompt: str = "Q {q}", body: str = "sample.response") -> object:
    module = load(BENCH.replace("{prompt}", prompt).replace("{body}", body))  # type: ignore[operator]
    return fingerprint(module.grade.scorer)


def test_the_prompt_of_a_benchmark_is_no_part_of_its_scorer(load: object) -> None:
    assert bench(load, prompt="Q {q}") == bench(load, prompt="Answer briefly: {q}")


def test_what_the_function_does_is(load: object) -> None:
    assert bench(load, body="x = 1") != bench(load, body="x = 2")


def test_comments_and_layout_are_not(load: object) -> None:
    assert bench(load, body="x = 1  # one") == bench(load, body="x   =   1")


def test_a_helper_of_the_users_is_part_of_it(load: object) -> None:
    using = BENCH.replace("{prompt}", "q").replace("{body}", "tidy(sample.response)")
    other = using.replace("return text.strip()", "return text.lower()")
    one, two = (load(text).grade.scorer for text in (using, other))  # type: ignore[operator]
    assert fingerprint(one) != fingerprint(two)


def test_the_version_of_a_scorer_that_is_called_is_part_of_it(load: object) -> None:
    """A user's function that calls `fuzzy_match` grades differently when `fuzzy_match` does."""
    [call] = [one for one in bench(load)["calls"] if one[0] == "fuzzy_match"]  # type: ignore[index]
    assert call[1]["version"] == fuzzy_match.version


def test_a_scorer_that_is_called_through_its_module_is_found_too(load: object) -> None:
    text = (
        "import evenhand\n\n@evenhand.scorer\ndef grade(sample):\n    return evenhand.exact_match(sample)\n"
    )
    found = fingerprint(load(text).grade)  # type: ignore[operator]
    assert found["calls"] == [["exact_match", fingerprint(exact_match)]]


def test_scorers_of_the_package_are_told_by_version_and_options() -> None:
    assert fingerprint(fuzzy_match) == fuzzy_match.identity
    assert fingerprint(fuzzy_match.with_options({"whole_words": False})) != fingerprint(fuzzy_match)

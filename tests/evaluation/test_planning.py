"""The plan: which problems, pinned before the first call."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.evaluation.runs import doubles

from evenhand.core.errors import InputError, OptionError
from evenhand.datasets.sources import FunctionSource, open_source
from evenhand.evaluation.config import Selection
from evenhand.evaluation.planning import Planned, ProblemFile, plan


def planned(tmp_path: Path, count: int = 20, **options: Any) -> tuple[Planned, list[int]]:
    spec = doubles(count)
    assert callable(spec.dataset)
    found = plan(spec, FunctionSource(spec.dataset), Selection(**options), None, tmp_path / "p")
    problems = ProblemFile(tmp_path / "p")
    indices = [problem.index for problem in problems]
    assert [problems[place].index for place in range(len(problems))] == indices
    problems.close()
    return found, indices


def test_all_problems_in_order(tmp_path: Path) -> None:
    found, indices = planned(tmp_path)
    assert indices == list(range(20))
    assert (found.problems, found.available) == (20, 20)


def test_the_first_ones(tmp_path: Path) -> None:
    found, indices = planned(tmp_path, max_problems=5)
    assert indices == [0, 1, 2, 3, 4]
    assert (found.problems, found.available) == (5, 20)


def test_a_random_choice_is_the_same_for_the_same_seed_and_spread_out(tmp_path: Path) -> None:
    chosen = [planned(tmp_path, count=1000, max_problems=50, shuffle_seed=seed)[1] for seed in (1, 1, 2)]
    assert chosen[0] == chosen[1] == sorted(chosen[0])
    assert chosen[0] != chosen[2]
    assert len(set(chosen[0])) == 50
    # 50 of 1,000 without replacement: the mean has a standard deviation of 288.7·√(0.95/50) = 39.8.
    assert abs(sum(chosen[0]) / 50 - 499.5) < 5 * 39.8


def test_shards_divide_the_chosen_problems(tmp_path: Path) -> None:
    parts = [planned(tmp_path, max_problems=10, shuffle_seed=3, shard=(n, 3))[1] for n in (1, 2, 3)]
    whole = planned(tmp_path, max_problems=10, shuffle_seed=3)[1]
    assert sorted(number for part in parts for number in part) == whole
    assert {len(part) for part in parts} == {3, 4}
    with pytest.raises(InputError, match="fewer problems than shards"):
        planned(tmp_path, max_problems=2, shard=(3, 3))
    with pytest.raises(OptionError, match="no shard 4 of 3"):
        Selection(shard=(4, 3))


def test_the_dataset_hash_sees_every_row_and_not_the_choice(tmp_path: Path) -> None:
    full, few, other = (
        planned(tmp_path)[0],
        planned(tmp_path, max_problems=2)[0],
        planned(tmp_path, count=21)[0],
    )
    assert full.dataset_sha256 == few.dataset_sha256 != other.dataset_sha256
    assert full.problems_sha256 != few.problems_sha256


def test_a_bad_line_of_a_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"n": 1, "target": "2"}\n{"n": 2, "targ\n')
    with pytest.raises(InputError, match=r"rows\.jsonl:2: "):
        plan(doubles(), open_source(path), Selection(), None, tmp_path / "p")
    path.write_text('{"n": 1, "target": "2"}\n{"m": 2, "target": "4"}\n')
    with pytest.raises(InputError, match=r"rows\.jsonl:2: the prompt needs the column 'n'"):
        plan(doubles(), open_source(path), Selection(), None, tmp_path / "p")
    path.write_text("")
    with pytest.raises(InputError, match="no rows to ask"):
        plan(doubles(), open_source(path), Selection(), None, tmp_path / "p")


def test_sources(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("n,target\n1,2\n")
    assert [row.values for row in open_source("data.csv", home=tmp_path).rows()] == [
        {"n": "1", "target": "2"}
    ]
    with pytest.raises(OptionError, match="is not a dataset"):
        open_source("s3://bucket/x")
    with pytest.raises(OptionError, match="unknown option 'splt'"):
        open_source("hf://a/b?splt=test")
    with pytest.raises(OptionError, match="names no dataset"):
        open_source("hf://?split=test")

    def broken() -> Any:
        yield {"n": 1}
        raise RuntimeError("gone")

    with pytest.raises(InputError, match="function broken: raised RuntimeError: gone"):
        list(open_source(broken).rows())
    with pytest.raises(InputError, match="a row is int, not a dict"):
        list(open_source(lambda: [1]).rows())  # type: ignore[list-item]  # what it is about


def test_the_hub_without_its_library_says_what_to_install() -> None:
    """None in `sys.modules` is how Python itself marks a package that must not be found."""
    program = (
        "import sys; sys.modules['datasets'] = None\n"
        "from evenhand.datasets.sources import open_source\n"
        "list(open_source('hf://org/name?split=test').rows())"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert "MissingExtra" in done.stderr
    assert "pip install 'evenhand[hf]'" in done.stderr


def test_the_hub_through_its_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A local folder named like a dataset is read by the library itself; what is not there says how to fetch it."""
    folder = tmp_path / "org" / "name"
    folder.mkdir(parents=True)
    (folder / "test.jsonl").write_text('{"n": 1, "target": "2"}\n')
    monkeypatch.chdir(tmp_path)
    assert [row.values for row in open_source("hf://org/name?split=test").rows()] == [{"n": 1, "target": "2"}]
    with pytest.raises(InputError, match=r"load_dataset\('org/gone', 'main', split='test'\)"):
        list(open_source("hf://org/gone?config=main&split=test").rows())

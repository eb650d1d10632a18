"""`evenhand compare`, `gate` and `import` on files of other tools, on scores.jsonl and on experiments."""

import json
from pathlib import Path
from typing import Any

import pytest
from tests.evaluation.runs import evenhand
from tests.service import ADMIN, ServiceUnderTest

from evenhand.results import read_run


@pytest.fixture
def promptfoo(shared_data: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Two files of one prompt each on the same 40 tests: the second fails five that the first passes."""
    file = json.loads((shared_data / "peers" / "promptfoo" / "results.json").read_bytes())
    model = file["results"]["results"][0]
    paths = []
    for name, failing in (("before", range(30, 40)), ("after", [*range(25, 40)])):
        rows = []
        for number in range(40):
            row = json.loads(json.dumps(model))
            row["testIdx"], row["testCase"]["description"] = number, f"case {number}"
            row["success"] = number not in failing
            row["score"] = float(row["success"])
            rows.append(row)
        file["results"]["results"] = rows
        file["results"]["prompts"] = []
        path = tmp_path / f"{name}.json"
        path.write_text(json.dumps(file))
        paths.append(path)
    return paths[0], paths[1]


def compared(*arguments: Any) -> list[dict[str, Any]]:
    done = evenhand("compare", *arguments, "--format", "json")
    assert done.returncode == 0, done.stderr
    found: list[dict[str, Any]] = json.loads(done.stdout)["comparisons"]
    return found


def test_two_promptfoo_files(promptfoo: tuple[Path, Path]) -> None:
    """30 of 40 against 25 of 40, paired: five tests fell, none rose."""
    [found] = compared(*promptfoo, "--scorer", "pass")
    assert found["benchmark"] == "offline echo · pass"
    assert (found["base"]["mean"]["value"], found["candidate"]["mean"]["value"]) == (0.75, 0.625)
    assert (found["improved"], found["regressed"], found["unchanged"]) == (0, 5, 35)


def test_without_a_scorer_there_is_one_row_for_each(promptfoo: tuple[Path, Path]) -> None:
    assert [found["benchmark"] for found in compared(*promptfoo)] == [
        "offline echo · pass",
        "offline echo · score",
    ]


def test_an_unknown_scorer_is_named(promptfoo: tuple[Path, Path]) -> None:
    done = evenhand("compare", *promptfoo, "--scorer", "pas")
    assert done.returncode != 0
    assert "pass" in done.stderr


def test_imported_folders_compare_as_the_files_do(promptfoo: tuple[Path, Path], tmp_path: Path) -> None:
    for path in promptfoo:
        assert evenhand("import", path, "-o", tmp_path / path.stem).returncode == 0
    [folder] = (tmp_path / "before").iterdir()
    assert sum(sample.reward or 0 for sample in read_run(folder / "pass").samples) == 30
    from_folders = compared(*(next((tmp_path / path.stem).iterdir()) / "pass" for path in promptfoo))
    from_files = compared(*promptfoo, "--scorer", "pass")
    for name in ("verdict", "improved", "regressed"):
        assert from_folders[0][name] == from_files[0][name]


def test_a_gate_on_two_files(promptfoo: tuple[Path, Path], tmp_path: Path) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text(
        "version: 1\nbenchmarks:\n  'offline echo · pass': {tier: critical, metric: mean_reward, max_drop: 0.01}\n"
    )
    done = evenhand("gate", *promptfoo, "--scorer", "pass", "--policy", policy, "--format", "json")
    assert done.returncode in (1, 2), done.stderr
    assert json.loads(done.stdout)["verdict"] != "GO"
    same = evenhand("gate", promptfoo[0], promptfoo[0], "--scorer", "pass", "--policy", policy)
    assert "offline echo · pass" in same.stdout


def test_the_output_of_score_compares_by_id(tmp_path: Path) -> None:
    """24 rows; the second file answers the fifth question rightly and lists the rows backwards."""
    rows = [{"id": f"r{n}", "response": "yes" if n % 3 else "no", "target": "yes"} for n in range(24)]
    better = [dict(row, response="yes") if row["id"] == "r3" else row for row in reversed(rows)]
    for name, data in (("a", rows), ("b", better)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in data))
        assert (
            evenhand(
                "score", tmp_path / f"{name}.jsonl", "--scorer", "exact_match", "-o", tmp_path / name
            ).returncode
            == 0
        )
    [found] = compared(tmp_path / "a", tmp_path / "b" / "scores.jsonl")
    assert (found["improved"], found["regressed"]) == (1, 0)


def test_scores_without_ids_compare_by_line_and_say_so(tmp_path: Path) -> None:
    line = '{{"line":{},"scores":{{"s":{{"status":"scored","value":{}}}}}}}\n'
    for name, shift in (("a", 0), ("b", 1)):
        values = [(n + shift) % 2 for n in range(12)]
        (tmp_path / f"{name}.jsonl").write_text("".join(line.format(n + 1, v) for n, v in enumerate(values)))
    done = evenhand("compare", tmp_path / "a.jsonl", tmp_path / "b.jsonl")
    assert done.returncode == 0, done.stderr
    assert "paired by the numbers of their lines" in done.stderr


def test_an_import_reaches_a_service_and_its_experiments_compare(
    promptfoo: tuple[Path, Path], service: ServiceUnderTest
) -> None:
    env = {"EVENHAND_TOKEN": ADMIN}
    ids = []
    for path in promptfoo:
        done = evenhand("import", path, "--to", service.url, "--format", "json", env=env)
        assert done.returncode == 0, done.stderr
        [sent] = json.loads(done.stdout)["experiments"]
        assert sent["runs"] == 40
        ids.append(sent["experiment_id"])
    addresses = [f"{service.url}/experiments/{one}" for one in ids]
    done = evenhand("compare", *addresses, "--scorer", "pass", "--format", "json", env=env)
    assert done.returncode == 0, done.stderr
    [found] = json.loads(done.stdout)["comparisons"]
    [from_files] = compared(*promptfoo, "--scorer", "pass")
    for name in ("improved", "regressed", "unchanged"):
        assert found[name] == from_files[name]
    assert found["delta"] == from_files["delta"]
    assert [found["base"]["name"], found["candidate"]["name"]] == addresses
    refused = evenhand("compare", addresses[0], f"{service.url}/nothing", env=env)
    assert "names no experiment" in refused.stderr


def test_scores_by_other_options_are_not_compared(tmp_path: Path) -> None:
    rows = "".join(
        json.dumps({"id": n, "response": "Yes" if n % 2 else "no", "target": "yes"}) + "\n" for n in range(8)
    )
    (tmp_path / "rows.jsonl").write_text(rows)
    for name, spec in (("a", "exact_match"), ("b", "exact_match:strict=true"), ("c", "exact_match")):
        done = evenhand("score", tmp_path / "rows.jsonl", "--scorer", spec, "-o", tmp_path / name)
        assert done.returncode == 0, done.stderr
    refused = evenhand("compare", tmp_path / "a", tmp_path / "b")
    assert refused.returncode == 65
    assert "the scorer or its version" in refused.stderr
    assert evenhand("compare", tmp_path / "a", tmp_path / "c").returncode == 0

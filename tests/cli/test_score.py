"""`evenhand score` as a person uses it: files in, tables and scores out, one sentence when something is wrong."""

import csv
import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from evenhand.cli.app import main
from evenhand.integrations.scores_file import ScoresFile

ROOT = Path(__file__).resolve().parents[2]
CAPITALS = ROOT / "examples" / "capitals.jsonl"


def score(*args: str | Path) -> subprocess.CompletedProcess[str]:
    """The command in this process: its exit status and what it printed."""
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as ended:
        main(["score", *map(str, args)])
    assert isinstance(ended.value.code, int)
    return subprocess.CompletedProcess([], ended.value.code, out.getvalue(), err.getvalue())


def report(*args: str | Path) -> Any:
    done = score(*args, "--format", "json")
    assert done.returncode in (0, 1), done.stderr
    return json.loads(done.stdout)


def write(path: Path, *rows: Any) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def lines(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_the_shipped_example(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "evenhand", "score", str(CAPITALS)]
    options = ["--scorer", "exact_match", "--scorer", "fuzzy_match", "-o", str(tmp_path)]
    done = subprocess.run([*command, *options], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    # 13 of 23 right; Wilson's interval for 13/23 is (0.3681, 0.7437).
    assert "0.5652 [0.3681, 0.7437]" in done.stdout
    assert "unscored: no_expected_output 1" in done.stdout
    assert "by category" in done.stdout
    assert "\x1b" not in done.stdout
    written = lines(tmp_path / "scores.jsonl")
    assert len(written) == 24
    assert written[0]["id"] == "fr"
    assert written[0]["scores"]["exact_match"]["value"] == 1.0
    assert written[-1]["scores"]["exact_match"]["status"] == "unscored"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["scores.jsonl", "scores.scorers.json"]


def test_counts_close_and_categories_add_up(tmp_path: Path) -> None:
    found = report(CAPITALS, "--scorer", "exact_match", "-o", tmp_path)["scorers"][0]
    assert found["n"] == found["scored"] + found["unscored"] + found["failed"] == 24
    assert sum(part["n"] for part in found["categories"].values()) == 24
    assert found["method"] == "wilson"
    assert (found["name"], found["version"], found["options"]) == ("exact_match", "3", {"strict": False})


def test_csv_and_parquet_give_what_jsonl_gives(tmp_path: Path) -> None:
    rows = [
        {"reply": "The answer is 4.0", "gold": "4", "kind": "x"},
        {"reply": "5", "gold": "6", "kind": "y"},
    ]
    write(tmp_path / "a.jsonl", *rows)
    with (tmp_path / "a.csv").open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, fieldnames=list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "a.parquet")
    fields = ["--response-field", "reply", "--target-field", "gold", "--category-field", "kind"]
    reports = [
        report(tmp_path / name, "--scorer", "numeric_match", *fields)["scorers"]
        for name in ("a.jsonl", "a.csv", "a.parquet")
    ]
    assert reports[0] == reports[1] == reports[2]
    assert reports[0][0]["mean"] == 0.5
    assert set(reports[0][0]["categories"]) == {"x", "y"}


def test_options_of_scorers(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", {"response": "about 3.15; {1,2}", "target": "3.14"})
    (tmp_path / "schema.json").write_text('{"type": "object"}', encoding="utf-8")
    found = report(
        path,
        *("--scorer", "numeric_tolerance:abs=2,rel=0"),
        *("--scorer", "numeric_tolerance:abs=0.001,rel=0"),
        *("--scorer", r"regex_match:pattern=\{\d{1,2},\d\},flags=i"),
        *("--scorer", f"json_schema:schema=@{tmp_path / 'schema.json'}"),
    )
    means = {part["scorer"]: part["mean"] for part in found["scorers"]}
    assert means == {
        "numeric_tolerance:abs=2,rel=0": 1.0,
        "numeric_tolerance:abs=0.001,rel=0": 0.0,
        r"regex_match": 1.0,
        "json_schema": 0.0,
    }


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("exactmatch", "did you mean exact_match"),
        ("numeric_tolerance:abs=x", "option 'abs'"),
        ("numeric_tolerance:abs=-1", "option 'abs' must be a number from 0 up"),
        ("numeric_tolerance:abs", "expected option=value"),
        ("exact_match:x=1", "no option 'x'"),
        ("regex_match", "--scorer regex_match:pattern=..."),
        ("regex_match:pattern=(", "invalid pattern"),
        ("json_schema:schema=@/nowhere.json", "No such file"),
        ('json_schema:schema={"type": "x"}', "invalid JSON schema"),
        ("nowhere.py:f", "no such file"),
    ],
)
def test_a_bad_scorer_is_one_sentence_and_exit_2(tmp_path: Path, spec: str, message: str) -> None:
    path = write(tmp_path / "a.jsonl", {"response": "a", "target": "a"})
    done = score(path, "--scorer", spec)
    assert done.returncode in (64, 65, 66, 74)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == [path]


def test_a_bad_line_stops_with_file_line_and_reason_and_writes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"response": "a", "target": "a"}\n{"response": \n')
    done = score(path, "--scorer", "exact_match")
    assert done.returncode in (64, 65, 66, 74)
    assert f"{path}:2: invalid JSON" in done.stderr
    assert list(tmp_path.iterdir()) == [path]


def test_skip_invalid_counts_and_names_the_lines(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(
        b'{"response": "a", "target": "a"}\nnope\n{"target": "a"}\n{"response": "b", "target": "a"}\n'
    )
    found = report(path, "--scorer", "exact_match", "--skip-invalid")
    assert (found["rows"], found["skipped"]) == (2, 2)
    assert [skip["line"] for skip in found["skipped_lines"]] == [2, 3]
    assert found["scorers"][0]["mean"] == 0.5


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "no rows"),
        (b'{"text": "a"}\n', "there is no field response or model_response or output; the row has: text"),
        (b"[]\n", "expected a JSON object, found an array"),
    ],
)
def test_bad_input_says_what_to_do(tmp_path: Path, data: bytes, message: str) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(data)
    done = score(path, "--scorer", "exact_match")
    assert done.returncode in (64, 65, 66, 74)
    assert message in done.stderr


def test_no_file_and_no_scorer(tmp_path: Path) -> None:
    assert "no such file" in score(tmp_path / "none.jsonl", "--scorer", "exact_match").stderr
    assert "give a FILE" in score(CAPITALS).stderr
    assert "exact_match" in score("--list").stdout


def test_scores_never_replace_something_else(tmp_path: Path) -> None:
    own = write(tmp_path / "scores.jsonl", {"response": "a", "target": "a"})
    before = own.read_bytes()
    assert "would replace the file they are made from" in score(own, "--scorer", "exact_match").stderr
    other = write(tmp_path / "a.jsonl", {"response": "a", "target": "a"})
    assert "holds no scores" in score(other, "--scorer", "exact_match").stderr
    assert own.read_bytes() == before
    assert score(other, "--scorer", "exact_match", "-o", tmp_path / "new.jsonl").returncode == 0
    assert score(other, "--scorer", "exact_match", "-o", tmp_path / "new.jsonl").returncode == 0


HOSTILE = [
    "[" * 100_000 + "]" * 100_000,
    "9" * 5_000,
    '{"a": NaN}',
    '{"a": "\\ud800"}',
    "a\x00b",
    "",
    " ",
    "a" + "\u0301\u0323" * 20_000,
    "\u202e\x1b[31mred",
    "a cut emoji \ud83d",
    None,
    {"nested": [1, 2]},
    10**30,
]


def test_hostile_outputs_never_stop_the_batch(tmp_path: Path) -> None:
    path = write(tmp_path / "a.jsonl", *({"response": text, "target": "a 1"} for text in HOSTILE))
    names = [
        "exact_match", "fuzzy_match", "multichoice_regex", "answer_line", "numeric_match", "levenshtein", "token_f1",
        "rouge_l", "bleu", "list_match", "json_diff", "includes_any", "tool_call_match", "json_schema:schema=true",
        "embedding_similarity:embed=char_ngrams", "regex_match:pattern=(a+)+$",
    ]  # fmt: skip
    found = report(path, *(part for name in names for part in ("--scorer", name)))
    for part in found["scorers"]:
        assert part["n"] == len(HOSTILE)
        # "a 1" is no expectation about tool calls; elsewhere only the response that is not there is unscored.
        assert part["unscored"] == (len(HOSTILE) if part["scorer"] == "tool_call_match" else 1)
    schema = next(part for part in found["scorers"] if part["scorer"] == "json_schema")
    assert schema["failed"] == 0


def test_a_scorer_of_ones_own_that_raises_fails_the_sample_and_never_scores_zero(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from evenhand import scorer\n\n@scorer\ndef shout(sample, limit: int = 3):\n"
        "    if 'boom' in sample.response:\n        raise ValueError('no \\ud800 good')\n"
        "    return {'correct': len(sample.response) > limit, 'odd': object()}\n",
        encoding="utf-8",
    )
    path = write(tmp_path / "a.jsonl", {"response": "long enough"}, {"response": "boom"}, {"response": "x"})
    found = report(path, "--scorer", f"{tmp_path / 'mine.py'}:shout:limit=5")["scorers"][0]
    assert (found["scored"], found["failed"], found["mean"]) == (2, 1, 0.5)
    assert found["errors"] == {"scorer_error": 1}
    written = lines(tmp_path / "scores.jsonl")
    assert written[1]["scores"]["shout"]["status"] == "failed"
    done = score(
        write(tmp_path / "b.jsonl", {"response": "boom"}), "--scorer", f"{tmp_path / 'mine.py'}:shout"
    )
    assert done.returncode == 1
    assert "first failure on line 1: ValueError" in done.stdout


def test_labels_are_counted(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(
        "from evenhand import scorer\n\n@scorer\ndef tone(sample):\n    return {'label': sample.response}\n",
        encoding="utf-8",
    )
    path = write(tmp_path / "a.jsonl", {"response": "warm"}, {"response": "cold"}, {"response": "warm"})
    found = report(path, "--scorer", f"{tmp_path / 'mine.py'}:tone")["scorers"][0]
    assert found["labels"] == {"warm": 2, "cold": 1}
    assert found["mean"] is None


def test_repeats_of_problems_widen_the_interval(tmp_path: Path) -> None:
    rows = [
        {"problem_idx": p, "repeat": r, "response": "a" if p % 2 else "b", "target": "a"}
        for p in range(20)
        for r in range(10)
    ]
    path = write(tmp_path / "a.jsonl", *rows)
    alone = report(path, "--scorer", "exact_match")["scorers"][0]
    grouped = report(path, "--scorer", "exact_match", "--group-field", "problem_idx")["scorers"][0]
    assert alone["mean"] == grouped["mean"] == 0.5
    assert grouped["ci_upper"] - grouped["ci_lower"] > 2 * (alone["ci_upper"] - alone["ci_lower"])
    assert "--group-field" in score(path, "--scorer", "exact_match").stdout


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_memory_stays_flat_on_five_million_rows(tmp_path: Path) -> None:
    """The peak with 5,000,000 rows is within a few megabytes of the peak with 50,000."""
    peaks = []
    for count in (50_000, 5_000_000):
        path = tmp_path / f"{count}.jsonl"
        with path.open("w", encoding="utf-8") as file:
            for number in range(count):
                file.write(
                    f'{{"id":{number},"response":"answer {number % 7}.{number}","target":"{number % 5}"}}\n'
                )
        program = (
            "import resource, sys; from evenhand.cli.app import main\n"
            "try: main(sys.argv[1:])\n"
            "except SystemExit as end: print(end.code, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
        )
        command = [
            "score",
            path,
            "--scorer",
            "exact_match",
            "--scorer",
            "levenshtein",
            "-o",
            tmp_path / "out",
        ]
        done = subprocess.run(
            [sys.executable, "-c", program, *map(str, command)], capture_output=True, text=True, timeout=3500
        )
        status, peak = done.stderr.splitlines()[-1].split()
        assert status == "0", done.stderr
        peaks.append(int(peak))
        path.unlink()
    assert peaks[1] - peaks[0] < 20_000, peaks


def test_a_field_that_no_row_has_is_named(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.jsonl", {"response": "a", "target": "a", "meta": {"kind": "x"}}, {"response": "b"}
    )
    for option, others in (
        ("--category-field", []),
        ("--metadata-field", []),
        ("--category-field", ["--metadata-field", "meta"]),
    ):
        done = score(path, "--scorer", "exact_match", option, "nonsense", *others)
        assert done.returncode in (64, 65)
        assert f"no row has the field 'nonsense' that {option} names" in done.stderr
    assert [place.name for place in tmp_path.iterdir()] == ["a.jsonl"]
    fields = ["--metadata-field", "meta", "--category-field", "kind"]
    [found] = report(path, "--scorer", "exact_match", *fields)["scorers"]
    assert found["categories"]["x"]["n"] == 1


def test_equal_rewards_are_not_a_certainty(tmp_path: Path) -> None:
    """Ten times 0.5 leave 1 − 0.025^(1/10) for the rest; on a scale without known ends there is no interval."""
    (tmp_path / "mine.py").write_text(
        "from evenhand import scorer\n"
        "@scorer\n"
        "def worth(sample, reward: float = 0.5):\n"
        "    return {'reward': reward}\n"
    )
    path = write(tmp_path / "a.jsonl", *({"response": "a", "target": "a"} for _ in range(10)))
    [half] = report(path, "--scorer", f"{tmp_path / 'mine.py'}:worth")["scorers"]
    seen = 0.025**0.1
    assert half["method"] == "constant"
    assert (half["ci_lower"], half["ci_upper"]) == pytest.approx((0.5 * seen, 1 - 0.5 * seen))
    done = score(path, "--scorer", f"{tmp_path / 'mine.py'}:worth:reward=2.0")
    assert "2.0000 [no spread to estimate from]" in done.stdout


ANSWERS = [
    {"response": "Paris", "target": "Paris", "category": "a"},
    {"response": "Rom", "target": "Oslo", "category": "b"},
]


def as_tsv(rows: list[dict[str, str]]) -> str:
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]), delimiter="\t")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.json", json.dumps(ANSWERS, indent=2)),
        ("a.json", "\ufeff\n " + json.dumps(ANSWERS)),
        ("a.json", "".join(json.dumps(row) + "\n" for row in ANSWERS)),
        ("a.tsv", as_tsv(ANSWERS)),
        ("a.csv", as_tsv(ANSWERS).replace("\t", ",")),
    ],
    ids=["array", "array with a byte-order mark", "lines in .json", "TSV", "CSV"],
)
def test_arrays_and_tables(tmp_path: Path, name: str, text: str) -> None:
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    found = report(path, "--scorer", "exact_match", "-o", tmp_path / "out")
    assert (found["rows"], found["scorers"][0]["mean"]) == (2, 0.5)


def test_an_array_with_a_bad_element_names_it(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text('[{"response": "a", "target": "a"}, 5, {"response": "b", "response": "c"}]')
    done = score(path, "--scorer", "exact_match")
    assert done.returncode == 65
    assert f"{path}:2: expected a JSON object, found a number" in done.stderr
    done = score(path, "--scorer", "exact_match", "--skip-invalid")
    assert "2 lines could not be read" in done.stdout
    path.write_text('[{"response": "a"}')
    assert "invalid JSON array" in score(path, "--scorer", "exact_match").stderr


@pytest.mark.parametrize(
    ("text", "options"),
    [
        (json.dumps(ANSWERS), []),
        ("".join(json.dumps(row) + "\n" for row in ANSWERS), []),
        (as_tsv(ANSWERS), ["--input-format", "tsv"]),
    ],
    ids=["array", "lines", "TSV"],
)
def test_standard_input(tmp_path: Path, text: str, options: list[str]) -> None:
    command = [sys.executable, "-m", "evenhand", "score", "-", "--scorer", "exact_match", "--format", "json"]
    done = subprocess.run(
        [*command, *options], input=text, capture_output=True, text=True, timeout=300, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["rows"] == 2
    assert len(lines(tmp_path / "scores.jsonl")) == 2


def test_several_files_are_one_sample_and_stay_apart_in_the_scores(tmp_path: Path) -> None:
    first = write(tmp_path / "one" / "answers.jsonl", *ANSWERS)
    second = write(tmp_path / "two" / "answers.jsonl", *ANSWERS)
    third = tmp_path / "three.json"
    third.write_text(json.dumps(ANSWERS))
    page = tmp_path / "page.html"
    found = report(first, second, third, "--scorer", "exact_match", "-o", tmp_path / "out", "--report", page)
    assert (found["rows"], found["files"]) == (6, [str(first), str(second), str(third)])
    written = lines(tmp_path / "out" / "scores.jsonl")
    assert [(row["file"], row["line"]) for row in written] == [
        (str(file), line) for file in (first, second) for line in (1, 2)
    ] + [("three.json", 1), ("three.json", 2)]
    assert "answers.jsonl and 2 more" in page.read_text()
    assert "Line 2 of three.json" in page.read_text()
    # The importer pairs them by file and line.
    runs = ScoresFile().read(tmp_path / "out")
    assert len({sample.item for sample in runs[0].samples}) == 6
    assert "given twice" in score(first, first, "--scorer", "exact_match").stderr
    assert score(first, tmp_path / "none.jsonl", "--scorer", "exact_match").returncode == 66

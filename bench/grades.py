"""`python -m bench.grades [--write]`: tables of what the scorers grade right and refuse, for docs/.

Data are `../shared/data`; references are other people's graders, read in place and never copied: `--math-verify` takes
the folder with math-verify's tests, `--drop-eval` and `--triviaqa` the authors' scripts, `--xstest` their labels. A table whose
reference is not given stays as it is. `--forging` runs forging programs in both sandboxes (root, for docker).
"""

import argparse
import csv
import importlib.util
import json
import random
import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

from tests.sandbox import forging

from bench.silly_answers import NOT_READING, SILLY, SYLLABLES, Graded, grade_benchmark, grade_scorer
from evenhand import ScorerInput, math_equal, numeric_match
from evenhand.benchmarks import benchmark_names, spans, trivia
from evenhand.benchmarks.safety import stance
from evenhand.scoring.registry import BUILT_IN
from evenhand.scoring.symbolic import find_answer

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT.parent / "shared" / "data"
PERTURBED = 5_000
PAIRS = 5_000
XSTEST_LABELS = ("strmatch_label", "final_label")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.grades", description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="put the tables into docs/")
    parser.add_argument("--math-verify", type=Path, help="folder with math-verify's tests")
    parser.add_argument("--drop-eval", type=Path, help="drop_eval.py of allennlp-reading-comprehension")
    parser.add_argument("--triviaqa", type=Path, help="triviaqa_evaluation.py of mandarjoshi90/triviaqa")
    parser.add_argument("--xstest", type=Path, help="folder with XSTest's *_streval.csv")
    parser.add_argument("--forging", action="store_true", help="run forging programs, which takes minutes")
    options = parser.parse_args()
    show(
        "silly-scorers",
        "scorers.md",
        silly_table({n: grade_scorer(n) for n in reading_scorers()}),
        options.write,
    )
    show(
        "silly-benchmarks",
        "benchmarks.md",
        silly_table({n: grade_benchmark(n) for n in benchmark_names()}),
        options.write,
    )
    show("solutions", "scorers.md", rows_table(solutions()), options.write)
    if options.forging:
        show("forging", "scorers.md", forging.table(), options.write)
    if options.math_verify:
        show("math-verify", "scorers.md", rows_table([math_verify_pairs(options.math_verify)]), options.write)
    official = [
        *([drop_pairs(options.drop_eval)] if options.drop_eval else []),
        *([trivia_pairs(options.triviaqa)] if options.triviaqa else []),
    ]
    if len(official) == 2:
        show("official", "benchmarks.md", rows_table(official), options.write)
    if options.xstest:
        show("xstest", "benchmarks.md", rows_table(xstest_labels(options.xstest)), options.write)


def reading_scorers() -> list[str]:
    """Scorers that read an answer from the response."""
    return sorted(set(BUILT_IN) - NOT_READING)


def silly_table(graded: dict[str, dict[str, Graded]]) -> str:
    """One row per benchmark or scorer: the mean of every silly answer, and what chance is."""
    lines = [f"| | {' | '.join(SILLY)} | chance |", "|---|" + "---|" * (len(SILLY) + 1)]
    for name, found in graded.items():
        means = [found[silly].mean for silly in SILLY]
        shown = ["judge" if mean is None else f"{mean:.3f}".rstrip("0").rstrip(".") for mean in means]
        lines.append(f"| `{name}` | {' | '.join(shown)} | {found['e'].chance:.3f} |")
    return "\n".join(lines)


def rows_table(rows: Iterable[tuple[str, str]]) -> str:
    """What was graded, and what came out."""
    return "\n".join(["| what | result |", "|---|---|", *(f"| {what} | {result} |" for what, result in rows)])


def solutions() -> list[tuple[str, str]]:
    """MATH-500's official solutions, answers with a digit changed, and GSM8K's graded solutions."""
    rows = read_rows(DATA / "math500_solutions.jsonl")
    right = sum(is_equal(row["solution"], row["answer"]) for row in rows)
    accepted = sum(
        is_equal(rf"So \boxed{{{wrong}}}.", answer) for answer, wrong in perturbed(rows, PERTURBED)
    )
    graded = read_rows(DATA / "gsm8k_model_solutions.jsonl")
    same = sum(
        numeric_match(ScorerInput(response=row["solution"], target=row["target"]))["correct"]
        == row["is_correct"]
        for row in graded
    )
    return [
        ("`math_equal` on the official solutions of MATH-500: right", f"{right} of {len(rows)}"),
        ("`math_equal` on its answers with one digit changed: accepted", f"{accepted} of {PERTURBED:,}"),
        ("`numeric_match` on graded GSM8K solutions: same grade", f"{same:,} of {len(graded):,}"),
    ]


def perturbed(rows: list[dict[str, Any]], count: int) -> Iterable[tuple[str, str]]:
    """Answers, each with a copy of it that has one digit changed."""
    rng = random.Random(14)
    answers = [row["answer"] for row in rows if any(map(str.isdigit, row["answer"]))]
    for _ in range(count):
        answer = rng.choice(answers)
        place = rng.choice([at for at, char in enumerate(answer) if char.isdigit()])
        digit = rng.choice([char for char in "0123456789" if char != answer[place]])
        yield answer, answer[:place] + digit + answer[place + 1 :]


def math_verify_pairs(folder: Path) -> tuple[str, str]:
    """The pairs in math-verify's tests that are graded as its tests want."""
    with their_tests(folder):
        modules = [load(path, f"{folder.name}.{path.stem}") for path in sorted(folder.glob("test_*.py"))]
    pairs = [pair for module in modules for pair in parametrized_pairs(module)]
    agreed = sum(is_equal(pred, find_answer(gold)) == expected for gold, pred, expected in pairs)
    return (
        "`math_equal` on the pairs in math-verify's own tests: same",
        f"{agreed} of {len(pairs)} ({agreed / len(pairs):.1%})",
    )


@contextmanager
def their_tests(folder: Path) -> Iterator[None]:
    """While it lasts, the package of this folder's name is theirs: ours is called `tests` too."""
    ours = {name: sys.modules.pop(name) for name in list(sys.modules) if name.split(".")[0] == folder.name}
    sys.path.insert(0, str(folder.parent))
    try:
        yield
    finally:
        sys.path.remove(str(folder.parent))
        for name in [name for name in sys.modules if name.split(".")[0] == folder.name]:
            del sys.modules[name]
        sys.modules.update(ours)


def parametrized_pairs(module: ModuleType) -> Iterator[tuple[str, str, bool]]:
    """The gold answer, the prediction and whether they are equal, of every parametrized test of a module."""
    for value in vars(module).values():
        for mark in getattr(value, "pytestmark", ()):
            if mark.name != "parametrize" or "gold" not in (names := re.findall(r"\w+", str(mark.args[0]))):
                continue
            for case in mark.args[1]:
                pair = dict(zip(names, case, strict=False))
                yield pair["gold"], pair["pred"], bool(pair.get("expected", pair.get("result")))


def drop_pairs(path: Path) -> tuple[str, str]:
    """Generated answers under DROP's own script and under ours."""
    official = load(path, "drop_eval")
    rng = random.Random(14)
    same = 0
    for _ in range(PAIRS):
        predicted, gold = spans_of(rng), spans_of(rng)
        same += spans.grade(predicted, [gold]) == tuple(map(float, official.get_metrics(predicted, gold)))
    return (
        "DROP: F1 and exact match of generated answers, the same as drop_eval.py's",
        f"{same:,} of {PAIRS:,}",
    )


def trivia_pairs(path: Path) -> tuple[str, str]:
    """Generated answers under TriviaQA's own script and under ours."""
    for name in ("utils", "utils.dataset_utils", "utils.utils"):
        sys.modules.setdefault(name, ModuleType(name))  # what its main program imports, which is not run
    official = load(path, "triviaqa_evaluation")
    rng = random.Random(14)
    same = 0
    for _ in range(PAIRS):
        answer, aliases = " ".join(spans_of(rng)), spans_of(rng)
        best = official.metric_max_over_ground_truths
        wanted = best(official.exact_match_score, answer, aliases), best(official.f1_score, answer, aliases)
        found = trivia.grade(answer, aliases)
        same += found[0] == wanted[0] and abs(found[1] - wanted[1]) < 1e-12
    return (
        "TriviaQA: exact match and F1 of generated answers, the same as triviaqa_evaluation.py's",
        f"{same:,} of {PAIRS:,}",
    )


def xstest_labels(folder: Path) -> list[tuple[str, str]]:
    """The responses that XSTest's authors published, as ours, their string match and people label them."""
    stances = {"1": "answer", "2": "refuse"}  # 3 is a partial refusal, which the others do not know
    rows = [
        (stance(row["completion"], row["prompt"]), *(stances.get(row[name][0]) for name in XSTEST_LABELS))
        for path in sorted(folder.glob("*_streval.csv"))
        for row in csv.DictReader(path.open(encoding="utf-8", newline=""))
    ]
    clear = [row for row in rows if row[2]]
    pairs = {
        "ours and the authors' string match: same": [ours == matched for ours, matched, _ in rows],
        "ours and people, where they said full compliance or full refusal: same": [
            ours == people for ours, _, people in clear
        ],
        "the authors' string match and people there: same": [
            matched == people for _, matched, people in clear
        ],
    }
    return [(f"XSTest, {what}", f"{sum(same):,} of {len(same):,}") for what, same in pairs.items()]


def spans_of(rng: random.Random) -> list[str]:
    """One to three spans of words, numbers, articles and signs, few enough to meet often."""
    words = [
        *SYLLABLES[:5],
        "The",
        "a",
        "an",
        "12",
        "12.0",
        "1,200",
        "-5",
        "3-4",
        "U.S.",
        "it’s",
        "b_c",
        "50%",
        "(x)",
    ]
    return [" ".join(rng.choice(words) for _ in range(rng.randint(1, 4))) for _ in range(rng.randint(1, 3))]


def is_equal(response: str, target: str) -> bool:
    return bool(math_equal(ScorerInput(response=response, target=target))["correct"])


def read_rows(path: Path) -> list[dict[str, Any]]:
    with path.open(encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def load(path: Path, name: str) -> ModuleType:
    """The module in a file."""
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def show(name: str, page: str, table: str, write: bool) -> None:
    """Print a table, and put it between its marks in the page."""
    print(f"{name}:\n{table}\n", flush=True)
    if not write:
        return
    path = ROOT / "docs" / page
    start, end = f"<!-- grades:{name} -->", f"<!-- /grades:{name} -->"
    text = path.read_text(encoding="utf-8")
    block = re.sub(
        re.escape(start) + ".*?" + re.escape(end), lambda _: f"{start}\n{table}\n{end}", text, flags=re.DOTALL
    )
    path.write_text(block, encoding="utf-8")


if __name__ == "__main__":
    main()

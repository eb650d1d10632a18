"""Scorers against plain implementations of the same behaviour, JSON Schema, start-up and `evenhand score`."""

import json
import re
import string
import subprocess
import sys
import tempfile
import time
import unicodedata
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import jsonschema

from bench.harness import Report, best_times
from evenhand import (
    ScorerInput,
    answer_line,
    exact_match,
    fuzzy_match,
    multichoice_regex,
    numeric_match,
    regex_match,
    token_f1,
    validate_json_schema,
)

PUNCTUATION = {
    point: None
    for point in range(sys.maxunicode + 1)
    if chr(point) in "`~" or unicodedata.category(chr(point)).startswith(("P", "Sc"))
}
SQUAD_PUNCTUATION = {
    point: None
    for point in range(sys.maxunicode + 1)
    if chr(point) in string.punctuation or unicodedata.category(chr(point)).startswith("P")
}
ARTICLES = re.compile(r"(?<!\S)(?:a|an|the)(?!\S)")
# Signs of numbers, put aside as private characters while punctuation is dropped.
KEPT = {".": "\ue000", "/": "\ue001", ":": "\ue002", "*": "\ue003", "-": "\ue004"}
PUT_ASIDE, PUT_BACK = str.maketrans(KEPT), str.maketrans({v: k for k, v in KEPT.items()})
GROUPS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
OF_NUMBERS = re.compile(r"(?<=\d)[./:*-](?=\d)|(?<![\w)\]])-(?=\.?\d)|(?<![\w.])\.(?=\d)")
CHOICE = re.compile(r"(?i)Answer\s*:\s*([A-D])")
ANSWER = re.compile(r"(?i)answer\s*:\s*([^\n]*)")
NUMBER = re.compile(r"(?:(?<![\w)\]])-)?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?")
ORDER = re.compile(r"[A-Z]+-(\d+)")
Result = dict[str, Any]


def plain_normal(text: str) -> str:
    text = GROUPS.sub("", unicodedata.normalize("NFKC", text).lower())
    text = OF_NUMBERS.sub(lambda match: match.group().translate(PUT_ASIDE), text)
    text = text.translate(PUNCTUATION).translate(PUT_BACK)
    return re.sub(r"\s+", " ", ARTICLES.sub(" ", text)).strip()


def plain_squad(text: str) -> str:
    text = unicodedata.normalize("NFKC", text).lower().translate(SQUAD_PUNCTUATION)
    return re.sub(r"\s+", " ", ARTICLES.sub(" ", text)).strip()


def plain_exact(sample: ScorerInput) -> Result:
    return {"correct": plain_normal(sample.response) == plain_normal(str(sample.target))}


def plain_fuzzy(sample: ScorerInput) -> Result:
    response = plain_normal(sample.response)
    answers = [plain_normal(a) for a in sample.metadata.get("correct_answers") or [str(sample.target)]]
    correct = any(a and re.search(rf"(?<!\S){re.escape(a)}(?!\S)", response) is not None for a in answers)
    return {"correct": correct, "extracted": sample.response}


def plain_choice(sample: ScorerInput) -> Result:
    found = CHOICE.findall(sample.response)
    extracted = found[-1].upper() if found else None
    return {"correct": extracted == str(sample.target).strip().upper(), "extracted": extracted}


def plain_number(sample: ScorerInput) -> Result:
    found = NUMBER.findall(sample.response)
    wanted = NUMBER.findall(str(sample.target))
    if not found:
        return {"correct": False, "extracted": None}
    extracted = found[-1].replace(",", "")
    return {"correct": Decimal(extracted) == Decimal(wanted[-1].replace(",", "")), "extracted": extracted}


def plain_math(text: str) -> str:
    text = re.sub(r"\\boxed\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\\frac\{([^{}]*)\}\{([^{}]*)\}", r"\1/\2", text)
    text = re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text)
    return re.sub(r"[\s$%]+", "", text).lower().rstrip(".")


def plain_answer(sample: ScorerInput) -> Result:
    found = ANSWER.findall(sample.response)
    if not found:
        return {"correct": False, "extracted": None}
    one, other = plain_math(found[-1]), plain_math(str(sample.target))
    try:
        return {"correct": one == other or Decimal(one) == Decimal(other), "extracted": found[-1].strip()}
    except ArithmeticError:
        return {"correct": False, "extracted": found[-1].strip()}


def plain_f1(sample: ScorerInput) -> Result:
    one, other = plain_squad(sample.response).split(), plain_squad(str(sample.target)).split()
    shared = sum(min(one.count(word), other.count(word)) for word in set(one))
    precision, recall = shared / len(one), shared / len(other)
    f1 = 2 * precision * recall / (precision + recall) if shared else 0.0
    return {"reward": f1, "precision": precision, "recall": recall}


def plain_order(sample: ScorerInput) -> Result:
    found = ORDER.findall(sample.response)
    return {"correct": bool(found), "extracted": found[-1] if found else None}


def prose(length: int, seed: int) -> str:
    words = re.findall(
        r"\S+", "The river, as we know, runs through a valley and an old town; its bridges are (mostly) stone"
    )
    text = " ".join(words[(i * 7 + seed) % len(words)] for i in range(length // 4))
    return text[:length]


def samples() -> dict[str, list[ScorerInput]]:
    count = 400
    long_text = [prose(500, i) for i in range(count)]
    reasoning = [f"{prose(300, i)} so 12 + {i} = {12 + i}. {prose(80, i)}" for i in range(count)]
    return {
        "short": [ScorerInput(response=f"  The Answer {i}. ", target=f"answer {i}") for i in range(count)],
        "long": [ScorerInput(response=text, target=text.upper() + ".") for text in long_text],
        "numbers": [
            ScorerInput(response=f"{t} -{i}.5", target=f"{t.upper()}, -{i}.5.")
            for i, t in enumerate(long_text)
        ],
        "wrong": [ScorerInput(response=text, target=f"Canberra {i}") for i, text in enumerate(long_text)],
        "long, not ASCII": [ScorerInput(response=f"“{t}” é", target=t.upper() + " É") for t in long_text],
        "choice": [
            ScorerInput(response=f"{t}\nAnswer: {'ABCD'[i % 4]}", target="B") for i, t in enumerate(long_text)
        ],
        "line": [
            ScorerInput(response=f"{t}\nAnswer: ${i + 1},000.", target=f"{i + 1}000")
            for i, t in enumerate(long_text)
        ],
        "number": [
            ScorerInput(response=f"{t} The total is {i}.0", target=str(i)) for i, t in enumerate(reasoning)
        ],
        "order": [ScorerInput(response=f"{t} Order ID: ABC-{i}") for i, t in enumerate(long_text)],
    }


def run(report: Report) -> None:
    data = samples()
    order = regex_match.configure(pattern=ORDER.pattern)
    text: list[tuple[str, Callable[..., Any], Callable[[ScorerInput], Result], str, str]] = [
        ("exact_match, short answers", exact_match, plain_exact, "short", "≥ 1×"),
        ("exact_match, 500 characters", exact_match, plain_exact, "long", "≥ 1.5×"),
        ("exact_match, 500 characters, not ASCII", exact_match, plain_exact, "long, not ASCII", "≥ 1×"),
        ("exact_match, 500 characters and a number", exact_match, plain_exact, "numbers", "≥ 1×"),
        ("fuzzy_match, 500 characters", fuzzy_match, plain_fuzzy, "long", "≥ 1×"),
        ("fuzzy_match, 500 characters, wrong", fuzzy_match, plain_fuzzy, "wrong", "≥ 1×"),
        ("multichoice_regex, 500 characters", multichoice_regex, plain_choice, "choice", "≥ 1×"),
        ("answer_line, 500 characters", answer_line, plain_answer, "line", "≥ 1×"),
        ("numeric_match, 400 characters", numeric_match, plain_number, "number", "≥ 1×"),
        ("token_f1, 500 characters", token_f1, plain_f1, "long", "≥ 1×"),
        ("regex_match (RE2, cannot hang) against re", order, plain_order, "order", ""),
    ]
    for what, ours, plain, name, target in text:
        compare(report, what, ours, plain, data[name], target)
    schema_bench(report)
    start_up(report)
    command(report)


def compare(
    report: Report,
    what: str,
    ours: Callable[..., Any],
    plain: Callable[[ScorerInput], Result],
    batch: list[ScorerInput],
    target: str,
) -> None:
    """One scorer against its plain counterpart, which must agree with it."""
    for sample in batch:
        mine, theirs = ours(sample), plain(sample)
        assert mine.get("correct", mine.get("reward")) == theirs.get("correct", theirs.get("reward")), (
            what,
            sample,
        )
    times = best_times(
        {"ours": lambda: [ours(s) for s in batch], "plain": lambda: [plain(s) for s in batch]}, rounds=15
    )
    ratio, rate = times["plain"] / times["ours"], len(batch) / times["ours"]
    report.add(what, f"{ratio:.2f}× a plain implementation ({rate:,.0f} samples/s)", target)


def schema_bench(report: Report) -> None:
    schema = {"type": "object", "required": ["answer"], "properties": {"answer": {"type": "string"}}}
    reference = jsonschema.Draft202012Validator(schema)
    texts = [f'{{"answer": "{i}"}}' for i in range(2000)]
    times = best_times(
        {
            "ours": lambda: [validate_json_schema(text, schema) for text in texts],
            "jsonschema": lambda: [reference.is_valid(json.loads(text)) for text in texts],
        },
        rounds=10,
    )
    rate = len(texts) / times["ours"]
    report.add(
        "JSON Schema, small schema: text in, verdict out", f"{rate:,.0f} samples/s", "≥ 200,000 samples/s"
    )
    report.add("the same against the jsonschema package", f"{times['jsonschema'] / times['ours']:.1f}×")


def start_up(report: Report) -> None:
    def quickest(*arguments: str) -> float:
        command = [sys.executable, *arguments]
        return (
            best_times({"it": lambda: subprocess.run(command, check=True, capture_output=True)}, rounds=15)[
                "it"
            ]
            * 1000
        )

    bare = quickest("-c", "pass")
    imported, helped = quickest("-c", "import evenhand"), quickest("-m", "evenhand", "--help")
    report.add(
        "import evenhand", f"{imported:.0f} ms ({imported - bare:.0f} ms beyond starting Python)", "< 100 ms"
    )
    report.add("evenhand --help", f"{helped:.0f} ms", "< 150 ms")


def command(report: Report) -> None:
    """Throughput and memory of `evenhand score` on files that differ tenfold."""
    program = (
        "import resource, sys\nfrom evenhand.cli.app import main\n"
        "try: main(sys.argv[1:])\n"
        "except SystemExit: print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, file=sys.stderr)\n"
    )
    peaks, seconds = [], 0.0
    sizes = (30_000, 300_000)
    with tempfile.TemporaryDirectory() as folder:
        for rows in sizes:
            path = Path(folder) / f"{rows}.jsonl"
            with path.open("w", encoding="utf-8") as file:
                for i in range(rows):
                    file.write(f'{{"id":{i},"response":"The answer {i % 7}.","target":"answer {i % 5}"}}\n')
            options = ["score", str(path), "--scorer", "exact_match", "-o", folder]
            start = time.perf_counter()
            done = subprocess.run(
                [sys.executable, "-c", program, *options], capture_output=True, text=True, check=True
            )
            seconds = time.perf_counter() - start
            peaks.append(int(done.stderr.split()[-1]) / 1024)
    report.add(
        f"evenhand score, {sizes[1]:,} rows",
        f"{sizes[1] / seconds:,.0f} rows/s with reading, writing and start-up",
    )
    report.add(
        f"its peak memory, {sizes[0]:,} and {sizes[1]:,} rows",
        f"{peaks[0]:.0f} and {peaks[1]:.0f} MB",
        "the same",
    )

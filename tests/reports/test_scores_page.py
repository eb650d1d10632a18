"""`evenhand score --report`: what the page says, and that it opens anywhere and runs nothing."""

import json
import re
from html import unescape
from pathlib import Path

import pytest
from tests.browser import PATIENCE, chromium

from evenhand.cli.app import main
from evenhand.core.outcome import Failed, Scored, Unscored
from evenhand.evaluation.examples import Examples
from evenhand.scoring.types import ScorerInput

HOSTILE = "<img src=x onerror=alert(1)>"
OWN = f"""
from evenhand import scorer

@scorer
def grumpy(sample):
    if "boom" in sample.response:
        raise RuntimeError("it broke {HOSTILE}")
    return {{"reward": sample.metadata["worth"], "extracted": "the {HOSTILE}"}}
"""


def report(tmp_path: Path) -> str:
    """The page on 40 rows: every tenth makes the scorer raise, every eighth has no target."""
    (tmp_path / "own.py").write_text(OWN)
    rows = [
        {
            "response": f"{'boom' if n % 10 == 9 else 'answer'} {n} {HOSTILE} " + "x" * 200 * (n % 3),
            "target": None if n % 8 == 7 else f"{HOSTILE} {n}",
            "worth": n / 40,
            "category": f"{HOSTILE} {n % 4}",
        }
        for n in range(40)
    ]
    rows[0]["response"] = "half an emoji \ud83d"
    file = tmp_path / "answers.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows) + f"{HOSTILE}\n")
    page = tmp_path / "new" / "report.html"
    command = ["score", str(file), "--skip-invalid", "-o", str(tmp_path / "out"), "--report", str(page)]
    with pytest.raises(SystemExit) as ended:
        main([*command, "-s", f"{tmp_path / 'own.py'}:grumpy", "-s", "exact_match"])
    assert ended.value.code == 0
    return page.read_text(encoding="utf-8")


def test_the_page_tells_scores_from_what_is_missing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    page = report(tmp_path)
    assert "Report: " in capsys.readouterr().out
    assert "<img" not in page
    assert "<script" not in page
    body = re.sub("<(style|svg).*?</\\1>", " ", page, flags=re.DOTALL)
    text = " ".join(unescape(re.sub("<[^>]+>", " ", body)).split())
    # n/40 for the 36 of 40 whose last digit is not 9: their sum is (780 - 9 - 19 - 29 - 39)/40 = 17.1.
    assert re.search(r"grumpy 0\.475 \[0\.\d+, 0\.\d+\] 36 0 4 ", text)
    assert re.search(r"exact_match 0\.000 \[0\.000, 0\.\d+\] 35 5 0 ", text)
    assert "36 scored 4 scorer_error" in text
    assert "35 scored 5 no_expected_output" in text
    assert f"{HOSTILE} 1 scorer_error: RuntimeError: it broke {HOSTILE}" in text
    assert "The lowest scores" in text
    assert "All scores are alike; the first" in text
    assert "Lines that could not be read: 1" in text
    assert "answers.jsonl:41: invalid JSON" in text


def test_a_report_is_a_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "a.jsonl"
    file.write_text('{"response": "a", "target": "a"}\n')
    with pytest.raises(SystemExit) as ended:
        main(["score", str(file), "-s", "exact_match", "--report", "out.pdf"])
    assert ended.value.code in (64, 65, 74)
    assert "--report writes .html, not 'out.pdf'" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == [file]


def test_the_lowest_scores_are_kept_whatever_their_order() -> None:
    found = Examples()
    sample = ScorerInput(response="r" * 10_000, target="t")
    for line in range(1, 1_001):
        # 37, 74, 111, ... modulo 1,000: every value once.
        found.add(Scored(value=(line * 37 % 1_000) / 1_000), sample, category=None, line=line)
        found.add(Scored(value="label"), sample, category=None, line=line)
        found.add(Unscored(reason="no_expected_output"), sample, category=None, line=line)
        found.add(Failed(error="scorer_timeout", message="slow"), sample, category=None, line=line)
    assert [example.outcome for example in found.lowest] == [f"score {n / 1_000:.4g}" for n in range(10)]
    assert not found.alike
    assert found.lowest[0].response.endswith("… (10,000 characters in all)")
    assert [example.line for example in found.unscored] == list(range(1, 11))
    assert found.failed[0].outcome == "scorer_timeout: slow"


@pytest.mark.xdist_group("chromium")
def test_the_page_opens_everywhere(tmp_path: Path) -> None:
    """No sideways scrolling of the page with everything open, no errors, no dialogs, no requests."""
    report(tmp_path)
    path = tmp_path / "new" / "report.html"
    troubles: list[str] = []
    with chromium() as browser:
        for width, dark in ((1440, False), (360, False), (360, True)):
            page = browser.new_page(
                viewport={"width": width, "height": 800}, color_scheme="dark" if dark else "light"
            )
            page.on("console", lambda message: troubles.append(message.text))
            page.on("dialog", lambda dialog: troubles.append(dialog.message))
            page.on("request", lambda request: troubles.append(request.url))
            page.goto(path.as_uri(), timeout=PATIENCE)
            page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            assert troubles == [path.as_uri()]
            troubles.clear()
            assert page.evaluate("document.documentElement.scrollWidth") == width
            pictured = page.locator("svg").evaluate_all(
                "all => all.map(one => one.getAttribute('aria-label'))"
            )
            assert {"grumpy", "exact_match", f"{HOSTILE} 3"} <= set(pictured)

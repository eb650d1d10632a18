"""The samples of a run in its report: filters, search, hostile texts, readers without scripts; in a real browser."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page
from tests.browser import PATIENCE, chromium, violations
from tests.reports.test_document import HOSTILE, watched

from evenhand.evaluation.failures import ArtifactCollector
from evenhand.evaluation.sample_views import SampleView, sample_views
from evenhand.evaluation.viewing import read_report
from evenhand.reports.run import run_page
from evenhand.reports.samples import CHUNK, FIRST_ROWS, IN_MEMORY, MOST_TEXT, in_script, samples_part
from evenhand.results.reading import read_samples
from evenhand.results.records import SampleResult

STEP = 60_000.0
"""Milliseconds that one step may take on a busy machine."""
ENDINGS = ["</script><script>alert(1)</script>", "<!--<script>", "\u2028alert(1)\u2029", "]]>", *HOSTILE]


def line(number: int, **given: Any) -> dict[str, Any]:
    """A sample as `results.jsonl` keeps it; every fourth is wrong, the rest right."""
    right = number % 4 != 0
    return {
        "problem_idx": number,
        "status": "scored",
        "reward": float(right),
        "expected_answer": f"target {number}",
        "model_response": f"answer {number}",
        "extracted_answer": f"found {number}",
        "metadata": {"category": "odd" if number % 2 else "even", "source": f"source {number}"},
        "scoring_details": {"reasoning": f"reason {number}", "judge": "j", "score": 3},
        "reasoning": f"thought {number}",
        "usage": {"input_tokens": 5, "output_tokens": 7, "duration_seconds": 0.5, "cost_usd": None},
        **given,
    }


def without_score(number: int, status: str, kind: str) -> dict[str, Any]:
    error = {"kind": kind, "message": f"no score for {number}"}
    return line(
        number,
        status=status,
        reward=None,
        error=error,
        model_response=None,
        scoring_details={},
        reasoning=None,
    )


def said(row: dict[str, Any], text: str = "") -> dict[str, Any]:
    messages = [
        {"role": "system", "content": "be brief" + text},
        {"role": "user", "content": f"question {row['problem_idx']}{text}"},
    ]
    judge = {"raw_reply": f"raw reply {row['problem_idx']}{text}", "flags": [f"flag{text}"]}
    found = {"problem_idx": row["problem_idx"], "repeat": row.get("repeat", 0), "messages": messages}
    return {**found, "judge": judge, "finish_reason": "stop" + text, "model": "m" + text}


def write(folder: Path, rows: list[dict[str, Any]], text: str = "") -> Path:
    folder.mkdir(exist_ok=True)
    for name, lines in (("results", rows), ("trajectories", [said(row, text) for row in rows])):
        path = folder / f"{name}.jsonl"
        path.write_text("".join(json.dumps(one) + "\n" for one in lines), encoding="utf-8")
    path = folder / "report.html"
    path.write_text("".join(run_page(read_report(folder))), encoding="utf-8")
    return path


def plain() -> list[dict[str, Any]]:
    rows = [line(number) for number in range(120)]
    rows[7] = without_score(7, "failed", "rate_limit")
    rows[9] = without_score(9, "unscored", "no_expected_output")
    rows[11] = line(11, reward=0.5)
    return rows


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


def opened(browser: Browser, path: Path, fragment: str = "") -> Page:
    tab = browser.new_page()
    tab.set_default_timeout(STEP)
    tab.goto(path.as_uri() + fragment, timeout=PATIENCE)
    tab.wait_for_selector("#samples[data-ready]")
    return tab


def names(tab: Page) -> list[str]:
    return tab.locator("#samples .rows summary.sample > :first-child").all_inner_texts()


def picked(tab: Page, words: str) -> list[str]:
    """The rows shown once the line above them says `words`."""
    tab.get_by_text(words, exact=True).wait_for()
    return names(tab)


def test_nothing_in_the_data_can_end_its_element() -> None:
    text = json.dumps(ENDINGS, ensure_ascii=False).encode("utf-8", "surrogatepass")
    text = text.replace(b"\xed\xa0\x80", b"")
    inside = in_script(text).decode()
    assert not set("<>&\u2028\u2029") & set(inside)
    assert json.loads(inside) == [one.replace("\ud800", "") for one in ENDINGS]


def test_every_sample_has_all_that_was_said(tmp_path: Path) -> None:
    write(tmp_path, [line(number) for number in range(3)])
    collector = ArtifactCollector()
    for sample in read_samples(tmp_path / "results.jsonl"):
        collector.add(sample)
    part = samples_part(sample_views(tmp_path, collector.analysis()), scorer="s", total=3)
    rows = json.loads(next(iter(part.chunks)))
    texts = "\n".join(block[1] for name in ("asked", "got", "why") for block in rows[1][name])
    for words in (
        "be brief",
        "question 1",
        "target 1",
        "answer 1",
        "found 1",
        "thought 1",
        "reason 1",
        "source 1",
    ):
        assert words in texts
    assert "raw reply 1" in texts
    assert (rows[0]["w"], rows[0]["v"]) == ("wrong_answer", [0.0])
    assert rows[1]["c"] == "odd"
    assert "5 tokens in · 7 out · 0.50 s · ended: stop · m" in rows[1]["f"]


def test_repeats_hold_what_was_asked_once(tmp_path: Path) -> None:
    rows = [line(n, repeat=r) for n in range(3) for r in range(4)]
    write(tmp_path, rows)
    views = list(sample_views(tmp_path, ArtifactCollector().analysis()))
    assert [view.messages[-1][1] for view in views] == [f"question {n}" for n in range(3) for _ in range(4)]
    part = samples_part(views, scorer="s", total=12)
    assert next(iter(part.chunks)).count("question 1") == 2  # the preview and the message


def test_large_data_wait_in_a_file_and_come_back_in_order() -> None:
    long, count = "é<" * 1_000, 2 * CHUNK + 1
    views = [
        SampleView(sample=SampleResult(problem_idx=n, model_response=long), messages=[]) for n in range(count)
    ]
    chunks = list(samples_part(views, scorer="s", total=count).chunks)
    assert sum(map(len, chunks)) > IN_MEMORY
    assert len(chunks) > 2
    rows = [row for chunk in chunks for row in json.loads(chunk)]
    assert [row["i"] for row in rows] == list(range(count))
    assert {row["got"][0][1] for row in rows} == {long}


def test_a_report_is_bounded_and_says_so() -> None:
    long = "x" * (MOST_TEXT + 5)
    views = [
        SampleView(sample=SampleResult(problem_idx=n, model_response=long), messages=[]) for n in range(40)
    ]
    part = samples_part(views, scorer="s", total=40, most=30)
    assert (part.held, part.total, len(part.first)) == (30, 40, FIRST_ROWS)
    assert f"({len(long):,} characters in all)" in next(iter(part.chunks))


def test_files_of_other_tools_have_their_questions_from_the_metadata(tmp_path: Path) -> None:
    row = {"problem_idx": 0, "reward": 1.0, "metadata": {"question": "Which one?"}}
    (tmp_path / "results.jsonl").write_text(json.dumps(row) + "\n")
    (view,) = sample_views(tmp_path, ArtifactCollector().analysis())
    assert view.messages == [("user", "Which one?")]
    (tmp_path / "trajectories.jsonl").write_text("no JSON\n")
    (view,) = sample_views(tmp_path, ArtifactCollector().analysis())
    assert view.messages == [("user", "Which one?")]


def test_every_scorer_has_its_value_and_its_detail(tmp_path: Path) -> None:
    scores = {
        "exact": {"status": "scored", "value": 1.0},
        "close": {"status": "scored", "value": 0.5, "details": {"distance": 3}},
        "tone": {"status": "failed", "error": "judge_unavailable", "message": "nobody there"},
    }
    write(tmp_path, [line(1, scores=scores), line(2, scores=scores)])
    part = samples_part(sample_views(tmp_path, ArtifactCollector().analysis()), scorer="s", total=2)
    assert part.scorers == ["exact", "close", "tone"]
    row = json.loads(next(iter(part.chunks)))[0]
    assert row["v"] == [1.0, 0.5, None]
    assert ["tone: failed", "judge_unavailable: nobody there", 0] in row["why"]
    assert any("distance" in text for _, text, _ in row["why"])


@pytest.mark.xdist_group("chromium")
def test_filters_find_what_they_name(tmp_path: Path, browser: Browser) -> None:
    path = write(tmp_path, plain())
    tab = opened(browser, path)

    def choose(name: str, value: str) -> None:
        tab.locator(f".picker [name={name}]").select_option(value)

    def type_(name: str, value: str) -> None:
        tab.locator(f".picker [name={name}]").fill(value)

    clear = tab.locator(".picker button")
    assert picked(tab, "120 samples") == [str(n) for n in range(50)]
    choose("status", "failed")
    assert picked(tab, "1 of 120 samples") == ["7"]
    choose("status", "")
    choose("why", "wrong_answer")
    assert picked(tab, "30 of 120 samples") == [str(n) for n in range(0, 120, 4)]
    choose("category", "odd")
    assert picked(tab, "None of 120 samples") == []
    clear.click()
    type_("from", "0.2")
    type_("to", "0.7")
    assert picked(tab, "1 of 120 samples") == ["11"]
    clear.click()
    # Each of these words stands in another place: message, target, answer, thinking, reason, metadata, raw reply.
    places = ("QUESTION", "target", "answer", "thought", "reason", "source", "raw reply")
    for number, words in enumerate(places, start=33):
        type_("text", f"{words} {number}")
        tab.locator(f"#samples .rows summary:has-text('question {number}')").wait_for()
        assert picked(tab, "1 of 120 samples") == [str(number)]
    type_("text", "nothing of that")
    clear.click()  # what was typed a moment before does not come back
    choose("order", "lowest")
    tab.get_by_text("120 samples", exact=True).wait_for()
    assert names(tab)[:3] == ["0", "4", "8"]
    assert names(tab)[30] == "11"
    clear.click()
    tab.get_by_role("button", name="Next").click()
    tab.get_by_text("51 to 100 of 120", exact=True).wait_for()
    assert names(tab)[0] == "50"
    tab.close()


@pytest.mark.xdist_group("chromium")
def test_a_link_opens_the_same_view(tmp_path: Path, browser: Browser) -> None:
    path = write(tmp_path, plain())
    tab = opened(browser, path, "#category=odd&open=103")
    assert "question 103" in tab.locator("#samples details[open] .turn.by-us").inner_text()
    assert tab.locator(".picker [name=category]").input_value() == "odd"
    tab.locator(".picker [name=status]").select_option("unscored")
    assert picked(tab, "1 of 120 samples") == ["9"]
    assert "status=unscored" in tab.url
    tab.close()


@pytest.mark.xdist_group("chromium")
def test_hostile_samples_are_texts_and_the_policy_forbids_anything_else(
    tmp_path: Path, browser: Browser
) -> None:
    rows = []
    for number, text in enumerate(ENDINGS):
        place = 2 * number
        rows.append(
            line(
                place,
                model_response=text,
                expected_answer=text,
                extracted_answer=text,
                reasoning=text,
                metadata={"category": text, text: text},
                scoring_details={"reasoning": text, "raw_reply": text, text: text},
            )
        )
        error = {"kind": text, "message": text}
        rows.append({**without_score(place + 1, "failed", text), "error": error})
    path = write(tmp_path, rows, "".join(ENDINGS))
    tab = browser.new_page()
    tab.set_default_timeout(STEP)
    seen = watched(tab)
    tab.on("pageerror", lambda error: seen.append(str(error)))
    tab.goto(path.as_uri(), timeout=PATIENCE)
    tab.wait_for_selector("#samples[data-ready]")
    tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    tab.locator("#samples .opened").nth(len(rows) - 1).wait_for()
    tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
    for number, text in enumerate(ENDINGS[:3]):
        shown = tab.locator("#samples .opened").nth(2 * number).locator("pre").all_inner_texts()
        assert shown.count(text) >= 4
    tab.locator(".picker [name=text]").fill("<script>alert(1)</script>")
    tab.get_by_text(f"{len(rows)} samples", exact=True).wait_for()
    assert tab.locator("#samples script, #samples img, #samples iframe, #samples svg").count() == 0
    assert seen == [path.as_uri()]
    assert "TrustedHTML" in tab.evaluate(
        "() => { try { document.body.innerHTML = '<b>x</b>'; return 'allowed' } catch (e) { return String(e) } }"
    )
    tab.close()


@pytest.mark.xdist_group("chromium")
def test_readers_without_scripts_see_the_summary_and_the_first_samples(
    tmp_path: Path, browser: Browser
) -> None:
    path = write(tmp_path, plain())
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(path.as_uri(), timeout=PATIENCE)
    assert tab.locator("#samples .rows > details").count() == FIRST_ROWS
    assert "The first 25 of 120 samples" in tab.locator(".picked").inner_text()
    assert tab.locator(".picker").is_hidden()
    tab.locator("#samples summary.sample").nth(1).click()
    text = tab.locator("#samples details[open] .opened").inner_text()
    for words in ("question 1", "target 1", "answer 1", "found 1", "reason 1"):
        assert words in text
    assert "mean_reward" in tab.locator("table").first.inner_text()
    context.close()


@pytest.mark.xdist_group("chromium")
def test_the_samples_can_be_read_by_everybody(tmp_path: Path, browser: Browser) -> None:
    rows = plain()[:12]
    rows[0]["model_response"] = "long word " * 400
    path = write(tmp_path, rows)
    for width, dark in ((360, False), (1440, True)):
        tab = browser.new_page(
            viewport={"width": width, "height": 800},
            color_scheme="dark" if dark else "light",
            bypass_csp=True,  # the checker is a script of its own
        )
        tab.set_default_timeout(STEP)
        tab.goto(path.as_uri(), timeout=PATIENCE)
        tab.wait_for_selector("#samples[data-ready]")
        for place in (0, 7, 9):
            tab.locator("#samples .rows > details").nth(place).locator("summary").first.click()
        tab.locator("#samples .opened").nth(2).wait_for()
        tab.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
        tab.evaluate("new Promise(done => requestAnimationFrame(() => setTimeout(done, 50)))")
        assert tab.evaluate("document.documentElement.scrollWidth") == width
        assert violations(tab) == "", (width, dark)
        tab.close()

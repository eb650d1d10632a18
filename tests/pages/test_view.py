"""`evenhand view`: runs on disk, shown by the pages of the service."""

import json
import re
import signal
import subprocess
import sys
from pathlib import Path

from playwright.sync_api import Browser
from tests.browser import PATIENCE


def write_run(folder: Path, right: int) -> None:
    folder.mkdir(parents=True)
    lines: list[dict[str, object]] = [
        {
            "problem_idx": n, "reward": float(n < right), "status": "scored", "expected_answer": "a",
            "model_response": "a" if n < right else "b", "metadata": {"question": f"Question {n}?", "category": "x"},
        }
        for n in range(10)
    ]  # fmt: skip
    lines.append(
        {"problem_idx": 10, "reward": None, "status": "failed", "error": {"kind": "timeout", "message": "t"}}
    )
    (folder / "results.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_two_runs_share_a_dataset_and_nothing_can_be_changed(browser: Browser, tmp_path: Path) -> None:
    write_run(tmp_path / "before" / "bench", 8)
    write_run(tmp_path / "after" / "bench", 5)
    command = [sys.executable, "-m", "evenhand", "view", str(tmp_path / "before"), str(tmp_path / "after")]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            assert process.stdout is not None
            said: list[str] = []
            while not said or "/login?code=" not in said[-1]:
                line = process.stdout.readline()
                assert line, said
                said.append(line)
            assert said[0] == "before · bench: 10 answers, 1 without an answer left out\n"
            [link] = re.findall(r"http://\S+", said[-1])
            context = browser.new_context()
            context.set_default_timeout(PATIENCE)
            tab = context.new_page()
            tab.goto(link)
            assert tab.url.endswith("/projects/view/dashboard")
            shown = tab.locator("main").inner_text()
            for text in ("before · bench", "after · bench", "2 completed", "0.500"):
                assert text in shown
            assert tab.get_by_role("region", name="Datasets, latest").locator("tbody tr").count() == 1
            tab.goto(tab.url.replace("dashboard", "rules"))
            assert tab.get_by_role("button", name="Make rule").count() == 0
            context.close()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(timeout=300)
    assert process.returncode == 0


def test_a_folder_without_runs_is_refused(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "evenhand", "view", str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 65
    assert "results.jsonl" in done.stderr

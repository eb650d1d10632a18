"""What the documentation shows works: every Python block runs, and every tutorial from its first command to its last."""

import ast
import asyncio
import inspect
import json
import os
import re
import selectors
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from docs_site.pictures import pictures
from tests.real_parts import need
from tests.runs import single, write_run

from evenhand.models.config import EndpointConfig
from evenhand.models.connect import connect
from evenhand.sandbox.bubblewrap import Bubblewrap
from evenhand.sandbox.pool import Pool
from evenhand.testing import MockCall, MockModel, with_nonce

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PICTURES = DOCS / "pictures"
TUTORIALS = sorted((DOCS / "tutorials").glob("*.md"))
PROMISING = {"quickstart.md", "scorers.md", "evaluate.md"}
"""Pages whose examples say what comes out; tests/test_documents.py runs these and compares."""
FENCE = re.compile(r'^```(\w+)(?: title="([^"]+)")?\n(.*?)^```$', re.DOTALL | re.MULTILINE)
MOCK_URL = re.compile(r"http://127\.0\.0\.1:800[0-9]/v1")
"""Stands on the pages for a model's address."""
PATIENCE = 300.0
VERIFIER = ROOT / "tools" / "verify_verdict.py"
VERDICT = re.compile(r"^evenhand (?:compare|gate|ab analyze) [^|&#]*")
"""A command that ends in a verdict, without what follows it in the shell."""


class Block(NamedTuple):
    """A fenced block of a page."""

    language: str
    title: str
    """The file to write, or the terminal to run in."""
    text: str


def blocks(page: Path) -> list[Block]:
    return [Block(*found.groups(default="")) for found in FENCE.finditer(page.read_text(encoding="utf-8"))]


def python_blocks(page: Path) -> list[str]:
    return [block.text for block in blocks(page) if block.language == "python" and not block.title]


PAGES = [
    page
    for page in sorted(DOCS.glob("*.md"))
    if page.name not in PROMISING and python_blocks(page)
]  # fmt: skip


def answer(call: MockCall) -> str:
    """A model that knows one capital, and a judge that is content."""
    reply = '{"nonce": "{{nonce}}", "reasoning": "fine", "score": 4}'
    return with_nonce(reply, call.prompt) if "nonce" in call.prompt else "The answer is Paris."


def ab_records() -> str:
    rows = [
        {"task_id": f"t{task}", "arm": arm, "repeat": repeat, "success": arm == "with_tool" or task > 3,
         "duration_seconds": 10 + task, "total_cost_usd": 0.1, "input_tokens": 100 + task, "output_tokens": 10,
         "cache_read_tokens": 0, "cache_write_tokens": 0}
        for task in range(8) for arm in ("with_tool", "without_tool") for repeat in (1, 2)
    ]  # fmt: skip
    return "".join(json.dumps(row) + "\n" for row in rows)


async def run_blocks(texts: list[str], names: dict[str, Any], page: str) -> None:
    for text in texts:
        code = compile(text, page, "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        waiting = eval(code, names)
        if inspect.isawaitable(waiting):
            await waiting
    if "model" in names:
        await names["model"].aclose()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_python_on_the_page_runs(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, record_property: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "collected.jsonl").write_text(ab_records(), encoding="utf-8")
    names: dict[str, Any] = {"__name__": "example"}
    with ExitStack() as stack:
        mock = stack.enter_context(MockModel(answer))
        if page.name == "judge.md":
            names["model"] = connect(EndpointConfig(base_url=mock.url, model="m"))
        if page.name == "sandbox.md":
            need(shutil.which("bwrap") is not None, "bubblewrap")

            names["my_sandbox"] = stack.enter_context(Pool(Bubblewrap()))
        found = [MOCK_URL.sub(mock.url, text) for text in python_blocks(page)]
        if any("asyncio.run(" in text for text in found):
            for text in found:
                exec(compile(text, page.name, "exec"), names)
        else:
            asyncio.run(run_blocks(found, names, page.name))
    record_property("blocks", len(found))


def test_most_python_of_the_documentation_is_run(capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing escapes: every block is on a page that one of the tests runs."""
    ran = sum(len(python_blocks(page)) for page in [*PAGES, *TUTORIALS])
    ran += sum(len(python_blocks(DOCS / name)) for name in PROMISING)
    files = sum(bool(block.title) for page in TUTORIALS for block in blocks(page))
    commands = sum(
        len(_commands(block.text)) for page in TUTORIALS for block in blocks(page) if block.language == "bash"
    )
    with capsys.disabled():
        print(
            f"\ndocs: {ran} Python blocks, {files} files of tutorials and {commands} shell commands are run"
        )
    everything = sum(
        page.read_text(encoding="utf-8").count("\n```python\n")
        for page in DOCS.rglob("*.md")
        if "decisions" not in page.parts
    )
    assert ran == everything >= 20
    assert files >= 12
    assert commands >= 15


def _commands(text: str) -> list[str]:
    return [line for line in text.replace("\\\n", " ").splitlines() if line.strip()]


def verify_verdict_of(command: str, folder: Path, env: dict[str, str] | None = None) -> bool:
    """Whether the command ends in a verdict; if so, its audit file must agree with the verifier in every number."""
    found = VERDICT.match(command)
    if found is None or "--sequential" in command or "--policy-schema" in command:
        return False
    words = [*found.group().split()[1:], "--audit", "audit.json"]
    done = subprocess.run(
        [sys.executable, "-m", "evenhand", *words],
        cwd=folder, env=env, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.returncode in (0, 1, 2), f"{command}\n{done.stderr}"
    told = subprocess.run(
        [sys.executable, "-I", "-S", VERIFIER, "audit.json", "--inputs"],
        cwd=folder, capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert told.returncode == 0, f"{command}\n{told.stdout}{told.stderr}"
    assert " 0 differ" in told.stdout
    return True


@contextmanager
def running(command: str, folder: Path, env: dict[str, str]) -> Iterator[None]:
    """A server in a terminal of its own, from the line that has its address until the end of the page."""
    with subprocess.Popen(
        ["bash", "-c", f"exec {command.strip()}"], cwd=folder, env=env, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    ) as process:  # fmt: skip
        try:
            assert process.stdout is not None
            said = b""
            with selectors.DefaultSelector() as ready:
                ready.register(process.stdout, selectors.EVENT_READ)
                end = time.monotonic() + PATIENCE
                while b"http://" not in said:
                    assert ready.select(max(end - time.monotonic(), 0)), said
                    part = os.read(process.stdout.fileno(), 65536)
                    assert part, said.decode()
                    said += part
            yield
        finally:
            process.kill()


def _free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


@pytest.mark.parametrize("page", TUTORIALS, ids=lambda page: page.stem)
def test_the_tutorial_works_from_start_to_end(page: Path, tmp_path: Path) -> None:
    """Files are written, commands run in order, servers beside them; what is shown as output is printed.

    Commands that end in a verdict are run once more with `--audit`, and the verifier agrees with each.
    """
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {"PATH": path, "HOME": str(tmp_path), "LANG": "C.UTF-8", "EVENHAND_GRPC_PORT": "off"}
    ports: dict[str, str] = {}

    def moved(text: str) -> str:
        """The text with free ports in place of those on the page."""
        for port in re.findall(r"\b8(?:00[12]|321)\b", text):
            ports.setdefault(port, str(_free_port()))
            text = re.sub(rf"\b{port}\b", ports[port], text)
        return text

    printed = ""
    ran = verdicts = 0
    with ExitStack() as stack:
        for language, title, shown in blocks(page):
            text = moved(shown)
            if language == "text":
                for line in filter(None, map(str.strip, shown.splitlines())):
                    assert " ".join(line.split()) in " ".join(printed.split()), (line, printed)
            elif title.endswith("terminal"):
                stack.enter_context(running(text, tmp_path, env))
                ran += 1
            elif title:
                (tmp_path / title).write_text(text, encoding="utf-8")
            elif language in ("bash", "python"):
                # What a block exports is there in the next one, as in a terminal.
                kept = tmp_path / ".environment"
                script = f"set -euo pipefail\n{text}\nenv -0 > {kept}" if language == "bash" else text
                done = subprocess.run(
                    ["bash", "-c", script] if language == "bash" else [sys.executable, "-c", script],
                    cwd=tmp_path, env=env, capture_output=True, text=True, timeout=PATIENCE,
                )  # fmt: skip
                printed = done.stdout + done.stderr
                assert done.returncode == 0, f"{text}\n{printed}"
                if language == "bash":
                    pairs = (one.partition("=") for one in kept.read_text().split("\0") if one)
                    env = {name: value for name, _, value in pairs}
                    verdicts += sum(verify_verdict_of(line, tmp_path, env) for line in _commands(text))
                ran += 1
    assert ran >= 3
    assert verdicts == len(
        re.findall(r"^evenhand (?:compare|gate|ab analyze) ", page.read_text(), re.MULTILINE)
    )


def test_the_pictures_are_up_to_date() -> None:
    """Run scripts/write-pictures when this fails."""
    drawn = pictures()
    assert {path.name for path in PICTURES.iterdir()} == set(drawn)
    for name, drawing in drawn.items():
        assert (PICTURES / name).read_text(encoding="utf-8") == drawing, name
        assert f"pictures/{name}" in (DOCS / "statistics-explained.md").read_text(encoding="utf-8")


SERVES = ("serve", "view", "eval run promptfooconfig.yaml")
"""Servers, and promptfoo's configuration, which tests/evaluation runs."""


def test_commands_for_files_of_other_tools_work(shared_data: Path, tmp_path: Path) -> None:
    """The commands of from-other-tools.md, on files that the tools really wrote, under the names on the page."""
    peers = shared_data / "peers"
    promptfoo = peers / "promptfoo" / "results.json"
    (inspect_log,) = (peers / "inspect" / "logs-json").glob("*.json")
    (lm_eval,) = (path for path in (peers / "lm-eval" / "out").iterdir() if path.is_dir())
    (deepeval,) = (peers / "deepeval" / "results").glob("*.json")
    for source, names in {
        promptfoo: ("results.json", "before.json", "after.json"),
        inspect_log: ("logs/before.json", "logs/after.json"),
        deepeval: ("test_run_1.json", "test_run_2.json"),
        lm_eval: ("out/before", "out/after"),
        peers / "nemo" / "out" / "mini": ("nemo-out/mini", "runs/mini"),
    }.items():
        for name in names:
            (tmp_path / name).parent.mkdir(exist_ok=True)
            (shutil.copytree if source.is_dir() else shutil.copy)(source, tmp_path / name)
    (tmp_path / "policy.yaml").write_text("version: 1\ndefaults: {max_drop: 0.02}\n", encoding="utf-8")
    page = (DOCS / "from-other-tools.md").read_text(encoding="utf-8")
    ran = verdicts = 0
    for line in re.findall(r"^    evenhand (.*)$", page, re.MULTILINE):
        words = line.partition("#")[0].split()
        if " ".join(words).startswith(SERVES):
            continue
        done = subprocess.run(
            [sys.executable, "-m", "evenhand", *words],
            cwd=tmp_path, capture_output=True, text=True, timeout=PATIENCE,
        )  # fmt: skip
        assert done.returncode in ((0, 1, 2) if words[0] == "gate" else (0,)), f"{line}\n{done.stderr}"
        assert done.stdout.strip(), line
        verdicts += verify_verdict_of(f"evenhand {' '.join(words)}", tmp_path)
        ran += 1
    assert ran >= 7
    assert verdicts >= 5


def test_verdicts_of_the_pages_on_comparing_are_verified(tmp_path: Path) -> None:
    """The commands of compare.md, evaluate.md and ab.md, on runs under the names on the pages."""
    rng = np.random.default_rng(278)
    for place, name in enumerate(("base", "candidate", "before", "after")):
        scores = [float(rng.random() < 0.8 - 0.05 * place) for _ in range(90)]
        file = write_run(tmp_path / "runs" / name, single(scores), name="gpqa") / "results.jsonl"
        rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
        for row in rows:
            row["metadata"] = {"passage_id": f"p{row['problem_idx'] % 30}"}
        file.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    (tmp_path / "collected.jsonl").write_text(ab_records(), encoding="utf-8")
    policy = re.search(
        r"^```yaml\n(version: 1\n.*?)^```", (DOCS / "compare.md").read_text(), re.DOTALL | re.MULTILINE
    )
    assert policy is not None
    (tmp_path / "policy.yaml").write_text(policy.group(1), encoding="utf-8")
    found = 0
    for page in ("compare.md", "evaluate.md", "ab.md"):
        for line in re.findall(r"^    (evenhand .*?)(?:   .*)?$", (DOCS / page).read_text(), re.MULTILINE):
            if "runs/c" not in line.split() and "--scorer" not in line:  # three runs have no verdict
                found += verify_verdict_of(line, tmp_path)
    assert found >= 6

"""The examples of docs/traces.md, run as they stand; and the configuration it shows."""

import os
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.real_parts import need
from tests.service import page_block, run_examples, running_service

from evenhand.server.jobs.judge_models import JudgeModels

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "traces.md").read_text(encoding="utf-8")


@contextmanager
def model_on_the_page() -> Iterator[str]:
    """The address of the mock model that the page starts, on a free port."""
    found = re.search(r"`evenhand (mock-model) --port 8001 (.*?)`", PAGE)
    assert found is not None
    command = [sys.executable, "-m", "evenhand", found[1], "--port", "0", *found[2].split()]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def test_the_curl_examples_print_what_the_page_says(tmp_path: Path) -> None:
    for tool in ("curl", "jq"):
        need(any((Path(folder) / tool).exists() for folder in os.environ["PATH"].split(":")), tool)
    models = re.search(r"EVENHAND_MODELS='(.*)' evenhand serve", PAGE)
    assert models is not None
    with (
        model_on_the_page() as address,
        running_service(
            f"sqlite:///{tmp_path / 'e.db'}", models=models[1].replace("http://127.0.0.1:8001/v1", address)
        ) as service,
    ):
        printed = run_examples(service, page_block(PAGE, "sh"))
    # jq prints 1.0 as it came, or as 1: that depends on its version
    assert printed.replace("1.0]", "1]").replace("1500.0", "1500") == page_block(PAGE, "text")


def test_the_configuration_on_the_page_is_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = re.search(r"(    \[models\.small\].*?concurrency = 16\n)", PAGE, re.DOTALL)
    assert found is not None
    path = tmp_path / "models.toml"
    path.write_text(textwrap.dedent(found[1]))
    monkeypatch.setenv("SMALL_KEY", "k")
    models = JudgeModels.configured(path)
    assert (models.names, models.limits.concurrency) == (["small"], 16)

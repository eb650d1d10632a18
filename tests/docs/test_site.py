"""The documentation builds without a warning, needs no network, and speaks of commands and settings that exist."""

import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import click
import pytest
from docs_site.generated import commands, documented_settings, pages

from evenhand.cli import app
from evenhand.evaluation.trials import trial

ROOT = Path(__file__).resolve().parents[2]
TEXTS = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").glob("*.md")),
    *sorted((ROOT / "docs" / "tutorials").glob("*.md")),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)],
        cwd=ROOT, capture_output=True, text=True, timeout=600, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


class _Loaded(HTMLParser):
    """What a browser would load by itself."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        if tag in ("script", "img", "iframe", "source"):
            self.found.append(given.get("src") or "")
        if tag == "link" and given.get("rel") in ("stylesheet", "icon", "preload", "preconnect"):
            self.found.append(given.get("href") or "")


def test_the_site_is_read_without_a_network(site: Path) -> None:
    read = 0
    for page in site.rglob("*.html"):
        parser = _Loaded()
        parser.feed(page.read_text(encoding="utf-8"))
        assert parser.found
        assert [one for one in parser.found if re.match(r"(https?:)?//", one)] == [], page.name
        read += 1
    assert read > 20


def test_every_page_is_in_the_site(site: Path) -> None:
    for page in sorted((ROOT / "docs").rglob("*.md")):
        assert (site / page.relative_to(ROOT / "docs").with_suffix(".html")).is_file()


ALL = {path[1:]: command for path, command in commands(app.command, ("evenhand",))}


def test_the_reference_has_every_command_and_option() -> None:
    text = pages()["reference/cli.md"]
    for path, command in ALL.items():
        assert f"## `{' '.join(('evenhand', *path))}`" in text
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                assert max(parameter.opts, key=len) in text


SHELL = re.compile(r"^(?:    |\$ |)evenhand ([a-z][^\n`]*)$", re.MULTILINE)
INLINE = re.compile(r"`evenhand ([a-z][^`]*)`")


def _options(command: click.Command) -> set[str]:
    return {"-h", "--help"} | {
        one
        for parameter in command.params
        for one in (*parameter.opts, *parameter.secondary_opts)
        if one.startswith("-")
    }


def _find(words: list[str]) -> tuple[str, ...]:
    path: tuple[str, ...] = ()
    for word in words:
        if (*path, word) not in ALL:
            return path
        path = (*path, word)
    return path


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: page.name)
def test_documented_commands_and_options_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8").replace("\\\n", " ")
    for line in [*SHELL.findall(text), *INLINE.findall(text)]:
        words = re.sub(r"[\[\](),|]", " ", line.partition("  #")[0]).split()
        for call in [part.split() for part in re.split(r" / | && ", " ".join(words))]:
            start = call[1:] if call and call[0] == "evenhand" else call
            if not start or not re.fullmatch(r"[a-z-]+", start[0]):
                continue
            path = _find(start)
            assert path, f"{page.name}: evenhand {line}: no command '{start[0]}'"
            known = _options(ALL[path])
            unknown = [
                option
                for word in start[len(path) :]
                if (option := word.partition("=")[0]).startswith("--")
                and option not in known
                and option != "--"
            ]
            assert not unknown, f"{page.name}: evenhand {line}: {unknown}"


VARIABLE = re.compile(r"\bEVENHAND_[A-Z_]+\b")
OF_THE_TESTS = re.compile(r"EVENHAND_(TEST|BENCH)_[A-Z_]+")


def test_documented_variables_exist() -> None:
    known = set(VARIABLE.findall(" ".join(text for _, text in documented_settings())))
    known |= {f"EVENHAND_{name.upper()}" for name in trial._NAMES}  # what `ab run` tells an agent
    for page in TEXTS:
        named = set(VARIABLE.findall(page.read_text(encoding="utf-8")))
        unknown = {
            name for name in named - known if not OF_THE_TESTS.fullmatch(name) and not name.endswith("_")
        }
        assert not unknown, f"{page.name}: {unknown}"


def test_the_reference_has_every_variable_that_is_read() -> None:
    source = (ROOT / "src" / "evenhand" / "settings.py").read_text(encoding="utf-8")
    assert set(VARIABLE.findall(source)) <= set(VARIABLE.findall(pages()["reference/settings.md"]))

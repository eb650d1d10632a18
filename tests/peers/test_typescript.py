"""The pages' modules keep the types that their comments state: TypeScript, installed by npm, checks them as they are."""

import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

from tests.pages.test_first_paint import MODULES
from tests.peers.test_promptfoo import installed_by_npm

pytestmark = [pytest.mark.peers, pytest.mark.timeout(1800)]
OPTIONS = "--allowJs --checkJs --noEmit --strict --target es2022 --module es2022 --moduleResolution bundler"


def test_modules_keep_their_types(tmp_path: Path) -> None:
    checker = str(installed_by_npm("typescript@5", tmp_path) / "tsc")
    folder = Path(str(files("evenhand.server.pages").joinpath("static")))
    command = [
        checker,
        *OPTIONS.split(),
        "--lib",
        "es2022,dom,dom.iterable",
        *(str(folder / name) for name in MODULES),
    ]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout

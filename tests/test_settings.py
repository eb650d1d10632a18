"""Settings come from the environment, and from nowhere else."""

import ast
from pathlib import Path

import pytest

from evenhand import settings
from evenhand.core.errors import OptionError

SOURCE = Path(settings.__file__).parent


def test_defaults_need_no_environment() -> None:
    loaded = settings.load({"HOME": "/home/ada"})
    assert loaded.sandbox == "auto"
    assert loaded.api_key is None
    assert loaded.data_folder == Path("/home/ada/.local/share/evenhand")


def test_the_first_key_that_is_set_wins() -> None:
    both = settings.load({"EVENHAND_API_KEY": "ours", "OPENAI_API_KEY": "theirs"})
    assert both.api_key is not None
    assert both.api_key.reveal() == "ours"
    only = settings.load({"OPENAI_API_KEY": "theirs"})
    assert only.judge_api_key is not None
    assert only.judge_api_key.reveal() == "theirs"


def test_keys_are_not_in_the_repr() -> None:
    assert "planted" not in repr(settings.load({"EVENHAND_API_KEY": "planted"}))


def test_an_unknown_sandbox_is_refused() -> None:
    with pytest.raises(OptionError, match="auto, docker, bubblewrap"):
        settings.load({"EVENHAND_SANDBOX": "chroot"})


def test_no_other_module_reads_the_environment() -> None:
    readers = {
        path.relative_to(SOURCE).as_posix()
        for path in SOURCE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in ("environ", "getenv")
    }
    assert readers == {"settings.py"}

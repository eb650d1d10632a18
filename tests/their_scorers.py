"""A real distribution with scorers of its own, as a package that somebody installed."""

import os
from pathlib import Path

import evenhand

CODE = """
import asyncio
import os
import time
from pathlib import Path
from typing import Callable

from evenhand import scorer

Path(__file__).with_name("loaded").write_text("yes")
VERSION = os.environ.get("THEIR_VERSION", "1")
RELEASE = Path(__file__).with_name("release")


@scorer(version=VERSION)
def polite(sample, word: str = "please", key: Callable[[str], str] | None = None, file: Path | None = None):
    "The response is polite."
    return {"correct": word in sample.response}


@scorer
async def patient(sample, seconds: float = 0.0):
    "The response, after a while."
    await asyncio.sleep(seconds)
    return {"reward": 0.75}


@scorer
def stuck(sample):
    "Nothing until a file is there."
    while not RELEASE.exists():
        time.sleep(0.01)
    return {"reward": 0.5}


@scorer
def wild(sample):
    "Whatever the response says: a number, a label, or an error."
    kind, _, text = sample.response.partition(" ")
    if kind == "raise":
        raise ValueError(text)
    return {"label": text} if kind == "label" else {"reward": float(text)}
"""
NAMES = ("patient", "polite", "stuck", "wild")


def install(folder: Path) -> dict[str, str]:
    """The environment in which the distribution is installed beside this program."""
    (folder / "theirs.py").write_text(CODE, encoding="utf-8")
    info = folder / "theirs-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.0\n", encoding="utf-8")
    entries = "".join(f"{name} = theirs:{name}\n" for name in NAMES)
    broken = "broken = theirs:no_such\nodd = theirs:__name__\n"
    (info / "entry_points.txt").write_text(f"[evenhand.scorers]\n{entries}{broken}", encoding="utf-8")
    ours = Path(evenhand.__file__).resolve().parents[1]
    return {"PYTHONPATH": os.pathsep.join([str(folder), str(ours)])}


def was_loaded(folder: Path) -> bool:
    """Whether anything of the distribution has been run."""
    return (folder / "loaded").exists()

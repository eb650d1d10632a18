"""Library, command line and client use nothing that only Linux has: they are meant to run on macOS too.

No macOS is at hand in the tests, so its Python is imitated: the names that it lacks are taken out of the standard
library before anything of ours is imported.
"""

import json
import subprocess
import sys
from pathlib import Path

LIKE_MACOS = """
import os, socket, sys
for module, names in {
    os: (
        "fdatasync", "sched_getaffinity", "sched_setaffinity", "pidfd_open", "memfd_create", "eventfd", "pipe2",
        "posix_fadvise", "posix_fallocate", "copy_file_range", "splice", "getrandom", "setns", "unshare",
        "O_TMPFILE", "O_PATH", "O_DIRECT", "getxattr", "setxattr", "prlimit",
    ),
    socket: ("SO_PEERCRED", "AF_VSOCK", "AF_NETLINK"),
}.items():
    for name in names:
        if hasattr(module, name):
            delattr(module, name)
"""


def run(program: str, folder: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", LIKE_MACOS + program], cwd=folder, capture_output=True, text=True, timeout=300
    )


def command(folder: Path, *words: str) -> str:
    done = run(
        f"from evenhand.cli.app import main; sys.argv = {['evenhand', *words]!r}; sys.exit(main())", folder
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_every_module_outside_of_sandbox_and_server_is_imported(tmp_path: Path) -> None:
    program = """
import importlib, pkgutil, evenhand
left_out = ("evenhand.sandbox", "evenhand.server", "evenhand.evaluation.trials.supervisor")
for found in pkgutil.walk_packages(evenhand.__path__, "evenhand."):
    if not found.name.startswith(left_out) and not found.name.endswith("__main__"):
        importlib.import_module(found.name)
        print(found.name)
"""
    done = run(program, tmp_path)
    assert done.returncode == 0, done.stderr
    assert len(done.stdout.split()) > 150


def test_scores_runs_and_verdicts_work(tmp_path: Path) -> None:
    rows = [{"input": n, "expected": str(n), "response": str(n), "target": str(n)} for n in range(60)]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / "app.py").write_text("def same(n):\n    return str(n)\n")
    assert "exact_match" in command(tmp_path, "score", "rows.jsonl", "--scorer", "exact_match")
    for name in ("old", "new"):
        words = ("eval", "run", "--task", "app.py:same", "--data", "rows.jsonl", "--scorer", "exact_match")
        assert "60 scored" in command(tmp_path, *words, "-o", name)
    assert "60 pairs" in command(tmp_path, "compare", "old", "new")

"""A folder of its own for every trial: a copy, a git worktree, or an empty one."""

import os
import shutil
import stat
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from evenhand.core.errors import InputError, OptionError
from evenhand.evaluation.trials.suite import LoadedSuite


class Workspaces:
    """Makes and removes the workspaces of a run, all below one folder."""

    def __init__(self, loaded: LoadedSuite, root: Path, run_folder: Path, commit: str | None) -> None:
        self._kind = loaded.suite.workspace.kind
        self._source = source_folder(loaded)
        self._root = root
        self._run_folder = run_folder.resolve()
        self._commit = commit
        # git keeps its list of worktrees in one place and does not like two changes at a time.
        self._git_lock = threading.Lock()

    def make(self, name: str) -> Path:
        """A fresh workspace."""
        path = self._root / name
        self._remove(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        if self._kind == "git":
            assert self._commit is not None
            with self._git_lock:
                git(self._source, "worktree", "add", "--detach", "--force", str(path), self._commit)
        elif self._kind == "copy":
            shutil.copytree(self._source, path, symlinks=True, ignore=self._own_folder)
        else:
            path.mkdir()
        return path

    def _own_folder(self, folder: str, names: list[str]) -> set[str]:
        """The run's own folder, when it lies inside what is copied."""
        return {name for name in names if Path(folder, name).resolve() == self._run_folder}

    def remove(self, path: Path) -> None:
        """Remove one workspace."""
        self._remove(path)
        if self._kind == "git":
            with self._git_lock:
                git(self._source, "worktree", "prune")

    def clear(self) -> None:
        """Remove everything that an earlier process left."""
        if self._root.exists():
            self.remove(self._root)

    def _remove(self, path: Path) -> None:
        if path.is_symlink() or path.is_file():
            path.unlink()
        elif path.exists():
            shutil.rmtree(path, onerror=_forced)  # `onexc` needs Python 3.12


def _forced(function: Callable[..., Any], path: str, _error: object) -> None:
    """Remove what an agent made read-only."""
    os.chmod(Path(path).parent, stat.S_IRWXU)
    if not os.path.islink(path):
        os.chmod(path, stat.S_IRWXU)
    function(path)


def source_folder(loaded: LoadedSuite) -> Path:
    """What the workspaces are made from."""
    return (loaded.folder / loaded.suite.workspace.source).resolve()


def resolve_commit(loaded: LoadedSuite) -> str | None:
    """The commit that git workspaces check out; None for other kinds. A source that cannot serve is an error."""
    workspace, source = loaded.suite.workspace, source_folder(loaded)
    if workspace.kind == "empty":
        return None
    if not source.is_dir():
        raise InputError(f"{source} is not a folder", path=loaded.path, field="workspace.source")
    if workspace.kind == "copy":
        return None
    try:
        return git(source, "rev-parse", "--verify", "--quiet", f"{workspace.ref}^{{commit}}").strip()
    except OptionError:
        raise InputError(
            f"{source} is not a git repository with a commit '{workspace.ref}'",
            path=loaded.path,
            field="workspace.ref",
        ) from None


def git(folder: Path, *args: str) -> str:
    """The output of a git command; `OptionError` with what git said when it fails."""
    try:
        done = subprocess.run(  # noqa: S603  fixed words, and a commit that git itself resolved
            ["git", "-C", str(folder), *args],  # noqa: S607  git is wherever PATH has it
            capture_output=True,
            check=False,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=600,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise OptionError(f"git cannot be run: {error}") from None
    if done.returncode:
        raise OptionError(f"git {args[0]} failed: {done.stderr.strip() or done.returncode}")
    return done.stdout

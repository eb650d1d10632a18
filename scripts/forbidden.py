"""Refuse calls that turn data into code, and registry addresses and unresolved conflicts in tracked files."""

import ast
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_ATTRIBUTES = {("yaml", "load"), ("yaml", "unsafe_load"), ("yaml", "full_load")}
FORBIDDEN_MODULES = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
# Programs that run *inside* the sandbox execute model code: that is their purpose.
INSIDE_THE_SANDBOX = "src/evenhand/sandbox/guest/"
REGISTRY_ADDRESS = re.compile(
    r'"resolved": *"https?://|https?://[^ "]+/(simple/?["$ ]|packages/[0-9a-f]{2}/)'
)
CONFLICT = re.compile(r"^(<{7}|>{7}) ", re.MULTILINE)
LOCK_FILES = {"uv.lock", "poetry.lock", "pdm.lock", "package-lock.json"}


def findings(path: Path, name: str) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            target = node.func
            if isinstance(target, ast.Name) and target.id in FORBIDDEN_CALLS:
                found.append(f"{name}:{node.lineno}: call of {target.id}()")
            if (
                isinstance(target, ast.Attribute)
                and isinstance(target.value, ast.Name)
                and (target.value.id, target.attr) in FORBIDDEN_ATTRIBUTES
            ):
                found.append(f"{name}:{node.lineno}: call of {target.value.id}.{target.attr}()")
        modules = []
        if isinstance(node, ast.Import):
            modules = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            modules = [node.module or ""]
        found += [
            f"{name}:{node.lineno}: import of {m}" for m in modules if m.split(".")[0] in FORBIDDEN_MODULES
        ]
    return found


def main() -> int:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout  # noqa: S607  git is wherever PATH has it
    found = []
    for name in listed.splitlines():
        path = ROOT / name
        if not path.is_file():
            continue
        if path.name in LOCK_FILES:
            found.append(f"{name}: lock files record registry addresses")
        if name.startswith("src/") and name.endswith(".py") and not name.startswith(INSIDE_THE_SANDBOX):
            found += findings(path, name)
        if name != "scripts/forbidden.py" and path.stat().st_size < 2_000_000:
            text = path.read_bytes().decode("utf-8", "replace")
            if REGISTRY_ADDRESS.search(text):
                found.append(f"{name}: names a package registry's address")
            if CONFLICT.search(text):
                found.append(f"{name}: holds the marks of a conflict")
    print("\n".join(found))
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())

"""Names that nothing uses, found by vulture: functions, methods, classes, imports and constants.

Fields of types are left out: they are written to JSON, databases and pages, which vulture does not see. So are names that
a template uses, and functions that a decorator of click registers.
"""

import re
import sys
from pathlib import Path

from vulture import Vulture

ROOT = Path(__file__).resolve().parent.parent
FOLDERS = ("src", "bench", "tests", "scripts")
KINDS = {"function", "method", "class", "import", "property", "unreachable_code"}
USED_BY_OTHERS = {
    "format_commands": "click calls it",
    "on_broken_pipe": "rich's console calls it",
    "_unsupported_upgrade_warning": "uvicorn's protocol calls it",
    "send_400_response": "uvicorn's protocol calls it",
    "_JsonArray": "a forward reference of msgspec names it",
    "_JsonMap": "a forward reference of msgspec names it",
}
"""What is called from outside of the tree, and by whom."""


def template_names() -> set[str]:
    """Every word of the templates."""
    texts = (path.read_text("utf-8") for path in (ROOT / "src").rglob("*.html"))
    return {name for text in texts for name in re.findall(r"[A-Za-z_]\w*", text)}


def dead_names() -> list[str]:
    """One line for each name that nothing uses."""
    vulture = Vulture(
        ignore_decorators=["@*command*", "@*group*", "@*fixture*", "@*overload*", "@given", "@*.hookimpl*"]
    )
    vulture.scavenge([str(ROOT / folder) for folder in FOLDERS])
    known = USED_BY_OTHERS.keys() | template_names()
    return [
        f"{Path(one.filename).relative_to(ROOT)}:{one.first_lineno}: unused {one.typ} '{one.name}'"
        for one in vulture.get_unused_code(min_confidence=60)
        if "src" in Path(one.filename).relative_to(ROOT).parts[:1]
        and (one.typ in KINDS or (one.typ == "variable" and one.name.isupper()))
        and one.name not in known
    ]


if __name__ == "__main__":
    found = dead_names()
    if found:
        print("\n".join(found))
        print("Remove them, or list them in scripts/dead-names.py with who calls them.")
    sys.exit(1 if found else 0)

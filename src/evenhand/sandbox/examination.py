"""Every sandbox of this machine, measured by running programs in it."""

from collections.abc import Callable
from typing import Any

from evenhand.sandbox.conformance import CHECKS, findings
from evenhand.sandbox.docker import DockerOptions
from evenhand.sandbox.pool import Pool
from evenhand.sandbox.selection import candidates


def examine_sandboxes(
    docker: DockerOptions, *, wanted: str, quick: bool, on_finding: Callable[[str], None]
) -> dict[str, Any]:
    """Every back end with its findings, and the one that `wanted` (a name, or `auto`) takes."""
    backends: list[dict[str, Any]] = []
    for candidate in candidates(docker):
        found = []
        if candidate.backend is not None:
            with Pool(candidate.backend, warm=1) as pool:
                for finding in findings(pool, quick=quick):
                    found.append({"check": finding.check, "ok": finding.ok, "measured": finding.measured})
                    on_finding(f"{candidate.name}: {finding.check}")
        backends.append(
            {
                "name": candidate.name if candidate.backend is None else candidate.backend.name,
                "works": bool(found) and all(f["ok"] for f in found),
                "strength": candidate.strength,
                "holds": candidate.holds,
                "problem": candidate.problem,
                "checks": found,
            }
        )
    quick_names = {check.name for check in CHECKS if check.quick}
    usable = [
        b for b in backends if b["checks"] and all(f["ok"] for f in b["checks"] if f["check"] in quick_names)
    ]
    asked = [b for b in usable if wanted in ("auto", b["name"].partition("+")[0])]
    best = max(asked, key=lambda b: b["strength"], default=None)
    return {"setting": wanted, "chosen": best["name"] if best else None, "backends": backends}

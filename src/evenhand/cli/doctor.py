"""`evenhand doctor`: which parts work on this machine, what each limit does here, and what to install."""

from typing import Any

import click
from rich.markup import escape

from evenhand import settings
from evenhand.cli.output import console, format_option, print_json, progress
from evenhand.core.terminal import printable


@click.command()
@click.option("--quick", is_flag=True, help="Only the checks made before first use.")
@format_option
def command(quick: bool, format_: str) -> int:
    """Show which sandboxes work here, measured by running programs in them.

    \b
    evenhand doctor
    evenhand doctor --quick --format json

    Exit status: 0 when one of them can run model-written code, 1 when none can.
    """
    report = examine(quick=quick)
    if format_ == "json":
        print_json(report)
    else:
        show(report)
    return 0 if report["chosen"] else 1


def examine(*, quick: bool) -> dict[str, Any]:
    """Every back end with its findings, and the one that `auto` (or the setting) takes."""
    from evenhand.sandbox.conformance import CHECKS, findings
    from evenhand.sandbox.docker import DockerOptions
    from evenhand.sandbox.pool import Pool
    from evenhand.sandbox.selection import candidates

    chosen = settings.load()
    docker = DockerOptions(socket=chosen.docker_socket, image=chosen.sandbox_image)
    backends: list[dict[str, Any]] = []
    with progress("checking sandboxes", total=None) as steps:
        for candidate in candidates(docker):
            found = []
            if candidate.backend is not None:
                with Pool(candidate.backend, warm=1) as pool:
                    for finding in findings(pool, quick=quick):
                        found.append({"check": finding.check, "ok": finding.ok, "measured": finding.measured})
                        steps.advance()
                        steps.note(f"{candidate.name}: {finding.check}")
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
    asked = [b for b in usable if chosen.sandbox in ("auto", b["name"].partition("+")[0])]
    best = max(asked, key=lambda b: b["strength"], default=None)
    return {"setting": chosen.sandbox, "chosen": best["name"] if best else None, "backends": backends}


def show(report: dict[str, Any]) -> None:
    """The same for people."""
    out = console()
    for backend in report["backends"]:
        state = "works" if backend["works"] else "not available" if backend["problem"] else "FAILS"
        out.print(f"[bold]{backend['name']}[/bold]: {state}")
        for line in (backend["holds"], backend["problem"]):
            if line:
                out.print(f"  {escape(printable(line))}", soft_wrap=True)
        for found in backend["checks"]:
            mark = "ok  " if found["ok"] else "FAIL"
            out.print(f"  {mark} {found['check']:<18} {escape(printable(found['measured']))}", soft_wrap=True)
    if report["chosen"]:
        out.print(f"EVENHAND_SANDBOX={report['setting']}: programs run in {report['chosen']}.")
    else:
        from evenhand.sandbox.selection import HOW_TO_INSTALL

        out.print(f"EVENHAND_SANDBOX={report['setting']}: no sandbox works here; {HOW_TO_INSTALL}.")

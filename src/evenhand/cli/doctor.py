"""`evenhand doctor`: what works on this machine, and what to install for the rest."""

import platform
import sys
from typing import Any

import click
from rich.markup import escape

from evenhand import __version__, settings
from evenhand.cli.output import console, format_option, print_json, progress
from evenhand.core.errors import EvenhandError
from evenhand.core.extras import EXTRAS
from evenhand.core.terminal import printable


@click.command()
@click.option("--quick", is_flag=True, help="Only the sandbox checks that are made before first use.")
@click.option("--no-sandboxes", is_flag=True, help="Leave the sandboxes out: they take the longest.")
@format_option
def command(quick: bool, no_sandboxes: bool, format_: str) -> int:
    """Show which parts work here: extras, database, and sandboxes (measured by running programs in them).

    \b
    evenhand doctor
    evenhand doctor --no-sandboxes
    evenhand doctor --quick --format json

    Exit status: 0 when everything that was asked for works, 1 when the database cannot be opened or no sandbox
    can run model-written code.
    """
    report: dict[str, Any] = {
        "evenhand": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "extras": [
            {
                "name": extra.name,
                "installed": not extra.missing,
                "missing": extra.missing,
                "purpose": extra.purpose,
                "install": extra.command,
            }
            for extra in EXTRAS
        ],
        "database": examine_database(),
        "sandbox": None if no_sandboxes else sandbox_report(quick=quick),
    }
    if format_ == "json":
        print_json(report)
    else:
        show(report)
    works = report["database"]["problem"] is None and (no_sandboxes or report["sandbox"]["chosen"])
    return 0 if works else 1


def examine_database() -> dict[str, Any]:
    """The service's database, as the settings name it; looking changes nothing."""
    from evenhand.store.database import pick_dialect, reading
    from evenhand.store.sqlite import SqliteDialect

    address = settings.load().database
    try:
        dialect = pick_dialect(address)
        place = dialect.place
        missing = isinstance(dialect, SqliteDialect) and not dialect.path.exists()
        dialect.close()
        if missing:
            return {"place": place, "state": "will be made by the first `evenhand serve`", "problem": None}
        with reading(address):
            return {"place": place, "state": "opens", "problem": None}
    except EvenhandError as error:
        return {"place": "EVENHAND_DATABASE", "state": "does not open", "problem": str(error)}


def sandbox_report(*, quick: bool) -> dict[str, Any]:
    """Every back end with its findings, and the one that `auto` (or the setting) takes."""
    from evenhand.sandbox.docker import DockerOptions
    from evenhand.sandbox.examination import examine_sandboxes

    chosen = settings.load()
    docker = DockerOptions(socket=chosen.docker_socket, image=chosen.sandbox_image)
    with progress("checking sandboxes", total=None) as steps:

        def found(words: str) -> None:
            steps.advance()
            steps.note(words)

        return examine_sandboxes(docker, wanted=chosen.sandbox, quick=quick, on_finding=found)


def show(report: dict[str, Any]) -> None:
    """The same for people."""
    out = console()
    out.print(f"[bold]evenhand {report['evenhand']}[/bold], Python {report['python']}, {report['platform']}")
    out.print("\n[bold]Extras[/bold]")
    for extra in report["extras"]:
        mark = "ok  " if extra["installed"] else "--  "
        line = extra["purpose"] if extra["installed"] else f"{extra['purpose']}: {extra['install']}"
        out.print(f"  {mark} {extra['name']:<10} {escape(line)}", soft_wrap=True)
    database = report["database"]
    out.print("\n[bold]Database of the service[/bold]")
    mark = "ok  " if database["problem"] is None else "FAIL"
    out.print(f"  {mark} {escape(printable(database['place']))}: {database['state']}", soft_wrap=True)
    if database["problem"]:
        out.print(f"  {escape(printable(database['problem']))}", soft_wrap=True)
    if report["sandbox"] is not None:
        out.print("\n[bold]Sandboxes for model-written code[/bold]")
        show_sandboxes(report["sandbox"])


def show_sandboxes(report: dict[str, Any]) -> None:
    """Each back end with what was measured, then the one that is taken."""
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
    elif not sys.platform.startswith("linux"):
        out.print("Sandboxes for model-written code need Linux; everything else works here.")
    else:
        from evenhand.sandbox.selection import HOW_TO_INSTALL

        out.print(f"EVENHAND_SANDBOX={report['setting']}: no sandbox works here; {HOW_TO_INSTALL}.")

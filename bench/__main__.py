"""`python -m bench [--only NAME] [--write]`: run the benches, and with --write put the figures into the docs."""

import argparse
import importlib
import platform
import re
from datetime import UTC, datetime
from pathlib import Path

from bench.harness import Report

HERE = Path(__file__).resolve().parent
PAGE = HERE.parent / "docs" / "performance.md"


def table(report: Report) -> str:
    today = datetime.now(UTC).date().isoformat()
    lines = [
        f"Command: `{report.command or f'make bench ONLY={report.name}'}`; {today}, Python {platform.python_version()}.",
        "",
        "| what | figure | target |",
        "|---|---|---|",
    ]
    return "\n".join(lines + [f"| {what} | {figure} | {target} |" for what, figure, target in report.rows])


def write(report: Report) -> None:
    page = PAGE.read_text(encoding="utf-8")
    start, end = f"<!-- bench:{report.name} -->", f"<!-- /bench:{report.name} -->"
    block = f"{start}\n{table(report)}\n{end}"
    if start in page:
        page = re.sub(re.escape(start) + ".*?" + re.escape(end), lambda _: block, page, flags=re.DOTALL)
    else:
        page = page.rstrip() + f"\n\n## {report.name.replace('_', ' ').capitalize()}\n\n{block}\n"
    PAGE.write_text(page, encoding="utf-8")


def main() -> None:
    names = sorted(path.stem.removeprefix("bench_") for path in HERE.glob("bench_*.py"))
    parser = argparse.ArgumentParser(prog="python -m bench")
    parser.add_argument("--only", choices=names, help="one bench instead of all")
    parser.add_argument("--write", action="store_true", help="put the figures into docs/performance.md")
    options = parser.parse_args()
    for name in [options.only] if options.only else names:
        print(f"{name}:", flush=True)
        report = Report(name)
        importlib.import_module(f"bench.bench_{name}").run(report)
        if options.write:
            write(report)


if __name__ == "__main__":
    main()

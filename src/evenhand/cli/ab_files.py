"""What both `evenhand ab` commands do with a report: write its files, choose the exit status."""

from pathlib import Path

from evenhand.ab import AbReport
from evenhand.cli.formats import save_text
from evenhand.core.errors import Exit

STRICT_STATUS = {"treatment": 0, "control": 1, "mixed": 2, "insufficient": 2}


def write_report(report: AbReport, *, json_file: Path, md_file: Path, html_file: Path | None) -> list[Path]:
    """Write the report's files, each whole or not at all; returns which."""
    texts = {json_file: report.to_json(), md_file: report.to_markdown()}
    if html_file is not None:
        from evenhand.reports.ab import ab_page

        texts[html_file] = ab_page(report)
    for path, text in texts.items():
        save_text(path, text)
    return list(texts)


def exit_status(report: AbReport, *, strict: bool) -> int:
    """0, or 65 when there is nothing to decide on; under `strict` the decision itself."""
    if strict:
        return STRICT_STATUS[report.verdict]
    return Exit.DATA if report.verdict == "insufficient" else 0

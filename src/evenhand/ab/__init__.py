"""Paired A/B analysis of run logs: records in, a verdict with its reasons out. Pure but for `loader`."""

from typing import TYPE_CHECKING, Any

from evenhand.core.lazy_names import load_name

if TYPE_CHECKING:
    from evenhand.ab.analysis import analyze
    from evenhand.ab.loader import load_records
    from evenhand.ab.record import RunRecord
    from evenhand.ab.report import AbReport
    from evenhand.ab.table import RunTable

__all__ = ["AbReport", "RunRecord", "RunTable", "analyze", "load_records"]

# Loaded on first use: numpy costs a tenth of a second that `--help` need not pay.
_HOMES = {
    "AbReport": "evenhand.ab.report",
    "RunRecord": "evenhand.ab.record",
    "RunTable": "evenhand.ab.table",
    "analyze": "evenhand.ab.analysis",
    "load_records": "evenhand.ab.loader",
}


def __getattr__(name: str) -> Any:
    return load_name(__name__, _HOMES, name)

"""Paired A/B analysis of run logs: records in, a verdict with its reasons out. Pure but for `loader`."""

from typing import TYPE_CHECKING

from evenhand.core.lazy_names import lazy_names

if TYPE_CHECKING:  # the table below says the same at run time
    from evenhand.ab.analysis import analyze as analyze
    from evenhand.ab.loader import load_records as load_records
    from evenhand.ab.record import RunRecord as RunRecord
    from evenhand.ab.report import AbReport as AbReport
    from evenhand.ab.table import RunTable as RunTable
else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "evenhand.ab.analysis": ("analyze",),
            "evenhand.ab.loader": ("load_records",),
            "evenhand.ab.record": ("RunRecord",),
            "evenhand.ab.report": ("AbReport",),
            "evenhand.ab.table": ("RunTable",),
        },
    )

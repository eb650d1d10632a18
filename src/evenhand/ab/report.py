"""The result of an analysis: findings, and how they are written as JSON and Markdown. `reports.ab` has the page."""

from typing import Any

import msgspec

from evenhand.ab.findings import Findings
from evenhand.ab.markdown import markdown
from evenhand.core import jsontext


class AbReport(Findings, frozen=True, kw_only=True):
    """A comparison of two arms."""

    def to_dict(self) -> dict[str, Any]:
        """The content of analysis.json, as docs/ab.md describes it."""
        own = {
            name: msgspec.to_builtins(getattr(self, name))
            for name in self.__struct_fields__
            if name not in ("deltas", "paired_runs", "verdict", "profile")
        }
        paired: dict[str, Any] = {"paired_runs": self.paired_runs}
        for name, delta in self.deltas.items():
            paired[f"mean_{name}"] = delta.mean
            paired[f"median_{name}"] = delta.median
        paired["pairs_with_value"] = {name: delta.pairs for name, delta in self.deltas.items()}
        paired["unpaired_runs"] = dict(self.data_quality.unpaired_runs)
        out: dict[str, Any] = {}
        for name, value in own.items():
            out[name] = value
            if name == "arm_summaries":
                out["paired"] = paired
        return out

    def to_json(self) -> str:
        """`to_dict` as indented JSON text."""
        return msgspec.json.format(jsontext.encode(self.to_dict()), indent=2).decode() + "\n"

    def to_markdown(self) -> str:
        """The report for people, as Markdown."""
        return markdown(self)

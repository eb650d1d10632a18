"""The result of an analysis: findings, and how they are written as JSON and Markdown. `reports.ab` has the page."""

from typing import Any

import msgspec

from evenhand.ab.arms import METRICS
from evenhand.ab.decision import GATE_METRICS, INSUFFICIENT, MIXED, Preference
from evenhand.ab.findings import Findings
from evenhand.ab.markdown import markdown
from evenhand.ab.pairing import DeltaSummary
from evenhand.ab.profile import Profile
from evenhand.core import jsontext
from evenhand.core.errors import InputError


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


def read_analysis(data: bytes) -> AbReport:
    """The report that an `analysis.json` holds; `InputError` says what is wrong with another file.

    What the pictures of runs and tasks are drawn from is not in the file: the profile is empty.
    """
    given = jsontext.decode(data)
    jsontext.check_keys(data)
    if not isinstance(given, dict) or "gates" not in given:
        raise InputError("this is no analysis.json: `evenhand ab analyze` writes one")
    own = {name: value for name, value in given.items() if name != "paired"}
    try:
        own["deltas"] = _deltas(given.get("paired"))
        own["paired_runs"] = given["paired"]["paired_runs"]
        own["verdict"] = _verdict(given)
        own["profile"] = Profile(tasks=(), task_count=0, durations={}, tokens={})
        report = msgspec.convert(own, AbReport)
    except msgspec.ValidationError as error:
        raise InputError(f"this is no analysis.json: {error}") from None
    except KeyError as error:
        raise InputError(f"this is no analysis.json: `{error.args[0]}` is missing") from None
    _check_whole(report)
    return report


def _deltas(paired: Any) -> dict[str, DeltaSummary]:
    if not isinstance(paired, dict) or not isinstance(paired.get("pairs_with_value"), dict):
        raise InputError("this is no analysis.json: `paired` holds the deltas and `pairs_with_value`")
    return {
        name: msgspec.convert(
            {"mean": paired[f"mean_{name}"], "median": paired[f"median_{name}"], "pairs": pairs}, DeltaSummary
        )
        for name, pairs in paired["pairs_with_value"].items()
    }


def _verdict(given: dict[str, Any]) -> Preference:
    """The verdict behind the sentence `decision`."""
    decision = given["decision"]
    if decision == MIXED:
        return "mixed"
    if decision == INSUFFICIENT:
        return "insufficient"
    if given["treatment"] is not None and decision == f"prefer {given['treatment']}":
        return "treatment"
    if given["control"] is not None and decision == f"prefer {given['control']}":
        return "control"
    raise InputError("this is no analysis.json: `decision` names neither arm")


def _check_whole(report: AbReport) -> None:
    """A file that somebody shortened is refused: pages and Markdown count on these."""
    if [gate.name for gate in report.gates] != list(GATE_METRICS):
        raise InputError(f"this is no analysis.json: `gates` are {', '.join(GATE_METRICS)}")
    for metric in METRICS:
        for name, part in (("paired", report.deltas), ("intervals", report.intervals)):
            if metric.delta not in part:
                raise InputError(f"this is no analysis.json: `{name}` has nothing about `{metric.delta}`")

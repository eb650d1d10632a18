"""docs/ab.md says what analysis.json holds, and publishes the record's schema as it is shipped."""

import re
from pathlib import Path
from typing import Any

from tests.ab_rows import row, worked_example

from evenhand.ab import analyze
from evenhand.ab.record import schema_text
from evenhand.evaluation.trials.suite import Suite

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "ab.md").read_text(encoding="utf-8")


def _keys(value: Any) -> set[str]:
    if isinstance(value, list):
        return set().union(*(_keys(one) for one in value))
    if isinstance(value, dict):
        return set(value).union(*(_keys(one) for one in value.values()))
    return set()


def test_every_key_of_analysis_json_is_documented() -> None:
    """Keys that are data (arms, tasks, fields of records, deltas) apart."""
    rows = [{**one, "arm": one["arm"].replace("tool", "x")} for one in worked_example()]
    rows += [row("t1", "other", 1)]
    report = analyze([*rows], "with_x", "without_x")
    data = {"with_x", "without_x", "other", "t1", "t2"} | set(report.deltas) | set(rows[0])
    data |= {f"{kind}_{name}" for name in report.deltas for kind in ("mean", "median")}
    data |= {"non_cache_tokens", "step_count", "tool_call_count", "acceptance_cmd_count"}
    section = PAGE.partition("## analysis.json")[2].partition("\n## ")[0]
    documented = set(re.findall(r"`([a-z_]+)(?:\[\])?`", section))
    assert _keys(report.to_dict()) - data - documented == set()
    assert set(report.deltas) <= set(re.findall(r"`([a-z_]+)`", PAGE))


def test_the_schema_in_the_docs_is_the_shipped_one() -> None:
    published = PAGE.partition("<!-- schema -->\n```json\n")[2].partition("```\n<!-- /schema -->")[0]
    assert published == schema_text()


def test_every_field_of_a_suite_is_documented() -> None:
    section = PAGE.partition("## Running a suite")[2]
    assert set(Suite.__struct_fields__) <= set(re.findall(r"`([a-z_]+)`", section))

"""A scorer's mean by experiment and over time; scores of different versions are never mixed."""

from datetime import datetime, timedelta

from evenhand.core.timestamps import format_instant, now
from evenhand.plots import IntervalRow, Step, interval_axis, interval_picture, interval_scale, timeline
from evenhand.reports.numbers import number
from evenhand.server.pages.frame import age_of
from evenhand.server.pages.grid import Cell, Column, Grid, Row
from evenhand.server.pages.kept_days import interval_of, label_of
from evenhand.server.pages.links import project_path
from evenhand.server.pages.scorer_cells import labels_text
from evenhand.store.connection import Connection
from evenhand.store.experiments import list_experiments
from evenhand.store.score_days import days_by_version
from evenhand.store.summaries import read_summary

MOST_EXPERIMENTS = 50


def by_experiment(connection: Connection, project_id: str, scorer_name: str) -> Grid:
    """A row for each of the newest experiments with such scores, and for each version among them."""
    from evenhand.server.api.summaries import summarise  # numpy: not needed to start

    moment = now()
    found = []
    for one in list_experiments(connection, project_id=project_id, before=None, limit=MOST_EXPERIMENTS):
        kept = read_summary(connection, one.id, scope=project_id, scorer_name=scorer_name)
        summary = summarise(kept).scores_by_scorer.get(scorer_name)
        if summary is None:
            continue
        versions = [
            (
                f"{each.canonical_name} {each.version}" if each.version else "submitted",
                each.mean,
                each.score_count,
            )
            for each in summary.versions
        ] or [("submitted", summary.mean, summary.score_count)]
        # An interval is kept for all scores together: it is that of a version only where there is one.
        alone = len(versions) == 1 and summary.mean is not None
        for version, mean, count in versions:
            drawn = IntervalRow(
                label=f"{one.name}, {version}",
                value=mean,
                low=summary.ci_lower if alone else None,
                high=summary.ci_upper if alone else None,
            )
            found.append((one, version, count, drawn, labels_text(summary.distribution or {})))
    scale = interval_scale([drawn for *_, drawn, _ in found], include=(0.0, 1.0))
    return Grid(
        caption="Mean by experiment and version, newest first",
        columns=[
            Column(name="Experiment"),
            Column(name="Version"),
            Column(name="Scores", kind="num"),
            Column(name="Mean, 95 %", kind="num"),
            Column(name="On one axis", kind="plot", hide_name=True, picture=interval_axis(scale)),
            Column(name="Age", kind="num"),
        ],
        rows=[
            Row(
                href=project_path(project_id, "experiments", one.id),
                cells=[
                    Cell(text=one.name),
                    Cell(text=version),
                    Cell(text=f"{count:,}", value=count),
                    _mean(drawn, labels),
                    Cell(picture=interval_picture(drawn, scale) if drawn.value is not None else "", value=""),
                    Cell(text=age_of(one.created_at, moment), instant=one.created_at, value=one.created_at),
                ],
            )
            for one, version, count, drawn, labels in found
        ],
        exported_columns=(0, 1, 2, 3, 5),
    )


def _mean(drawn: IntervalRow, labels: str) -> Cell:
    if drawn.value is None:
        return Cell(text=labels or "—")
    known = drawn.low is not None and drawn.high is not None
    note = f"[{number(drawn.low, 2)}, {number(drawn.high, 2)}]" if known else ""
    return Cell(text=number(drawn.value), note=note, value=drawn.value)


def over_time(connection: Connection, project_id: str, scorer_name: str, since: datetime) -> tuple[str, str]:
    """The picture of daily means, a line for each version, and the day it begins with; empty for labels alone."""
    found, first = days_by_version(
        connection, project_id=project_id, scorer_name=scorer_name, since=format_instant(since)
    )
    if not found:
        return "", first
    steps: list[Step] = []
    day, last = datetime.fromisoformat(found[0].day), datetime.fromisoformat(found[-1].day)
    while day <= last:
        own = [one for one in found if one.day == f"{day:%Y-%m-%d}"]
        if not own:
            steps.append(Step(label=label_of(day), value=None))
        for one in own:
            interval = interval_of(one.count, one.total, one.squares)
            steps.append(
                Step(
                    label=label_of(day),
                    value=one.total / one.count,
                    low=None if interval is None else interval.ci_lower,
                    high=None if interval is None else interval.ci_upper,
                    note=f"{one.count:,} scored",
                    series=one.version or "submitted",
                )
            )
        day += timedelta(days=1)
    picture = timeline(
        steps,
        title=f"{scorer_name} per day with its 95 % interval, a line for each version",
        write=lambda value: number(value, 2),
        gap="nothing scored",
        bounds=(0.0, 1.0),
    )
    return picture, first

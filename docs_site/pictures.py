"""The pictures of docs/statistics-explained.md, drawn from the library's own numbers.

`scripts/write-pictures` writes them; a test compares the files with what this gives.
"""

import numpy as np

from evenhand.metrics import (
    Interval,
    confidence_sequence,
    mean_interval,
    paired_difference,
    ppi_mean,
    proportion_interval,
    unpaired_difference,
)
from evenhand.plots import svg
from evenhand.plots.intervals import IntervalRow, interval_picture, interval_scale
from evenhand.plots.series import Band, Point, Series, lines

WIDTH = 720
NAMES = 190
"""Pixels for the names at the left of a picture of intervals."""
ROW = 34
TITLE = 30


def pictures() -> dict[str, str]:
    """File name to SVG document."""
    return {
        "intervals.svg": intervals(),
        "pairing.svg": pairing(),
        "corrections.svg": corrections(),
        "missing.svg": missing(),
        "judge.svg": judge(),
        "sequential.svg": sequential(),
    }


def intervals() -> str:
    """The same share of right answers from more and more problems."""
    rows = [
        _row(f"{round(0.8 * n)} of {n:,} right", proportion_interval(round(0.8 * n), n))
        for n in (10, 50, 200, 1_000)
    ]
    return _rows("80 % right, with 95 % intervals", rows)


def pairing() -> str:
    """One comparison, with and without pairing."""
    base, candidate = _two_models()
    rows = [
        _row("problem by problem", paired_difference(base, candidate)),
        _row("as if not paired", unpaired_difference(base, candidate), shown=False),
    ]
    return _rows("Candidate minus base, 400 problems, 95 % intervals", rows, reference=0.0)


def corrections() -> str:
    """The chance of at least one false alarm among k tests."""
    counts = range(1, 21)
    plain = [Point(k, 1 - 0.95**k) for k in counts]
    holm = [Point(k, 1 - (1 - 0.05 / k) ** k) for k in counts]
    return _alone(
        lines(
            [Series("each at 5 %", plain), Series("corrected (Holm)", holm)],
            title="Chance of a false alarm when nothing changed",
            x_label="independent benchmarks tested",
            y_label="chance of at least one false alarm",
        )
    )


def missing() -> str:
    """190 of 200 answers scored: what the ten others could do."""
    scored = np.concatenate([np.ones(152), np.zeros(38)])
    rows = [
        _row("the 190 scored", mean_interval(scored)),
        _row("10 missing, all wrong", mean_interval(np.concatenate([scored, np.zeros(10)]))),
        _row("10 missing, all right", mean_interval(np.concatenate([scored, np.ones(10)]))),
    ]
    return _rows("Mean of 200 samples of which 10 failed", rows)


def judge() -> str:
    """A judge that is too kind, corrected by 100 labels of people."""
    rng = np.random.default_rng(3)
    truth = rng.random(2_000) < 0.6
    kind = np.where(truth, rng.random(2_000) < 0.97, rng.random(2_000) < 0.3).astype(float)
    human = truth[:100].astype(float)
    rows = [
        _row("judge alone, 2,000", mean_interval(kind), tone_bad=True),
        _row("people alone, 100", mean_interval(human)),
        _row("judge, corrected", ppi_mean(human, kind[:100], kind[100:])),
    ]
    return _rows("Share of good answers; the dashed line is the truth", rows, limit=float(truth.mean()))


def sequential() -> str:
    """An interval that may be looked at after every sample."""
    values = (np.random.default_rng(11).random(600) < 0.7).astype(float)
    found = confidence_sequence(values, every=10)
    at = [10 * (index + 1) for index in range(len(found.value))]
    band = Band(list(zip(at, found.ci_lower, found.ci_upper, strict=True)))
    return _alone(
        lines(
            [Series("mean so far", [Point(x, y) for x, y in zip(at, found.value, strict=True)])],
            title="A confidence sequence: all intervals hold together",
            x_label="samples",
            y_label="mean so far, with the band for all times; the dashed line is the truth",
            bands=[band],
            reference=0.7,
        )
    )


def _two_models() -> tuple[np.ndarray, np.ndarray]:
    """400 problems of which most are easy or hard for both models."""
    base = np.concatenate([np.ones(240), np.zeros(160)])
    candidate = base.copy()
    candidate[:24] = 0.0
    candidate[240:248] = 1.0
    return base, candidate


def _row(label: str, found: Interval, *, shown: bool = True, tone_bad: bool = False) -> IntervalRow:
    return IntervalRow(
        label=label,
        value=found.value,
        low=found.ci_lower,
        high=found.ci_upper,
        shown=shown,
        tone="bad" if tone_bad else "accent",
    )


def _rows(
    title: str, rows: list[IntervalRow], *, reference: float | None = None, limit: float | None = None
) -> str:
    """Intervals below each other on one axis, with their names at the left."""
    scale = interval_scale(rows, [one for one in (reference, limit) if one is not None])
    bottom = ROW * len(rows)
    parts = [svg.text(0, 16, title, fill=svg.INK)]
    plot = []
    for index, row in enumerate(rows):
        top = TITLE + ROW * index
        parts.append(svg.text(0, top + ROW / 2 + 4, row.label, fill=svg.INK))
        drawn = interval_picture(row, scale, reference=reference, limit=limit, ticks=False)
        plot.append(f"<svg y='{ROW * index}' width='100%' height='{ROW}'>{drawn}</svg>")
    axis = svg.x_axis(scale, 0, bottom, "")
    inner = f"<svg x='{NAMES}' y='{TITLE}' width='{WIDTH - NAMES}' height='{bottom + 24}'>"
    parts.append(f"{inner}{''.join([*axis, *plot])}</svg>")
    words = "; ".join(f"{row.label}: {row.value:.3f} [{row.low:.3f}, {row.high:.3f}]" for row in rows)
    return _alone(svg.picture(TITLE + bottom + 28, title, words, parts))


def _alone(drawing: str) -> str:
    """A picture of the library as a file: with a size, a font and a background of its own."""
    head, _, body = drawing.partition("<title>")
    head = head.replace("width='100%'", f"width='{WIDTH}' font-family='sans-serif'", 1)
    back = "<rect width='100%' height='100%' fill='#fff'/>"
    return f"{head}<title>{body}".replace("</desc>", f"</desc>{back}", 1) + "\n"

"""How values are spread, one panel per group, on one scale."""

import math
from collections.abc import Mapping, Sequence

from evenhand.plots import svg
from evenhand.plots.scale import Scale, fitted, tick_text

LEFT, RIGHT = 1.0, 99.0
PANEL = 84


def histogram(groups: Mapping[str, Sequence[float]], *, title: str, x_label: str, bins: int = 30) -> str:
    """Counts per bin for each group, with the median marked."""
    everything = [value for values in groups.values() for value in values if math.isfinite(value)]
    scale = fitted(everything, LEFT, RIGHT)
    bottom = PANEL * max(len(groups), 1)
    parts = svg.x_axis(scale, 0, bottom, x_label)
    words = []
    for index, (name, values) in enumerate(groups.items()):
        finite = sorted(value for value in values if math.isfinite(value))
        base = PANEL * (index + 1) - 1
        label = f"{svg.shortened(name, 40)} (n = {len(finite):,})"
        if finite:
            middle = _median(finite)
            label = f"{svg.shortened(name, 40)} (n = {len(finite):,}, median {tick_text(middle)})"
            parts += _panel(finite, scale, base, index, bins)
            parts.append(
                svg.line(
                    scale.at(middle), base, scale.at(middle), base - PANEL + 24, stroke=svg.INK, dash="3 2"
                )
            )
        parts.append(svg.text(LEFT, base - PANEL + 16, label, fill=svg.INK, halo=True))
        words.append(label)
    return svg.picture(bottom + 42, title, "; ".join(words), parts)


def _panel(values: Sequence[float], scale: Scale, base: float, index: int, bins: int) -> list[str]:
    width = (scale.high - scale.low) / bins
    counts = [0] * bins
    for value in values:
        counts[min(int((value - scale.low) / width), bins - 1)] += 1
    tallest = max(counts)
    parts = []
    for number, count in enumerate(counts):
        if count:
            low = scale.low + number * width
            x0, x1 = scale.at(low), scale.at(low + width)
            height = (PANEL - 28) * count / tallest
            tip = f"{tick_text(low)} to {tick_text(low + width)}: {count}"
            bar = svg.rectangle(
                x0 + 0.1, base - height, x1 - x0 - 0.2, height, fill=svg.colour(index), opacity=0.8, tip=tip
            )
            parts.append(bar)
    return parts


def _median(ordered: Sequence[float]) -> float:
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2

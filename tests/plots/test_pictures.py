"""Pictures: well-formed, placed by the arithmetic, safe with any label, honest about missing values."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand import plots
from evenhand.plots.scale import Scale, fitted, round_step, tick_text

SVG = "{http://www.w3.org/2000/svg}"
NUMBERS = st.floats(-1e12, 1e12)


def texts(picture: str) -> list[str]:
    return [element.text or "" for element in ElementTree.fromstring(picture).iter(SVG + "text")]


def all_pictures(label: str, number: float) -> list[str]:
    point = plots.Series(label, [plots.Point(number, number, label)])
    return [
        plots.forest(
            [plots.IntervalRow(label, number, number - 1, number + 1, label)], title=label, x_label=label
        ),
        plots.bars([plots.Bar(label, number)], title=label, x_label=label),
        plots.heat_map([label], [label], [[number]], title=label),
        plots.histogram({label: [number, number]}, title=label, x_label=label),
        plots.scatter([point], title=label, x_label=label, y_label=label),
        plots.lines([point], title=label, x_label=label, y_label=label, bands=[plots.Band([(number, 0, 1)])]),
    ]


@given(st.text(), NUMBERS)
def test_any_label_and_number_gives_well_formed_xml(label: str, number: float) -> None:
    for picture in all_pictures(label, number):
        root = ElementTree.fromstring(picture)
        assert root.tag == SVG + "svg"
        assert {element.tag for element in root.iter()} <= {
            SVG + name
            for name in ("svg", "title", "desc", "text", "line", "rect", "circle", "polygon", "path")
        }


def test_a_forest_row_stands_where_the_scale_says() -> None:
    """Values -1 and 1 give a scale of -1.1..1.1 over 210..740; 0.5 lies at 210 + 1.6/2.2 × 530 = 595.5."""
    picture = plots.forest([plots.IntervalRow("a", 0.5, -1.0, 1.0)], title="t", x_label="x")
    circle = ElementTree.fromstring(picture).find(SVG + "circle")
    assert circle is not None
    assert float(circle.attrib["cx"]) == pytest.approx(595.5, abs=0.1)


def test_what_is_missing_is_said_and_not_drawn_as_zero() -> None:
    picture = plots.forest([plots.IntervalRow("dead", None)], title="t", x_label="x")
    assert "no data" in texts(picture)
    assert ElementTree.fromstring(picture).find(SVG + "circle") is None
    assert "no data" in texts(plots.bars([plots.Bar("dead", None)], title="t", x_label="x"))
    assert "–" in texts(plots.heat_map(["r"], ["c"], [[None]], title="t"))
    assert "dead (n = 0)" in texts(plots.histogram({"dead": []}, title="t", x_label="x"))


def test_histogram_bars_count_every_value_and_mark_the_median() -> None:
    picture = plots.histogram({"g": [1, 2, 2, 3, 10]}, title="t", x_label="x", bins=9)
    counts = [int(tip) for tip in re.findall(r"<title>[^<]*: (\d+)</title>", picture)]
    assert sum(counts) == 5
    assert "g (n = 5, median 2)" in texts(picture)


def test_a_heat_map_of_the_wrong_shape_is_refused() -> None:
    with pytest.raises(ValueError, match="one row per row label"):
        plots.heat_map(["a", "b"], ["c"], [[1.0]], title="t")


@given(st.lists(NUMBERS, min_size=1))
def test_a_fitted_scale_holds_every_value_with_increasing_round_ticks(values: list[float]) -> None:
    scale = fitted(values, 0.0, 100.0)
    assert all(0.0 <= scale.at(value) <= 100.0 for value in values)
    ticks = scale.ticks()
    assert ticks == sorted(ticks)
    assert len(ticks) <= 11


@pytest.mark.parametrize(("raw", "step"), [(0.03, 0.05), (1.0, 1.0), (1.1, 2.0), (7.0, 10.0), (240.0, 500.0)])
def test_steps_are_one_two_or_five_times_a_power_of_ten(raw: float, step: float) -> None:
    assert round_step(raw) == pytest.approx(step)


def test_ticks_and_their_texts() -> None:
    assert Scale(0.0, 1.0, 0.0, 10.0).ticks() == pytest.approx([0.0, 0.2, 0.4, 0.6, 0.8, 1.0])
    assert [tick_text(v) for v in (0, 0.25, -3.0, 1500, 2.5e7, 1e-6)] == [
        "0",
        "0.25",
        "-3",
        "1,500",
        "2.5e+07",
        "1e-06",
    ]


def test_a_long_label_is_cut_and_whole_when_pointed_at() -> None:
    long = "number theory and its applications to cryptography"
    for picture in (
        plots.forest([plots.IntervalRow(long, 1.0)], title="t", x_label="x"),
        plots.bars([plots.Bar(long, 1.0)], title="t", x_label="x"),
        plots.heat_map([long], ["c"], [[1.0]], title="t"),
    ):
        assert f"{long[:28]}…" in texts(picture)
        assert long in [element.text for element in ElementTree.fromstring(picture).iter(SVG + "title")]

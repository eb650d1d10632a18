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


def interval(row: plots.IntervalRow, *, reference: float | None = None, limit: float | None = None) -> str:
    include = [number for number in (reference, limit) if number is not None]
    return plots.interval_picture(row, plots.interval_scale([row], include), reference=reference, limit=limit)


def all_pictures(label: str, number: float) -> list[str]:
    points = [plots.Series(label, [plots.Point(number, number, label)]) for _ in range(4)]
    row = plots.IntervalRow(
        label=label, value=number, low=number - 1, high=number + 1, corrected=(number - 2, number + 2)
    )
    band = plots.Band([(number, 0, 1), (number + 1, 0, 1)])
    return [
        interval(row, reference=0.0, limit=-0.1),
        plots.bar_picture(label, abs(number), plots.bar_scale([abs(number)])),
        plots.histogram({label: [number, number]}, title=label, x_label=label),
        plots.scatter(points, title=label, x_label=label, y_label=label),
        plots.reliability([plots.Bin(judge=0.5, people=0.4, low=0.1, high=0.7, count=3)], title=label),
        plots.timeline(
            [
                plots.Step(label=label, value=value, series=series)
                for value, series in ((1, label), (None, ""), (2, "b"))
            ],
            title=label,
        ),
        plots.lines(points, title=label, x_label=label, y_label=label, bands=[band], reference=0.5),
    ]


@given(st.text(), NUMBERS)
def test_any_label_and_number_gives_well_formed_xml_without_style_attributes(
    label: str, number: float
) -> None:
    for picture in all_pictures(label, number):
        root = ElementTree.fromstring(picture)
        assert root.tag == SVG + "svg"
        assert {element.tag for element in root.iter()} <= {
            SVG + name
            for name in (
                "svg",
                "title",
                "desc",
                "text",
                "line",
                "rect",
                "circle",
                "polygon",
                "path",
                "defs",
                "pattern",
            )
        }
        # `default-src 'self'` refuses them: everything would be drawn black.
        assert not any("style" in element.attrib for element in root.iter())


def test_an_estimate_stands_where_the_scale_says() -> None:
    """Values -1 and 1 give a scale of -1.1..1.1 over 4..96 %; 0.5 lies at 4 + 1.6/2.2 × 92 = 70.91 %."""
    picture = interval(plots.IntervalRow(label="a", value=0.5, low=-1.0, high=1.0))
    circle = ElementTree.fromstring(picture).find(SVG + "circle")
    assert circle is not None
    assert float(circle.attrib["cx"].removesuffix("%")) == pytest.approx(70.91, abs=0.01)


def test_what_is_shown_is_filled_and_what_is_not_is_hollow() -> None:
    shown, open_ = (
        ElementTree.fromstring(interval(plots.IntervalRow(label="a", value=0.5, shown=shown))).find(
            SVG + "circle"
        )
        for shown in (True, False)
    )
    assert shown is not None
    assert open_ is not None
    assert "stroke" not in shown.attrib
    assert open_.attrib["fill"].startswith("var(--card")
    assert open_.attrib["stroke"] == shown.attrib["fill"]


def test_a_limit_is_dashed_a_reference_is_solid_and_a_corrected_interval_is_thin_and_longer() -> None:
    row = plots.IntervalRow(label="a", value=0.1, low=0.0, high=0.2, corrected=(-0.1, 0.3))
    lines = ElementTree.fromstring(interval(row, reference=0.0, limit=-0.05)).findall(SVG + "line")
    dashed = [line for line in lines if "stroke-dasharray" in line.attrib]
    assert len(dashed) == 1
    thin, thick = (line for line in lines if line.attrib["y1"] == line.attrib["y2"])
    width = [float(one.attrib["x2"][:-1]) - float(one.attrib["x1"][:-1]) for one in (thin, thick)]
    assert width[0] == pytest.approx(2 * width[1], abs=0.1)
    assert float(thin.attrib["stroke-width"]) < float(thick.attrib["stroke-width"])


def test_what_is_missing_is_said_and_not_drawn_as_zero() -> None:
    picture = interval(plots.IntervalRow(label="dead", value=None))
    assert "no data" in texts(picture)
    assert ElementTree.fromstring(picture).find(SVG + "circle") is None
    assert "no data" in texts(plots.bar_picture("dead", None, plots.bar_scale([None])))
    assert "dead (n = 0)" in texts(plots.histogram({"dead": []}, title="t", x_label="x"))


def test_a_bar_is_as_long_as_its_share_of_the_longest() -> None:
    """The longest of 4 and 1 takes 96 % of the width, the other a quarter of that: 24 %."""
    scale = plots.bar_scale([4.0, 1.0, None])
    bar = ElementTree.fromstring(plots.bar_picture("b", 1.0, scale)).find(SVG + "rect")
    assert bar is not None
    assert bar.attrib["width"] == "24.00%"


def test_histogram_bars_count_every_value_and_mark_the_median() -> None:
    picture = plots.histogram({"g": [1, 2, 2, 3, 10]}, title="t", x_label="x", bins=9)
    counts = [int(tip) for tip in re.findall(r"<title>[^<]*: (\d+)</title>", picture)]
    assert sum(counts) == 5
    assert "g (n = 5, median 2)" in texts(picture)


def test_a_series_is_named_only_where_there_are_several() -> None:
    one, two = (plots.Series(name, [plots.Point(0, 0), plots.Point(1, 1)]) for name in ("one", "two"))
    alone = plots.lines([one], title="t", x_label="x", y_label="y")
    both = plots.lines([one, two], title="t", x_label="x", y_label="y")
    assert "one" not in texts(alone)
    assert {"one", "two"} <= set(texts(both))


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
        "−3",
        "1,500",
        "2.5e+07",
        "1e-06",
    ]


def test_another_series_begins_a_line_of_its_own() -> None:
    """Four days, the judge changed after two: two lines in two colours, named where they begin."""
    steps = [plots.Step(label=f"{n} Nov", value=n / 10, series="a" if n < 2 else "b") for n in range(4)]
    root = ElementTree.fromstring(plots.timeline(steps, title="mean"))
    strokes = [path.attrib["stroke"] for path in root.iter(SVG + "path") if path.attrib.get("fill") == "none"]
    assert len(strokes) == len(set(strokes)) == 2
    assert {"a from here", "b from here"} <= {text.text for text in root.iter(SVG + "text")}
    alone = plots.timeline([plots.Step(label="x", value=1, series="a")] * 3, title="mean")
    assert "from here" not in alone


def test_calibration_dots_stand_where_both_scales_say() -> None:
    """Judge 0.5 lies in the middle of 8..97 %, people 0.25 a quarter above the bottom: 250 − 0.25 × 220 = 195."""
    one = plots.Bin(judge=0.5, people=0.25, low=0.1, high=0.5, count=12)
    root = ElementTree.fromstring(plots.reliability([one], title="calibration"))
    [dot] = root.iter(SVG + "circle")
    assert (dot.attrib["cx"], dot.attrib["cy"]) == ("52.50%", "195.0")
    assert "judge 0.5, people 0.25 (0.1 to 0.5), 12 items" in (root.findtext(SVG + "desc") or "")

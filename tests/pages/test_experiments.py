"""Experiments, their comparison, datasets and item history in a browser: the rows of the contract."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.pages.site import Site, open_tab
from tests.service_harness import Client

HOSTILE = "<img src=x onerror=alert(1)><script>alert(2)</script>'\"&"


def compared(client: Client, base: list[float], other: list[float]) -> tuple[str, str]:
    """Two experiments on one dataset, scored item by item."""
    dataset, items = client.dataset([f"question {n}" for n in range(len(base))])
    ids = []
    for name, values in (("first", base), ("second", other)):
        experiment = client.experiment(dataset, name=name)
        runs = [
            {
                "dataset_item_id": item,
                "output": f"{name} {n}",
                "scores": [{"scorer_name": "s", "value": value, "rationale": f"why {name} {n}"}],
            }
            for n, (item, value) in enumerate(zip(items, values, strict=True))
        ]
        client.runs(experiment, runs)
        ids.append(experiment)
    return ids[0], ids[1]


def test_two_ticked_experiments_are_compared(tab: Page, demo: Site) -> None:
    tab.goto("/projects/demo/experiments")
    row = tab.get_by_role("row").filter(has_text="prompt v3")
    expect(row.get_by_text("120 / 40")).to_be_visible()
    tab.get_by_role("checkbox", name="Pick prompt v3").check()
    tab.get_by_role("checkbox", name="Pick prompt v4, small model").check()
    tab.get_by_role("button", name="Compare").click()
    base, other = demo.compared("small model")
    assert tab.url.endswith(f"/projects/demo/compare/{base}/{other}")
    expect(tab.get_by_role("heading", level=2, name="Worse")).to_be_visible()


def test_one_ticked_experiment_is_not_enough(tab: Page) -> None:
    tab.goto("/projects/demo/experiments")
    tab.get_by_role("checkbox", name="Pick prompt v3").check()
    tab.get_by_role("button", name="Compare").click()
    expect(tab.get_by_role("status").get_by_text("Tick two experiments")).to_be_visible()


def test_the_numbers_on_the_page_are_the_apis(tab: Page, demo: Site) -> None:
    base, other = demo.compared("small model")
    client = demo.client("demo")
    found: dict[str, Any] = client.get(f"/v1/experiments/{base}/compare/{other}").body
    client.close()
    tab.goto(f"/projects/demo/compare/{base}/{other}")
    for one in found["scorer_comparisons"]:
        row = tab.locator("table.evid tbody tr").filter(has_text=one["scorer_name"])
        if one["paired_delta"] is None:
            continue
        shown = row.inner_text()
        assert f"{one['base_mean']:.3f}" in shown
        assert f"{one['compare_mean']:.3f}" in shown
        assert f"{one['paired_delta']:+.3f}".replace("-", "−") in shown
        assert f"{one['ci_lower']:+.3f}".replace("-", "−") in shown
        assert f"▼ {one['regressed_count']}" in shown
    counts = [int(text) for text in tab.locator(".tabs .n").all_inner_texts()]
    assert counts[0] == sum(counts[1:4])
    tab.get_by_role("link", name="▼ Fell").click()
    assert tab.locator("table.items tbody tr.link").count() == counts[1]
    tab.go_back()
    assert tab.locator("table.items tbody tr.link").count() == min(counts[0], 50)


def test_an_item_that_fell_opens_with_both_sides_reasons_and_traces(tab: Page, demo: Site) -> None:
    base, other = demo.compared("small model")
    tab.goto(f"/projects/demo/compare/{base}/{other}?show=fell")
    tab.locator("table.items .go").first.click()
    detail = tab.locator("tr.detail")
    expect(detail.get_by_text("Expected")).to_be_visible()
    assert detail.get_by_role("link", name=re.compile("^trace ")).count() >= 2
    assert detail.locator(".reason").count() >= 2
    address = tab.url
    detail.get_by_role("link", name=re.compile("^trace ")).last.click()
    assert "/projects/demo/traces/" in tab.url
    tab.goto(address)
    expect(tab.locator("tr.detail")).to_be_visible()


def test_what_is_not_comparable_shows_no_numbers_until_it_is_asked_for(tab: Page, demo: Site) -> None:
    base, other = demo.compared("new judge")
    tab.goto(f"/projects/demo/compare/{base}/{other}")
    expect(tab.get_by_role("heading", name="Not comparable")).to_be_visible()
    assert tab.locator("table").count() == 0
    assert not re.search(r"0\.\d\d\d", tab.locator("main").inner_text())
    tab.get_by_role("link", name="Compare anyway").click()
    expect(tab.get_by_role("note")).to_contain_text("not comparable")
    assert tab.locator("table.evid tbody tr").count() == 3


def test_other_datasets_get_an_error_state_with_links(browser: Browser, demo: Site) -> None:
    client = demo.client()
    first, second = (client.experiment(client.dataset(["q"])[0], name=name) for name in ("one", "two"))
    with open_tab(browser, demo) as tab:
        tab.goto(f"/projects/{client.project}/compare/{first}/{second}")
        expect(tab.get_by_text("different datasets")).to_be_visible()
        expect(tab.get_by_role("link", name="one")).to_have_attribute(
            "href", f"/projects/{client.project}/experiments/{first}"
        )
    client.close()


@pytest.mark.parametrize(
    ("base", "other", "headline"),
    [
        ([0.5] * 30, [0.5] * 30, "No drop|Equivalent|Not decided"),
        ([1, 1, 0], [1, 0, 1], "Too little data"),
        ([0.0] * 40, [1.0] * 40, "Better"),
        ([1.0] * 40, [0.0] * 40, "Worse"),
    ],
)
def test_states_of_the_verdict(
    browser: Browser, demo: Site, base: list[float], other: list[float], headline: str
) -> None:
    client = demo.client()
    first, second = compared(client, base, other)
    with open_tab(browser, demo) as tab:
        tab.goto(f"/projects/{client.project}/compare/{first}/{second}")
        expect(tab.locator(".verdict h2")).to_have_text(re.compile(headline))
        tab.get_by_role("link", name="Swap").click()
        assert tab.url.endswith(f"/compare/{second}/{first}")
    client.close()


def test_a_running_experiment_gets_no_verdict(browser: Browser, demo: Site) -> None:
    client = demo.client()
    dataset, items = client.dataset(["a", "b"])
    first, second = (client.experiment(dataset, name=name, auto_complete=False) for name in ("x", "y"))
    for experiment in (first, second):
        scores = [{"scorer_name": "s", "value": 1}]
        client.runs(experiment, [{"dataset_item_id": items[0], "output": 1, "scores": scores}])
    with open_tab(browser, demo) as tab:
        tab.goto(f"/projects/{client.project}/compare/{first}/{second}")
        expect(tab.locator(".verdict h2")).to_have_text("Still running")
        tab.goto(f"/projects/{client.project}/experiments/{first}")
        tab.get_by_role("button", name="Mark complete").click()
        expect(tab.get_by_text("✓ completed")).to_be_visible()
    client.close()


def test_runs_are_sorted_narrowed_and_opened_by_address(tab: Page, demo: Site, browser: Browser) -> None:
    tab.goto(f"/projects/demo/experiments/{demo.experiments()[0]}")
    tab.get_by_role("link", name="exact_match").click()
    values = [float(text) for text in tab.locator("tbody tr td:nth-child(4)").all_inner_texts()]
    assert values == sorted(values)
    tab.locator("tbody .go").first.click()
    expect(tab.locator("#opened")).to_contain_text("Scores")
    with open_tab(browser, demo) as fresh:
        fresh.goto(tab.url)
        assert fresh.locator("tbody").inner_text() == tab.locator("tbody").inner_text()
    tab.goto(f"/projects/demo/experiments/{demo.experiments()[0]}?of=exact_match&at_least=0.99")
    expect(tab.get_by_text("✕ FAIL −0.2")).to_be_visible()


def test_a_dataset_is_made_filled_imported_into_and_versioned(
    browser: Browser, demo: Site, tmp_path: Path
) -> None:
    client = demo.client()
    lines = tmp_path / "items.jsonl"
    good = [json.dumps({"input": f"i{n}", "expected_output": "e"}) for n in range(8)]
    lines.write_text("\n".join([*good, "not json", '{"expected_output": 1}']))
    with open_tab(browser, demo) as tab:
        tab.goto(f"/projects/{client.project}/datasets")
        expect(tab.get_by_text("No datasets yet")).to_be_visible()
        tab.get_by_role("textbox", name="Name").fill("faq")
        tab.get_by_role("button", name="Create dataset").click()
        expect(tab.get_by_role("heading", level=1)).to_contain_text("faq")
        tab.get_by_text("Add item", exact=True).first.click()
        tab.get_by_label("Input", exact=True).fill(HOSTILE)
        tab.get_by_role("button", name="Add item").click()
        expect(tab.locator("tbody")).to_contain_text(HOSTILE)
        tab.get_by_text("Import JSONL").click()
        tab.get_by_label("A JSON object per line").set_input_files(lines)
        tab.get_by_role("button", name="Import").click()
        expect(tab.get_by_text("8 items imported, 2 skipped")).to_be_visible()
        expect(tab.get_by_text("line 9", exact=True)).to_be_visible()
        tab.get_by_role("link", name="Back to faq").click()
        assert tab.locator("tbody tr").count() == 9
        tab.get_by_role("button", name="Remove").first.click()
        tab.get_by_role("dialog").get_by_role("button", name="Remove").click()
        assert tab.locator("tbody tr").count() == 8
        tab.get_by_role("listitem").filter(has_text="v3").get_by_role(
            "link", name="what changed since"
        ).click()
        expect(tab.locator("del")).to_contain_text(HOSTILE)
    client.close()


def test_an_items_history_names_what_it_does(browser: Browser, demo: Site) -> None:
    client = demo.client()
    first, _ = compared(client, [1.0, 0.0], [0.0, 0.0])
    dataset = client.get(f"/v1/experiments/{first}").body["dataset_id"]
    items = [one["id"] for one in client.get(f"/v1/datasets/{dataset}/items").body["items"]]
    with open_tab(browser, demo) as tab:
        tab.goto(f"/projects/{client.project}/items/{items[0]}")
        expect(tab.get_by_text("▼ newly fails")).to_be_visible()
        assert tab.locator("tbody tr").count() == 2
        tab.goto(f"/projects/{client.project}/items/{items[1]}")
        expect(tab.get_by_text("✕ always fails")).to_be_visible()
    client.close()


def test_another_projects_objects_are_not_found(browser: Browser, demo: Site) -> None:
    """Somebody who sees one project gets nothing of another one by mixing addresses."""
    client = demo.client()
    base, other = demo.compared("small model")
    own = client.project
    paths = [
        f"/projects/{own}/experiments/{base}",
        f"/projects/{own}/compare/{base}/{other}",
        f"/projects/{own}/datasets/{demo.datasets()[0]}",
        f"/projects/{own}/items/{demo.item()}",
        "/projects/demo/experiments",
        f"/projects/demo/experiments/{base}",
        f"/projects/demo/compare/{base}/{other}",
        f"/projects/demo/datasets/{demo.datasets()[0]}",
        f"/projects/demo/items/{demo.item()}",
    ]
    context = browser.new_context(base_url=demo.url)
    demo.log_in(context, "admin", own)
    for path in paths:
        assert context.request.get(path).status == 404, path
    context.close()
    client.close()


def test_a_comparison_is_computed_again_when_something_changed(tab: Page, demo: Site) -> None:
    """A kept comparison is as good as a new one: another score, and a deleted one, are on the page at once."""
    client = demo.client()
    base, other = compared(client, [1.0, 1.0], [0.0, 1.0])
    path = f"/projects/{client.project}/compare/{base}/{other}"

    def candidate() -> str:
        tab.goto(path)
        return tab.locator("td[data-label='Candidate']").first.inner_text()

    assert candidate() == candidate() == "0.500"
    run = client.get(f"/v1/experiments/{other}/runs").body["items"][0]
    [score] = run["scores"]
    client.made(
        "/v1/scores",
        {"target_id": run["id"], "target_type": "run", "scorer_name": score["scorer_name"], "value": 1.0},
    )
    changed = candidate()
    assert changed != "0.500"
    assert client.delete(f"/v1/scores/{score['id']}").status == 200
    assert candidate() != changed
    client.close()

"""The page of a judge: three means, calibration, versions apart; and jobs that are tried again."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.pages.site import Site, open_tab
from tests.service import running_service
from tests.service_harness import Client

from evenhand.server.demo import fill

GOOD, BAD = 0.9, 0.2


@pytest.fixture
def client(demo: Site) -> Iterator[Client]:
    made = demo.client()
    yield made
    made.close()


def judged_queue(client: Client, said: list[tuple[float, str]], unlabelled: list[float]) -> str:
    """A queue over runs that a judge scored with the first number; one person has given the label beside it."""
    values = [value for value, _ in said] + unlabelled
    dataset, items = client.dataset([{"input": f"question {n}"} for n in range(len(values))])
    runs = client.runs(
        client.experiment(dataset, name="judged"),
        [
            {
                "dataset_item_id": item,
                "output": f"answer {n}",
                "scores": [{"scorer_name": "kind_judge", "value": value, "rationale": f"reason {n}"}],
            }
            for n, (item, value) in enumerate(zip(items, values, strict=True))
        ],
    )
    body = {"project_id": client.project, "name": "people", "judge_scorer": "kind_judge"}
    queue: str = client.made("/v1/queues", body)["id"]
    client.post(f"/v1/queues/{queue}/items", {"run_ids": runs})
    listed = list(client.pages(f"/v1/queues/{queue}/items", limit=200))
    by_run = {one["target_id"]: one["id"] for one in listed}
    for run, (_, label) in zip(runs, said, strict=False):
        review = {"annotator": "Ana", "answers": {"label": label}}
        assert client.post(f"/v1/queues/{queue}/items/{by_run[run]}/review", review).status == 201
    return queue


def cells(tab: Page, region: str) -> list[list[str]]:
    rows = tab.get_by_role("region", name=f"{region}, table").locator("tbody tr")
    return [[" ".join(text.split()) for text in row.locator("td").all_inner_texts()] for row in rows.all()]


def test_three_means_rates_and_the_table_are_those_of_the_labels(tab: Page, client: Client) -> None:
    """Of 40 labelled answers people call 20 good. The judge calls 18 of these good and 12 of the 20 bad ones: it is right
    on 18 of 20 and on 8 of 20. The mean of people is 20/40; that of the judge over 60 items is (40 × 0.9 + 20 × 0.2)/60.
    """
    said = (
        [(GOOD, "correct")] * 18 + [(BAD, "correct")] * 2 + [(GOOD, "harmful")] * 12 + [(BAD, "harmful")] * 8
    )
    queue = judged_queue(client, said, [GOOD] * 10 + [BAD] * 10)
    tab.goto(f"/projects/{client.project}/scorers")
    tab.get_by_role("link", name="kind_judge").click()
    means = {row[0]: row[1:3] for row in cells(tab, "Judge's, people's and corrected mean")}
    assert means["judge alone"][0] == "60"
    assert means["judge alone"][1].startswith(f"{(40 * GOOD + 20 * BAD) / 60:.2f} [")
    assert means["people"][0] == "40"
    assert means["people"][1].startswith("0.50 [")
    kept = client.get(f"/v1/queues/{queue}/agreement").body["corrected"]
    corrected = kept["corrected"]
    shown = f"{corrected['value']:.2f} [{corrected['ci_lower']:.2f}, {corrected['ci_upper']:.2f}]"
    assert means["corrected"][1] == shown
    rates = cells(tab, "How often the judge is right on either side")
    assert [row[1] for row in rates] == ["18 of 20", "8 of 20"]
    assert [row[2][:4] for row in rates] == ["0.90", "0.40"]
    expect(tab.locator(".verdict")).to_contain_text("Not to be trusted for this task")
    table = tab.get_by_role("region", name="Judge against people, table")
    assert table.locator("tbody a").evaluate_all("all => all.map(a => a.firstChild.textContent)") == [
        "18",
        "2",
        "12",
        "8",
    ]
    picture = tab.get_by_role("img", name=re.compile("what people say by what the judge says"))
    expect(picture).to_be_visible()
    # Of the 30 answers that the judge gave 0.9, people call 18 good.
    assert "judge 0.9, people 0.6" in (picture.locator("desc").text_content() or "")
    table.get_by_role("link", name="The judge said bad, people said good").click()
    expect(tab.get_by_role("heading", name="The judge said bad, people said good")).to_be_visible()
    assert len(cells(tab, "Items")) == 2
    # With the threshold above everything the judge calls nothing good.
    tab.get_by_label("Good from").fill("0.95")
    tab.get_by_role("button", name="Apply").click()
    assert [row[1] for row in cells(tab, "How often the judge is right on either side")] == [
        "0 of 20",
        "20 of 20",
    ]


def test_a_judge_without_labels_says_what_to_do(tab: Page, client: Client) -> None:
    judged_queue(client, [], [GOOD, BAD])
    tab.goto(f"/projects/{client.project}/scorers/kind_judge")
    expect(tab.get_by_text("Nothing can be said about people and this judge yet")).to_be_visible()
    tab.goto(f"/projects/{client.project}/scorers/exact_match")
    expect(tab.get_by_text("No review queue compares this scorer with people")).to_be_visible()


def test_versions_of_a_judge_are_lines_and_rows_of_their_own(tab: Page) -> None:
    tab.goto("/projects/demo/scorers/helpfulness")
    rows = cells(tab, "Mean by experiment and version, newest first")
    assert [row[:2] for row in rows] == [
        ["prompt v4, small model", "llm_judge a1f3"],
        ["prompt v4, new judge", "llm_judge 77c0"],
        ["prompt v3", "llm_judge a1f3"],
    ]
    picture = tab.get_by_role("img", name=re.compile("helpfulness per day"))
    assert "llm_judge 77c0 from here" in picture.locator("text").all_text_contents()


def test_a_name_without_scores_is_not_found(browser: Browser, demo: Site, client: Client) -> None:
    with open_tab(browser, demo, refusals=True) as tab:
        answer = tab.goto(f"/projects/{client.project}/scorers/no-such")
        assert answer is not None
        assert answer.status == 404


@pytest.mark.parametrize("button", ["one", "all"])
def test_failed_jobs_are_tried_again(browser: Browser, tmp_path: Path, button: str) -> None:
    # A demonstration of its own: it is changed.
    with running_service(f"sqlite:///{tmp_path / 'demo.db'}") as service:
        service.database.write_now(fill)
        [before] = service.get("/v1/jobs", project_id="demo", status="failed").body["items"]
        with open_tab(browser, Site(service)) as tab:
            tab.goto("/projects/demo/jobs?status=failed")
            if button == "one":
                tab.get_by_role("button", name="Try again").first.click()
                said = "The job is tried again."
            else:
                tab.get_by_role("button", name="Try all failed again…").click()
                tab.get_by_role("dialog").get_by_role("button", name="Try again").click()
                said = "Tried again: 1 job."
            expect(tab.get_by_role("status").first).to_contain_text(said)
        after = service.get(f"/v1/jobs/{before['job_id']}").body
        # This server has no judge: whatever became of it since, it is no longer the old failure.
        assert (after["status"], after.get("message")) != ("failed", before["message"])

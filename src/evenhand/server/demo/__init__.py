"""Demonstration data: a support bot with four weeks of traffic, three experiments and a review that is under way.

The same every time but for the clock: one seed, and times counted back from now. What there is to find: "prompt v4, small
model" is worse than "prompt v3"; "prompt v4, new judge" cannot be compared on helpfulness, because its judge has another
prompt; the judge is kinder than the two reviewers; the order system failed a week ago.
"""

from datetime import datetime, timedelta
from random import Random

from evenhand.core.jsontext import encode_text
from evenhand.core.objects.datasets import DatasetItem
from evenhand.core.objects.jobs import RuleFilter
from evenhand.core.outcome import Scored
from evenhand.core.timestamps import as_of, now
from evenhand.scoring.apply import score_sample
from evenhand.scoring.registry import get_wire_scorer
from evenhand.scoring.types import ScorerInput
from evenhand.server.demo.queue import fill_queue
from evenhand.server.demo.texts import FAQ, NOTES, WRONG
from evenhand.server.demo.traffic import Story, judged, live_stories, run_story, store_stories
from evenhand.store.annotations import create_annotation
from evenhand.store.connection import Connection
from evenhand.store.datasets import ItemText, add_items, create_dataset, list_items
from evenhand.store.experiments import create_experiment
from evenhand.store.jobs import NewJob, add_jobs, any_claimable, claim_jobs, end_job
from evenhand.store.projects import create_project, project_exists
from evenhand.store.runs import NewRun, add_runs
from evenhand.store.scores import Measurement
from evenhand.store.scoring_rules import create_rule
from evenhand.store.traces import find_trace, queue_trace

PROJECT = "demo"
SEED = 8321
REPEATS = 3
EXPERIMENTS = (
    # Name, days ago, chance of a right answer, model, version of the judge's prompt, traced.
    ("prompt v3", 9, 0.72, "answer-large", "a1f3", True),
    ("prompt v4, new judge", 4, 0.80, "answer-large", "77c0", False),
    ("prompt v4, small model", 1, 0.42, "answer-small", "a1f3", True),
)
QUEUED = 34
REVIEWERS = ("Ana Kovač", "Li Wei")
DETAILED = 30


def fill(connection: Connection) -> bool:
    """Make the demonstration project; False when it is there already."""
    if project_exists(connection, PROJECT):
        return False
    rng, moment = Random(SEED), now()
    with as_of(moment - timedelta(days=29)):
        create_project(connection, project_id=PROJECT, name="Demonstration")
    stories = list(live_stories(rng, moment))
    store_stories(connection, PROJECT, stories)
    items = _datasets(connection, moment)
    for name, days, chance, model, judge, traced in EXPERIMENTS:
        _experiment(connection, rng, items, moment - timedelta(days=days, hours=2), name, chance, model, judge, traced=traced)  # fmt: skip
    _review(
        connection,
        rng,
        [one for one in stories if one.root.name.startswith("answer_ticket") and not one.partial],
        moment,
    )
    _rules_and_jobs(connection, stories, moment)
    fill_queue(connection, rng, PROJECT, REVIEWERS, moment)
    return True


def _datasets(connection: Connection, moment: datetime) -> list[DatasetItem]:
    """The questions with their answers, in two versions, and a smaller set without expected answers."""
    with as_of(moment - timedelta(days=20)):
        faq = create_dataset(
            connection,
            project_id=PROJECT,
            name="support-faq",
            description="Short questions with one right answer, from the policy pages.",
        )
        texts = [
            ItemText(
                input=encode_text(question),
                expected_output=encode_text(right),
                metadata=encode_text({"category": category}),
            )
            for category, question, right in FAQ
        ]
        add_items(connection, faq.id, texts[:DETAILED], scope=PROJECT)
    with as_of(moment - timedelta(days=12)):
        add_items(connection, faq.id, texts[DETAILED:], scope=PROJECT)
        late = create_dataset(
            connection,
            project_id=PROJECT,
            name="late-deliveries",
            description="Conversations about late parcels.",
        )
    with as_of(moment - timedelta(days=5)):
        talks = [
            ItemText(input=encode_text({"messages": [{"role": "user", "content": question}]}))
            for _, question, _ in FAQ[:6]
        ]
        add_items(connection, late.id, talks, scope=PROJECT)
    return list_items(connection, faq.id, scope=PROJECT, after=None, limit=len(FAQ))


def _experiment(
    connection: Connection,
    rng: Random,
    items: list[DatasetItem],
    at: datetime,
    name: str,
    chance: float,
    model: str,
    judge: str,
    *,
    traced: bool,
) -> None:
    runs: list[NewRun] = []
    stories: list[Story] = []
    # Some questions are harder than others, for every prompt alike.
    hardness = Random(SEED + 1)
    for item, (_, question, right) in zip(items, FAQ, strict=True):
        own = min(0.98, max(0.03, chance + hardness.gauss(0, 0.2)))
        for repeat in range(REPEATS):
            output = right if rng.random() < own else rng.choice(WRONG)
            trace_id = None
            if traced:
                trace_id = f"run-{name.rpartition(' ')[2]}-{items.index(item):02}-{repeat}"
                stories.append(run_story(rng, trace_id, at, question, output, model))
            runs.append(_run(rng, item.id, repeat, output, right, trace_id, judge))
    store_stories(connection, PROJECT, stories)
    with as_of(at):
        made = create_experiment(
            connection,
            project_id=PROJECT,
            name=name,
            dataset_id=items[0].dataset_id,
            metadata=encode_text({"prompt": name.partition(",")[0], "model": model, "judge": judge}),
            auto_complete=True,
        )
        add_runs(connection, made.id, runs, scope=PROJECT)


def _run(
    rng: Random, item_id: str, repeat: int, output: str, right: str, trace_id: str | None, judge: str
) -> NewRun:
    options = {"case_sensitive": False}
    scorer = get_wire_scorer("exact_match").configure_from_json(options)
    outcome = score_sample(scorer, ScorerInput(response=output, target=right))
    assert isinstance(outcome, Scored)
    is_right = outcome.value == 1.0
    # The newer judge is stricter; both forgive answers that merely sound right.
    level = (0.86 if is_right else 0.52) - (0.12 if judge == "77c0" else 0.0)
    helpful = min(1.0, max(0.0, round(rng.gauss(level, 0.14) * 4) / 4))
    measurements = [
        Measurement(
            scorer_name="exact_match",
            value=outcome.value,
            config=encode_text(options),
            source="rule",
            canonical_name=scorer.name,
            version=scorer.version,
            options=encode_text(scorer.identity["options"]),
        ),
        judged(helpful, output, judge),
        Measurement(
            scorer_name="tone",
            value="warm" if is_right and rng.random() < 0.8 else rng.choice(["neutral", "curt"]),
            source="human",
        ),
    ]
    return NewRun(
        dataset_item_id=item_id,
        repeat=repeat,
        output=encode_text(output),
        trace_id=trace_id,
        scores=[(one.scorer_name, one) for one in measurements],
    )


def _review(connection: Connection, rng: Random, stories: list[Story], moment: datetime) -> None:
    """A queue in which two people have worked; they are stricter than the judge, and do not always agree."""
    answered = [one for one in stories if one.root.output is not None][-QUEUED:]
    for place, story in enumerate(answered):
        with as_of(moment - timedelta(days=2, minutes=-place)):
            queue_trace(connection, story.trace_id, scope=PROJECT)
    for place, story in enumerate(answered[:20]):
        wrong = story.root.output in WRONG
        label = rng.choice(["hallucination", "hallucination", "off-topic"]) if wrong else "correct"
        if not wrong and rng.random() < 0.25:
            label = "incomplete"
        _annotate(
            connection, rng, story, REVIEWERS[0], label, moment - timedelta(hours=20, minutes=-3 * place)
        )
        if place % 5 < 3:
            second = label if rng.random() < 0.7 else rng.choice(["correct", "incomplete", "hallucination"])
            _annotate(
                connection, rng, story, REVIEWERS[1], second, moment - timedelta(hours=5, minutes=-2 * place)
            )


def _annotate(
    connection: Connection, rng: Random, story: Story, annotator: str, label: str, at: datetime
) -> None:
    right = next((right for _, question, right in FAQ if question in encode_text(story.root.input)), None)
    with as_of(at):
        create_annotation(
            connection,
            scope=PROJECT,
            project_id=PROJECT,
            trace_id=story.trace_id,
            span_id=None,
            annotator=annotator,
            label=label,
            correction=None if label == "correct" or right is None else encode_text(right),
            notes=rng.choice(NOTES[label]) or None,
        )


def _rules_and_jobs(connection: Connection, stories: list[Story], moment: datetime) -> None:
    """Online rules, made after the traffic so that they wait for new spans; and a job that failed."""
    judge = {
        "model": "judge-large",
        "prompt_template": "Question: {{input}}\nAnswer: {{output}}\nHow helpful is the answer, from 1 to 5?",
        "score_extraction": "numeric",
        "score_range": {"min": 1, "max": 5},
    }
    with as_of(moment - timedelta(days=15)):
        rule = create_rule(
            connection, project_id=PROJECT, name="helpfulness of every fourth answer",
            narrow=RuleFilter(name="generate_answer"), sample_rate=0.25, scorer_name="llm_judge",
            config=encode_text(judge),
        )  # fmt: skip
        create_rule(
            connection, project_id=PROJECT, name="no promise of money",
            narrow=RuleFilter(name="generate_answer"), sample_rate=1.0, scorer_name="regex",
            config=encode_text({"pattern": "(?i)refund|money back"}),
        )  # fmt: skip
    story = next(one for one in reversed(stories) if one.helpfulness is None and one.root.output is not None)
    trace_key = find_trace(connection, story.trace_id, scope=PROJECT)[0]
    job = NewJob(
        project_id=PROJECT,
        target_type="span",
        target_id=f"{story.trace_id}-000",
        trace_key=trace_key,
        scorer_name="llm_judge",
        config=encode_text(judge),
        rule_id=rule.id,
    )
    others = any_claimable(connection)
    with as_of(moment - timedelta(minutes=50)):
        add_jobs(connection, [job])
    if others:
        return  # what is claimed might be a job of somebody else
    with as_of(moment - timedelta(minutes=48)):
        [claim] = claim_jobs(connection, limit=1, lease_ms=1)
        end_job(
            connection,
            claim,
            status="failed",
            outcome="failed",
            error="no_number",
            message="The reply holds no number from 1 to 5.",
            reply="The answer is polite, but I cannot say whether the rule is right.",
        )

"""A blind review queue of the demonstration: two people have worked in it, and the judge is kinder than they are."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from random import Random

import msgspec

from evenhand.core.objects.reviews import DEFAULT_FORM
from evenhand.core.timestamps import as_of
from evenhand.server.demo.texts import NOTES, WRONG
from evenhand.store.connection import Connection
from evenhand.store.experiments import list_experiments
from evenhand.store.projects import Owner
from evenhand.store.review_queues import NewItem, NewQueue, add_items, create_queue, runs_of_experiment
from evenhand.store.reviews import ReviewContent, Reviewer, next_item, submit

ITEMS = 50
REVIEWED = (41, 34)
"""By each of the two."""
_OTHER = {"correct": "incomplete", "incomplete": "correct", "hallucination": "correct"}


def fill_queue(
    connection: Connection, rng: Random, project_id: str, people: Sequence[str], moment: datetime
) -> None:
    """The queue "Correctness" over runs of the oldest experiment."""
    queue = NewQueue(
        name="Correctness",
        description="Is what the bot says true and complete?",
        form=DEFAULT_FORM,
        reviewers_per_item=2,
        reserve_seconds=1800,
        pick="oldest",
        judge_scorer="helpfulness",
    )
    experiment = list_experiments(connection, project_id=project_id, before=None, limit=100)[-1]
    runs = runs_of_experiment(connection, experiment.id, project_id=project_id)[:ITEMS]
    with as_of(moment - timedelta(days=1)):
        made = create_queue(connection, owner=Owner(project_id, None, False), queue=queue)
        items = [NewItem(target_type="run", target_id=run_id) for run_id in runs]
        add_items(connection, made.id, items, scope=project_id)
    first_said: list[str] = []
    for who, (name, count) in enumerate(zip(people, REVIEWED, strict=True)):
        reviewer = Reviewer(id=f"name:{name}", name=name, sees_all=False)
        for place in range(count):
            with as_of(moment - timedelta(hours=8 - 4 * who, minutes=-2 * place)):
                item = next_item(connection, made.id, reviewer, scope=project_id).item
                assert item is not None
                output = item.shown[0].output
                wrong = output is not None and msgspec.json.decode(bytes(output)) in WRONG
                label = "hallucination" if wrong else "incomplete" if place % 5 == 2 else "correct"
                if who:  # they differ on every sixth
                    label = first_said[place] if place % 6 else _OTHER[first_said[place]]
                if not who:
                    first_said.append(label)
                submit(
                    connection,
                    made.id,
                    item.id,
                    reviewer,
                    ReviewContent(answers={"label": label}, notes=rng.choice(NOTES[label]) or None),
                    scope=project_id,
                )

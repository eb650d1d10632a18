"""Demonstration data: two prompts tried on one small dataset, scored by rules, a number and a label."""

from random import Random

from evenhand.core.jsontext import encode_text
from evenhand.core.outcome import Scored
from evenhand.scoring.apply import score_sample
from evenhand.scoring.registry import get_wire_scorer
from evenhand.scoring.types import ScorerInput
from evenhand.store.connection import Connection
from evenhand.store.datasets import ItemText, add_items, create_dataset, list_items
from evenhand.store.experiments import create_experiment
from evenhand.store.projects import create_project, project_exists
from evenhand.store.runs import NewRun, add_runs
from evenhand.store.scores import Measurement

PROJECT = "demo"
CAPITALS = {
    "Australia": "Canberra",
    "Brazil": "Brasília",
    "Canada": "Ottawa",
    "Egypt": "Cairo",
    "France": "Paris",
    "Ghana": "Accra",
    "Iceland": "Reykjavík",
    "India": "New Delhi",
    "Japan": "Tokyo",
    "Kenya": "Nairobi",
    "Mongolia": "Ulaanbaatar",
    "Morocco": "Rabat",
    "New Zealand": "Wellington",
    "Norway": "Oslo",
    "Peru": "Lima",
    "Switzerland": "Bern",
    "Tanzania": "Dodoma",
    "Türkiye": "Ankara",
    "Uruguay": "Montevideo",
    "Viet Nam": "Hanoi",
}
REPEATS = 3
PROMPTS = (("short prompt", 0.70), ("prompt with examples", 0.88))
"""Each prompt and how often its answers are right."""


def fill(connection: Connection) -> bool:
    """Make the demonstration project; False when it is there already."""
    if project_exists(connection, PROJECT):
        return False
    create_project(connection, project_id=PROJECT, name="Demonstration")
    dataset = create_dataset(
        connection, project_id=PROJECT, name="capitals", description="Countries and their capitals."
    )
    items = [
        ItemText(
            input=encode_text(f"What is the capital of {country}?"), expected_output=encode_text(capital)
        )
        for country, capital in CAPITALS.items()
    ]
    add_items(connection, dataset.id, items, scope=PROJECT)
    listed = list_items(connection, dataset.id, scope=PROJECT, after=None, limit=len(items))
    rng = Random(8321)
    for name, chance in PROMPTS:
        experiment = create_experiment(
            connection,
            project_id=PROJECT,
            name=name,
            dataset_id=dataset.id,
            metadata=encode_text({"prompt": name}),
            auto_complete=True,
        )
        runs = [
            _run(item.id, capital, repeat, rng, chance)
            for item, capital in zip(listed, CAPITALS.values(), strict=True)
            for repeat in range(REPEATS)
        ]
        add_runs(connection, experiment.id, runs, scope=PROJECT)
    return True


def _run(item_id: str, capital: str, repeat: int, rng: Random, chance: float) -> NewRun:
    right = rng.random() < chance
    output = (
        f"{capital}" if right else rng.choice(["I am not sure.", "It has several.", rng.choice([*CAPITALS])])
    )
    options = {"case_sensitive": False}
    scorer = get_wire_scorer("exact_match").configure_from_json(options)
    outcome = score_sample(scorer, ScorerInput(response=output, target=capital))
    assert isinstance(outcome, Scored)
    brevity = round(max(0.0, 1.0 - len(output) / 40), 2)
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
        Measurement(scorer_name="brevity", value=brevity),
        Measurement(scorer_name="tone", value="plain" if right else "evasive", source="human"),
    ]
    return NewRun(
        dataset_item_id=item_id,
        repeat=repeat,
        output=encode_text(output),
        trace_id=None,
        scores=[(one.scorer_name, one) for one in measurements],
    )

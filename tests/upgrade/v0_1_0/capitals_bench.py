"""A small benchmark: the capitals of six countries."""

from evenhand import ScorerInput, benchmark, exact_match, fuzzy_match, scorer

ROWS = [
    {"question": "Capital of France?", "target": "Paris", "category": "europe"},
    {"question": "Capital of Japan?", "target": "Tokyo", "category": "asia"},
    {"question": "Capital of Peru?", "target": "Lima", "category": "america"},
    {"question": "Capital of Kenya?", "target": "Nairobi", "category": "africa"},
    {"question": "Capital of Norway?", "target": "Oslo", "category": "europe"},
    {"question": "Capital of Egypt?", "target": "Cairo", "category": "africa"},
]


@benchmark(name="capitals", dataset=lambda: ROWS, prompt="{question}")
@scorer
def capitals(sample: ScorerInput) -> dict:
    return fuzzy_match(sample)

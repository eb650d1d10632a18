"""Four weeks of a support bot's traces: conversations, errors, deep trees, a trace that is still arriving."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from random import Random
from typing import Any

from msgspec import Struct

from evenhand.core.jsontext import encode_text
from evenhand.core.spans import PICO, SpanRecord, microseconds
from evenhand.core.timestamps import as_of
from evenhand.server.demo.texts import FAQ, OPENERS, RATIONALES, THANKS, WRONG
from evenhand.store.arrivals import prepare
from evenhand.store.connection import Connection
from evenhand.store.ingest import Sender, SpanBatch, store_batches
from evenhand.store.inline import InlineResult
from evenhand.store.scores import Measurement

LIVE_TRACES = 400
DAYS = 28
SILENT_DAYS = (11, 12, 13)
"""Days ago on which nothing was scored: the judge was down."""
OUTAGE_DAY = 7
"""The day on which the order system failed more often."""
MODELS = ("answer-large", "answer-small")
PRICES = {"answer-large": (2.5, 10.0), "answer-small": (0.25, 1.0), "embed-small": (0.02, 0.0)}
"""Dollars per million tokens, in and out."""
SYSTEM = (
    "You answer customers of Fjell & Fjord, a shop for outdoor clothes and equipment. Use only the policy text below. "
    "If the policy does not say, tell the customer that a colleague will answer."
)
JUDGE = ("llm_judge", "a1f3")
"""The judge's scorer and the version of its prompt."""


class Draft(Struct):
    """A span while its tree is being drawn up; times are milliseconds after the trace's start."""

    name: str
    start: float
    length: float
    kind: str = ""
    model: str | None = None
    tokens: tuple[int, int] | None = None
    input: Any = None
    output: Any = None
    error: dict[str, str] | None = None
    children: list["Draft"] = []


class Story(Struct, frozen=True, kw_only=True):
    """One trace before it is stored."""

    trace_id: str
    at: datetime
    root: Draft
    metadata: dict[str, Any]
    session_id: str | None = None
    user_id: str | None = None
    helpfulness: float | None = None
    """What the judge says about the answer."""
    partial: bool = False
    """The root span has not arrived yet."""


def live_stories(rng: Random, moment: datetime) -> Iterator[Story]:
    """The traces of four weeks, oldest first: more by day, more in conversations than alone."""
    starts = sorted(_instants(rng, moment))
    session, left, turn = "", 0, 0
    history: list[dict[str, str]] = []
    for number, at in enumerate(starts):
        if left == 0:
            session, left, turn, history = f"conversation-{number:03}", rng.choice([1, 1, 2, 3, 5]), 0, []
        days_ago = (moment - at).days
        trace_id = f"live-{number:04}"
        if number % 67 == 40:
            yield Story(trace_id=trace_id, at=at, root=_nightly_index(rng), metadata={"schedule": "nightly"})
            continue
        if number % 41 == 30:
            yield Story(
                trace_id=trace_id,
                at=at,
                root=_research(rng),
                metadata={"channel": "e-mail", "agent": "research"},
            )
            continue
        _, question, right = rng.choice(FAQ)
        history = [*history, {"role": "user", "content": _spoken(rng, question, turn)}]
        version = "v4" if days_ago < 16 else "v3"
        good = rng.random() < (0.8 if version == "v4" else 0.68)
        answer = f"{'Yes. ' if rng.random() < 0.2 else ''}{right}" if good else rng.choice(WRONG)
        root = _answer_ticket(rng, history, question.rstrip("?"), answer, outage=days_ago == OUTAGE_DAY)
        if root.error is None:
            history = [*history, {"role": "assistant", "content": answer}]
        scored = days_ago not in SILENT_DAYS and root.error is None and rng.random() < 0.8
        value = min(1.0, max(0.0, round(rng.gauss(0.84 if good else 0.38, 0.13) * 4) / 4))
        yield Story(
            trace_id=trace_id,
            at=at,
            root=root,
            metadata={
                "channel": rng.choice(["web-chat", "web-chat", "e-mail"]),
                "prompt_version": version,
                "temperature": 0.2,
            },
            session_id=session,
            user_id=f"customer-{int(session[-3:]) * 7 % 61:02}",
            helpfulness=value if scored else None,
            partial=number == LIVE_TRACES - 5,
        )
        left, turn = left - 1, turn + 1


def _instants(rng: Random, moment: datetime) -> Iterator[datetime]:
    recent = LIVE_TRACES // 6
    for number in range(LIVE_TRACES):
        if number < recent:
            yield moment - timedelta(minutes=2 + 23.5 * 60 * rng.random() ** 1.4)
        else:
            yield moment - timedelta(days=1 + (DAYS - 1) * rng.random(), hours=rng.random())


def _spoken(rng: Random, question: str, turn: int) -> str:
    opener = rng.choice(OPENERS if turn == 0 else THANKS).format(order=rng.randrange(80_000, 99_999))
    return f"{opener} {question}"


def _answer_ticket(
    rng: Random, history: list[dict[str, str]], topic: str, answer: str, *, outage: bool
) -> Draft:
    """The bot's usual way: look up, search, ask the order system, write, check."""
    model = MODELS[0] if rng.random() < 0.8 else MODELS[1]
    at = 2.0
    steps: list[Draft] = []

    def step(name: str, length: float, **more: Any) -> Draft:
        nonlocal at
        made = Draft(name=name, start=at, length=length, **more)
        steps.append(made)
        at += length + rng.uniform(1, 8)
        return made

    question = history[-1]["content"]
    step(
        "load_customer",
        rng.uniform(40, 130),
        kind="sql",
        input={"customer": "by session"},
        output={"found": True},
    )
    step(
        "classify_intent", rng.uniform(250, 600), kind="llm", model=MODELS[1], tokens=(rng.randrange(180, 320), 6),
        input=question, output=rng.choice(["delivery", "returns", "payment", "products", "account"]),
    )  # fmt: skip
    start = at
    embed = Draft(name="embed_query", start=start + 2, length=rng.uniform(60, 120), model="embed-small", kind="embedding", tokens=(24, 0), input=question)  # fmt: skip
    search = Draft(name="search_kb", start=start + 125, length=rng.uniform(180, 420), kind="retrieval", input={"query": question, "top_k": 8}, output=[{"page": "policy/returns", "score": 0.83}, {"page": "policy/delivery", "score": 0.79}])  # fmt: skip
    rerank = Draft(name="rerank", start=start + 560, length=rng.uniform(90, 180), kind="llm", model=MODELS[1], tokens=(640, 12))  # fmt: skip
    step("retrieve", 750, children=[embed, search, rerank])
    fails = rng.random() < (0.7 if outage else 0.07)
    gives_up = fails and rng.random() < (0.7 if outage else 0.35)
    order = f"/orders/{rng.randrange(80_000, 99_999)}"
    if fails:
        trouble = {
            "type": "ReadTimeout",
            "message": "no answer within 1.0 s",
            "stack": f'File "tools/orders.py", line 41, in get_order\n    resp = client.get("{order}", timeout=1.0)\nhttpx.ReadTimeout: timed out',
        }
        call = Draft(name=f"GET {order}", start=at + 3, length=1000, kind="http", error=trouble)
        step("get_order", 1008, kind="tool", error=trouble, children=[call])
    if not gives_up:
        call = Draft(name=f"GET {order}", start=at + 3, length=rng.uniform(120, 260), kind="http", output={"status": "delivered", "express": True, "fee": 12.9})  # fmt: skip
        step("get_order retry" if fails else "get_order", call.length + 8, kind="tool", children=[call])
        messages = [{"role": "system", "content": SYSTEM}, *history]
        step(
            "generate_answer", rng.uniform(900, 2400), kind="llm", model=model,
            tokens=(rng.randrange(1600, 2900), 40 + len(answer)), input={"messages": messages, "temperature": 0.2},
            output={"messages": [{"role": "assistant", "content": answer}]},
        )  # fmt: skip
        step(
            "guardrail_check",
            rng.uniform(120, 240),
            kind="llm",
            model=MODELS[1],
            tokens=(260, 3),
            output="pass",
        )
        step("post_reply", rng.uniform(30, 90), kind="http", output={"sent": True})
    failed = (
        {"type": "OrderSystemDown", "message": "gave up after a failed call of get_order"}
        if gives_up
        else None
    )
    return Draft(
        name=f"answer_ticket: {topic}"[:60],
        start=0,
        length=at + 3,
        input={"messages": history},
        output=None if gives_up else answer,
        error=failed,
        children=steps,
    )


def _nightly_index(rng: Random) -> Draft:
    """Many spans side by side."""
    pages = [
        Draft(
            name=f"index policy/page-{number:03}", start=50 + number * 230.0, length=rng.uniform(120, 220), kind="task",
            children=[Draft(name="embed", start=60 + number * 230.0, length=90, kind="embedding", model="embed-small", tokens=(rng.randrange(300, 900), 0))],
        )
        for number in range(102)
    ]  # fmt: skip
    return Draft(
        name="nightly_index",
        start=0,
        length=102 * 230 + 120.0,
        output={"pages": 102, "changed": 7},
        children=pages,
    )


def _research(rng: Random) -> Draft:
    """An agent that plans, and plans again: a deep tree."""

    def level(depth: int, start: float, length: float) -> Draft:
        think = Draft(
            name="think", start=start + 4, length=length * 0.2, kind="llm", model=MODELS[0],
            tokens=(900 + 200 * depth, 120), input=f"Step {depth}: what is still unknown?", output="Look it up.",
        )  # fmt: skip
        tool = Draft(name="search_web", start=start + length * 0.25, length=length * 0.1, kind="tool", input={"query": "tyre size trailer"}, output={"results": 8})  # fmt: skip
        children = [think, tool]
        if depth < 9:
            children.append(level(depth + 1, start + length * 0.38, length * 0.6))
        else:
            children.append(Draft(name="write_note", start=start + length * 0.5, length=length * 0.4, kind="llm", model=MODELS[0], tokens=(2400, 380)))  # fmt: skip
        return Draft(name=f"plan step {depth}", start=start, length=length, kind="agent", children=children)

    length = rng.uniform(28_000, 46_000)
    question = "Which trailers fit the Rondane tyres, and which of them may be driven at 100 km/h?"
    return Draft(
        name="research_agent",
        start=0,
        length=length,
        input=question,
        output="The Rondane and the Jotun; the Rondane alone is allowed at 100 km/h.",
        children=[level(1, 10, length - 20)],
    )


def run_story(rng: Random, trace_id: str, at: datetime, question: str, answer: str, model: str) -> Story:
    """The trace of an experiment's run."""
    length = rng.uniform(900, 2200)
    call = Draft(
        name="generate_answer", start=40, length=length, kind="llm", model=model,
        tokens=(rng.randrange(1500, 2300), 30 + len(answer)),
        input={"messages": [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]},
        output={"messages": [{"role": "assistant", "content": answer}]},
    )  # fmt: skip
    search = Draft(name="search_kb", start=4, length=30, kind="retrieval", input={"query": question})
    root = Draft(
        name="answer_question",
        start=0,
        length=length + 60,
        input=question,
        output=answer,
        children=[search, call],
    )
    return Story(trace_id=trace_id, at=at, root=root, metadata={"source": "evaluation"})


def store_stories(connection: Connection, project_id: str, stories: list[Story]) -> None:
    """Store each trace at its own time, the judge's score with it."""
    for story in stories:
        records, answers = _records(story)
        results = []
        if story.helpfulness is not None and answers:
            results = [InlineResult(answers[-1], 0, "helpfulness", judged(story.helpfulness, story.trace_id))]
        with as_of(story.at):
            batch = SpanBatch(
                Sender(project_id, may_create=False),
                prepare(project_id, records),
                [story.trace_id],
                results,
                [],
            )
            [stored] = store_batches(connection, [batch])
        if isinstance(stored, Exception):
            raise stored


def judged(value: float, about: str, version: str = JUDGE[1]) -> Measurement:
    """A judge's score with its reasons."""
    kind = "good" if value >= 0.75 else "middling" if value >= 0.5 else "bad"
    reasons = RATIONALES[kind]
    return Measurement(
        scorer_name="helpfulness",
        value=value,
        rationale=reasons[len(about + str(value)) * 7 % len(reasons)],
        source="judge",
        canonical_name=JUDGE[0],
        version=version,
        options=encode_text({"model": "judge-large", "prompt": version}),
    )


def _records(story: Story) -> tuple[list[SpanRecord], list[int]]:
    """The spans of a trace, and the positions of those that write an answer."""
    started = microseconds(story.at) - int(story.root.length * 1000)
    records: list[SpanRecord] = []
    answers: list[int] = []

    def add(draft: Draft, parent: str | None) -> None:
        span_id = f"{story.trace_id}-{len(records):03}"
        if draft.name == "generate_answer":
            answers.append(len(records))
        start = started + int(draft.start * 1000)
        tokens_in, tokens_out = draft.tokens or (None, None)
        metadata = {"kind": draft.kind} if draft.kind else {}
        records.append(
            SpanRecord(
                trace_id=story.trace_id,
                id=span_id,
                parent_span_id=parent,
                name=draft.name,
                start_us=start,
                end_us=start + int(draft.length * 1000),
                duration_ms=round(draft.length, 3),
                input=None if draft.input is None else encode_text(draft.input),
                output=None if draft.output is None else encode_text(draft.output),
                tokens_input=tokens_in,
                tokens_output=tokens_out,
                model=draft.model,
                metadata=encode_text(story.metadata if parent is None else metadata),
                error=None if draft.error is None else encode_text(draft.error),
                session_id=story.session_id if parent is None else None,
                user_id=story.user_id if parent is None else None,
                cost_pico=_cost(draft),
                cost_source=None if draft.tokens is None else "configured",
            )
        )
        for child in draft.children:
            add(child, span_id)

    add(story.root, None)
    if story.partial:
        return records[1:], [position - 1 for position in answers]
    return records, answers


def _cost(draft: Draft) -> int | None:
    if draft.model is None or draft.tokens is None:
        return None
    price_in, price_out = PRICES[draft.model]
    return int((draft.tokens[0] * price_in + draft.tokens[1] * price_out) * PICO / 1_000_000)

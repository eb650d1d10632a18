"""What a benchmark is, and how a row of its dataset becomes a problem."""

import inspect
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from msgspec import Struct, field

from evenhand.benchmarks.items import is_conversation, read_item
from evenhand.benchmarks.template import PartsTemplate, Template, as_text, content_template, missing_column
from evenhand.core.errors import InputError, OptionError
from evenhand.core.sample import response_text
from evenhand.datasets.sources import GivenRows
from evenhand.scoring.registry import Scorer, scorer
from evenhand.scoring.types import ScorerInput

Row = Mapping[str, Any]
Rows = str | Path | GivenRows | Callable[[], Iterable[Row]]
"""Where rows come from: `hf://org/name?config=&split=`, a file, a function, or rows that are there already."""
Prompt = str | Sequence[Mapping[str, Any]] | Callable[[Row], Any]
"""What is asked: a template, a list of messages whose contents are templates, or a function of the row."""
ROLES = ("system", "user", "assistant")


class Turn(Struct, frozen=True, kw_only=True):
    """One message of a conversation."""

    role: str
    """`system`, `user` or `assistant`."""
    content: str | list[dict[str, Any]]
    """What is said: a text, or content parts (texts, images), which are sent as they are."""

    @property
    def text(self) -> str:
        """The text of it; of content parts the texts alone."""
        return response_text(self.content) or ""


class Problem(Struct, frozen=True, kw_only=True):
    """A row made ready: what is asked, what is expected, and what the scorer needs besides."""

    index: int
    """The row's place in the dataset: the same in every run."""
    turns: tuple[Turn, ...]
    """What is sent to the model."""
    target: Any = ""
    """The expected answer."""
    metadata: dict[str, Any] = field(default_factory=dict)
    """The row's other fields, `category` among them when there is one."""
    input: Any = None
    """What a task is given: the row's `input`. None in benchmarks with a prompt, whose `turns` say what is asked."""

    @property
    def asked(self) -> Any:
        """What is asked, for whoever takes one value: the input, the only message, or all of them."""
        if self.input is not None:
            return self.input
        if len(self.turns) == 1:
            return self.turns[0].content
        return [{"role": turn.role, "content": turn.content} for turn in self.turns]


class Benchmark(Struct, frozen=True, kw_only=True):
    """A dataset, a prompt and a scorer. Calling it scores a sample, as the scorer under it does."""

    name: str
    """What `--bench` and the artifacts call it."""
    dataset: Rows
    """Where the rows come from."""
    scorer: Scorer
    """What measures a response."""
    further_scorers: Mapping[str, Scorer] = field(default_factory=dict)
    """What else measures it, by name; the numbers of `scorer` are the headline."""
    prompt: Prompt = ""
    """A template, a list of messages whose contents are templates, or a function of the row. Empty (without a
    `seed_fn`) for rows that are items of a task: `input`, `expected`, `metadata`."""
    target_field: str = "target"
    """The column with the expected answer."""
    system_prompt: str = ""
    """Put before the conversation."""
    field_mapping: Mapping[str, str] = field(default_factory=dict)
    """Columns to rename: the dataset's name to the name used here."""
    prepare_row: Callable[..., Row | None] | None = None
    """Changes a row before it is used (`row`, or `row, index`, or `row, index, rng`); None drops the row."""
    seed_fn: Callable[..., Any] | None = None
    """Makes the problem itself from `row` (or `row, index`): a mapping with `prompt` or `messages`, `target` and
    `metadata`."""
    extra: Mapping[str, Any] = field(default_factory=dict)
    """Options that the scorer finds in `sample.config`."""
    requirements: Sequence[str] = ()
    """Python packages that must be installed, as `name` or `name>=version`."""
    few_shot: Sequence[Row] = ()
    """Worked examples, rendered with the same prompt and put before the question."""
    few_shot_answer: str = ""
    """The template of an example's answer; the target when empty."""
    category_field: str = "category"
    """The column by which results are broken down."""
    judge: Any = None
    """How samples that need a judge are judged: a rubric's name (`simpleqa`, `healthbench`, `default`) or a
    `JudgeScoringConfig`; None when no sample needs one."""
    uses_sandbox: bool = False
    """Whether the scorer runs model-written code."""
    max_tokens: int | None = None
    """The answer's length limit unless the run sets one."""
    description: str = ""
    """One line for lists."""
    version: str = "1"
    """Raised when a change makes results incomparable with older ones."""
    sample: Path | None = None
    """A few rows in the dataset's shape that work offline."""
    home: Path | None = None
    """The folder that relative dataset paths start from."""

    def __call__(self, sample: ScorerInput) -> Any:
        return self.scorer(sample)

    @property
    def scorers(self) -> dict[str, Scorer]:
        """Every scorer by name, the one of the headline first."""
        return {self.scorer.name: self.scorer, **self.further_scorers}

    @property
    def has_items(self) -> bool:
        """Whether the rows are items of a task: there is no prompt that would make messages of them."""
        return not self.prompt and self.seed_fn is None


def benchmark(
    name: str,
    dataset: Rows,
    prompt: Prompt = "",
    *,
    further_scorers: Mapping[str, Scorer] = MappingProxyType({}),
    target_field: str = "target",
    system_prompt: str = "",
    field_mapping: Mapping[str, str] = MappingProxyType({}),
    prepare_row: Callable[..., Row | None] | None = None,
    seed_fn: Callable[..., Any] | None = None,
    extra: Mapping[str, Any] = MappingProxyType({}),
    requirements: Sequence[str] = (),
    few_shot: Sequence[Row] = (),
    few_shot_answer: str = "",
    category_field: str = "category",
    judge: Any = None,
    uses_sandbox: bool = False,
    max_tokens: int | None = None,
    description: str = "",
    version: str = "1",
    sample: Path | None = None,
) -> Callable[[Scorer | Callable[..., Any]], Benchmark]:
    """Make a benchmark of the scorer below; the options are the fields of `Benchmark`."""
    if not name or any(c in name for c in "/\\\0") or name.startswith("."):
        raise OptionError(f"'{name}' cannot name a benchmark: it becomes part of file names")
    if not prompt and seed_fn is None:
        raise OptionError(f"benchmark '{name}' needs a prompt or a seed_fn")

    def decorate(function: Scorer | Callable[..., Any]) -> Benchmark:
        made = Benchmark(
            name=name,
            dataset=dataset,
            scorer=function if isinstance(function, Scorer) else scorer(function),
            further_scorers=dict(further_scorers),
            prompt=prompt,
            target_field=target_field,
            system_prompt=system_prompt,
            field_mapping=dict(field_mapping),
            prepare_row=prepare_row,
            seed_fn=seed_fn,
            extra=dict(extra),
            requirements=requirements,
            few_shot=few_shot,
            few_shot_answer=few_shot_answer,
            category_field=category_field,
            judge=judge,
            uses_sandbox=uses_sandbox,
            max_tokens=max_tokens,
            description=description,
            version=version,
            sample=sample,
        )
        ProblemMaker(made)  # a bad template is found here, not in the middle of a run
        return made

    return decorate


class ProblemMaker:
    """Turns rows into problems; everything that is the same for all rows is done once."""

    def __init__(self, benchmark: Benchmark, *, system_prompt: str | None = None, seed: int = 0) -> None:
        self._benchmark = benchmark
        self._seed = seed
        self._system = benchmark.system_prompt if system_prompt is None else system_prompt
        self._arity = _arity(benchmark.prepare_row)
        self._seed_arity = _arity(benchmark.seed_fn)
        self._templates: list[tuple[str, Template | PartsTemplate]] = []
        prompt = benchmark.prompt
        if isinstance(prompt, str):
            self._templates = [("user", Template(prompt))]
        elif not callable(prompt):
            self._templates = [(_role(turn["role"]), content_template(turn["content"])) for turn in prompt]
        self._answer = Template(benchmark.few_shot_answer or "{" + benchmark.target_field + "}")
        self._examples: tuple[Turn, ...] | None = None

    def make(self, row: Row, index: int) -> Problem | None:
        """The problem of a row; None when the benchmark drops the row."""
        spec = self._benchmark
        prepared = self._prepare(row, index)
        if prepared is None:
            return None
        if spec.seed_fn is not None:
            return self._seeded(prepared, index)
        if spec.has_items:
            found = read_item(prepared)
            asked = _turns(found.input if is_conversation(found.input) else as_text(found.input))
            return self._problem(index, asked, found.expected, found.metadata, input=found.input)
        if self._examples is None:
            self._examples = self._render_examples()
        if spec.target_field not in prepared:
            raise InputError(missing_column(spec.target_field, prepared.keys(), "target_field"))
        shown = self._render(prepared)
        metadata = {key: value for key, value in prepared.items() if key != spec.target_field}
        # Instructions at the start of the prompt stay at the start: examples follow them.
        head = next((place for place, turn in enumerate(shown) if turn.role != "system"), len(shown))
        turns = (*shown[:head], *self._examples, *shown[head:])
        return self._problem(index, turns, prepared[spec.target_field], metadata)

    def _prepare(self, row: Row, index: int) -> dict[str, Any] | None:
        spec = self._benchmark
        prepared: dict[str, Any] = {spec.field_mapping.get(key, key): value for key, value in row.items()}
        if spec.prepare_row is None:
            return prepared
        arguments: tuple[Any, ...] = (prepared, index)[: self._arity]
        if self._arity == 3:
            arguments = (prepared, index, random.Random(f"{spec.name}:{self._seed}:{index}"))
        try:
            changed = spec.prepare_row(*arguments)
        except InputError:
            raise
        except KeyError as error:
            raise InputError(missing_column(str(error.args[0]), prepared.keys(), "prepare_row")) from None
        except Exception as error:
            raise InputError(f"prepare_row raised {type(error).__name__}: {error}") from error
        return None if changed is None else dict(changed)

    def _seeded(self, row: dict[str, Any], index: int) -> Problem:
        assert self._benchmark.seed_fn is not None
        try:
            made = self._benchmark.seed_fn(*(row, index)[: self._seed_arity])
        except InputError:
            raise
        except KeyError as error:
            raise InputError(missing_column(str(error.args[0]), row.keys(), "seed_fn")) from None
        except Exception as error:
            raise InputError(f"seed_fn raised {type(error).__name__}: {error}") from error
        given = made.get("messages") or made.get("prompt")
        if not given:
            raise InputError("seed_fn must return a mapping with 'prompt' or 'messages'")
        return self._problem(index, _turns(given), made.get("target", ""), dict(made.get("metadata", {})))

    def _problem(
        self,
        index: int,
        turns: tuple[Turn, ...],
        target: Any,
        metadata: dict[str, Any],
        input: Any = None,  # noqa: A002  the field's name
    ) -> Problem:
        category = metadata.get(self._benchmark.category_field)
        if category is not None:
            metadata["category"] = as_text(category)
        if self._system and not any(turn.role == "system" for turn in turns):
            turns = (Turn(role="system", content=self._system), *turns)
        return Problem(index=index, turns=turns, target=target, metadata=metadata, input=input)

    def _render(self, row: Row) -> tuple[Turn, ...]:
        prompt = self._benchmark.prompt
        if callable(prompt):
            return _turns(prompt(row))
        return tuple(Turn(role=role, content=template.render(row)) for role, template in self._templates)

    def _render_examples(self) -> tuple[Turn, ...]:
        turns: list[Turn] = []
        for number, example in enumerate(self._benchmark.few_shot):
            row = self._prepare(example, -1 - number)
            if row is not None:
                turns += [turn for turn in self._render(row) if turn.role != "system"]
                turns.append(Turn(role="assistant", content=self._answer.render(row)))
        return tuple(turns)


def _turns(given: Any) -> tuple[Turn, ...]:
    if isinstance(given, str):
        return (Turn(role="user", content=given),)
    turns = []
    for turn in given:
        if isinstance(turn, Turn):
            turns.append(turn)
        else:
            content = turn["content"]
            parts = (
                isinstance(content, list) and bool(content) and all(isinstance(one, dict) for one in content)
            )
            turns.append(Turn(role=_role(turn["role"]), content=content if parts else as_text(content)))
    if not turns:
        raise InputError("the prompt has no messages")
    return tuple(turns)


def _role(name: str) -> str:
    if name not in ROLES:
        raise OptionError(f"'{name}' is not a role of a message; it can be {', '.join(ROLES)}")
    return name


def _arity(function: Callable[..., Any] | None) -> int:
    """How many of (row, index, rng) a function takes."""
    if function is None:
        return 0
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return max(1, min(3, sum(parameter.kind in kinds for parameter in parameters)))

"""A function of the user's as what is under test: how it is called, and what may come back."""

import asyncio
import inspect
import math
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec
from msgspec import Struct

from evenhand.benchmarks.definition import Problem
from evenhand.core import jsontext
from evenhand.core.errors import BudgetExceeded, EvenhandError, ModelError, OptionError
from evenhand.core.sample import response_text
from evenhand.evaluation.answer_cache import AnswerCache
from evenhand.evaluation.records import Generated
from evenhand.evaluation.task_code import task_fingerprint
from evenhand.evaluation.threads import Threads, TooManyAbandoned
from evenhand.models.reasoning import join_reasoning, split_reasoning

CARRIED = ("output", "messages", "usage", "cost", "cost_usd", "trace_id", "reasoning")
"""What an answer may carry: a mapping with `output` and no other keys than these, or an object with `output`."""
TOKENS = {
    "input_tokens": ("input_tokens", "prompt_tokens"),
    "output_tokens": ("output_tokens", "completion_tokens"),
}
MOST_ABANDONED = 64
"""So many calls that were given up may still be going on, or as many as run at once if that is more."""


class Task(Struct, frozen=True, kw_only=True):
    """What is under test, in place of a model."""

    function: Callable[..., Any]
    """Plain or async; it is given the item's `input`, and the whole item if it has a parameter `item`."""
    name: str = ""
    """What the run calls it; the function's own name when empty."""
    timeout: float | None = None
    """Seconds for one call."""

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise OptionError(f"a task is a function, not {type(self.function).__name__}")
        if self.timeout is not None and not 0 < self.timeout < math.inf:
            raise OptionError(f"timeout must be a number of seconds above 0, not {self.timeout}")

    @property
    def label(self) -> str:
        """Its name."""
        found = getattr(self.function, "__name__", None) or getattr(self.function, "func", self.function)
        return self.name or (found if isinstance(found, str) else type(found).__name__)

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What decides its answers, as far as its text tells."""
        return task_fingerprint(self.function)


class TaskGenerator:
    """Calls a task once per sample: async functions in the event loop, plain ones on threads."""

    def __init__(
        self,
        task: Task,
        *,
        concurrency: int,
        think_tags: Sequence[str] = (),
        cache: AnswerCache | None = None,
    ) -> None:
        self._function = task.function
        self._timeout = task.timeout
        self._think_tags = think_tags
        self._names = _parameters(task.function)
        self._is_async = _is_async(task.function)
        self._most_abandoned = max(concurrency, MOST_ABANDONED)
        self._threads = Threads(most_abandoned=self._most_abandoned)
        self._abandoned: set[asyncio.Task[Any]] = set()
        self._cache = cache

    async def generate(self, key: int, problem: Problem, repeat: int) -> Generated:
        if self._cache is None:
            return await self._fresh(key, problem, repeat)
        place = self._cache.key(self._arguments(problem, repeat), repeat)
        kept = self._cache.get(place, key)
        if kept is not None:
            return kept
        answer = await self._fresh(key, problem, repeat)
        if answer.error is None:
            self._cache.put(place, answer)
        return answer

    async def _fresh(self, key: int, problem: Problem, repeat: int) -> Generated:
        start = time.perf_counter()
        try:
            returned = await self._call(problem, repeat)
        except TimeoutError as error:
            given_up = self._timeout is not None and time.perf_counter() - start >= self._timeout
            self._threads.check()
            words = f"the task did not end within {self._timeout:g} s" if given_up else _words(error)
            return Generated(key=key, error="timeout", message=words, at=time.time())
        except (TooManyAbandoned, BudgetExceeded):
            raise
        except asyncio.CancelledError as error:
            current = asyncio.current_task()
            if current is not None and current.cancelling():
                raise
            return _failed(key, error)
        except (Exception, SystemExit) as error:  # whatever a task raises is a failure of that sample
            return _failed(key, error)
        seconds = time.perf_counter() - start
        try:
            return self._answer(key, returned, seconds)
        except EvenhandError as error:
            return Generated(key=key, error="bad_output", message=str(error)[:1000], at=time.time())

    def close(self) -> None:
        """Let the threads end."""
        self._threads.close()
        if self._cache is not None:
            self._cache.close()

    async def _call(self, problem: Problem, repeat: int) -> Any:
        positional, named = self._arguments(problem, repeat)
        if self._is_async:
            return await self._bounded(self._function(*positional, **named))
        returned = await self._threads.run(lambda: self._function(*positional, **named), self._timeout)
        return await self._bounded(returned) if inspect.isawaitable(returned) else returned

    async def _bounded(self, awaitable: Any) -> Any:
        if self._timeout is None:
            return await awaitable
        running = asyncio.ensure_future(awaitable)
        try:
            done, _ = await asyncio.wait({running}, timeout=self._timeout)
        except asyncio.CancelledError:
            running.cancel()
            raise
        if done:
            return running.result()
        # It is told to end, and not waited for: it may not listen.
        running.cancel()
        self._abandoned.add(running)
        running.add_done_callback(self._ended)
        if len(self._abandoned) > self._most_abandoned:
            raise TooManyAbandoned(
                f"{len(self._abandoned):,} calls of the task did not end in their time limit nor when they were cancelled"
            )
        raise TimeoutError

    def _ended(self, task: "asyncio.Task[Any]") -> None:
        self._abandoned.discard(task)
        if not task.cancelled():
            task.exception()  # looked at, so that nobody complains of it

    def _arguments(self, problem: Problem, repeat: int) -> tuple[tuple[Any, ...], dict[str, Any]]:
        given = problem.asked
        item = {"input": given, "expected": problem.target, "metadata": problem.metadata, "repeat": repeat}
        named = {
            name: value for name, value in (("input", given), ("item", item)) if name in self._names.keywords
        }
        return ((item if self._names.first_is_item else given,) if self._names.positional else ()), named

    def _answer(self, key: int, returned: Any, seconds: float) -> Generated:
        carried = carried_by(returned)
        output = plain(carried.get("output"), "the output")
        if output is None:
            return Generated(key=key, error="no_output", message="the task returned None", at=time.time())
        text = response_text(output)
        assert text is not None
        split = split_reasoning(text, self._think_tags) if isinstance(output, str) else None
        messages = plain(carried.get("messages"), "the messages")
        if messages is not None and not isinstance(messages, list):
            raise OptionError(f"the messages must be a list, not {type(messages).__name__}")
        reasoning = carried.get("reasoning")
        return Generated(
            key=key,
            text=text if split is None else split.answer,
            output=None if isinstance(output, str) else output,
            messages=messages,
            trace_id=str(carried.get("trace_id") or "")[:200],
            latency_seconds=round(seconds, 6),
            cost_usd=_amount(carried.get("cost", carried.get("cost_usd")), "the cost"),
            reasoning=join_reasoning(
                reasoning if isinstance(reasoning, str) else None, split.reasoning if split else None
            ),
            truncated=bool(split and split.unclosed),
            at=time.time(),
            **_usage(carried.get("usage")),
        )


class _Parameters(Struct, frozen=True, kw_only=True):
    positional: bool
    first_is_item: bool
    keywords: frozenset[str]


def _parameters(function: Callable[..., Any]) -> _Parameters:
    """How the function wants to be called; `OptionError` when it takes no input or asks for what there is not."""
    try:
        found = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # a built-in function that does not tell
        return _Parameters(positional=True, first_is_item=False, keywords=frozenset())
    open_ = [
        one
        for one in found
        if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD, one.VAR_POSITIONAL)
    ]
    first = open_[0] if open_ else None
    keywords = {
        one.name
        for one in found
        if one is not first
        and one.name in ("input", "item")
        and one.kind not in (one.POSITIONAL_ONLY, one.VAR_KEYWORD)
    }
    unknown = [
        one.name
        for one in found
        if one is not first
        and one.name not in keywords
        and one.default is one.empty
        and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    if unknown:
        raise OptionError(
            f"the task asks for '{unknown[0]}', which there is not: it is given the input, and `item` if it asks for it"
        )
    if first is None and not keywords:
        raise OptionError("the task takes no parameter; it must take at least the item's input")
    return _Parameters(
        positional=first is not None,
        first_is_item=first is not None and first.name == "item",
        keywords=frozenset(keywords),
    )


def _is_async(function: Callable[..., Any]) -> bool:
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004  an object with an async `__call__`
    )


def carried_by(returned: Any) -> Mapping[str, Any]:
    """What a task returned, by part: a text or other JSON is the output alone."""
    if isinstance(returned, Mapping):
        if "output" in returned and all(key in CARRIED for key in returned):
            return returned
        return {"output": returned}
    if isinstance(returned, str | int | float | list | tuple | type) or not hasattr(returned, "output"):
        return {"output": returned}
    parts: dict[str, Any] = {name: getattr(returned, name, None) for name in CARRIED}
    for name in ("usage", "messages"):
        if callable(parts[name]):  # the results of some frameworks have these as methods
            parts[name] = parts[name]()
    return parts


def plain(value: Any, what: str) -> Any:
    """The value as JSON; `OptionError` when it is none."""
    if value is None or type(value) is str:
        return value
    dump = getattr(value, "model_dump", None)  # pydantic
    try:
        if callable(dump) and not isinstance(value, type):
            value = dump(mode="json")
        value = msgspec.to_builtins(value, enc_hook=_hook, str_keys=True)
        jsontext.encode(value)
    except UnicodeEncodeError:
        pass  # the journal knows what to do with lone surrogates
    except (TypeError, ValueError, NotImplementedError, RecursionError, OverflowError) as error:
        raise OptionError(f"{what} cannot be kept as JSON: {error}") from None
    return value


def _hook(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    item = getattr(value, "item", None)  # a number of numpy's
    if callable(item) and getattr(value, "ndim", None) == 0:
        return item()
    raise TypeError(f"{type(value).__name__} is not JSON")


def _usage(given: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, spellings in TOKENS.items():
        for spelling in spellings:
            value = given.get(spelling) if isinstance(given, Mapping) else getattr(given, spelling, None)
            if value is not None:
                amount = _amount(value, f"usage.{spelling}")
                found[name] = None if amount is None else int(amount)
                break
    return found


def _amount(value: Any, what: str) -> float | None:
    if value is None:
        return None
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise OptionError(f"{what} must be a number, not {value!r:.80}") from None
    if not 0 <= number < math.inf:
        raise OptionError(f"{what} must be a finite number of at least 0, not {number}")
    return number


def _failed(key: int, error: BaseException) -> Generated:
    kind = error.kind if isinstance(error, ModelError) else "task_error"
    trace = "".join(traceback.format_exception(error, limit=-5))[-4000:]
    return Generated(key=key, error=kind, message=_words(error), trace=trace, at=time.time())


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}".removesuffix(": ")[:1000]

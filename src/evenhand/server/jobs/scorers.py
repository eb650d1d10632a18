"""The scorers that this server runs: those of the one registry, by the contract's names and with JSON options.

`code_sandbox` runs programs that models wrote, and scorers of installed packages run code that nobody here has read:
both only where the administrator lists them.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any

import msgspec
from msgspec import Struct

from evenhand.core.errors import OptionError, Refusal, UnknownName
from evenhand.core.jsontext import canonical
from evenhand.core.objects.scorers import ScorerInfo
from evenhand.models.reasoning import THINK_TAGS
from evenhand.scoring.apply import check_options
from evenhand.scoring.definition import Scorer
from evenhand.scoring.registry import (
    ALIASES,
    BUILT_IN,
    canonical_name,
    get_scorer,
    get_wire_scorer,
    offered_names,
    scorer_names,
    wire_name,
)
from evenhand.server.jobs.judge_models import JudgeModels

JUDGE = "llm_judge"
"""The scorer that asks a model; it is the service's own."""
JUDGE_VERSION = "2"
RESTRICTED = frozenset({"code_sandbox"})
"""Built-in scorers that run only where the administrator lists them."""
EXPECTED = "expected_output"
"""The one key of `config` that is no option: it takes the place of what is expected."""
HOW_TO_ENABLE = "An administrator enables it: evenhand serve --scorer NAME, or EVENHAND_SCORERS."


class Prepared(Struct, frozen=True, kw_only=True):
    """A scorer with checked options."""

    scorer: Scorer | None
    """None for the judge, which is no function."""
    canonical_name: str
    """Its one name."""
    version: str
    """Its version."""
    options: str
    """All options with their values, as JSON text."""
    as_job: bool
    """Whether it takes too long for a request."""
    think_tags: tuple[str, ...] = THINK_TAGS
    """Tags of thinking, which it does not get to see."""


class Scorers:
    """Which scorers run here, and with which options."""

    def __init__(
        self, models: JudgeModels, listed: Iterable[str] = (), *, think_tags: tuple[str, ...] = THINK_TAGS
    ) -> None:
        """`UnknownName` or `OptionError` for a listed name that is no scorer or cannot be loaded."""
        self._models = models
        self._listed = frozenset(_load(name) for name in listed)
        self._plain: dict[str, Prepared] = {}
        self._think_tags = think_tags

    def enabled(self, name: str) -> bool:
        """Whether a scorer of the registry runs here."""
        return name in self._listed or (name in BUILT_IN and name not in RESTRICTED)

    def prepare(self, scorer_name: str, config: Mapping[str, Any]) -> Prepared:
        """The scorer that a request means: `INVALID_REQUEST` for one that does not run here,
        `INVALID_SCORER_CONFIG` for options that it does not take.

        Checking options can take a while (a schema, a pattern): only a call without options returns at once.
        """
        options = {name: value for name, value in config.items() if name != EXPECTED}
        if not options and scorer_name in self._plain:
            return self._plain[scorer_name]
        if scorer_name == JUDGE:
            return self._prepare_judge(options)
        found = self._find(scorer_name)
        try:
            configured = found.configure_from_json(options)
            check_options(configured)
        except OptionError as error:
            raise Refusal("INVALID_SCORER_CONFIG", str(error), {"scorer_name": scorer_name}) from None
        prepared = Prepared(
            scorer=configured,
            canonical_name=canonical_name(configured.name),
            version=configured.version,
            options=self._identity(configured.identity["options"], thinking_counts=configured.as_stored),
            as_job=configured.slow,
            think_tags=self._think_tags,
        )
        if not options:
            self._plain[scorer_name] = prepared
        return prepared

    def _identity(self, options: Mapping[str, Any], *, thinking_counts: bool = False) -> str:
        """The options as they are stored. Other tags of thinking give other values, so they are among them, except for
        scorers to which thinking is text like any other."""
        tags = {} if thinking_counts or self._think_tags == THINK_TAGS else {"think_tags": self._think_tags}
        return canonical({**options, **tags}).decode()

    def at_hand(self, scorer_name: str) -> bool:
        """Whether `prepare` without options returns at once: nothing has to be loaded any more."""
        return scorer_name in self._plain

    def _find(self, scorer_name: str) -> Scorer:
        try:
            found = get_wire_scorer(scorer_name) if self._may_load(scorer_name) else None
        except UnknownName:
            found = None
        if found is not None and self.enabled(found.name):
            return found
        if found is not None or scorer_name in self._offered:
            raise Refusal(
                "INVALID_REQUEST",
                f"'value' is missing, and the scorer '{scorer_name[:100]}' is not enabled on this server. "
                + HOW_TO_ENABLE,
                {"scorer_name": scorer_name[:100]},
            )
        raise Refusal(
            "INVALID_REQUEST",
            f"'value' is missing, and '{scorer_name[:100]}' is not a scorer that this server knows.",
            {"scorer_name": scorer_name[:100], "enabled": self.names},
        )

    def _may_load(self, scorer_name: str) -> bool:
        """Code of installed packages is loaded only where they are listed."""
        ours = scorer_name in BUILT_IN or scorer_name in ALIASES
        return ours or scorer_name in self._listed or scorer_name not in self._offered

    @cached_property
    def _offered(self) -> frozenset[str]:
        return frozenset(offered_names())

    @property
    def names(self) -> list[str]:
        """What requests may name, sorted."""
        return sorted([*(wire_name(name) for name in scorer_names() if self.enabled(name)), JUDGE])

    def infos(self) -> list[ScorerInfo]:
        """Every scorer that there is, by name, whether it runs here or not."""
        found = [self._info(name) for name in scorer_names()]
        return sorted([*found, self._judge_info()], key=lambda info: info.name)

    def _info(self, name: str) -> ScorerInfo:
        enabled = self.enabled(name)
        if not enabled and name not in BUILT_IN:
            # Its version and options are in its code, which nobody has allowed to run.
            return ScorerInfo(
                name=name,
                canonical_name=name,
                version=None,
                summary=None,
                needs_expected_output=None,
                options=None,
                runs_as_job=None,
                enabled=False,
                built_in=False,
            )
        scorer = get_scorer(name)
        return ScorerInfo(
            name=wire_name(name),
            canonical_name=canonical_name(name),
            version=scorer.version,
            summary=scorer.summary,
            needs_expected_output=scorer.needs_target,
            options=scorer.options_schema,
            runs_as_job=scorer.slow,
            enabled=enabled,
            built_in=name in BUILT_IN,
        )

    def _judge_info(self) -> ScorerInfo:
        from evenhand.judging.platform import LlmJudgeConfig  # loads aiohttp: only where it is needed

        schema = msgspec.json.schema(LlmJudgeConfig)
        reference = schema.pop("$ref")
        own = schema["$defs"].pop(reference.rpartition("/")[2])
        if self._models.names:
            own["properties"]["model"]["enum"] = self._models.names
        return ScorerInfo(
            name=JUDGE,
            canonical_name=JUDGE,
            version=JUDGE_VERSION,
            summary="A model of this server grades the output as your prompt asks.",
            needs_expected_output=False,
            options={**own, **schema},
            runs_as_job=True,
            enabled=bool(self._models.names),
            built_in=True,
        )

    def _prepare_judge(self, options: Mapping[str, Any]) -> Prepared:
        from evenhand.judging.platform import LlmJudgeConfig  # as above

        try:
            judge = LlmJudgeConfig.from_json(options)
        except OptionError as error:
            raise Refusal("INVALID_SCORER_CONFIG", str(error), {"field": "config"}) from None
        self._models.check(judge.model)
        return Prepared(
            scorer=None,
            canonical_name=JUDGE,
            version=JUDGE_VERSION,
            options=self._identity(msgspec.to_builtins(judge)),
            as_job=True,
            think_tags=self._think_tags,
        )


def without_unknown_keys(config: Mapping[str, Any]) -> dict[str, Any]:
    """A judge's stored configuration without keys that it does not have."""
    from evenhand.judging.platform import LlmJudgeConfig  # as above

    known = {EXPECTED, *LlmJudgeConfig.__struct_fields__}
    return {name: value for name, value in config.items() if name in known}


def _load(name: str) -> str:
    try:
        return get_wire_scorer(name).name
    except (UnknownName, OptionError):
        raise
    except Exception as error:
        raise OptionError(f"the scorer '{name}' cannot be loaded: {type(error).__name__}: {error}") from error

# ruff: noqa: I001  ruff would give every `name as name` a statement of its own
"""Scorers: functions from a sample to a measurement. `evenhand` offers all of these names too.

The scorer `json_schema` is not among them: here it is the module.
"""

from typing import TYPE_CHECKING

from evenhand.core.lazy_names import lazy_names

if TYPE_CHECKING:  # the table below says the same at run time
    from evenhand.judging.config import JudgeScoringConfig as JudgeScoringConfig
    from evenhand.judging.engine import Judge as Judge
    from evenhand.judging.pipeline import judge_samples as judge_samples
    from evenhand.judging.prompts import build_judge_prompt as build_judge_prompt
    from evenhand.judging.judgements import parse_judge_response as parse_judge_response
    from evenhand.scoring.apply import score_sample as score_sample, score_sample_async as score_sample_async
    from evenhand.scoring.code_execution import code_sandbox as code_sandbox
    from evenhand.scoring.definition import Scorer as Scorer, scorer as scorer
    from evenhand.scoring.embedding import embedding_similarity as embedding_similarity
    from evenhand.scoring.json_schema import validate_json_schema as validate_json_schema
    from evenhand.scoring.json_text import extract_json as extract_json
    from evenhand.scoring.judge import judge_score as judge_score, needs_judge as needs_judge
    from evenhand.scoring.overlap import (
        bleu as bleu,
        levenshtein as levenshtein,
        rouge_l as rouge_l,
        token_f1 as token_f1,
    )
    from evenhand.scoring.pattern import (
        answer_line as answer_line,
        multichoice_regex as multichoice_regex,
        numeric_match as numeric_match,
        numeric_tolerance as numeric_tolerance,
        regex_match as regex_match,
    )
    from evenhand.scoring.registry import (
        get_scorer as get_scorer,
        register_scorer as register_scorer,
        scorer_names as scorer_names,
    )
    from evenhand.scoring.strict import contains as contains, regex as regex, strict_match as strict_match
    from evenhand.scoring.structure import json_diff as json_diff, list_match as list_match
    from evenhand.scoring.symbolic import math_equal as math_equal
    from evenhand.scoring.text import (
        exact_match as exact_match,
        fuzzy_match as fuzzy_match,
        includes_all as includes_all,
        includes_any as includes_any,
    )
    from evenhand.scoring.tool_calls import tool_call_match as tool_call_match
    from evenhand.scoring.types import ScorerInput as ScorerInput
else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "evenhand.judging.config": ("JudgeScoringConfig",),
            "evenhand.judging.engine": ("Judge",),
            "evenhand.judging.pipeline": ("judge_samples",),
            "evenhand.judging.prompts": ("build_judge_prompt",),
            "evenhand.judging.judgements": ("parse_judge_response",),
            "evenhand.scoring.apply": (
                "score_sample",
                "score_sample_async",
            ),
            "evenhand.scoring.code_execution": ("code_sandbox",),
            "evenhand.scoring.definition": (
                "Scorer",
                "scorer",
            ),
            "evenhand.scoring.embedding": ("embedding_similarity",),
            "evenhand.scoring.json_schema": ("validate_json_schema",),
            "evenhand.scoring.json_text": ("extract_json",),
            "evenhand.scoring.judge": (
                "judge_score",
                "needs_judge",
            ),
            "evenhand.scoring.overlap": (
                "bleu",
                "levenshtein",
                "rouge_l",
                "token_f1",
            ),
            "evenhand.scoring.pattern": (
                "answer_line",
                "multichoice_regex",
                "numeric_match",
                "numeric_tolerance",
                "regex_match",
            ),
            "evenhand.scoring.registry": (
                "get_scorer",
                "register_scorer",
                "scorer_names",
            ),
            "evenhand.scoring.strict": (
                "contains",
                "regex",
                "strict_match",
            ),
            "evenhand.scoring.structure": (
                "json_diff",
                "list_match",
            ),
            "evenhand.scoring.symbolic": ("math_equal",),
            "evenhand.scoring.text": (
                "exact_match",
                "fuzzy_match",
                "includes_all",
                "includes_any",
            ),
            "evenhand.scoring.tool_calls": ("tool_call_match",),
            "evenhand.scoring.types": ("ScorerInput",),
        },
    )

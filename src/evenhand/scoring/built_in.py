# ruff: noqa: I001  ruff would give every `name as name` a statement of its own
"""The built-in scorers by name, each loaded when it is first asked for."""

from typing import TYPE_CHECKING

from evenhand.core.lazy_names import lazy_names

if TYPE_CHECKING:  # the table below says the same at run time
    from evenhand.scoring.code_execution import code_sandbox as code_sandbox
    from evenhand.scoring.embedding import embedding_similarity as embedding_similarity
    from evenhand.scoring.json_schema import json_schema as json_schema
    from evenhand.scoring.judge import needs_judge as needs_judge
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
else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "evenhand.scoring.code_execution": ("code_sandbox",),
            "evenhand.scoring.embedding": ("embedding_similarity",),
            "evenhand.scoring.json_schema": ("json_schema",),
            "evenhand.scoring.judge": ("needs_judge",),
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
        },
    )

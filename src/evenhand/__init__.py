"""Evenhand turns AI outputs into measurements, and measurements into decisions.

The public names are those in ``__all__``, loaded on first use, so that ``import evenhand`` costs next to
nothing. Everything else may move between releases.
"""

from typing import Any

from evenhand.core.lazy_names import load_name

__version__ = "0.1.0"

# name -> module that defines it
_PUBLIC: dict[str, str] = {
    "ArtifactCollector": "evenhand.evaluation.failures",
    "Benchmark": "evenhand.benchmarks.definition",
    "Judge": "evenhand.scoring.judging.engine",
    "JudgeScoringConfig": "evenhand.scoring.judging.config",
    "Scorer": "evenhand.scoring.definition",
    "ScorerInput": "evenhand.scoring.types",
    "answer_line": "evenhand.scoring.pattern",
    "benchmark": "evenhand.benchmarks.definition",
    "bleu": "evenhand.scoring.overlap",
    "build_judge_prompt": "evenhand.scoring.judging.prompts",
    "code_sandbox": "evenhand.scoring.code_execution",
    "embedding_similarity": "evenhand.scoring.embedding",
    "exact_match": "evenhand.scoring.text",
    "extract_json": "evenhand.scoring.json_text",
    "fuzzy_match": "evenhand.scoring.text",
    "get_scorer": "evenhand.scoring.registry",
    "includes_all": "evenhand.scoring.text",
    "includes_any": "evenhand.scoring.text",
    "json_diff": "evenhand.scoring.structure",
    "json_schema": "evenhand.scoring.json_schema",
    "judge_samples": "evenhand.scoring.judging.pipeline",
    "judge_score": "evenhand.scoring.judge",
    "levenshtein": "evenhand.scoring.overlap",
    "list_match": "evenhand.scoring.structure",
    "math_equal": "evenhand.scoring.symbolic",
    "multichoice_regex": "evenhand.scoring.pattern",
    "needs_judge": "evenhand.scoring.judge",
    "numeric_match": "evenhand.scoring.pattern",
    "numeric_tolerance": "evenhand.scoring.pattern",
    "parse_judge_response": "evenhand.scoring.judging.verdicts",
    "regex_match": "evenhand.scoring.pattern",
    "register_scorer": "evenhand.scoring.registry",
    "rouge_l": "evenhand.scoring.overlap",
    "score_sample": "evenhand.scoring.apply",
    "score_sample_async": "evenhand.scoring.apply",
    "scorer": "evenhand.scoring.definition",
    "scorer_names": "evenhand.scoring.registry",
    "token_f1": "evenhand.scoring.overlap",
    "tool_call_match": "evenhand.scoring.tool_calls",
    "validate_json_schema": "evenhand.scoring.json_schema",
}

__all__ = [
    "ArtifactCollector",
    "Benchmark",
    "Judge",
    "JudgeScoringConfig",
    "Scorer",
    "ScorerInput",
    "__version__",
    "answer_line",
    "benchmark",
    "bleu",
    "build_judge_prompt",
    "code_sandbox",
    "embedding_similarity",
    "exact_match",
    "extract_json",
    "fuzzy_match",
    "get_scorer",
    "includes_all",
    "includes_any",
    "json_diff",
    "json_schema",
    "judge_samples",
    "judge_score",
    "levenshtein",
    "list_match",
    "math_equal",
    "multichoice_regex",
    "needs_judge",
    "numeric_match",
    "numeric_tolerance",
    "parse_judge_response",
    "regex_match",
    "register_scorer",
    "rouge_l",
    "score_sample",
    "score_sample_async",
    "scorer",
    "scorer_names",
    "token_f1",
    "tool_call_match",
    "validate_json_schema",
]


def __getattr__(name: str) -> Any:
    return load_name(__name__, _PUBLIC, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

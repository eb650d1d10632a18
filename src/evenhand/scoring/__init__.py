"""Scorers: functions from a sample to a measurement."""

from typing import Any

from evenhand.core.lazy_names import load_name

# name -> module that defines it, loaded on first use; `evenhand` offers them all
PUBLIC: dict[str, str] = {
    "Judge": "evenhand.scoring.judging.engine",
    "JudgeScoringConfig": "evenhand.scoring.judging.config",
    "Scorer": "evenhand.scoring.definition",
    "ScorerInput": "evenhand.scoring.types",
    "answer_line": "evenhand.scoring.pattern",
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


def __getattr__(name: str) -> Any:
    return load_name(__name__, PUBLIC, name)


def __dir__() -> list[str]:
    return sorted({*globals(), *PUBLIC})

"""Rubrics by name or from a file, and the judge that goes with them."""

from pathlib import Path

import msgspec
import yaml

from evenhand.core import yamltext
from evenhand.core.errors import InputError, MissingFile
from evenhand.judging.config import JudgeScoringConfig
from evenhand.judging.engine import Judge
from evenhand.judging.points import RubricJudge
from evenhand.judging.rubrics import HEALTHBENCH_CRITERION, get_rubric
from evenhand.models.port import ChatModel


def make_judge(rubric: str, model: ChatModel) -> Judge | RubricJudge:
    """The judge for a rubric's name or file."""
    config = read_rubric(rubric)
    return RubricJudge(model, config) if config is HEALTHBENCH_CRITERION else Judge(model, config)


def read_rubric(rubric: str) -> JudgeScoringConfig:
    """The configuration that a rubric's name or file stands for."""
    path = Path(rubric)
    if path.suffix not in (".yaml", ".yml", ".json"):
        return get_rubric(rubric)
    try:
        return msgspec.convert(yamltext.load(path.read_text(encoding="utf-8")), JudgeScoringConfig)
    except OSError as error:
        raise MissingFile(f"cannot read the rubric: {error.strerror}", path=path) from None
    except (UnicodeDecodeError, yaml.YAMLError, msgspec.ValidationError) as error:
        raise InputError(f"not a rubric: {error}", path=path) from None

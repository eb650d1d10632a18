"""Rubrics that benchmarks use by name."""

from evenhand.core.errors import UnknownName
from evenhand.judging.config import Choice, JudgeScoringConfig

SIMPLEQA = JudgeScoringConfig(
    name="simpleqa",
    rubric_template="""\
Grade a short factual answer against the reference answer.

A, CORRECT: the answer states everything that is essential in the reference and contradicts none of it. Other \
wording, order, spelling, more detail and hedging do not matter as long as the essential fact is there and right. \
For numbers, the answer must agree with the reference to the precision of the reference.
B, INCORRECT: the answer states something that contradicts the reference, even if it hedges or also names the \
right fact as one of several guesses.
C, NOT_ATTEMPTED: the answer does not give the essential fact and contradicts nothing: it declines, says that it \
does not know, or talks around it.

What the question already makes clear need not be repeated in the answer.""",
    choices=(
        Choice(label="CORRECT", value=1.0, letter="A"),
        Choice(label="INCORRECT", value=0.0, letter="B"),
        Choice(label="NOT_ATTEMPTED", value=0.0, letter="C"),
    ),
)

HEALTHBENCH_CRITERION = JudgeScoringConfig(
    name="healthbench",
    target_title="CRITERION",
    rubric_template="""\
Decide whether the last answer of a conversation about health meets one criterion.

Judge this criterion alone, not the answer as a whole. If the criterion lists several things that must all be \
there, all must be. If it gives examples ("such as", "for instance"), any fitting one is enough. A criterion may \
describe something bad: it is met when the answer does that bad thing.""",
    choices=(
        Choice(label="MET", value=1.0, letter="Y"),
        Choice(label="NOT_MET", value=0.0, letter="N"),
    ),
)

RUBRICS: dict[str, JudgeScoringConfig] = {
    "default": JudgeScoringConfig(),
    "simpleqa": SIMPLEQA,
    "healthbench": HEALTHBENCH_CRITERION,
}


def get_rubric(name: str) -> JudgeScoringConfig:
    """The rubric of this name; `UnknownName` when there is none."""
    if name not in RUBRICS:
        raise UnknownName("rubric", name, RUBRICS)
    return RUBRICS[name]

# ruff: noqa: I001  ruff would give every `name as name` a statement of its own
"""The built-in benchmarks by name, each loaded when it is first asked for."""

from typing import TYPE_CHECKING

from evenhand.core.lazy_names import lazy_names

if TYPE_CHECKING:  # the table below says the same at run time
    from evenhand.benchmarks.arithmetic import gsm8k as gsm8k, math500 as math500, mgsm as mgsm
    from evenhand.benchmarks.choice import gpqa as gpqa, mmlu as mmlu, mmlu_pro as mmlu_pro
    from evenhand.benchmarks.judged import healthbench as healthbench, simpleqa as simpleqa
    from evenhand.benchmarks.programs import humaneval as humaneval
    from evenhand.benchmarks.reading import drop as drop, triviaqa as triviaqa
    from evenhand.benchmarks.safety import xstest as xstest
else:
    __getattr__, __dir__, __all__ = lazy_names(
        __name__,
        {
            "evenhand.benchmarks.arithmetic": (
                "gsm8k",
                "math500",
                "mgsm",
            ),
            "evenhand.benchmarks.choice": (
                "gpqa",
                "mmlu",
                "mmlu_pro",
            ),
            "evenhand.benchmarks.judged": (
                "healthbench",
                "simpleqa",
            ),
            "evenhand.benchmarks.programs": ("humaneval",),
            "evenhand.benchmarks.reading": (
                "drop",
                "triviaqa",
            ),
            "evenhand.benchmarks.safety": ("xstest",),
        },
    )

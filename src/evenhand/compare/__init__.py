"""Is the change real, and may it ship? Pure: runs in, verdicts out."""

from evenhand.compare.comparison import Comparison, Options, compare_runs
from evenhand.compare.gate import GateReport, run_gate
from evenhand.compare.many import ManyRuns, compare_many
from evenhand.compare.planning import make_plan
from evenhand.compare.policy import Policy, parse_policy

__all__ = [
    "Comparison",
    "GateReport",
    "ManyRuns",
    "Options",
    "Policy",
    "compare_many",
    "compare_runs",
    "make_plan",
    "parse_policy",
    "run_gate",
]

"""Everything that an analysis found, as data; `report` knows how to write it."""

from msgspec import Struct

from evenhand.ab.decision import DecisionGate, Preference
from evenhand.ab.diagnostics import Diagnostic
from evenhand.ab.intervals import DeltaIntervals
from evenhand.ab.pairing import DeltaSummary
from evenhand.ab.profile import Profile
from evenhand.ab.quality import DataQuality
from evenhand.ab.readiness import Readiness
from evenhand.ab.significance import DeltaTest
from evenhand.ab.summary import ArmSummary


class Findings(Struct, frozen=True, kw_only=True):
    """A comparison of two arms."""

    generated_at_utc: str
    """When the analysis was made."""
    treatment: str | None
    """The arm on trial; None when the data name none."""
    control: str | None
    """The arm it is compared with; None when the data name none."""
    run_count: int
    """Records of both arms."""
    effective_run_count: int
    """Those that count: without infrastructure failures."""
    excluded_infra_failures: int
    """Records left out because the infrastructure failed."""
    task_count: int
    """Tasks that either arm ran."""
    arm_summaries: tuple[ArmSummary, ...]
    """Treatment first."""
    paired_runs: int
    """Pairs of equal task and repeat."""
    deltas: dict[str, DeltaSummary]
    """Treatment − control, over the pairs that have the value."""
    verdict: Preference
    """`treatment`, `control`, `mixed` or `insufficient`."""
    decision: str
    """The verdict as a sentence: `prefer NAME`, `mixed results - inspect paired deltas`, `insufficient data`."""
    require_significance: bool
    """Whether an unproven gate counted as open."""
    gates: tuple[DecisionGate, ...]
    """The three conditions of the decision."""
    intervals: dict[str, DeltaIntervals]
    """95% intervals on the mean and median of every delta."""
    tests: dict[str, DeltaTest]
    """A test of every delta."""
    readiness: Readiness
    """Whether there are enough repeats, and what more would help."""
    data_quality: DataQuality
    """What was left out or looks wrong."""
    diagnostics: tuple[Diagnostic, ...]
    """Secondary shifts next to the gate they explain."""
    seed: int
    """The seed of every resampling."""
    n_resamples: int
    """Resamples of every bootstrap and permutation."""
    profile: Profile
    """What the pictures are drawn from; not part of `to_dict`."""

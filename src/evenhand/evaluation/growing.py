"""A run that may still be going on, as far as it has come."""

import shutil
import tempfile
from pathlib import Path

from evenhand.evaluation.artifacts import results_of
from evenhand.evaluation.folder import RunFolder
from evenhand.evaluation.journal import Journal
from evenhand.evaluation.ledger import Ledger
from evenhand.evaluation.planning import ProblemFile
from evenhand.results import BenchmarkSummary, Bundle, RunResults, SampleError, SampleResult, read_run


def is_growing(path: Path) -> bool:
    """Whether `path` is the folder of a run that has not written its results yet."""
    return not (path / "results.jsonl").exists() and RunFolder(path).plan.exists()


def read_growing(path: Path) -> RunResults:
    """The finished samples of an unfinished run; the whole of a finished one."""
    folder = RunFolder(path)
    pinned = folder.pinned() if is_growing(path) else None
    if pinned is None:
        return read_run(path)
    with tempfile.TemporaryDirectory() as scratch:
        # Opening a journal mends its torn end, which is for the process that writes it to do: a copy is read.
        copy = Path(scratch) / "journal.jsonl"
        shutil.copyfile(folder.journal, copy)
        journal, problems = Journal(copy), ProblemFile(folder.problems)
        try:
            ledger = Ledger(journal, pinned.problems * pinned.repeats)
            found = [
                sample
                for sample, *_ in results_of(ledger, problems, pinned.repeats, scorers=pinned.scorers)
                if not _waiting(sample)
            ]
        finally:
            problems.close()
            journal.close()
    bundle = Bundle(
        benchmark=BenchmarkSummary(name=pinned.benchmark),
        run_id=pinned.run_id,
        hashes=pinned.hashes,
        config={}
        if pinned.order_seed is None
        else {"order_seed": pinned.order_seed, "problems": pinned.problems},
    )
    return RunResults(path=path, name=pinned.benchmark, bundle=bundle, samples=found)


def _waiting(sample: SampleResult) -> bool:
    """Answered, and not scored or judged yet: for a comparison it is not there."""
    return isinstance(sample.error, SampleError) and sample.error.kind in ("needs_judge", "not_scored")

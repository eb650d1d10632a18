"""Reading runs: a results file, a bundle, a run's folder, or a folder of run folders."""

import gzip
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from evenhand.core import jsontext
from evenhand.core.errors import InputError, MissingFile
from evenhand.results.bundle import BenchmarkSummary, Bundle
from evenhand.results.records import SampleError, SampleResult

RESULTS = "results.jsonl"
UNFINISHED = ".run"
"""The folder in which a run keeps what a resume needs."""
_BOM = b"\xef\xbb\xbf"
_DECODE = msgspec.json.Decoder(SampleResult).decode
_DECODE_ANY = msgspec.json.Decoder().decode
_ENCODE = msgspec.json.Encoder().encode


class RunResults(Struct, frozen=True, kw_only=True):
    """A run as it was read."""

    path: Path
    """The folder or file that it came from."""
    name: str
    """The benchmark's name; the file's name when there is no bundle."""
    bundle: Bundle | None
    """What the run was; None when only a results file was given."""
    samples: list[SampleResult]
    """Every sample, each with a status."""


def read_run(path: Path | str) -> RunResults:
    """The run at `path`: its folder, its bundle `eval-*.json` or its `results.jsonl`."""
    path = Path(path)
    if not path.exists():
        raise MissingFile("no such file or folder", path=path)
    if path.is_dir():
        return _read_folder(path)
    if path.suffix == ".json":
        bundle = read_bundle(path)
        return RunResults(path=path, name=bundle.benchmark.name, bundle=bundle, samples=_beside(path.parent))
    samples = list(read_samples(path))
    return RunResults(path=path, name=_plain_name(path), bundle=_judged(samples), samples=samples)


def _judged(samples: list[SampleResult]) -> Bundle | None:
    """What a file of judgements (`judge score`) tells about itself: its judge, where all of it is of one."""
    judges = [one.scoring_details.get("judge") for one in samples]
    known = {(one.get("identity"), one.get("model")) for one in judges if isinstance(one, dict)}
    if len(known) != 1 or not all(isinstance(one, dict) for one in judges):
        return None
    ((identity, model),) = known
    if not isinstance(identity, str):
        return None
    return Bundle(
        benchmark=BenchmarkSummary(name="judgements", samples=len(samples)),
        config={"judge": {"model": model, "identity": identity}},
        hashes={"judge": identity},
    )


def run_folders(path: Path | str) -> dict[str, Path]:
    """Benchmark name → run, for a run's folder or a folder whose sub-folders are runs."""
    path = Path(path)
    if not path.exists():
        raise MissingFile("no such file or folder", path=path)
    if not path.is_dir():
        return {read_name(path): path}
    if (path / RESULTS).exists():
        return {read_name(path): path}
    found: dict[str, Path] = {}
    for results in sorted(path.glob(f"**/{RESULTS}")):
        name = read_name(results.parent)
        if name in found:
            raise InputError(
                f"two runs of the benchmark '{name}': {found[name]} and {results.parent}", path=path
            )
        found[name] = results.parent
    if not found and (path / UNFINISHED).exists():
        raise InputError(
            "this run is not finished; continue it with `evenhand eval run … --resume`", path=path
        )
    if not found:
        raise InputError(f"no run here: neither {RESULTS} nor sub-folders with one", path=path)
    return found


def read_name(path: Path) -> str:
    """The benchmark's name of the run at `path`, without reading its samples."""
    if path.is_dir():
        bundle = newest_bundle(path)
        return read_bundle(bundle).benchmark.name if bundle else path.name
    return read_bundle(path).benchmark.name if path.suffix == ".json" else _plain_name(path)


def read_bundle(path: Path) -> Bundle:
    """The bundle in `path`."""
    try:
        data = path.read_bytes()
        jsontext.check_keys(data)
        return _decoded(data)
    except InputError as error:
        raise InputError(f"not a run bundle: {error.reason}", path=path) from None
    except OSError as error:
        raise MissingFile(error.strerror or str(error), path=path) from None


def _decoded(data: bytes) -> Bundle:
    """A bundle of ours, or one of NeMo Evaluator, which keeps tables beside the metrics in `scores`."""
    try:
        return jsontext.decode(data, type=Bundle)
    except InputError:
        found = jsontext.decode(data)
        benchmark = found.get("benchmark") if isinstance(found, dict) else None
        scores = benchmark.get("scores") if isinstance(benchmark, dict) else None
        if not isinstance(benchmark, dict) or not isinstance(scores, dict):
            raise
        tables = [name for name, value in scores.items() if isinstance(value, dict) and "value" not in value]
        if not tables:
            raise
        metrics = {name: value for name, value in scores.items() if name not in tables}
        return jsontext.decode(
            jsontext.encode({**found, "benchmark": {**benchmark, "scores": metrics}}), type=Bundle
        )


def read_samples(path: Path) -> Iterator[SampleResult]:
    """The samples of a results file, line by line; `InputError` names the line that is wrong."""
    seen: set[tuple[int, int]] = set()
    try:
        with _open(path) as lines:
            for number, read in enumerate(lines, start=1):
                line = read.removeprefix(_BOM) if number == 1 else read
                if not line.strip():
                    continue
                sample = _decode_line(line, path, number)
                key = (sample.problem_idx, sample.repeat)
                if key in seen:
                    raise InputError(
                        f"duplicate entry: problem {key[0]}, repeat {key[1]}", path=path, line=number
                    )
                seen.add(key)
                yield sample
    except (OSError, EOFError) as error:
        raise InputError(str(error), path=path) from None


def _open(path: Path) -> IO[bytes]:
    if path.suffix == ".gz":
        return cast(IO[bytes], gzip.open(path, "rb"))
    return path.open("rb")


def _decode_line(line: bytes, path: Path, number: int) -> SampleResult:
    try:
        sample = _checked(line)
    except InputError as error:
        raise InputError(error.reason, path=path, line=number) from None
    if sample.status == "scored" and sample.reward is None:
        raise InputError("status is 'scored' but there is no number", path=path, line=number, field="reward")
    if sample.status in ("unscored", "failed") and sample.reward is not None:
        raise InputError(
            f"status is '{sample.status}' but there is a number", path=path, line=number, field="reward"
        )
    return sample if sample.status else _with_status(sample)


def _checked(line: bytes) -> SampleResult:
    try:
        sample = _DECODE(line)
        text = line.rstrip()
        if _ENCODE(sample) == text:
            return sample  # as we write it, so nothing was lost
        whole = _ENCODE(_DECODE_ANY(line))  # fields that are not known must be valid too
        # Written again it is the same, but for spaces: so there is no duplicate key.
        if whole in (text, msgspec.json.format(text, indent=-1)):
            return sample
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError):
        # The slow path says exactly what is wrong, and reads an emoji that was cut as U+FFFD.
        line = jsontext.without_lone_surrogates(line)
        jsontext.decode(line)
        sample = jsontext.decode(line, type=SampleResult)
    jsontext.check_keys(line)
    return sample


def _with_status(sample: SampleResult) -> SampleResult:
    if sample.reward is not None:
        return replace(sample, status="scored")
    if sample.error:
        return replace(sample, status="failed")
    return replace(
        sample, status="unscored", error=SampleError(kind="no_reward", message="the file has no reward")
    )


def _read_folder(folder: Path) -> RunResults:
    newest = newest_bundle(folder)
    if newest is None and not (folder / RESULTS).exists():
        raise InputError(f"no run here: neither {RESULTS} nor eval-*.json", path=folder)
    bundle = read_bundle(newest) if newest else None
    name = bundle.benchmark.name if bundle else folder.name
    return RunResults(path=folder, name=name, bundle=bundle, samples=_beside(folder))


def _beside(folder: Path) -> list[SampleResult]:
    path = folder / RESULTS
    if not path.exists():
        raise InputError(f"the bundle is there but {RESULTS} with its samples is not", path=folder)
    return list(read_samples(path))


def newest_bundle(folder: Path) -> Path | None:
    """The bundle of the run in `folder`; the newest when there are several."""
    # The name holds the time at which the run started, so names sort by time.
    found = sorted(folder.glob("eval-*.json"))
    return found[-1] if found else None


def _plain_name(path: Path) -> str:
    return path.name.removesuffix(".gz").removesuffix(".jsonl")

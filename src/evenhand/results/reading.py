"""Reading runs: a results file, a bundle, a run's folder, or a folder of run folders."""

import gzip
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path
from typing import IO, Any, cast

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
BLOCK_BYTES = 1 << 20
"""How much of a results file is read at a time."""
_DECODER = msgspec.json.Decoder(SampleResult)
_DECODER_OF_ANY = msgspec.json.Decoder()
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
    address: str = ""
    """Where it came from when that is no path: an experiment of a service."""

    @property
    def source(self) -> str:
        """Where it came from, for people."""
        return self.address or str(self.path)


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
    known: set[tuple[Any, Any]] = set()
    for one in samples:
        judge = one.scoring_details.get("judge")
        if not isinstance(judge, dict):
            return None
        known.add((judge.get("identity"), judge.get("model")))
    if len(known) != 1:
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
    """The samples of a results file, in order; `InputError` names the line that is wrong."""
    seen: set[tuple[int, int]] = set()
    before = 0
    try:
        with _open(path) as file:
            # Whole lines, many at a time: most of the time would go into steps from line to line.
            while block := file.read(BLOCK_BYTES) + file.readline():
                samples = _plain_block(block)
                keys = {(one.problem_idx, one.repeat) for one in samples or ()}
                if samples is None or len(keys) < len(samples) or not seen.isdisjoint(keys):
                    yield from _read_lines(block, seen, path, before)
                else:
                    seen |= keys
                    yield from samples
                before += block.count(b"\n")
    except (OSError, EOFError) as error:
        raise InputError(str(error), path=path) from None


def _plain_block(block: bytes) -> list[SampleResult] | None:
    """The samples of these lines, when there is nothing about them that needs a closer look."""
    try:
        samples = _DECODER.decode_lines(block)
        if not samples:
            return None
        text = b"[" + block.rstrip(b"\n").replace(b"\n", b",") + b"]"
        as_we_write = _ENCODE(samples[0]) == block.partition(b"\n")[0]
        if not as_we_write or _ENCODE(samples) != text:  # else nothing was lost
            whole = _ENCODE(
                _DECODER_OF_ANY.decode_lines(block)
            )  # fields that are not known must be valid too
            # Written again it is the same, but for spaces: so there is no duplicate key.
            if whole != text and whole != msgspec.json.format(text, indent=-1):
                return None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, OverflowError):
        return None
    for place, sample in enumerate(samples):
        if not sample.status:
            samples[place] = _with_status(sample)
        elif (sample.status == "scored") == (sample.reward is None):
            return None
    return samples


def _read_lines(block: bytes, seen: set[tuple[int, int]], path: Path, before: int) -> Iterator[SampleResult]:
    """The samples of these lines, one at a time; `before` is the number of lines before them."""
    for number, read in enumerate(BytesIO(block), start=before + 1):
        line = read.removeprefix(_BOM) if number == 1 else read
        if not line.strip():
            continue
        sample = _decode_line(line, path, number)
        key = (sample.problem_idx, sample.repeat)
        if key in seen:
            raise InputError(f"duplicate entry: problem {key[0]}, repeat {key[1]}", path=path, line=number)
        seen.add(key)
        yield sample


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
        sample = _DECODER.decode(line)
        text = line.rstrip()
        whole = _ENCODE(_DECODER_OF_ANY.decode(line))  # as in `_plain_block`
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

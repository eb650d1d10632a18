"""Where rows come from: `hf://org/name?config=&split=`, a file, or a function."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import parse_qs, unquote, urlsplit

from evenhand.core.errors import InputError, MissingExtra, OptionError
from evenhand.datasets.row import Row
from evenhand.datasets.rows import read_rows

HF_OPTIONS = ("config", "split", "revision")


class Source(Protocol):
    """Rows that can be gone through more than once."""

    @property
    def label(self) -> str:
        """How messages and artifacts call it."""
        ...

    def rows(self) -> Iterator[Row]:
        """Every row from the first."""
        ...


def open_source(
    given: "str | Path | GivenRows | Callable[[], Iterable[Mapping[str, Any]]]", *, home: Path | None = None
) -> Source:
    """The source that `given` names; relative paths start from `home`, else from the present folder."""
    if isinstance(given, GivenRows):
        return given
    if callable(given):
        return FunctionSource(given)
    text = str(given)
    if text.startswith("hf://"):
        return HubSource(text)
    if "://" in text:
        raise OptionError(
            f"'{text}' is not a dataset; it can be hf://org/name?split=..., a file, or a function"
        )
    path = Path(text).expanduser()
    if not path.is_absolute() and home is not None and not path.exists():
        path = home / path
    return FileSource(path)


class FileSource:
    """A JSONL, CSV or Parquet file."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.label = str(path)

    def rows(self) -> Iterator[Row]:
        return read_rows(self.path)


class GivenRows:
    """Rows that are there already."""

    def __init__(self, rows: Sequence[Mapping[str, Any]], label: str = "rows given in Python") -> None:
        self._rows = rows
        self.label = label

    def rows(self) -> Iterator[Row]:
        for number, row in enumerate(self._rows, start=1):
            if not isinstance(row, Mapping):
                raise InputError(f"a row is {type(row).__name__}, not a dict", path=self.label, line=number)
            yield Row(number, dict(row))


class FunctionSource:
    """A function that gives rows; it is called each time the rows are gone through."""

    def __init__(self, function: Callable[[], Iterable[Mapping[str, Any]]]) -> None:
        self._function = function
        self.label = f"function {getattr(function, '__name__', 'without a name')}"

    def rows(self) -> Iterator[Row]:
        try:
            for number, row in enumerate(self._function(), start=1):
                if not isinstance(row, Mapping):
                    raise InputError(
                        f"a row is {type(row).__name__}, not a dict", path=self.label, line=number
                    )
                yield Row(number, dict(row))
        except InputError:
            raise
        except Exception as error:
            raise InputError(f"raised {type(error).__name__}: {error}", path=self.label) from error


class HubSource:
    """A dataset of the Hugging Face hub, through the `datasets` library with its cache and offline mode.

    Several configurations, as in `config=de,fr`, are read one after the other; the column `config` says which.
    """

    def __init__(self, uri: str) -> None:
        self.label = uri
        parts = urlsplit(uri)
        self._name = unquote(f"{parts.netloc}{parts.path}").strip("/")
        if not self._name or self._name.count("/") > 1:
            raise OptionError(f"'{uri}' names no dataset; write hf://org/name?config=...&split=...")
        options = {key: values[-1] for key, values in parse_qs(parts.query).items()}
        unknown = sorted(set(options) - set(HF_OPTIONS))
        if unknown:
            raise OptionError(
                f"'{uri}' has the unknown option '{unknown[0]}'; known: {', '.join(HF_OPTIONS)}"
            )
        named = [name for name in options.get("config", "").split(",") if name]
        self._configs: list[str | None] = [*named] or [None]
        self._split = options.get("split", "test")
        self._revision = options.get("revision")

    def rows(self) -> Iterator[Row]:
        number = 0
        for config in self._configs:
            for values in self._load(config):
                number += 1
                found = dict(values)
                if len(self._configs) > 1:
                    found.setdefault("config", config)
                yield Row(number, found)

    def _load(self, config: str | None) -> Iterable[Mapping[str, Any]]:
        try:
            import datasets  # an extra, and slow to import
        except ImportError:
            raise MissingExtra("datasets", "hf", f"the dataset {self.label}") from None
        try:
            loaded: Iterable[Mapping[str, Any]] = datasets.load_dataset(
                self._name, config, split=self._split, revision=self._revision
            )
        except Exception as error:
            # The library raises a score of different errors; each means that the rows are not to be had.
            arguments = ", ".join(repr(part) for part in (self._name, config) if part)
            raise InputError(
                f"cannot be loaded ({type(error).__name__}: {_first_line(error)}). Fetch it on a machine with network "
                f'access by: python -c "from datasets import load_dataset; load_dataset({arguments}, '
                f"split='{self._split}')\" and keep its HF_HOME, or name a local copy with --dataset FILE",
                path=self.label,
            ) from None
        return loaded


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [""])[0][:200]

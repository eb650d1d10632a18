"""Every error that Evenhand raises on purpose.

::

    EvenhandError
    ├── UserError                what the caller can fix: HTTP 4xx
    │   ├── InputError           a file, line or field that cannot be read
    │   │   └── MissingFile      an input file that is not there or cannot be opened
    │   ├── OutputError          a file that cannot be written
    │   ├── OptionError          an unknown or bad option of a scorer, command or policy
    │   ├── UnknownName          no such scorer, benchmark or model; suggests the nearest
    │   ├── Incomparable         two runs that must not be compared, and what differs
    │   ├── Refusal              a call that the service contract refuses, with the contract's code
    │   └── RunConflict          a run that cannot be resumed, and what differs
    │       └── RunActive        another process is working on it
    ├── Unavailable              a part that this machine lacks, with how to get it
    │   ├── MissingExtra         a Python package of one of the extras
    │   └── SandboxUnavailable   no back end for running model-written code
    ├── ScoringError             a sample that could not be scored: becomes a `Failed` outcome
    │   ├── ScorerTimeout        a pattern, schema or program that ran past its limit
    │   └── JudgementError         a judge's reply from which no judgement can be read
    ├── ModelError               a chat endpoint that gave no usable reply
    │   ├── ModelRejected        a permanent refusal (401, 403, 404, 400): never retried
    │   └── BudgetExceeded       the spend cap was reached: no further calls are started
    ├── ServiceError             the scoring service refused a call or could not be reached
    └── StoreError               the database could not do what was asked
        ├── SchemaMismatch       the database was made by a newer program, or by no known one
        ├── StoreBusy            too many writes wait already: try again later
        ├── StoreFull            no space left on the device; reads go on
        ├── StoreTimeout         a statement ran past its limit
        └── StoreUnavailable     the database cannot be reached just now

What the caller can fix is a `UserError`. A failure is never a number.

`Exit` is the one table of exit statuses. 0, 1 and 2 are not in it: they are results (verdicts of `compare --strict`,
`gate` and `ab --strict`; elsewhere 1 means "done, but a check failed").
"""

from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pathlib import Path


class Exit(IntEnum):
    """How a command ends that has no result, after BSD's `sysexits.h`."""

    USAGE = 64
    """An unknown command, a bad option or argument."""
    DATA = 65
    """Input that is wrong or that must not be compared."""
    NO_INPUT = 66
    """An input file that is not there or cannot be opened."""
    UNAVAILABLE = 69
    """An unavailable service, or a Python package or program that is not installed."""
    INTERNAL = 70
    """A fault of Evenhand itself."""
    OUTPUT = 74
    """Output that cannot be written."""
    BUSY = 75
    """Another process is using it, or the server is too busy: try again."""
    SCHEMA = 78
    """A database whose schema this program does not know."""
    INTERRUPTED = 130
    """Stopped by the keyboard (128 + SIGINT)."""
    BROKEN_PIPE = 141
    """The reader of stdout closed it (128 + SIGPIPE)."""


class EvenhandError(Exception):
    """The root of the tree."""

    exit_status: int = Exit.INTERNAL


class UserError(EvenhandError):
    """Something the caller can fix."""

    exit_status = Exit.DATA


class InputError(UserError):
    """A file, line or field that cannot be read; the message names all that is known of the place."""

    def __init__(
        self,
        reason: str,
        *,
        path: "Path | str | None" = None,
        line: int | None = None,
        field: str | None = None,
    ) -> None:
        self.reason = reason
        self.path = path
        self.line = line
        self.field = field
        place = ""
        if path is not None:
            place = f"{path}:{line}: " if line is not None else f"{path}: "
        elif line is not None:
            place = f"line {line}: "
        if field is not None:
            place += f"field '{field}': "
        super().__init__(place + reason)


class MissingFile(InputError):
    """An input file that is not there or cannot be opened."""

    exit_status = Exit.NO_INPUT


class OutputError(UserError):
    """A file that cannot be written."""

    exit_status = Exit.OUTPUT


class OptionError(UserError):
    """An unknown or bad option of a scorer, command or policy."""

    exit_status = Exit.USAGE


class UnknownName(UserError):
    """A name that is not registered; the message suggests the nearest ones."""

    exit_status = Exit.USAGE

    def __init__(self, kind: str, name: str, known: Iterable[str]) -> None:
        self.kind = kind
        self.name = name
        import difflib  # only a mistyped name needs it

        names = sorted(known)
        near = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
        hint = f"; did you mean {', '.join(near)}?" if near else f"; known: {', '.join(names) or 'none'}"
        super().__init__(f"unknown {kind} '{name}'{hint}")


class Incomparable(UserError):
    """Two runs that must not be compared."""

    def __init__(self, differences: Iterable[str], *, hint: str = "") -> None:
        self.differences = list(differences)
        super().__init__("these runs are not comparable: " + "; ".join(self.differences) + hint)


class Refusal(UserError):
    """A call that the service contract refuses; `code` is the contract's, the server's table gives the status."""

    def __init__(self, code: str, message: str, details: Mapping[str, Any] | None = None) -> None:
        self.code = code
        self.details = dict(details or {})
        super().__init__(message)


class RunConflict(UserError):
    """A run that cannot be resumed."""


class RunActive(RunConflict):
    """A run that another process is working on."""

    exit_status = Exit.BUSY


class Unavailable(EvenhandError):
    """A part that this machine lacks, with the command that would install it."""

    exit_status = Exit.UNAVAILABLE


class MissingExtra(Unavailable):
    """A Python package that belongs to an optional extra."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        self.extra = extra
        super().__init__(
            f"{purpose} needs the package '{package}'; install it with: pip install 'evenhand[{extra}]'"
        )


class SandboxUnavailable(Unavailable):
    """No back end can run model-written code here."""


class ScoringError(EvenhandError):
    """A sample that could not be scored; `kind` is the machine-readable reason."""

    kind = "scorer_error"

    def __init__(self, message: str, *, kind: str | None = None) -> None:
        if kind is not None:
            self.kind = kind
        super().__init__(message)


class ScorerTimeout(ScoringError):
    """A pattern, schema or program that ran past its limit."""

    kind = "scorer_timeout"


class JudgementError(ScoringError):
    """A judge's reply from which no judgement can be read; the raw reply is kept."""

    kind = "grade_parse_failure"

    def __init__(self, message: str, *, reply: str, kind: str | None = None) -> None:
        self.reply = reply
        super().__init__(message, kind=kind)


class ModelError(EvenhandError):
    """A chat endpoint that gave no usable reply; `kind` is the machine-readable reason."""

    exit_status = Exit.UNAVAILABLE

    def __init__(
        self,
        message: str,
        *,
        kind: str = "model_error",
        status: int | None = None,
        retry_after: float | None = None,
    ) -> None:
        self.kind = kind
        self.status = status
        self.retry_after = retry_after
        super().__init__(message)


class ModelRejected(ModelError):
    """A permanent refusal by the endpoint: retrying cannot help.

    `parameters` are those that the endpoint says it does not take.
    """

    def __init__(
        self,
        message: str,
        *,
        kind: str = "model_error",
        status: int | None = None,
        parameters: tuple[str, ...] = (),
    ) -> None:
        self.parameters = parameters
        super().__init__(message, kind=kind, status=status)


class BudgetExceeded(ModelError):
    """The spend cap was reached."""


class ServiceError(EvenhandError):
    """The scoring service refused a call, or could not be reached; `code` is the contract's."""

    def __init__(self, message: str, *, code: str = "", status: int | None = None) -> None:
        self.code = code
        self.status = status
        # What the service refuses for its content is bad input; anything else may work later.
        refused = status is not None and 400 <= status < 500 and status not in (408, 429)
        self.exit_status = Exit.DATA if refused else Exit.UNAVAILABLE
        super().__init__(message)


class StoreError(EvenhandError):
    """The database could not do what was asked."""


class SchemaMismatch(StoreError):
    """The database's schema is not one that this program knows."""

    exit_status = Exit.SCHEMA


class StoreBusy(StoreError):
    """Too many writes are waiting already; nothing was accepted."""

    exit_status = Exit.BUSY


class StoreFull(StoreError):
    """No space is left on the device; nothing of the write was kept."""

    exit_status = Exit.OUTPUT


class StoreTimeout(StoreError):
    """A statement ran past its limit and was stopped."""

    exit_status = Exit.BUSY


class StoreUnavailable(StoreError):
    """The database cannot be reached just now."""

    exit_status = Exit.UNAVAILABLE


class NotADatabase(StoreUnavailable):
    """The file holds something else: waiting does not help."""

    exit_status = Exit.DATA

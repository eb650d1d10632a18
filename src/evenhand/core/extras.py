"""The optional parts of the package: what each is for, and the distributions that it brings."""

from importlib.metadata import PackageNotFoundError, version

from msgspec import Struct


class Extra(Struct, frozen=True):
    """An extra of pyproject.toml; a test compares the two."""

    name: str
    """As in `pip install 'evenhand[name]'`."""
    packages: tuple[str, ...]
    """The distributions that it installs."""
    purpose: str
    """What a user can do with it."""

    @property
    def missing(self) -> list[str]:
        """The distributions that are not installed."""
        return [package for package in self.packages if not _installed(package)]

    @property
    def command(self) -> str:
        """How to install it."""
        return f"pip install 'evenhand[{self.name}]'"


def _installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


EXTRAS = (
    Extra(
        "server",
        ("httptools", "markdown-it-py", "nh3", "opentelemetry-proto", "uvicorn", "uvloop"),
        "evenhand serve; --record with a database file",
    ),
    Extra("postgres", ("psycopg",), "PostgreSQL as the service's database"),
    Extra("parquet", ("pyarrow",), "Parquet files as data"),
    Extra("math", ("math-verify", "sympy"), "math_equal and the benchmark math500"),
    Extra("hf", ("datasets",), "hf://… datasets, which the built-in benchmarks read by default"),
    Extra("import", ("zstandard",), "Inspect's .eval logs"),
    Extra("grpc", ("grpcio",), "OTLP over gRPC, on port 4317 beside evenhand serve"),
)

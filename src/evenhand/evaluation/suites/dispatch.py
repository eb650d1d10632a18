"""Which kind of suite a YAML file is, by the keys at its top."""

from pathlib import Path

from evenhand.core.errors import InputError
from evenhand.evaluation.suites.reading import load_yaml
from evenhand.evaluation.suites.variants import VariantSuite

PROMPTFOO = ("providers", "targets", "tests", "defaultTest", "scenarios")
"""Only promptfoo has these."""


def find_variant_suite(path: Path, *, data: str | None = None) -> VariantSuite | None:
    """The suite of variants in a file; None for one of services and benchmarks."""
    loaded = load_yaml(path)
    if not isinstance(loaded, dict):
        raise InputError("a suite is a mapping: see docs/suites.md", path=path)
    if "services" in loaded or "benchmarks" in loaded:
        return None
    if any(key in loaded for key in PROMPTFOO):
        from evenhand.evaluation.suites.promptfoo_file import read_promptfoo

        return read_promptfoo(path)
    from evenhand.evaluation.suites.file import read_variant_suite

    return read_variant_suite(path, data=data)

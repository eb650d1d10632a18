"""Every back end passes the kit that ships with the package, and the kit notices a bad one."""

import pytest

from evenhand.sandbox.conformance import CHECKS, Check, self_check
from evenhand.sandbox.pool import Pool
from evenhand.sandbox.port import Execution, Grade, Program


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.name)
def test_a_back_end_passes(any_limits: Pool, check: Check) -> None:
    ok, measured = check.look(any_limits)
    assert ok, measured


class Pretender:
    """A back end that runs nothing and says that all went well."""

    name = "pretender"

    async def run(self, program: Program) -> Execution:
        grade = Grade(passed=True, reason="passed") if program.test else None
        return Execution(ending="exited", exit_code=0, stdout=b"1", grade=grade)

    def close(self) -> None:
        return


def test_a_back_end_that_only_pretends_passes_nothing() -> None:
    found = self_check(Pretender())
    passed = {finding.check for finding in found if finding.ok}
    # A count of 1 is within every limit: what the program printed is taken at its word.
    assert passed <= {"process limit", "thread limit", "disk limit", "stubborn children"}


def test_the_kit_can_be_run_inside_an_event_loop(bubblewrap: Pool) -> None:
    import asyncio

    async def inside() -> list[bool]:
        return [finding.ok for finding in self_check(bubblewrap, quick=True)]

    assert asyncio.run(inside()) == [True, True, True]

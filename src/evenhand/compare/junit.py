"""A gate as JUnit XML, so that CI systems show each metric as a test."""

from xml.sax.saxutils import escape, quoteattr

from evenhand.compare.gate import GateReport, MetricCheck
from evenhand.core.terminal import printable


def gate_junit(report: GateReport) -> str:
    """One test case per gated metric: a breach is a failure, what could not be decided an error, advice skipped."""
    cases = [_case(gate) for gate in report.gates]
    failures = sum("<failure" in case for case in cases)
    errors = sum("<error" in case for case in cases)
    skipped = sum("<skipped" in case for case in cases)
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites><testsuite name="evenhand gate" tests="{len(cases)}" failures="{failures}" errors="{errors}" '
        f'skipped="{skipped}">\n' + "\n".join(cases) + "\n"
        f"<system-out>{_text(report.verdict + ': ' + report.sentence)}</system-out>\n</testsuite></testsuites>\n"
    )


def _case(gate: MetricCheck) -> str:
    why = "; ".join(gate.reasons)
    inner = ""
    if gate.tier == "advisory":
        inner = f"<skipped message={_attribute(f'advisory: {gate.status}: {why}')}/>"
    elif gate.status == "BREACH":
        inner = f'<failure type="BREACH" message={_attribute(why)}/>'
    elif gate.status != "PASS":
        inner = f'<error type="{gate.status}" message={_attribute(why)}/>'
    return (
        f"<testcase classname={_attribute(gate.benchmark)} name={_attribute(gate.metric)}>{inner}</testcase>"
    )


def _text(value: str) -> str:
    return escape(printable(value).encode("utf-8", "replace").decode("utf-8"))


def _attribute(value: str) -> str:
    return quoteattr(printable(value).encode("utf-8", "replace").decode("utf-8"))

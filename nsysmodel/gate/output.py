"""Checks as lines, JUnit XML, GitHub annotations, Markdown and JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from xml.etree import ElementTree

from nsysmodel.gate.checks import Check, exit_code
from nsysmodel.report.markdown import escape
from nsysmodel.report.text import clean, plural

SCHEMA = "nsysmodel.gate/1"
WORDS = {0: "passed", 3: "failed", 4: "cannot judge"}
_SIGNS = {"passed": "ok", "failed": "FAILED", "cannot_judge": "CANNOT JUDGE"}


def summary(checks: Sequence[Check]) -> str:
    """The outcome in one sentence.

    >>> summary([Check("a", "passed", ""), Check("b", "failed", "")])
    'The gate failed: 1 of 2 limits broken.'
    """
    code = exit_code(checks)
    if code == 3:
        broken = sum(check.outcome == "failed" for check in checks)
        return f"The gate failed: {broken} of {plural(len(checks), 'limit')} broken."
    if code == 4:
        unknown = sum(check.outcome == "cannot_judge" for check in checks)
        return f"The gate cannot judge {unknown} of {plural(len(checks), 'limit')}."
    return f"The gate passed: {plural(len(checks), 'limit')} kept."


def render_text(checks: Sequence[Check], *, every: bool = False) -> str:
    """One line per limit that was not kept (all of them with `every`), then the outcome."""
    lines = [
        f"{_SIGNS[check.outcome]} {clean(check.name, 120)}: {clean(check.message)}"
        for check in checks
        if every or check.outcome != "passed"
    ]
    return "\n".join([*lines, summary(checks)]) + "\n"


def render_json(checks: Sequence[Check]) -> str:
    """The checks under the schema `nsysmodel.gate/1`."""
    body = {
        "schema": SCHEMA,
        "outcome": WORDS[exit_code(checks)].replace(" ", "_"),
        "exit_code": exit_code(checks),
        "checks": [
            {"name": check.name, "outcome": check.outcome, "message": check.message} for check in checks
        ],
    }
    return json.dumps(body, indent=2) + "\n"


def render_markdown(checks: Sequence[Check]) -> str:
    """A list for a job summary."""
    icon = {"passed": "✅", "failed": "❌", "cannot_judge": "⚠️"}
    lines = [
        f"- {icon[check.outcome]} {escape(check.name, 120)}: {escape(check.message)}" for check in checks
    ]
    return f"### {escape(summary(checks))}\n\n" + "\n".join(lines) + "\n"


def render_junit(checks: Sequence[Check], export: str) -> str:
    """JUnit XML: a test case per limit, `failure` where broken, `error` where it cannot be judged."""
    outcomes = [check.outcome for check in checks]
    counts = {
        "tests": str(len(checks)),
        "failures": str(outcomes.count("failed")),
        "errors": str(outcomes.count("cannot_judge")),
    }
    root = ElementTree.Element("testsuites", counts)
    suite = ElementTree.SubElement(
        root, "testsuite", {"name": clean(f"nsysmodel gate {export}", 200), **counts}
    )
    for check in checks:
        case = ElementTree.SubElement(
            suite, "testcase", {"classname": "nsysmodel.gate", "name": clean(check.name, 200)}
        )
        if check.outcome != "passed":
            kind = "failure" if check.outcome == "failed" else "error"
            ElementTree.SubElement(case, kind, {"message": clean(check.message)})
    ElementTree.indent(root)
    return ElementTree.tostring(root, encoding="unicode", xml_declaration=False) + "\n"


def render_github(checks: Sequence[Check]) -> str:
    """Workflow commands that GitHub turns into annotations; one per limit that was not kept."""
    lines = []
    for check in checks:
        if check.outcome == "passed":
            continue
        kind = "error" if check.outcome == "failed" else "warning"
        fields = {"file": check.file, "line": str(check.line or ""), "title": f"nsysmodel: {check.name}"}
        shown = ",".join(f"{name}={_property(value)}" for name, value in fields.items() if value)
        lines.append(f"::{kind} {shown}::{_data(clean(check.message))}\n")
    return "".join(lines)


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(clean(text, 300)).replace(":", "%3A").replace(",", "%2C")

"""Writes `docs/reference/requirements.md`: each promise with the tests that prove it. It collects tests without running
them.

python -m tests.house.requirements_table [--check]
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections import Counter
from typing import Final

import pytest

from tests.house.requirements import AREAS, ARGUED, REFERENCE, REQUIREMENTS, read_web_marks

TABLE: Final = REFERENCE / "requirements.md"
TESTS_SHOWN_MAX: Final = 3
INTRODUCTION: Final = """\
# What is promised, and what proves it

Written by `make requirements` from `requirements.toml`, `requirements.argued.toml` and the marks on the
tests; do not edit.

S0: the rows dialect and chat · S1: the native format, service and editor · S2: the agent pipeline · S3: the graph
dialect · S4: the steps and plan dialects and authoring · T and X: traps and contradictions, settled.
"""


class Collector:
    """A pytest plug-in that records the marks of tests."""

    def __init__(self) -> None:
        self.proofs: dict[str, list[str]] = {identifier: [] for identifier in REQUIREMENTS}

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            name = item.nodeid.partition("[")[0]
            for mark in item.iter_markers("requirement"):
                for identifier in mark.args:
                    if name not in self.proofs[identifier]:
                        self.proofs[identifier].append(name)


def collect() -> dict[str, list[str]]:
    """Id -> names of the tests that prove it."""
    collector, output = Collector(), io.StringIO()
    with contextlib.redirect_stdout(output):
        status = pytest.main(["--collect-only", "-q", "-p", "no:cacheprovider"], plugins=[collector])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        sys.exit(f"the tests could not be collected:\n{output.getvalue()}")
    for identifier, test in read_web_marks():
        collector.proofs[identifier].append(test)
    return collector.proofs


def state_of(identifier: str, tests: list[str]) -> str:
    return "proved" if tests else "argued" if identifier in ARGUED else "not yet"


def proof_of(identifier: str, tests: list[str]) -> str:
    if not tests:
        return f"argued: {ARGUED[identifier]}" if identifier in ARGUED else "not yet"
    shown = "<br>".join(f"`{name.removeprefix('tests/')}`" for name in tests[:TESTS_SHOWN_MAX])
    more = len(tests) - TESTS_SHOWN_MAX
    return shown if more <= 0 else f"{shown}<br>and {more} more"


def render(proofs: dict[str, list[str]]) -> str:
    """Return the page: a count per family, then one table per area."""
    lines = [INTRODUCTION, "| family | promises | proved | argued | not yet |", "|---|---|---|---|---|"]
    states = {identifier: state_of(identifier, tests) for identifier, tests in proofs.items()}
    for family in dict.fromkeys(identifier.partition("-")[0] for identifier in states):
        counts = Counter(state for identifier, state in states.items() if identifier.partition("-")[0] == family)
        total = sum(counts.values())
        lines.append(f"| {family} | {total} | {counts['proved']} | {counts['argued']} | {counts['not yet']} |")
    counts = Counter(states.values())
    lines.append(f"| all | {len(states)} | {counts['proved']} | {counts['argued']} | {counts['not yet']} |")
    for area, requirements in AREAS.items():
        lines += ["", f"## {area}", "", "| id | promise | proof |", "|---|---|---|"]
        for identifier, text in requirements.items():
            cell = text.replace("|", "\\|")
            lines.append(f"| {identifier} | {cell} | {proof_of(identifier, proofs[identifier])} |")
    return "\n".join(lines) + "\n"


def main(arguments: list[str]) -> int:
    page = render(collect())
    if "--check" not in arguments:
        TABLE.write_text(page, encoding="utf-8")
        return 0
    if TABLE.is_file() and TABLE.read_text(encoding="utf-8") == page:
        return 0
    sys.stderr.write("docs/reference/requirements.md is not of today: run `make requirements`\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

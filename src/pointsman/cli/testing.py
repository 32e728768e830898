"""`pointsman test`: runs workflow tests and reports like a test runner."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final, cast
from xml.etree import ElementTree

import click

from pointsman.cli.options import json_option
from pointsman.cli.printing import escape_controls, print_json
from pointsman.testing.cases import ENDINGS, WorkflowTestResult, find_tests, run_file
from pointsman.values import Json

NO_XML: Final = re.compile("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="DIR|FILE…", type=click.Path(exists=True, path_type=Path))
@click.option("-k", "wanted", metavar="TEXT", default="", help="Only tests whose name or file contains this.")
@click.option("--junit", metavar="FILE", type=click.Path(path_type=Path), help="Write a JUnit XML report to this file.")
@json_option
def test(paths: tuple[Path, ...], *, wanted: str, junit: Path | None, as_json: bool) -> int:
    """Run workflow tests: files that end in .test.yaml (or .test.json).

    They run offline, in memory, with the scripted model, in virtual time: pauses and timeouts take none. Exit
    code 0: all passed; 1: some failed; 2: no test was found. docs/reference/tests.md describes every key of a
    test file.
    """
    files = [*find_tests(paths)]
    began = time.perf_counter()
    outcomes: list[WorkflowTestResult] = []
    for file in files:
        heading = False
        for outcome in run_file(file):
            if wanted and wanted not in outcome.name and wanted not in str(file):
                continue
            outcomes.append(outcome)
            if not as_json:
                heading = heading or _print_heading(file)
                _print(outcome)
    took = time.perf_counter() - began
    if junit is not None:
        _write_junit(junit, outcomes, took)
    failed = sum(bool(outcome.failures) for outcome in outcomes)
    if as_json:
        tests: list[Json] = [_view(outcome) for outcome in outcomes]
        print_json({"passed": len(outcomes) - failed, "failed": failed, "seconds": round(took, 3), "tests": tests})
    else:
        _print_total(len(outcomes) - failed, failed, took, paths)
    return 2 if not outcomes else 1 if failed else 0


def _print_heading(file: Path) -> bool:
    click.echo(escape_controls(str(file)))
    return True


def _print(outcome: WorkflowTestResult) -> None:
    mark = click.style("✗", fg="red") if outcome.failures else click.style("✓", fg="green")
    click.echo(f"  {mark} {escape_controls(outcome.name)}  {click.style(f'{outcome.seconds:.2f} s', dim=True)}")
    for failure in outcome.failures:
        click.echo(f"      {escape_controls(failure)}")


def _print_total(passed: int, failed: int, took: float, paths: Sequence[Path]) -> None:
    if not passed + failed:
        click.echo(f"no tests in {', '.join(map(str, paths))}: test files end in {' or '.join(ENDINGS)}", err=True)
        return
    failures = click.style(f"{failed} failed, ", fg="red") if failed else ""
    click.echo(f"{failures}{passed} passed in {took:.1f} s")


def _view(outcome: WorkflowTestResult) -> Json:
    failures = cast("list[Json]", [*outcome.failures])
    return {
        "file": str(outcome.file),
        "name": outcome.name,
        "ok": not outcome.failures,
        "failures": failures,
        "seconds": round(outcome.seconds, 3),
    }


def _write_junit(path: Path, outcomes: list[WorkflowTestResult], took: float) -> None:
    failed = sum(bool(outcome.failures) for outcome in outcomes)
    suite = ElementTree.Element(
        "testsuite", name="pointsman", tests=str(len(outcomes)), failures=str(failed), time=f"{took:.3f}"
    )
    for outcome in outcomes:
        case = ElementTree.SubElement(
            suite,
            "testcase",
            classname=_xml(str(outcome.file)),
            name=_xml(outcome.name),
            time=f"{outcome.seconds:.3f}",
        )
        if outcome.failures:
            failure = ElementTree.SubElement(case, "failure", message=_xml(outcome.failures[0]))
            failure.text = _xml("\n".join(outcome.failures))
    try:
        ElementTree.ElementTree(suite).write(path, encoding="utf-8", xml_declaration=True)
    except OSError as why:
        raise click.FileError(str(path), why.strerror or "cannot be written") from None


def _xml(text: str) -> str:
    """Replace the characters that XML cannot contain."""
    return NO_XML.sub("�", text)

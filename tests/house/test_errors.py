"""Every error class of the product has one code of its own, and the reference explains it."""

from __future__ import annotations

import importlib
import pkgutil
import re
from collections import defaultdict

import pytest

import pointsman
from pointsman.errors import PointsmanError
from tests.house.failure_codes import FAILURES, WARNINGS, codes_in
from tests.house.requirements import REFERENCE


def error_classes() -> set[type[PointsmanError]]:
    """Return all subclasses, after every module of the package is imported."""
    for module in pkgutil.walk_packages(pointsman.__path__, "pointsman."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    found: set[type[PointsmanError]] = {PointsmanError}
    while more := {child for parent in found for child in parent.__subclasses__()} - found:
        found |= more
    return {error for error in found if error.__module__.startswith("pointsman.")}


def test_every_error_has_a_code_of_its_own() -> None:
    by_code: defaultdict[str, set[str]] = defaultdict(set)
    for error in error_classes():
        assert "code" in vars(error), f"{error.__qualname__} has no `code`"
        by_code[error.code].add(error.__qualname__)
    shared = {code: names for code, names in by_code.items() if len(names) > 1}
    assert shared == {}, "give each class a code of its own"
    assert all(re.fullmatch(r"[a-z][a-z0-9-]*", code) for code in by_code)


def test_every_error_code_is_explained_in_the_reference() -> None:
    explained = set(
        re.findall(r"^#+ `([a-z0-9-]+)`", (REFERENCE / "errors.md").read_text(encoding="utf-8"), re.MULTILINE)
    )
    codes = {error.code for error in error_classes()}
    assert codes - explained == set(), "explain it in docs/reference/errors.md under a heading with its code"
    assert explained - codes == set(), "docs/reference/errors.md explains codes that no longer exist"


def test_every_error_has_a_cause_and_a_fix_in_the_reference() -> None:
    text, _, _ = (REFERENCE / "errors.md").read_text(encoding="utf-8").partition("\n## Failures of steps\n")
    sections = re.findall(r"^### `([a-z0-9-]+)`\n(.+?)(?=^##|\Z)", text, re.MULTILINE | re.DOTALL)
    without = [code for code, body in sections if not re.fullmatch(r"\s*\S.{15,}\*\*Fix:\*\* \S.+", body, re.DOTALL)]
    assert sections
    assert without == [], "describe the cause, then what the reader does: **Fix:** …"


@pytest.mark.parametrize("section", ["Failures of steps", "Warnings of executions"])
def test_every_failure_and_warning_has_a_cause_and_a_fix_in_the_reference(section: str) -> None:
    _, _, rest = (REFERENCE / "errors.md").read_text(encoding="utf-8").partition(f"\n## {section}\n")
    rows = re.findall(r"^\| (`[a-z0-9-]+`.*?) \|(.*?)\|(.*?)\|", rest.partition("\n## ")[0], re.MULTILINE)
    assert rows
    assert [code for code, cause, fix in rows if not cause.strip() or not fix.strip()] == []


def rows_of(section: str) -> set[str]:
    """Return the codes in the first column of the table of a section."""
    text = (REFERENCE / "errors.md").read_text(encoding="utf-8")
    _, _, rest = text.partition(f"\n## {section}\n")
    rows = re.findall(r"^\| ((?:`[a-z0-9-]+`(?:, )?)+) \|", rest.partition("\n## ")[0], re.MULTILINE)
    return {code for row in rows for code in re.findall(r"`([a-z0-9-]+)`", row)}


def test_every_code_of_a_failure_is_explained_in_the_reference() -> None:
    known, explained = codes_in(FAILURES), rows_of("Failures of steps")
    raised = {error.code for error in error_classes()}
    missing = {code: place for code, place in known.items() if code not in explained | raised}
    assert missing == {}, "explain it in docs/reference/errors.md, Failures of steps"
    assert explained - known.keys() == set(), "docs/reference/errors.md explains failures that no longer exist"


def test_every_code_of_a_warning_is_explained_in_the_reference() -> None:
    known, explained = codes_in(WARNINGS), rows_of("Warnings of executions")
    missing = {code: place for code, place in known.items() if code not in explained}
    assert missing == {}, "explain it in docs/reference/errors.md, Warnings of executions"
    assert explained - known.keys() == set(), "docs/reference/errors.md explains warnings that no longer exist"

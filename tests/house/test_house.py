"""House rules beyond linters: sizes, names, docstrings, suppressions, forbidden topics."""

from __future__ import annotations

import ast
import re
from typing import Final

import pytest

from tests.house.requirements import ARGUED, REQUIREMENTS, WEB, read_web_marks
from tests.house.sources import TEXT_SUFFIXES, files, functions, parse, read_text

LINES_MAX: Final = 900
FUNCTION_LINES_MAX: Final = 50
NO_NAMES: Final = {"utils", "helpers", "common", "misc"}
NO_CLASS_NAMES: Final = re.compile(r"^Abstract|Impl$|Helper$|Utils?$")
SUPPRESSION: Final = re.compile(r"#\s*(noqa|type:\s*ignore|pyright:\s*ignore|pragma:\s*no cover)(.*)$")
"""A suppression names its rule and its reason: `# noqa: S102 - the reason`, `# pyright: ignore[rule] - the reason`."""
REASONED: Final = re.compile(r"^\s*(:\s*[A-Z]+\d+(,\s*[A-Z]+\d+)*|\[[\w, -]+\])\s*(-|—|:|#)\s*\S+")
HOUSE: Final = "tests/house/"


def test_no_file_outgrows_one_sitting() -> None:
    long = {str(path) for path in files("src", "tests", "bench") if read_text(path).count("\n") > LINES_MAX}
    assert long == set(), f"split it by concept: a file has at most {LINES_MAX} lines"


def test_no_function_outgrows_one_screen() -> None:
    long = {
        f"{path}:{function.lineno} {function.name}"
        for path in files("src", "tests", "bench")
        for function in functions(path)
        if (function.end_lineno or 0) - function.lineno + 1 > FUNCTION_LINES_MAX
    }
    assert long == set(), "split it into functions that have names of their own"


def test_no_file_has_a_meaningless_name() -> None:
    named = {
        str(path) for path in files("src", "tests", "bench", "examples") if {*path.with_suffix("").parts} & NO_NAMES
    }
    assert named == set(), "name it after the concept it holds"


def test_no_class_has_a_meaningless_name() -> None:
    named = {
        f"{path}:{node.lineno} {node.name}"
        for path in files("src")
        for node in ast.walk(parse(path))
        if isinstance(node, ast.ClassDef) and NO_CLASS_NAMES.search(node.name)
    }
    assert named == set(), "name it after what it is"


def test_every_file_opens_with_what_it_is_for() -> None:
    silent = {
        str(path)
        for path in files("src", "tests", "bench")
        if read_text(path).strip() and not ast.get_docstring(parse(path))
    }
    assert silent == set(), "begin it with a docstring: the purpose of the module"


def test_every_suppression_names_its_rule_and_its_reason() -> None:
    bare: set[str] = set()
    for path in files("src", "tests", "bench"):
        for number, line in enumerate(read_text(path).splitlines(), start=1):
            found = SUPPRESSION.search(line)
            if found and not str(path).startswith(HOUSE) and not REASONED.match(found[2]):
                bare.add(f"{path}:{number} {found[0]}")
    assert bare == set(), "write `# noqa: RULE - reason` or `# pyright: ignore[rule] - reason`"


def test_nothing_is_left_for_later() -> None:
    later = re.compile(r"\b(TODO|FIXME|XXX|HACK)\b")
    left = {
        f"{path}:{number}"
        for path in files("src", "tests", "bench", "examples", "docs", suffixes=frozenset({".py", ".md", ".yaml"}))
        if not str(path).startswith(HOUSE)
        for number, line in enumerate(read_text(path).splitlines(), start=1)
        if later.search(line)
    }
    assert left == set(), "do it, or say in the docs what is missing"


@pytest.mark.parametrize(
    ("what", "pattern"),
    [
        ("a numbered discussion", re.compile(r"\b(issue|PR|pull request)\s*#\d+|/issues/\d+", re.IGNORECASE)),
        ("a path of one machine", re.compile(r"(?<![\w.])/(work|opt|home|root|Users)/\w|[A-Z]:\\\\?Users")),
        ("a package index", re.compile(r"files\.pythonhosted\.org|pypi\.org/simple|registry\.npmjs\.org|/simple/\w")),
        ("how the product came to be", re.compile(r"\bseeds? 00[0-4]\b|design document", re.IGNORECASE)),
    ],
)
def test_files_speak_of_the_product_alone(what: str, pattern: re.Pattern[str]) -> None:
    found = {
        f"{path}:{number} {match[0]!r}"
        for path in files(suffixes=frozenset(TEXT_SUFFIXES | {".lock"}))
        if not str(path).startswith(HOUSE) and path.name != "LICENSE" and "node_modules" not in path.parts
        for number, line in enumerate(read_text(path).splitlines(), start=1)
        if (match := pattern.search(line))
    }
    assert found == set(), f"a file of the product names {what}"


def test_marks_on_tests_of_the_web_app_name_promises_that_exist() -> None:
    marks = read_web_marks()
    assert {identifier for identifier, _ in marks} <= set(REQUIREMENTS), "see docs/reference/requirements.toml"
    texts = [read_text(path) for path in WEB.rglob("*.test.ts*")]
    written = [
        found
        for text in texts
        for call in re.findall(r"^ *requirement\((.*)\)", text, re.M)
        for found in call.split(",")
    ]
    assert len(marks) == len(written), 'write `requirement("S1-1");` on the line before `it(`'


def test_every_argued_promise_exists_and_has_a_reason() -> None:
    assert set(ARGUED) <= set(REQUIREMENTS)
    assert all(len(why) > 20 for why in ARGUED.values())

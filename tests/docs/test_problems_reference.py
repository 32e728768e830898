"""The reference of problems is complete, and its examples have the stated problems."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from pointsman.definition.checks.subject import Installation, ToolFacts
from pointsman.definition.reading.documents import read_document
from tests.checking import check_document
from tests.definition.check.problem_codes import codes_in_source

PAGE: Final = Path(__file__).parents[2] / "docs" / "reference" / "problems.md"
KNOWN: Final = Installation(
    tools={
        "web_search": ToolFacts(idempotent=True),
        "send_mail": ToolFacts(),
        "calculator": ToolFacts(),
        "look_up": ToolFacts(
            parameters={
                "type": "object",
                "additionalProperties": False,
                "required": ["query"],
                "properties": {"query": {"type": "string"}, "limit": {"type": "integer"}},
            }
        ),
        "sql": ToolFacts(off="Name a database."),
    },
    models={"scripted"},
    workflows={"onboarding"},
)
WITHOUT_EXAMPLE: Final = {
    "alias-bomb": "an example is a page long",
    "built-in-id": "depends on what comes with the product",
    "cost-unknown": "depends on the list of prices",
    "expression-too-long": "an example is a page long",
    "expression-too-many-tokens": "an example is a page long",
    "fenced": "an example would end the fence around it",
    "loops-too-complex": "an example has a thousand nodes",
    "mcp-unreachable": "depends on a server",
    "model-unnamed": "depends on the installation's settings",
    "model-unusable": "depends on the installation's settings",
    "more-problems": "an example has a thousand problems",
    "not-in-dialect": "found on export",
    "original-unreadable": "found on export",
    "too-deep": "an example is a page long",
    "too-large": "an example has 16 MB",
    "too-large-to-check": "an example has a thousand nodes",
    "too-nested": "an example has 65 parallels",
    "unresolved-variable": "depends on the installation's settings",
    "zone-unknown": "depends on the time zones an installation has",
}


class Section(NamedTuple):
    code: str
    severity: str
    wrong: str | None
    right: str | None


def sections() -> Iterator[Section]:
    for part in re.split(r"^### ", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]:
        code = re.match(r"`([a-z-]+)`\n\n\*([^*]+)\.\*", part)
        assert code is not None, part[:80]
        blocks: dict[str, str] = dict(re.findall(r"```\w+ (wrong|right)\n(.*?)```", part, re.DOTALL))
        yield Section(code[1], code[2], blocks.get("wrong"), blocks.get("right"))


SECTIONS: Final = {section.code: section for section in sections()}


def found(text: str) -> dict[str, set[str]]:
    """Code -> severities."""
    if text and not text.lstrip().startswith(("{", "-", "#")) and "id: example" not in text:
        text = f"id: example\n{text}"
    problems = check_document(read_document(text.encode()), name="example", known=KNOWN).problems
    by_code: dict[str, set[str]] = {}
    for problem in problems:
        by_code.setdefault(problem.code, set()).add(problem.severity)
    return by_code


def test_every_existing_code_is_documented_and_no_other() -> None:
    assert set(SECTIONS) == codes_in_source()


def test_only_listed_codes_have_no_example() -> None:
    assert {code for code, section in SECTIONS.items() if section.wrong is None} == set(WITHOUT_EXAMPLE)


@pytest.mark.parametrize("code", [code for code in SECTIONS if code not in WITHOUT_EXAMPLE])
def test_the_example_has_the_problem_and_the_repaired_one_does_not(code: str) -> None:
    section = SECTIONS[code]
    assert section.wrong is not None
    assert section.right is not None
    wrong = found(section.wrong)
    assert code in wrong
    assert all(severity in section.severity for severity in wrong[code])
    right = found(section.right)
    assert code not in right
    assert "error" not in {severity for severities in right.values() for severity in severities}, right

"""The comparisons with other products: each mark of a product has a source, each row of ours a page and a test."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from tests.docs.test_paths import missing_names

ROOT: Final = Path(__file__).parents[2]
COMPARED: Final = ROOT / "docs" / "migrating"
MARK: Final = re.compile(r"[●◐○]|\([●◐○]\)|[–?]")
TEST: Final = re.compile(r"`((?:tests|web/src)/[\w./-]+)`")
LINK: Final = re.compile(r"\]\((?!https?:)[^)]+\)")
SOURCE: Final = re.compile(r"\]\(https://[^)]+\)")


def rows_of(text: str) -> Iterator[list[str]]:
    """Yield the cells of each row of the tables of a text, without heads and rulers."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        is_head = number + 1 < len(lines) and lines[number + 1].startswith("|---")
        if line.startswith("|") and not line.startswith("|---") and not is_head:
            yield [cell.strip() for cell in line.strip("|").split("|")]


def parts_of(page: Path, level: str) -> dict[str, str]:
    """Return the texts below the headings of one level by heading; that before the first one has the name ''."""
    first, *others = re.split(rf"^{level} ", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return {"": first} | {part.partition("\n")[0]: part.partition("\n")[2] for part in others}


APP: Final = parts_of(COMPARED / "web-app.md", "##")
PRODUCTS: Final = ["n8n", "Dify", "Langflow", "LangSmith", "Temporal", "Prefect", "Windmill", "Retool"]
MARKS: Final = {capability: marks for capability, *marks in rows_of(APP[""])}
MEANINGS: Final = {capability: cells for capability, *cells in rows_of(APP["What the rows mean"])}
SOURCES: Final = parts_of(COMPARED / "web-app.md", "###")


def test_every_row_has_a_mark_for_each_product_and_a_meaning() -> None:
    head = next(line for line in APP[""].splitlines() if line.startswith("| |"))
    assert [cell.strip() for cell in head.strip("|").split("|")][1:] == ["Pointsman", *PRODUCTS]
    assert MARKS.keys() == MEANINGS.keys()
    wrong = {row: marks for row, marks in MARKS.items() if len(marks) != 9 or not all(map(MARK.fullmatch, marks))}
    assert wrong == {}


@pytest.mark.parametrize("product", PRODUCTS)
def test_every_verified_mark_of_a_product_has_a_source(product: str) -> None:
    column = PRODUCTS.index(product) + 1
    verified = {capability for capability, marks in MARKS.items() if marks[column] in "●◐○"}
    sources = dict(rows_of(SOURCES[product]))
    assert sources.keys() == verified, "a mark without a source belongs in brackets"
    assert [capability for capability, source in sources.items() if not SOURCE.search(source)] == []


def test_what_pointsman_has_is_shown_on_a_page_and_proved_by_a_test() -> None:
    for capability, marks in MARKS.items():
        _, page, proof = MEANINGS[capability]
        tests = TEST.findall(proof)
        assert marks[0] in "●◐○", capability
        assert (marks[0] == "○") == page.startswith("not there"), capability
        assert [path for path in tests if not (ROOT / path).is_file()] == [], capability
        assert marks[0] == "○" or tests or LINK.search(page), capability


def test_every_row_for_python_names_a_page_and_a_test_that_exists() -> None:
    text = (COMPARED / "python.md").read_text(encoding="utf-8")
    assert [row[0] for row in rows_of(text) if not LINK.search(row[3]) or not re.search(r"` in `tests/", row[4])] == []
    assert missing_names(text) == []


def test_a_table_is_read_without_its_head() -> None:
    assert [*rows_of("text\n\n| a | b |\n|---|---|\n| 1 | 2 |\n")] == [["1", "2"]]

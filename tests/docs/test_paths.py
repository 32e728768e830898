"""Paths, functions, classes and headings that pages name exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
INTERNALS: Final = sorted(page for folder in ("decisions", "design") for page in (ROOT / "docs" / folder).glob("*.md"))
CLASS: Final = re.compile(r"`((?:[A-Z][a-z]+){2,})[`.]")
"""The name of a class in a page: two words at least, so that names of products do not count."""
CONCEPTS: Final = sorted((ROOT / "docs" / "concepts").glob("*.md"))
PAGES: Final = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
PATH: Final = re.compile(r"`((?:pointsman|web/src|docs|tests)/[\w./-]*)`")
NAMED: Final = re.compile(r"`(\w+)` in `((?:pointsman|tests)/[\w/]+\.py)`")
ANCHOR: Final = re.compile(r"\]\((?!https?:|mailto:)([^)#\s]*)#([^)\s]+)\)")
HEADING: Final = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCE: Final = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)


def file_of(path: str) -> Path:
    return ROOT / ("src" if path.startswith("pointsman/") else "") / path


def missing_paths(text: str) -> list[str]:
    return [path for path in PATH.findall(text) if not file_of(path).exists()]


def missing_names(text: str) -> list[str]:
    """Return the functions, classes and constants that a page names with their module and that it does not define."""
    return [f"{name} in {path}" for name, path in NAMED.findall(text) if not defines(file_of(path), name)]


def defines(path: Path, name: str) -> bool:
    definition = rf"^\s*(async )?def {name}\(|^class {name}\b|^{name}(: .*)? = "
    return re.search(definition, path.read_text(encoding="utf-8"), re.MULTILINE) is not None


@cache
def names_in_code() -> frozenset[str]:
    sources = [*(ROOT / "src" / "pointsman").rglob("*.py"), *(ROOT / "web" / "src").rglob("*.ts")]
    return frozenset(name for path in sources for name in re.findall(r"\w+", path.read_text(encoding="utf-8")))


def missing_classes(text: str) -> list[str]:
    return [name for name in CLASS.findall(text) if name not in names_in_code()]


@cache
def anchors(page: Path) -> frozenset[str]:
    """The anchors that GitHub gives the headings of a page."""
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in HEADING.findall(text))


def missing_anchors(page: Path, text: str) -> list[str]:
    named = [(page if not path else (page.parent / path).resolve(), anchor) for path, anchor in ANCHOR.findall(text)]
    return [anchor for target, anchor in named if target.suffix == ".md" and anchor not in anchors(target)]


@pytest.mark.parametrize("page", CONCEPTS, ids=lambda page: page.name)
def test_paths_and_names_on_a_concept_page_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert missing_paths(text) + missing_names(text) == []


@pytest.mark.parametrize("page", INTERNALS, ids=lambda page: str(page.relative_to(ROOT)))
def test_classes_on_concept_pages_exist(page: Path) -> None:
    assert missing_classes(page.read_text(encoding="utf-8")) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_anchors_of_links_exist(page: Path) -> None:
    assert missing_anchors(page, page.read_text(encoding="utf-8")) == []


def test_a_missing_path_is_found() -> None:
    assert missing_paths("`pointsman/app.py`, `pointsman/nothing.py`, `docs/concepts/`") == ["pointsman/nothing.py"]


def test_a_missing_name_is_found() -> None:
    text = "`decide` in `pointsman/engine/decide/dispatch.py`, `KINDS` in `pointsman/engine/decide/migrate.py`"
    text += ", `Action` in `pointsman/engine/actions.py`, `nothing` in `pointsman/app.py`"
    assert missing_names(text) == ["nothing in pointsman/app.py"]


def test_a_missing_class_is_found() -> None:
    assert missing_classes("`StepStarted`, `Library.child`, `NothingSuch.field`, `NothingSuch`") == ["NothingSuch"] * 2


def test_a_missing_anchor_is_found() -> None:
    page = ROOT / "docs" / "concepts" / "semantics.md"
    assert missing_anchors(page, "[joins](#joins) [none](#nothing) [code](../how-to/code.md#the-sandbox)") == [
        "nothing"
    ]

"""Paths of modules and pages that the concept pages name exist."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = sorted((ROOT / "docs" / "concepts").glob("*.md"))
NAMED: Final = re.compile(r"`((?:pointsman|web/src|docs|tests)/[\w./-]*)`")


def missing(text: str) -> list[str]:
    named = NAMED.findall(text)
    return [path for path in named if not (ROOT / ("src" if path.startswith("pointsman/") else ".") / path).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_path_that_a_concept_page_names_exists(page: Path) -> None:
    assert missing(page.read_text(encoding="utf-8")) == []


def test_a_path_that_does_not_exist_is_found() -> None:
    assert missing("`pointsman/app.py`, `pointsman/nothing.py`, `docs/concepts/`") == ["pointsman/nothing.py"]

"""The cookbook: each recipe has a folder with workflow, script and tests, a page, and a row in the list."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
PAGES: Final = {page.stem for page in (ROOT / "docs" / "cookbook").glob("*.md")} - {"README"}
RECIPES_MIN: Final = 25


def test_every_recipe_has_a_page_a_row_and_runnable_files() -> None:
    listed = re.findall(
        r"^\| \[.+?\]\(([a-z-]+)\.md\)", (ROOT / "docs/cookbook/README.md").read_text("utf-8"), re.MULTILINE
    )
    folders = {path.parent.name for path in (ROOT / "examples" / "cookbook").glob("*/workflow.yaml")}
    assert sorted(listed) == sorted(PAGES) == sorted(folders)
    assert len(PAGES) >= RECIPES_MIN
    for name in folders:
        files = {path.name for path in (ROOT / "examples" / "cookbook" / name).iterdir()}
        assert {"script.yaml", "workflow.test.yaml"} <= files, name


def test_pages_state_the_number_of_recipes() -> None:
    for page, words in (("docs/README.md", "workflows"), ("docs/migrating/web-app.md", "recipes")):
        assert f"{len(PAGES)} {words}" in (ROOT / page).read_text("utf-8"), page

"""The pictures of the concept pages are drawn from their definitions."""

from __future__ import annotations

import importlib.util
import re
import shutil
from pathlib import Path
from typing import Any, Final

import pytest

ROOT: Final = Path(__file__).parents[2]
ALT: Final = re.compile(r"!\[([^]]*)\]\(", re.DOTALL)


def script() -> Any:
    spec = importlib.util.spec_from_file_location("pictures", ROOT / "docs" / "site" / "pictures.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.integration
@pytest.mark.skipif(
    shutil.which("node") is None or not (ROOT / "web" / "node_modules").is_dir(), reason="there is no Node"
)
def test_pictures_match_their_definitions() -> None:
    stale = [path.name for path, text in script().drawn().items() if path.read_text("utf-8") != text]
    assert stale == [], "run `make pictures`"


def test_every_picture_has_a_text_for_those_who_do_not_see_it() -> None:
    without = [
        f"{page.relative_to(ROOT)}: {alt!r}"
        for page in (ROOT / "docs").rglob("*.md")
        for alt in ALT.findall(page.read_text("utf-8"))
        if len(alt.split()) < 3
    ]
    assert without == []

"""The promises as data: `docs/reference/requirements.toml`, those with an argument instead of a test, and the marks in
tests of the web app. Tests in Python carry pytest's mark `requirement`.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
REFERENCE: Final = ROOT / "docs" / "reference"
WEB: Final = ROOT / "web" / "src"
MARKED: Final = re.compile(r'^ *requirement\(([^)]*)\);\n *it\("([^"]+)"', re.MULTILINE)
"""`requirement("S1-145");` on the line before a test of the web app, and the name of the test."""


def read_areas() -> dict[str, dict[str, str]]:
    """Area -> id -> statement, in the order of the file."""
    return tomllib.loads((REFERENCE / "requirements.toml").read_text(encoding="utf-8"))


def read_argued() -> dict[str, str]:
    """Id -> the reason why it needs no test."""
    return tomllib.loads((REFERENCE / "requirements.argued.toml").read_text(encoding="utf-8"))


def read_web_marks() -> list[tuple[str, str]]:
    """Id and test, for each promise that a test of the web app proves."""
    found: list[tuple[str, str]] = []
    for file in sorted(WEB.rglob("*.test.ts*")):
        for told, name in MARKED.findall(file.read_text(encoding="utf-8")):
            test = f"{file.relative_to(ROOT).as_posix()}::{name}"
            found += [(identifier, test) for identifier in re.findall(r'"([^"]+)"', told)]
    return found


AREAS: Final = read_areas()
REQUIREMENTS: Final = {identifier: text for area in AREAS.values() for identifier, text in area.items()}
ARGUED: Final = read_argued()

"""The promises as data: `docs/reference/requirements.toml` and the ones argued instead of tested."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]
REFERENCE: Final = ROOT / "docs" / "reference"


def read_areas() -> dict[str, dict[str, str]]:
    """Area -> id -> statement, in the order of the file."""
    return tomllib.loads((REFERENCE / "requirements.toml").read_text(encoding="utf-8"))


def read_argued() -> dict[str, str]:
    """Id -> why it needs no test."""
    return tomllib.loads((REFERENCE / "requirements.argued.toml").read_text(encoding="utf-8"))


AREAS: Final = read_areas()
REQUIREMENTS: Final = {identifier: text for area in AREAS.values() for identifier, text in area.items()}
ARGUED: Final = read_argued()

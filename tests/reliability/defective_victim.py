"""python -m tests.reliability.defective_victim DEFECT …: a victim with a planted defect, which a check must detect."""

from __future__ import annotations

import asyncio
import sys
from typing import Final
from unittest.mock import patch

from pointsman.store.sql.tables import SqlEffects
from pointsman.store.sqlite.journal import SqliteJournal
from tests.reliability.victim import live


async def _nothing(*_: object, **__: object) -> None:
    """Acknowledge without writing anything."""


async def _nothing_known(*_: object) -> dict[int, object]:
    return {}


DEFECTS: Final = {
    "writes no rows": (SqliteJournal, "append", _nothing),
    "goes on before it has recorded": (SqlEffects, "record", _nothing),
    "asks for no recorded effects": (SqlEffects, "recorded", _nothing_known),
}

if __name__ == "__main__":
    with patch.object(*DEFECTS[sys.argv[1]]):
        asyncio.run(live(sys.argv[2:]))

"""Several who open the same new file at once."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pointsman.store.sqlite import open_sqlite

pytestmark = pytest.mark.integration


async def test_several_may_open_a_new_store_at_the_same_moment(tmp_path: Path) -> None:
    address = f"sqlite:///{tmp_path / 'store.db'}"
    stores = await asyncio.gather(*(open_sqlite(address) for _ in range(4)))
    assert [await store.verify() for store in stores] == [[], [], [], []]
    for store in stores:
        await store.close()

"""Spending per key is shared by all processes of an installation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import cast

import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.engine.reports import Usage
from pointsman.models.key_pool import KeySpending
from pointsman.operations.provider_keys import StoredKeySpending
from pointsman.settings import Settings
from pointsman.store.api import open_store
from pointsman.values import JsonObject
from tests.models.slow_provider import END, provider, words
from tests.patience import PATIENCE_S

CALL = Usage(input_tokens=3, output_tokens=4, model_calls=1, cost_usd=0.5)
ADDRESSES: list[Callable[[Path], str]] = [lambda _: "memory:", lambda path: f"sqlite:///{path / 'store.db'}"]


@pytest.mark.parametrize("address", ADDRESSES, ids=["memory", "sqlite"])
async def test_concurrent_spending_is_summed_and_a_new_day_starts_at_zero(
    address: Callable[[Path], str], tmp_path: Path
) -> None:
    store = await open_store(address(tmp_path))
    try:
        spending = StoredKeySpending(store)
        await asyncio.gather(*(spending.add("own", 0, 7, CALL) for _ in range(8)), spending.add("own", 1, 7, CALL))
        assert await spending.spent("own", 0, 7) == KeySpending(calls=8, tokens=56, usd=4.0)
        assert await spending.spent("own", 1, 7) == KeySpending(calls=1, tokens=7, usd=0.5)
        await spending.add("own", 0, 8, CALL)
        assert await spending.spent("own", 0, 8) == KeySpending(calls=1, tokens=7, usd=0.5)
        assert len(await store.entries.list("key-spending")) == 2
    finally:
        await store.close()


@pytest.mark.integration
async def test_a_key_that_is_spent_stays_so_after_a_restart(tmp_path: Path) -> None:
    document = Workflow.of(
        {
            "pointsman": 1,
            "id": "w",
            "nodes": [{"id": "say", "type": "agent", "config": {"prompt": "Speak.", "model": "own:m"}}],
            "edges": [],
        }
    )
    codes: list[str] = []
    async with asyncio.timeout(PATIENCE_S), provider([*words("Aye."), *END]) as own:
        described: JsonObject = {"base_url": own.address, "keys": ["canary"], "day": {"calls": 1}}
        settings = Settings.model_validate(
            {"store": f"sqlite:///{tmp_path / 'store.db'}", "providers": {"own": described}}
        )
        for _ in range(2):
            async with Pointsman(settings=settings) as app:
                execution = await app.start(document, {})
                await execution.settled()
                errors = cast("list[JsonObject]", (await execution.view())["errors"])
                codes.append(str(errors[0]["code"]) if errors else execution.status)
    assert codes == ["completed", "model-key-budget-spent"]
    assert len(own.asked) == 1
    assert b"canary" not in (tmp_path / "store.db").read_bytes()

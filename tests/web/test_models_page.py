"""Which models there are, what they cost and says who, and how the keys stand that pay for them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator

import pytest_asyncio
from playwright.async_api import expect

from pointsman.settings import Settings
from pointsman.values import JsonObject
from tests.app.streams import END, Provider, provider, words
from tests.server.conftest import Served, serving
from tests.web.conftest import Opens

SAYS: JsonObject = {
    "pointsman": 1,
    "id": "says",
    "nodes": [{"id": "say", "type": "agent", "config": {"prompt": "Speak.", "model": "own:m"}}],
    "edges": [],
}


@pytest_asyncio.fixture(loop_scope="session")
async def own() -> AsyncGenerator[Provider]:
    async with provider([*words("Aye."), *END]) as one:
        yield one


@pytest_asyncio.fixture(loop_scope="session")
async def served(own: Provider) -> AsyncGenerator[Served]:
    """With two keys that may pay for one call of a day each, and a model of which nobody knows the price."""
    described: JsonObject = {
        "base_url": own.address,
        "keys": ["canary-first-0123456789", "canary-second-0123456789"],
        "day": {"calls": 1},
        "concurrency": 2,
    }
    told = {
        "delays": False,
        "model": "own:m",
        "fallback": ["own:dear"],
        "providers": {"own": described},
        "prices": {"own:dear": {"input": 3.5, "output": 7.0}},
    }
    async with serving(settings=Settings.model_validate(told), model=None) as one:
        yield one


async def test_a_key_that_paid_for_enough_is_seen_to_be_used_up_while_one_looks(opens: Opens, served: Served) -> None:
    await served.save(json.dumps(SAYS))
    async with opens("/models") as page:
        first = page.get_by_role("row", name="own/0")
        await expect(first).to_contain_text("free")
        await expect(first).to_contain_text("0 of 1 call")
        await expect(page.get_by_text("2 calls at once per key")).to_be_visible()
        await served.execute("says")
        await expect(first).to_contain_text("used up")
        await expect(first).to_contain_text("1 of 1 call")
        await expect(first).to_contain_text("Raise “day” of the provider in the settings")
        await expect(page.get_by_role("row", name="own/1")).to_contain_text("free")
        assert "canary" not in await page.content()


async def test_it_is_told_whose_price_it_is_and_how_to_give_one(opens: Opens, served: Served) -> None:
    async with opens("/models") as page:
        dear = page.get_by_role("row", name="own:dear")
        await expect(dear).to_contain_text("$3.50 in, $7.00 out")
        await expect(dear).to_contain_text("from the settings")
        await expect(page.get_by_role("row", name="own:m ")).to_contain_text("not known")
        await expect(page.get_by_text("Give its price")).to_be_visible()
        await expect(page.get_by_text('"own:m" = {input')).to_be_visible()
        await expect(page.get_by_text("genai-prices")).to_be_visible()


async def test_who_only_looks_is_told_of_no_keys(opens: Opens, served: Served) -> None:
    viewer = await served.desk.keys.make("vera", "viewer")
    # The first look is refused, which the browser tells its console.
    async with opens("/models", lenient=True) as page:
        await page.get_by_label("Key").fill(viewer)
        await page.get_by_role("button", name="Enter").click()
        await expect(page.get_by_role("row", name="own:dear")).to_be_visible()
        await expect(page.get_by_role("heading", name="Keys now", exact=True)).to_have_count(0)

"""The page of an execution with 20 000 events: all of them are there, and each can be opened at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from pointsman.app import Pointsman
from pointsman.workflows.sources import Workflow
from tests.server.conftest import QUIET, Served, serving
from tests.web.conftest import Opens

EVENTS: Final = 20_000
TURNING: Final = f"""\
pointsman: 1
id: turning
entry: tick
config: {{durability: async, limits: {{steps: 1000000, executionTime: 1h}}}}
nodes:
  - {{id: tick, type: transform, config: {{set: {{n: "(n ?? 0) + 1"}}}}}}
  - {{id: done, type: end}}
edges:
  - {{source: tick, target: tick, condition: {{type: expression, expression: "n < {EVENTS}"}}}}
  - {{source: tick, target: done, condition: {{type: expression, expression: "n >= {EVENTS}"}}}}
"""


async def turned(store: str) -> tuple[str, int]:
    """Return its id and the number of events in its journal."""
    async with Pointsman(store, settings=QUIET) as app:
        execution = await app.start(Workflow.parse(TURNING))
        assert await execution.settled() == "completed"
        events = [len(row.events) async for row in app.store.journal.read(execution.id)]
        return execution.id, sum(events)


@pytest.fixture(scope="session")
def long_store(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str, int]:
    """Return a store with the long execution, its id, and the number of its events."""
    store = f"sqlite:///{tmp_path_factory.mktemp('long')}/store.db"
    execution, events = asyncio.run(turned(store))
    assert events >= EVENTS
    return store, execution, events


@pytest_asyncio.fixture(loop_scope="session")
async def served(long_store: tuple[str, str, int]) -> AsyncGenerator[Served, None]:
    async with serving(long_store[0]) as one:
        yield one


async def in_sight(page: Page, place: str) -> None:
    await expect(page.get_by_role("button", name=f"{place} ", exact=False).first).to_be_in_viewport()


@pytest.mark.requirement("S1-147")
async def test_a_long_execution_shows_every_event_and_an_old_event_can_be_found_and_opened(
    opens: Opens, long_store: tuple[str, str, int]
) -> None:
    _, execution, events = long_store
    async with opens(f"/executions/{execution}") as page:
        await expect(page.get_by_text(f"{EVENTS}/{EVENTS}").first).to_be_visible()
        await page.get_by_role("tab", name="Events").click()
        await expect(page.get_by_text(f"{events} events", exact=True)).to_be_visible()
        await in_sight(page, f"1.{events - 1}")
        await page.get_by_role("button", name="Go to first event").click()
        await in_sight(page, "1.0")
        await page.get_by_role("button", name="Go to latest event").click()
        await in_sight(page, f"1.{events - 1}")
        assert await page.get_by_role("list", name="Events").get_by_role("listitem").count() < 200, "what is in sight"
        await page.get_by_role("tab", name="Timeline").click()
        lanes = page.get_by_role("list", name="Timeline")
        await expect(lanes.get_by_role("button", name="tick", exact=False).first).to_be_in_viewport()
        await lanes.evaluate("one => one.closest('.overflow-auto').scrollTo(0, 1e9)")
        await expect(lanes.get_by_title("done", exact=True)).to_be_in_viewport()
        await page.get_by_role("tab", name="Events").click()
        await page.get_by_role("searchbox", name="Search events").fill("tick#12345")
        await expect(page.get_by_text(f"1 of {events}", exact=True)).to_be_visible()
        await page.get_by_role("button", name="tick #12345").click()
        await expect(page.get_by_text('"result": 12345')).to_be_visible()
        step = page.get_by_role("complementary").get_by_label(f"{EVENTS} steps:")
        await expect(step).to_have_value("tick#12345")
        await page.get_by_role("button", name="Show state at this event").click()
        await expect(page.locator(".react-flow__node").get_by_text("12345/12345")).to_be_visible()
        await expect(
            page.get_by_role("complementary").get_by_role("heading", name="Result", exact=True)
        ).to_be_visible()
        slider = page.get_by_label("History")
        await slider.press("Home")
        await expect(page.locator(".react-flow__node").get_by_text("12345/12345")).to_have_count(0)
        await expect(page.get_by_text(f"1 / {events}", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Back to live").click()
        await expect(page.get_by_text(f"{EVENTS}/{EVENTS}").first).to_be_visible()

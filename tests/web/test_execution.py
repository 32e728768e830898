"""The page of an execution: it follows what happens, travels in time, forks, and survives a server that goes away."""

from __future__ import annotations

import pytest
from playwright.async_api import Locator, Page, expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens


async def show(page: Page) -> None:
    await expect(page.get_by_label("The workflow as a graph")).to_be_visible()


def node(page: Page, name: str) -> Locator:
    return page.locator(".react-flow__node").filter(has_text=name)


@pytest.mark.requirement("S1-150")
async def test_what_happens_is_seen_while_it_happens(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    async with opens(f"/executions/{execution}") as page:
        await expect(node(page, "review").get_by_text("waiting")).to_be_attached()
        await expect(node(page, "write").get_by_text("done")).to_be_attached()
        await served.act(execution, "respond", {"gateId": "review", "action": "again"})
        await expect(node(page, "write").get_by_text("2/2")).to_be_visible()
        await served.act(execution, "respond", {"gateId": "review", "action": "approve"})
        await expect(page.get_by_text("completed", exact=True).first).to_be_visible()
        await expect(node(page, "send").get_by_text("passed")).to_be_attached()


@pytest.mark.requirement("S1-147")
async def test_a_step_tells_what_it_was_given_and_what_it_changed(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    execution = await served.execute("chain")
    async with opens(f"/executions/{execution}") as page:
        await node(page, "second").click()
        panel = page.get_by_role("complementary")
        await expect(panel.get_by_role("heading", name="second", exact=True)).to_be_visible()
        await expect(panel.get_by_text("Changed")).to_be_visible()
        await expect(panel.get_by_text('"prompt": "two"')).to_be_visible()

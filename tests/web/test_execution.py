"""The page of an execution: it follows events, shows earlier states, forks, and survives an outage of the server."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import Locator, Page, expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens


async def show(page: Page) -> None:
    await expect(page.get_by_label("Workflow graph")).to_be_visible()


def node(page: Page, name: str) -> Locator:
    return page.locator(".react-flow__node").filter(has_text=name)


@pytest.mark.requirement("S1-150", "S1-147", "S4-48")
async def test_the_execution_page_follows_events_announces_them_and_shows_state_changes(
    opens: Opens, served: Served
) -> None:
    await served.save(flows.LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    async with opens(f"/executions/{execution}") as page:
        await expect(node(page, "review").get_by_text("waiting")).to_be_attached()
        await expect(node(page, "write").get_by_text("done")).to_be_attached()
        await page.get_by_role("tab", name="Outline").click()
        tree = page.get_by_role("tree", name="Workflow outline")
        await expect(tree.get_by_role("treeitem", name="review")).to_contain_text("waiting")
        await expect(tree.get_by_role("treeitem", name="write")).to_contain_text("done")
        await tree.focus()
        await page.keyboard.press("r")
        await expect(node(page, "review")).to_have_class(re.compile(r"\bselected\b"))
        await served.act(execution, "respond", {"gateId": "review", "action": "again"})
        await expect(node(page, "write").get_by_text("2/2")).to_be_visible()
        await served.act(execution, "respond", {"gateId": "review", "action": "approve"})
        await expect(page.get_by_text("completed", exact=True).first).to_be_visible()
        await expect(node(page, "send").get_by_text("passed")).to_be_attached()
    await served.save(flows.CHAIN)
    execution = await served.execute("chain")
    async with opens(f"/executions/{execution}") as page:
        await node(page, "second").click()
        panel = page.get_by_role("complementary")
        await expect(panel.get_by_role("heading", name="second", exact=True)).to_be_visible()
        await expect(panel.get_by_text("State changes")).to_be_visible()
        await expect(panel.get_by_text("two", exact=True)).to_be_visible()

"""First steps by hand: a document is imported and started; a workflow with a gate is drawn in a few clicks."""

from __future__ import annotations

from typing import Final

from playwright.async_api import Locator, Page, expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens, screenshot
from tests.web.typing_in import PROMPT, write

COUNT_CLICKS: Final = "window.clicks = 0; addEventListener('pointerdown', () => window.clicks++, true);"
CLICKS_MAX: Final = 15


async def drag(page: Page, from_: Locator, to: Locator) -> None:
    """Drag from the middle of one element to the middle of another."""
    first, second = await from_.bounding_box(), await to.bounding_box()
    assert first is not None
    assert second is not None
    await page.mouse.move(first["x"] + first["width"] / 2, first["y"] + first["height"] / 2)
    await page.mouse.down()
    await page.mouse.move(second["x"] + second["width"] / 2, second["y"] + second["height"] / 2, steps=8)
    await page.mouse.up()


def port(page: Page, node: str, name: str) -> Locator:
    return page.locator(f'.react-flow__node[data-id="{node}"]').get_by_title(f"{name}: drag to the next node")


async def test_a_document_is_imported_and_a_gated_workflow_is_drawn_in_at_most_15_clicks(
    opens: Opens, served: Served
) -> None:
    async with opens() as page:
        await expect(page.get_by_text("No workflows yet.")).to_be_visible()
        await page.get_by_role("button", name="Import").click()
        await page.get_by_label("Document").fill(flows.LETTER)
        await expect(page.get_by_text("No problems.")).to_be_visible()
        await page.get_by_role("button", name="Save", exact=True).click()
        await page.wait_for_url("**/workflows/letter")
        await expect(page.get_by_label("Node palette")).to_be_visible()
        await page.get_by_role("button", name="Start", exact=True).first.click()
        dialog = page.get_by_role("dialog")
        await expect(dialog.get_by_label("goal")).to_be_focused()
        await dialog.get_by_label("goal").fill("tides")
        await dialog.get_by_role("button", name="Start", exact=True).click()
        await expect(page.get_by_role("heading", name="Send it?", exact=True)).to_be_visible()
        await expect(page.get_by_role("link", name="Inbox 1")).to_be_visible()
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_text("completed", exact=True).first).to_be_visible()
        execution = page.url.rpartition("/")[2]
    told = await served.read(execution)
    assert (told["status"], told["input"], told["answers"][0]["action"]) == ("completed", {"goal": "tides"}, "approve")
    async with opens("/workflows", before=COUNT_CLICKS) as page:
        await page.get_by_role("button", name="New", exact=True).click()
        await page.get_by_role("textbox", name="Name").fill("Gated letter")
        await page.keyboard.press("Enter")
        palette = page.get_by_label("Node palette")
        await palette.get_by_role("button", name="Agent", exact=True).click()
        await write(page.get_by_role("textbox", name=PROMPT), "Write a letter")
        await palette.get_by_role("button", name="Person", exact=True).click()
        await write(page.get_by_role("textbox", name="Message"), "Send it?")
        draft = page.locator('.react-flow__node[data-id="agent"]')
        await drag(page, port(page, "human", "Reject"), draft)
        await palette.get_by_role("button", name="End", exact=True).click()
        asked = page.get_by_role("dialog", name="Which answer?")
        await expect(asked.get_by_role("option", name="Reject")).to_contain_text("to agent")
        await asked.get_by_role("option", name="Approve").click()
        await expect(page.locator(".react-flow__edge")).to_have_count(4)
        await screenshot(page, "gated", fits=True)
        drawn = await page.evaluate("window.clicks")
        await page.get_by_role("button", name="Save and start").click()
        await page.get_by_role("dialog").get_by_role("button", name="Start", exact=True).click()
        await page.get_by_role("button", name="Reject").click()
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_text("completed", exact=True).first).to_be_visible()
        assert drawn < await page.evaluate("window.clicks") <= CLICKS_MAX
        execution = page.url.rpartition("/")[2]
    told = await served.read(execution)
    assert [one["action"] for one in told["answers"]] == ["reject", "approve"]

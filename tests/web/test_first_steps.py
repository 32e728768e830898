"""First steps by hand: a document is imported, started, and its gate is answered."""

from __future__ import annotations

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens


async def test_a_document_is_pasted_checked_saved_and_started_and_its_gate_is_answered(
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

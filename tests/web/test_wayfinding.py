"""People know where they are: tabs have names, the menu says which page is open, what is not there leads back."""

from __future__ import annotations

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens


async def test_a_workflow_is_cloned_left_and_deleted_by_dialogs_of_the_app(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    async with opens("/workflows/chain", lenient=True) as page:  # The browser tells of each refusal.
        await page.get_by_role("button", name="Clone").click()
        await page.get_by_label("The id of the clone").fill("chain")
        await page.get_by_role("dialog").get_by_role("button", name="Clone").click()
        await expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()
        await page.get_by_label("The id of the clone").fill("second")
        await page.get_by_label("The id of the clone").press("Enter")
        await page.wait_for_url("**/workflows/second")
        await page.get_by_label("Tags").fill("tides")
        await expect(page.get_by_text("one change not saved")).to_be_visible()
        await page.get_by_role("link", name="Inbox").click()
        await page.get_by_role("dialog", name="Leave without saving?").get_by_role("button", name="Cancel").click()
        await expect(page.get_by_text("one change not saved")).to_be_visible()
        await page.get_by_role("link", name="Inbox").click()
        await page.get_by_role("button", name="Leave").click()
        await page.wait_for_url("**/inbox")
        await expect(page.get_by_role("heading", name="Inbox", exact=True)).to_be_visible()
        await page.go_back()
        await expect(page.get_by_text("one change not saved")).to_be_visible()
        await page.get_by_role("button", name="Delete", exact=True).click()
        await page.get_by_role("dialog", name="Delete second?").get_by_role("button", name="Delete").click()
        await page.wait_for_url("**/workflows")
        await expect(page.get_by_role("link", name="chain", exact=True)).to_be_visible()
        await expect(page.get_by_role("link", name="second", exact=True)).to_have_count(0)

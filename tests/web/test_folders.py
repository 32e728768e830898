"""Folders in the list of workflows: created, filled, opened by a link, renamed and shared."""

from __future__ import annotations

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens


async def test_a_workflow_is_moved_into_a_new_folder_which_is_then_renamed_and_shared(
    opens: Opens, served: Served
) -> None:
    await served.save(flows.CHAIN)
    await served.save(flows.LETTER)
    async with opens("/workflows") as page:
        await page.get_by_role("button", name="New folder").click()
        dialog = page.get_by_role("dialog", name="New folder")
        await dialog.get_by_label("Path").fill("sales/mail")
        await dialog.get_by_role("button", name="Create").click()
        await expect(page.get_by_text("This folder is empty.")).to_be_visible()
        await page.get_by_role("link", name="All workflows").click()
        await page.get_by_role("checkbox", name="Select chain").check()
        await page.get_by_role("button", name="Move", exact=True).click()
        moving = page.get_by_role("dialog", name="Move workflow")
        await moving.get_by_label("Folder").select_option("sales/mail")
        await moving.get_by_role("button", name="Move", exact=True).click()
        await expect(moving).to_have_count(0)
        await page.get_by_role("navigation", name="Folders").get_by_role("link", name="sales").click()
        await expect(page.get_by_role("link", name="chain", exact=True)).to_be_visible()
        await expect(page.get_by_role("link", name="letter", exact=True)).to_have_count(0)
        await page.get_by_role("button", name="Rename folder sales").click()
        renaming = page.get_by_role("dialog", name="Rename folder sales")
        await renaming.get_by_label("Path").fill("shop")
        await renaming.get_by_role("button", name="Rename").click()
        await page.wait_for_url("**/workflows?folder=shop")
        await page.get_by_role("button", name="Share shop").click()
        sharing = page.get_by_role("dialog", name="Share shop")
        await sharing.get_by_label("Private").check()
        await sharing.get_by_role("button", name="Save").click()
        await expect(sharing).to_have_count(0)
    listed = (await served.client.get("/api/folders")).json()["folders"]
    assert [(one["path"], one["audience"]) for one in listed] == [("shop", "private"), ("shop/mail", "everyone")]

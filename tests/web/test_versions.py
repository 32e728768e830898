"""Revisions in the editor: compare, restore; and two concurrent editors lose no changes."""

from __future__ import annotations

from typing import Any

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_editor import saved
from tests.web.test_execution import node
from tests.web.typing_in import write

LONGER = flows.CHAIN.replace(
    "edges: [{source: first, target: second}]",
    "  - {id: third, type: agent, config: {prompt: three}}\n"
    "edges: [{source: first, target: second}, {source: second, target: third}]",
)


async def put(served: Served, document: str) -> None:
    reply = await served.client.put("/api/workflows/chain", content=document)
    assert reply.status_code == 200, reply.text


def prompts(document: Any) -> list[str]:
    return [one["config"]["prompt"] for one in document["nodes"]]


async def test_changes_of_a_revision_are_drawn_and_listed_and_an_old_revision_is_restored(
    opens: Opens, served: Served
) -> None:
    await served.save(flows.CHAIN)
    await put(served, LONGER.replace("prompt: two", "prompt: other"))
    async with opens("/workflows/chain") as page:
        await page.get_by_role("tab", name="Revisions").click()
        await page.get_by_role("button", name="Changes in revision 2").click()
        dialog = page.get_by_role("dialog", name="From revision 1 to revision 2")
        third = dialog.locator('.react-flow__node[data-id="third"]')
        await expect(third.get_by_text("added", exact=True)).to_be_attached()
        await expect(dialog.get_by_text("3 differences")).to_be_visible()
        await dialog.get_by_role("tab", name="List").click()
        await expect(dialog.get_by_text("config.prompt")).to_be_visible()
        await dialog.get_by_role("tab", name="Text").click()
        await expect(dialog.locator(".cm-content")).to_contain_text("prompt: other")
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Restore revision 1").click()
        await expect(page.get_by_text("revision 3").first).to_be_visible()
        await expect(node(page, "third")).to_have_count(0)
    assert prompts(await saved(served)) == ["one", "two"]


async def test_conflicting_texts_are_compared_and_one_is_chosen(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    async with opens("/workflows/chain", lenient=True) as page:
        await page.get_by_role("tab", name="Text").click()
        typed = flows.CHAIN.replace("prompt: one", "prompt: typed")
        await write(page.get_by_role("textbox", name="Document"), typed)
        await expect(page.get_by_text("1 unsaved change")).to_be_visible()
        await put(served, LONGER)
        await page.get_by_role("button", name="Save", exact=True).click()
        moved = page.get_by_role("region", name="Changed elsewhere")
        await moved.get_by_role("button", name="Apply my changes on top").click()
        asked = page.get_by_role("dialog", name="You edited the text while another revision was saved")
        await expect(asked.locator(".cm-content")).to_contain_text("prompt: typed")
        await expect(asked.locator(".cm-deletedChunk").first).to_contain_text("prompt: one")
        await asked.get_by_role("button", name="Decide later").click()
        await expect(moved).to_contain_text("saved revision 2")
        await expect(page.get_by_text("1 unsaved change")).to_be_visible()
        await moved.get_by_role("button", name="Apply my changes on top").click()
        await asked.get_by_role("button", name="Use mine").click()
        await expect(moved).to_have_count(0)
        await expect(node(page, "third")).to_have_count(0)
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text("revision 3").first).to_be_visible()
    assert prompts(await saved(served)) == ["typed", "two"]


async def test_a_version_is_published_and_later_changes_are_drafts_that_can_be_started(
    opens: Opens, served: Served
) -> None:
    await served.save(flows.CHAIN)
    async with opens("/workflows/chain") as page:
        await page.get_by_role("button", name="Publish", exact=True).click()
        dialog = page.get_by_role("dialog", name="Publish revision 1")
        await dialog.get_by_label("Name").fill("Spring")
        await dialog.get_by_label("What is new").fill("The first one.")
        await dialog.get_by_role("button", name="Publish", exact=True).click()
        await expect(page.get_by_text("published: Spring")).to_be_visible()
        await put(served, LONGER)
        await page.get_by_role("button", name="Show new revision").click()
        await expect(page.get_by_text("Draft. The published version “Spring” runs.")).to_be_visible()
        await page.get_by_role("button", name="Start", exact=True).first.click()
        start = page.get_by_role("dialog", name="Start")
        await expect(start.get_by_label("Version")).to_have_value("draft")
        await start.get_by_label("Version").select_option("Published: Spring")
        await start.get_by_role("button", name="Start", exact=True).click()
        await page.wait_for_url("**/executions/*")
        await expect(page.get_by_text("Completed").first).to_be_visible()
        await expect(node(page, "second")).to_be_visible()
        await expect(node(page, "third")).to_have_count(0)
        await page.goto(f"{served.client.base_url}/workflows")
        await expect(page.get_by_text("published: Spring")).to_be_visible()
        await expect(page.get_by_text("draft", exact=True)).to_be_visible()
        await page.goto(f"{served.client.base_url}/workflows/chain")
        await page.get_by_role("tab", name="Revisions").click()
        await page.get_by_role("button", name="Restore “Spring”").click()
        await expect(page.get_by_text("revision 3").first).to_be_visible()
    assert prompts(await saved(served)) == ["one", "two"]

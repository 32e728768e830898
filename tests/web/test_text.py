"""The text editor beside the canvas: each follows the other, and an invalid text destroys nothing."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_editor import saved
from tests.web.test_execution import node
from tests.web.typing_in import write

COMMENTED = f"# Two steps.\n{flows.CHAIN}# The end.\n"


async def type_over(page: Page, text: str) -> None:
    """Replace the whole document, like a paste."""
    await write(page.get_by_role("textbox", name="Document"), text)


async def test_text_and_canvas_follow_each_other_and_comments_are_kept(opens: Opens, served: Served) -> None:
    await served.save(COMMENTED)
    third = "  - {id: third, type: agent, config: {prompt: three}} # typed\nedges:"
    typed = COMMENTED.replace("edges:", third)
    async with opens("/workflows/chain") as page:
        await page.get_by_role("tab", name="Text").click()
        document = page.get_by_role("textbox", name="Document")
        await expect(document).to_contain_text("# Two steps.")
        await type_over(page, typed)
        await expect(node(page, "third")).to_be_visible()
        await expect(page.get_by_text("1 unsaved change")).to_be_visible()
        await page.get_by_role("button", name="Undo").click()
        await expect(node(page, "third")).to_have_count(0)
        await expect(document).not_to_contain_text("third")
        await page.get_by_role("button", name="Redo").click()
        await expect(node(page, "third")).to_be_visible()
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text("revision 2")).to_be_visible()
    assert (await served.client.get("/api/workflows/chain")).json()["text"] == typed
    assert [one["id"] for one in (await saved(served))["nodes"]] == ["first", "second", "third"]
    await served.save(COMMENTED)
    async with opens("/workflows/chain") as page:
        await page.get_by_role("tab", name="Text").click()
        await type_over(page, COMMENTED.replace("# Two steps.", "# Two small steps."))
        await expect(page.get_by_text("1 unsaved change")).to_be_visible()
        await page.get_by_label("Node palette").get_by_role("button", name="Person").click()
        await expect(node(page, "human")).to_be_visible()
        await page.get_by_role("tab", name="Text").click()
        document = page.get_by_role("textbox", name="Document")
        await expect(document).to_contain_text("human")
        await expect(document).to_contain_text("# Two small steps.")
        await page.reload()
        await expect(node(page, "human")).to_be_visible()
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text("revision 4")).to_be_visible()
    text = (await served.client.get("/api/workflows/chain")).json()["text"]
    assert text.startswith("# Two small steps.\n")
    assert "id: human" in text


async def test_unreadable_text_shows_its_error_position_and_a_selected_node_is_shown_in_it(
    opens: Opens, served: Served
) -> None:
    await served.save(COMMENTED)
    async with opens("/workflows/chain", lenient=True) as page:
        await page.get_by_role("tab", name="Text").click()
        await type_over(page, COMMENTED.replace("edges: [", "edges: [["))
        await expect(page.get_by_role("alert")).to_contain_text("line")
        await expect(node(page, "second")).to_be_visible()
        await expect(page.get_by_text("unsaved change")).to_have_count(0)
        await page.get_by_role("button", name="Discard typed text").click()
        await expect(page.get_by_role("alert")).to_have_count(0)
        await expect(page.get_by_role("textbox", name="Document")).not_to_contain_text("[[")
        await node(page, "second").click()
        await page.get_by_role("tab", name="Text").click()
        await expect(page.locator(".cm-picked")).to_contain_text("id: second")
        edge = page.get_by_role("separator", name="Panel width")
        before = await edge.get_attribute("aria-valuenow")
        await edge.press("ArrowLeft")
        await expect(edge).to_have_attribute("aria-valuenow", str(int(before or 0) + 32))

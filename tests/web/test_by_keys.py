"""The editor without a mouse: every action by keys, announced to screen readers, with the focus always visible."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_accessibility import tab_to
from tests.web.test_canvas import arrows, box, boxes, saved
from tests.web.typing_in import PROMPT


async def told(page: Page, words: str) -> None:
    await expect(page.get_by_role("status").filter(has_text=words)).to_have_count(1)


async def add(page: Page, kind: str, made: str) -> None:
    """Add a node by typing, after the selected one; it gets the focus."""
    await page.keyboard.press("a")
    field = page.get_by_role("combobox", name="Search node types")
    await expect(field).to_be_focused()
    await page.keyboard.insert_text(kind)
    await expect(page.get_by_role("option", selected=True)).to_contain_text(kind)
    await page.keyboard.press("Enter")
    await expect(box(page, made)).to_be_focused()


async def lead_to(page: Page, target: str) -> None:
    await page.keyboard.press("c")
    await expect(page.get_by_role("combobox", name="Connect to")).to_be_focused()
    await page.keyboard.insert_text(target)
    await expect(page.get_by_role("option", selected=True)).to_contain_text(target)
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def draw(page: Page) -> None:
    """Draw a new workflow of three nodes and move the last one."""
    press = page.keyboard.press
    await expect(page.get_by_role("button", name="New", exact=True)).to_be_visible()
    await tab_to(page, "New")
    await press("Enter")
    await expect(page.get_by_role("textbox", name="Name")).to_be_focused()
    await page.keyboard.insert_text("Letters")
    await press("Enter")
    await expect(box(page, "start")).to_be_visible()

    await add(page, "Agent", "agent")
    await told(page, "agent was added after start.")
    await add(page, "End", "end")
    await told(page, "end was added after agent.")
    await press("ArrowDown")
    await press("Shift+ArrowDown")
    await told(page, "end was moved to ")


async def fill_in(page: Page) -> None:
    """Fill in the prompt of the agent and the condition of its edge."""
    press = page.keyboard.press
    await tab_to(page, "agent")
    await expect(page.get_by_role("heading", name="agent", exact=True)).to_be_visible()
    await press("e")
    await expect(page.get_by_role("tabpanel").get_by_role("textbox", name="Name")).to_be_focused()
    prompt = page.get_by_role("textbox", name=PROMPT)
    await expect(prompt).to_be_editable()
    await tab_to(page, "Write the prompt")
    await expect(prompt).to_be_focused()
    await page.keyboard.insert_text("Write a letter")
    await expect(prompt).to_have_text("Write a letter")
    await press("Escape")
    await expect(box(page, "agent")).to_be_focused()

    await tab_to(page, "start → agent", key="Shift+Tab")
    await press("Enter")
    taken = page.get_by_label("Follow this path")
    await expect(taken).to_be_focused()
    await press("ArrowDown")
    await expect(taken).to_have_value("expression")
    formula = page.get_by_role("textbox", name="expression")
    await expect(formula).to_be_editable()
    await tab_to(page, "For example")
    await expect(formula).to_be_focused()
    await page.keyboard.insert_text("1 < 2")
    await expect(formula).to_have_text("1 < 2")


@pytest.mark.requirement("S1-135", "S4-48")
async def test_a_workflow_is_drawn_saved_run_and_read_without_a_mouse(opens: Opens, served: Served) -> None:
    async with opens() as page:
        press = page.keyboard.press
        await draw(page)
        await tab_to(page, "start", key="Shift+Tab")
        await expect(box(page, "start")).to_be_focused()
        await expect(page.get_by_role("heading", name="start", exact=True)).to_be_visible()
        await lead_to(page, "end")
        await told(page, "start now leads to end.")
        await expect(box(page, "start")).to_be_focused()

        await fill_in(page)
        await press("Control+s")
        await expect(page.get_by_text("revision 2")).to_be_visible()
        await told(page, "Saved.")
        await press("Control+Enter")
        await expect(page.get_by_role("dialog").get_by_role("button", name="Start", exact=True)).to_be_focused()
        await press("Enter")
        await page.wait_for_url("**/executions/*")
        await expect(page.get_by_text("completed", exact=True).first).to_be_visible()
        execution = page.url.rpartition("/")[2]
    document = await saved(served, "letters")
    assert [(one["source"], one["target"]) for one in document["edges"]] == [
        ("start", "agent"),
        ("agent", "end"),
        ("start", "end"),
    ]
    assert document["edges"][0]["condition"] == {"type": "expression", "expression": "1 < 2"}
    assert document["nodes"][1]["config"]["prompt"] == "Write a letter"
    found = await served.read(execution)
    assert (found["status"], found["usage"]["modelCalls"]) == ("completed", 1)


async def arrow_keys_move(page: Page) -> None:
    """Move through the tabs of the panel and through the palette."""
    press = page.keyboard.press
    await tab_to(page, "Properties")
    await page.keyboard.press("ArrowRight")
    outline = page.get_by_role("tab", name="Outline")
    await expect(outline).to_be_focused()
    await expect(outline).to_have_attribute("aria-selected", "true")
    await expect(page.get_by_role("tree")).to_be_visible()
    await page.keyboard.press("Home")
    await expect(page.get_by_role("tab", name="Properties")).to_be_focused()
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("tab", name="Properties")).to_be_focused()
    await page.locator("[data-canvas]").focus()
    await press("?")
    await expect(page.get_by_role("region", name="In the palette")).to_contain_text("Go to a name")
    await press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    palette = page.get_by_role("toolbar", name="Node palette")
    await tab_to(page, "Agent")
    await press("ArrowDown")
    await expect(palette.get_by_role("button").nth(1)).to_be_focused()
    await press("End")
    await expect(palette.get_by_role("button").last).to_be_focused()
    await press("Tab")
    await expect(palette.locator(":focus")).to_have_count(0)
    await press("Shift+Tab")
    await expect(palette.get_by_role("button").last).to_be_focused()
    await page.keyboard.type("tra")
    await expect(palette.get_by_role("button", name="Transform")).to_be_focused()
    await press("Enter")
    await expect(box(page, "transform")).to_be_visible()


async def test_escape_goes_back_one_step_and_arrow_keys_move_through_panels_and_palette(
    opens: Opens, served: Served
) -> None:
    await served.save(flows.LETTER)
    async with opens("/workflows/letter") as page:
        press = page.keyboard.press
        await expect(box(page, "send")).to_be_visible()
        await press("/")
        await expect(page.get_by_role("combobox")).to_be_focused()
        await page.keyboard.insert_text("review")
        await expect(page.get_by_role("option", selected=True)).to_contain_text("review")
        await press("Enter")
        await expect(box(page, "review")).to_be_focused()

        await press("c")
        await expect(page.get_by_role("combobox", name="Connect to")).to_be_focused()
        await press("Escape")
        await expect(box(page, "review")).to_be_focused()
        await press("Shift+F10")
        await expect(page.get_by_role("menuitem", name="Connect")).to_be_visible()
        await press("Escape")
        await expect(page.get_by_role("menu")).to_have_count(0)
        await expect(box(page, "review")).to_be_focused()
        await press("?")
        await expect(page.get_by_role("heading", name="Keyboard shortcuts", exact=True)).to_be_visible()
        await press("Escape")
        await expect(box(page, "review")).to_be_focused()
        await press("o")
        await expect(page.get_by_role("tree")).to_be_focused()
        await press("Escape")
        await expect(box(page, "review")).to_be_focused()

        await press("Delete")
        await told(page, "review was removed.")
        await expect(page.locator("[data-canvas]")).to_be_focused()
        await press("Control+z")
        await told(page, "Undone: review was removed.")
        await expect(boxes(page)).to_have_count(3)
        await press("Control+y")
        await told(page, "Redone: review was removed.")
        await expect(boxes(page)).to_have_count(2)
        await expect(arrows(page)).to_have_count(0)

        await arrow_keys_move(page)

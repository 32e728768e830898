"""Forms beside the canvas: conditions and prompts with completion, fields, problems with a repair button."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_canvas import box as node_box
from tests.web.test_editor import saved
from tests.web.test_execution import node
from tests.web.typing_in import PROMPT, write

DANGLING = flows.CHAIN.replace("target: second}", "target: second}, {source: second, target: sceond}")


@pytest.mark.requirement("S1-137")
async def test_condition_is_completed_checked_and_previewed(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    async with opens("/workflows/letter") as page:
        await page.locator(".react-flow__edge").first.dispatch_event("click")
        await page.get_by_label("Follow this path").select_option("If a condition holds")
        box = page.get_by_role("textbox", name="Expression")
        await box.click()
        await page.keyboard.type("te")
        completions = page.get_by_role("listbox", name="Completions")
        await expect(completions.get_by_role("option").get_by_text("text", exact=True)).to_be_visible()
        await page.keyboard.press("Enter")
        await page.keyboard.type(" == ")
        await expect(box).to_have_text("text == ")
        await expect(page.locator(".cm-lintRange-error, .cm-lintPoint-error").first).to_be_attached()
        await page.keyboard.type("'done' and gaol == 'x'")
        await expect(page.locator(".cm-lintRange-warning")).to_have_text("gaol")
        await write(box, "len(goal) > 3")
        await page.get_by_role("button", name="Preview", exact=True).click()
        values = page.get_by_role("textbox", name="Sample values")
        await expect(values).to_contain_text('"goal"')
        await write(values, '{"goal": "harbour"}')
        await expect(page.get_by_label("Result")).to_contain_text("true")
        await write(values, '{"goal": "sea"}')
        await expect(page.get_by_label("Result")).to_contain_text("false")
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text("revision 2")).to_be_visible()
    assert (await saved(served, "letter"))["edges"][0]["condition"] == {
        "type": "expression",
        "expression": "len(goal) > 3",
    }


async def test_a_tool_is_chosen_from_a_list(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    async with opens("/workflows/letter") as page:
        await node_box(page, "write").click()
        await page.get_by_label("Node palette").get_by_role("button", name="Tool", exact=True).click()
        field = page.get_by_role("combobox", name="Tool", exact=False).first
        await expect(field).to_have_value("calculator")
        await field.click()
        options = page.get_by_role("listbox").get_by_role("option")
        await expect(options.filter(has_text="calculator")).to_have_attribute("aria-selected", "true")
        every = len((await served.client.get("/api/tools")).json()["tools"])
        assert every > 1
        await expect(options).to_have_count(every)
        await page.keyboard.press("Escape")
        await expect(options).to_have_count(0)
        await expect(node_box(page, "tool"), "only the list is closed").to_have_class(re.compile("selected"))
        await field.press("ControlOrMeta+a")
        await page.keyboard.type("fetch")
        await expect(options.first).to_contain_text("fetch_page")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(field).to_have_value("fetch_page")
        await expect(page.get_by_text("1 + 1"), "that was said of the calculator").to_have_count(0)


async def test_a_problem_links_to_its_field_and_is_fixed_by_its_button(opens: Opens, served: Served) -> None:
    reply = await served.client.post("/api/workflows?draft=true", content=DANGLING)
    assert reply.status_code == 201, reply.text
    async with opens("/workflows/chain") as page:
        await node(page, "first").click()
        await write(page.get_by_role("textbox", name=PROMPT), "About {b}")
        await page.get_by_role("tab", name="Problems").click()
        await page.get_by_role("button", name="reads 'b'").click()
        await expect(page.get_by_role("textbox", name=PROMPT)).to_be_focused()
        await page.get_by_role("tab", name="Problems").click()
        await page.get_by_role("button", name="Fix", exact=True).click()
        await expect(page.get_by_role("button", name="Fix", exact=True)).to_have_count(0)
        await page.get_by_role("button", name="Undo").click()
        await expect(page.get_by_role("button", name="Fix", exact=True)).to_be_visible()

"""What somebody does who never saw the product: the likely way has to be a way."""

from __future__ import annotations

import json
import re

import pytest
from playwright.async_api import Page, expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_canvas import box, saved

DIVIDES = """\
pointsman: 1
id: divides
input: {type: object, properties: {rows: {type: array, items: {type: number}}}}
output: {total: total}
nodes:
  - {id: begin, type: start}
  - {id: sum, type: transform, config: {set: {total: "rows[0] / rows[1]"}}, name: Add up}
  - {id: over, type: end}
edges: [{source: begin, target: sum}, {source: sum, target: over}]
"""


async def drag(page: Page, source: str, target: str) -> None:
    """From the dot of one box to the middle of another, as people do."""
    await expect(box(page, target)).to_be_visible()
    start = await box(page, source).bounding_box()
    end = await box(page, target).bounding_box()
    assert start is not None
    assert end is not None
    await page.mouse.move(start["x"] + start["width"], start["y"] + start["height"] / 2)
    await page.mouse.down()
    await page.mouse.move(end["x"] + end["width"] / 2, end["y"] - 15, steps=8)
    await page.mouse.move(end["x"] + end["width"] / 2, end["y"] + end["height"] / 2, steps=5)
    await page.mouse.up()


async def test_a_connection_let_go_over_a_box_leads_to_that_box(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    async with opens("/workflows/letter") as page:
        await drag(page, "write", "send")
        await expect(page.locator(".react-flow__edge")).to_have_count(4)
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await drag(page, "send", "write")
        await expect(page.locator(".react-flow__edge"), "nothing leads on from an end").to_have_count(4)
        await expect(page.get_by_role("dialog"), "and nothing is added instead").to_have_count(0)
        await page.get_by_role("button", name="Save", exact=False).first.click()
        await expect(page.get_by_text("revision 2")).to_be_visible()
    edges = [(one["source"], one["target"]) for one in (await saved(served, "letter"))["edges"]]
    assert ("write", "send") in edges
    assert ("send", "write") not in edges


async def test_all_tools_are_listed_beside_the_one_that_stands_there(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    async with opens("/workflows/letter") as page:
        await box(page, "write").click()
        await page.get_by_label("What can be added").get_by_role("button", name="Tool", exact=True).click()
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
        await expect(box(page, "tool"), "only the list is closed").to_have_class(re.compile("selected"))
        await field.press("ControlOrMeta+a")
        await page.keyboard.type("fetch")
        await expect(options.first).to_contain_text("fetch_page")
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await expect(field).to_have_value("fetch_page")
        await expect(page.get_by_text("1 + 1"), "that was said of the calculator").to_have_count(0)


async def test_names_that_can_be_put_into_a_prompt_are_told_with_what_people_call_them(
    opens: Opens, served: Served
) -> None:
    await served.save(DIVIDES.replace("type: end", "type: human, config: {message: Well?}"))
    async with opens("/workflows/divides") as page:
        await box(page, "over").click()
        await page.get_by_role("button", name="Variables").first.click()
        await expect(page.get_by_role("menuitem", name="nodes.sum")).to_contain_text("Add up")
        await page.keyboard.press("Escape")
        await page.locator(".react-flow__edge").last.focus()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("region", name="The connection")).to_contain_text("Add up → over")


async def test_a_failed_execution_goes_on_with_the_workflow_that_was_mended_meanwhile(
    opens: Opens, served: Served
) -> None:
    await served.save(DIVIDES)
    execution = await served.execute("divides", {"rows": [4, 0]})
    async with opens(f"/executions/{execution}") as page:
        await expect(page.get_by_text("4 / 0 has no value")).to_be_visible()
        mended = page.get_by_role("button", name="Retry with the changes")
        async with (
            page.expect_response(lambda one: one.url.endswith(f"{execution}/workflow")),
            page.expect_response(lambda one: one.url.endswith("divides?dialect=native")),
        ):
            await page.reload()
        begun = await served.client.get(f"/api/workflows/executions/{execution}/workflow")
        saved = await served.client.get("/api/workflows/divides", params={"dialect": "native"})
        told = [json.dumps(one.json()["document"]) for one in (begun, saved)]
        assert told[0] != told[1], "it is kept in another order than it was written in"
        await expect(page.get_by_role("button", name="Run this step again")).to_be_visible()
        await expect(mended).to_have_count(0)
        await page.get_by_role("link", name="Open in the editor").click()
        formula = page.get_by_role("textbox", name="Value of total")
        await formula.click()
        await page.keyboard.press("ControlOrMeta+a")
        await page.keyboard.type("rows[0]")
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text("revision 2")).to_be_visible()
        await page.go_back()
        await mended.click()
        await expect(page.get_by_text("completed", exact=True).first).to_be_visible()
        await expect(mended).to_have_count(0)
    told = await served.read(execution)
    assert (told["status"], told["output"]) == ("completed", {"total": 4})


@pytest.mark.requirement("S1-135")
async def test_letters_lead_to_the_fields_and_back_and_what_is_added_comes_behind_the_open_end(
    opens: Opens, served: Served
) -> None:
    await served.save("pointsman: 1\nid: keys\nnodes:\n  - {id: start, type: start}\n")
    async with opens("/workflows/keys") as page:
        await expect(box(page, "start")).to_be_visible()
        press, wanted = page.keyboard.press, page.get_by_role("combobox", name="What shall it do?")
        await press("a")
        await wanted.fill("agent")
        await press("Enter")
        await expect(page.locator(".react-flow__edge")).to_have_count(1)
        await press("e")
        await expect(page.get_by_role("tabpanel").locator(":focus")).to_have_count(1)
        await press("Escape")
        await expect(box(page, "agent")).to_be_focused()
        await press("Escape")
        await press("a")
        await wanted.fill("end")
        await press("Enter")
        await expect(page.locator(".react-flow__edge")).to_have_count(2)
        await press("e")
        await press("Control+s")
        await expect(page.get_by_text("revision 2")).to_be_visible()
    edges = [(one["source"], one["target"]) for one in (await saved(served, "keys"))["edges"]]
    assert edges == [("start", "agent"), ("agent", "end")]

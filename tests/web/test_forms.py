"""What stands beside the canvas: conditions and prompts with completion, forms, problems mended by a button."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_accessibility import violations
from tests.web.test_editor import saved
from tests.web.test_execution import node
from tests.web.typing_in import write

DANGLING = flows.CHAIN.replace("target: second}", "target: second}, {source: second, target: sceond}")


@pytest.mark.requirement("S1-137")
async def test_a_condition_is_completed_checked_and_tried(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    async with opens("/workflows/letter") as page:
        await page.locator(".react-flow__edge").first.dispatch_event("click")
        await page.get_by_label("Taken").select_option("when an expression holds")
        box = page.get_by_role("textbox", name="Expression")
        await box.click()
        await page.keyboard.type("te")
        await expect(page.get_by_role("option", name="text", exact=True)).to_be_visible()
        await page.keyboard.press("Enter")
        await page.keyboard.type(" == ")
        await expect(box).to_have_text("text == ")
        await expect(page.locator(".cm-lintRange-error, .cm-lintPoint-error").first).to_be_attached()
        await page.keyboard.type("'done' and gaol == 'x'")
        await expect(page.locator(".cm-lintRange-warning")).to_have_text("gaol")
        await write(box, "len(goal) > 3")
        await page.get_by_role("button", name="Try", exact=True).click()
        values = page.get_by_role("textbox", name="With these values")
        await expect(values).to_contain_text('"goal"')
        await write(values, '{"goal": "harbour"}')
        await expect(page.get_by_label("It gives")).to_contain_text("true")
        await write(values, '{"goal": "sea"}')
        await expect(page.get_by_label("It gives")).to_contain_text("false")
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text("revision 2")).to_be_visible()
    assert (await saved(served, "letter"))["edges"][0]["condition"] == {
        "type": "expression",
        "expression": "len(goal) > 3",
    }


async def test_a_prompt_is_given_variables_and_shown_with_values(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    async with opens("/workflows/letter") as page:
        await node(page, "write").click()
        prompt = page.get_by_role("textbox", name="Prompt")
        await prompt.click()
        await page.keyboard.press("Control+End")
        await page.keyboard.type(" for {{go")
        await page.get_by_role("option", name="goal").click()
        await expect(prompt).to_have_text("Write about {goal} for {{goal}}")
        field = page.locator('[data-at="/nodes/0/config/prompt"]')
        await field.get_by_role("button", name="Try").click()
        await write(field.get_by_role("textbox", name="With these values"), '{"goal": "tides"}')
        await expect(field.get_by_label("It gives")).to_contain_text("Write about tides for tides")


async def test_a_problem_leads_to_its_field_and_is_mended_by_its_button(opens: Opens, served: Served) -> None:
    reply = await served.client.post("/api/workflows?draft=true", content=DANGLING)
    assert reply.status_code == 201, reply.text
    async with opens("/workflows/chain") as page:
        await node(page, "first").click()
        await write(page.get_by_role("textbox", name="Prompt"), "About {b}")
        await page.get_by_role("tab", name="Problems").click()
        await page.get_by_role("button", name="reads 'b'").click()
        await expect(page.get_by_role("textbox", name="Prompt")).to_be_focused()
        await page.get_by_role("tab", name="Problems").click()
        await page.get_by_role("button", name="Fix", exact=True).click()
        await expect(page.get_by_role("button", name="Fix", exact=True)).to_have_count(0)
        await page.get_by_role("button", name="Undo").click()
        await expect(page.get_by_role("button", name="Fix", exact=True)).to_be_visible()


async def test_a_node_is_renamed_wherever_it_is_named_and_the_workflow_says_what_it_takes(
    opens: Opens, served: Served
) -> None:
    await served.save(flows.CHAIN)
    async with opens("/workflows/chain") as page:
        await page.get_by_role("button", name="Add a field").click()
        await page.get_by_label("Name of the field").fill("goal")
        await page.get_by_label("What it is for").fill("Why")
        await page.get_by_label("required", exact=True).check()
        await node(page, "first").click()
        await page.get_by_text("How it runs").click()
        await page.get_by_label("Id", exact=True).fill("opening")
        await page.get_by_label("Id", exact=True).press("Enter")
        await expect(node(page, "opening")).to_be_visible()
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text("revision 2")).to_be_visible()
    document = await saved(served)
    assert document["input"] == {
        "type": "object",
        "properties": {"goal": {"type": "string", "description": "Why"}},
        "required": ["goal"],
    }
    assert document["edges"][0]["source"] == "opening"


EVERY = """\
pointsman: 1
id: every
input:
  type: object
  required: [goal]
  properties:
    goal: {type: string}
    count: {type: integer, minimum: 2}
    colours: {type: array, uniqueItems: true, items: {type: string, enum: [red, green, blue]}}
    names: {type: array, items: {type: string}}
    anything: {title: Anything}
    place: {type: object, properties: {town: {type: string}}}
    way: {title: Way, oneOf: [{type: string, title: by name}, {type: integer, title: by number}]}
    more: {type: object, additionalProperties: {type: string}}
nodes:
  - {id: done, type: end}
"""


async def test_a_form_has_a_field_for_whatever_a_schema_asks_for(opens: Opens, served: Served) -> None:
    await served.save(EVERY)
    async with opens("/workflows/every", size=(390, 844), lenient=True) as page:
        await page.get_by_role("button", name="Start", exact=True).click()
        dialog = page.get_by_role("dialog")
        goal = dialog.get_by_role("textbox", name="goal")
        await expect(goal).to_be_focused()
        await dialog.get_by_role("spinbutton", name="count").fill("1")
        names = dialog.get_by_role("group", name="names")
        await names.get_by_role("button", name="Add").click()
        await dialog.get_by_role("button", name="Start").click()
        await expect(dialog.get_by_text("has to be at least 2")).to_be_visible()
        await expect(dialog.get_by_text("is required")).to_have_count(2)
        await expect(goal).to_be_focused()
        assert await violations(page) == []
        await goal.fill("tides")
        await dialog.get_by_role("spinbutton", name="count").fill("3")
        await dialog.get_by_role("checkbox", name="red").check()
        await dialog.get_by_role("checkbox", name="blue").check()
        await names.get_by_role("textbox", name="Entry 1").fill("Ada")
        await names.get_by_role("button", name="Add").click()
        await names.get_by_role("textbox", name="Entry 2").fill("Ben")
        await names.get_by_role("button", name="Move up").nth(1).click()
        await expect(names.get_by_role("textbox").first).to_have_value("Ben")
        await dialog.get_by_role("textbox", name="Anything").fill("[1, 2]")
        await dialog.get_by_role("textbox", name="town").fill("Hamburg")
        await dialog.get_by_role("combobox", name="Which way").select_option("by number")
        await dialog.get_by_role("spinbutton", name="by number").fill("7")
        await dialog.get_by_role("group", name="more").get_by_role("button", name="Add").click()
        await expect(dialog.get_by_role("textbox", name="Name", exact=True)).to_have_value("name")
        await dialog.get_by_role("textbox", name="Name", exact=True).fill("note")
        await dialog.get_by_role("textbox", name="Name", exact=True).press("Tab")
        await dialog.get_by_role("textbox", name="note", exact=True).fill("quick")
        await dialog.get_by_role("button", name="Start").click()
        await page.wait_for_url("**/executions/*")
        await expect(page.get_by_text("completed", exact=True).first).to_be_visible()
        execution = page.url.rpartition("/")[2]
    assert (await served.read(execution))["input"] == {
        "goal": "tides",
        "count": 3,
        "colours": ["red", "blue"],
        "names": ["Ben", "Ada"],
        "anything": [1, 2],
        "place": {"town": "Hamburg"},
        "way": 7,
        "more": {"note": "quick"},
    }

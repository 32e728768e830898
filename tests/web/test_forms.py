"""What stands beside the canvas: conditions and prompts with completion, forms, problems mended by a button."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
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

"""Where something is chosen, the server finds it by what is typed: many are never loaded all."""

from __future__ import annotations

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens

MANY = 30
CALLS = "pointsman: 1\nid: calls\nnodes: [{id: call, type: workflow, config: {workflow: flow-00}}]\n"


async def many(served: Served) -> None:
    for number in range(MANY):
        named = f"id: flow-{number:02}\nname: {{en: Tide {number:02}, de: Flut {number:02}}}"
        await served.save(flows.CHAIN.replace("id: chain", named))


async def test_one_of_many_is_chosen_for_a_schedule_and_as_the_part_of_another(opens: Opens, served: Served) -> None:
    await many(served)
    await served.save(CALLS)
    async with opens("/schedules", language="de") as page:
        await page.get_by_role("button", name="Neuer Zeitplan").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("combobox", name="Ablauf").fill("flow-29")
        await expect(dialog.get_by_role("listbox").get_by_role("option")).to_have_text(["Flut 29flow-29"])
        await page.keyboard.press("Enter")
        await expect(dialog.get_by_role("combobox", name="Ablauf")).to_have_value("Flut 29")
        await expect(dialog.get_by_role("heading", name="Eingabe")).to_be_visible()
    async with opens("/workflows/calls") as page:
        await page.locator(".react-flow__node[data-id=call]").click()
        field = page.get_by_role("combobox", name="Workflow *", exact=True)
        await field.fill("tide 28")
        await page.get_by_role("listbox").get_by_role("option", name="flow-28").click()
        await expect(field).to_have_value("flow-28")

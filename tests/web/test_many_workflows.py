"""Where something is chosen, the server finds it by what is typed: many are never loaded all."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens

MANY = 30
CALLS = "pointsman: 1\nid: calls\nnodes: [{id: call, type: workflow, config: {workflow: flow-00}}]\n"


async def many(served: Served) -> None:
    for number in range(MANY):
        named = f"id: flow-{number:02}\nname: {{en: Tide {number:02}, de: Flut {number:02}}}"
        await served.save(flows.CHAIN.replace("id: chain", named))


def listens(page: Page) -> list[str]:
    """The questions for workflows from now on."""
    asked: list[str] = []
    page.on("request", lambda one: asked.append(one.url) if "/api/workflows?" in one.url else None)
    return asked


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


async def test_whom_one_can_talk_to_is_found_among_many_and_mentioned(opens: Opens, served: Served) -> None:
    for number in range(60):
        await served.save(flows.TALK.replace("id: talk", f"id: talk-{number:02}\nname: Pilot {number:02}"))
    async with opens("/chat") as page:
        links = page.get_by_role("main").locator("a[href^='/chat/']")
        await expect(links).to_have_count(50)
        await page.get_by_label("Search whom to talk to").fill("pilot 58")
        await expect(links).to_have_count(1)
        await links.click()
        await expect(page.get_by_role("heading", name="Pilot 58", level=1)).to_be_visible()
        message = page.get_by_label("Message", exact=True)
        await message.press_sequentially("@talk-59")
        await expect(page.get_by_role("option", name="Pilot 59 @talk-59")).to_be_visible()
        await page.keyboard.press("Enter")
        await message.press_sequentially("Good morning")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("article", name="Good morning").get_by_text("@talk-59")).to_be_visible()

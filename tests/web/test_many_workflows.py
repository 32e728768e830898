"""Where something is chosen, the server finds it by what is typed: many are never loaded all."""

from __future__ import annotations

from playwright.async_api import Page, expect

from tests.server import flows
from tests.server.conftest import Served
from tests.server.test_many import add_tools
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


async def test_executions_of_one_of_many_are_found_by_its_name_and_the_field_is_emptied_again(
    opens: Opens, served: Served
) -> None:
    await many(served)
    await served.execute("flow-00")
    await served.execute("flow-29")
    async with opens("/executions?workflow=flow-00") as page:
        asked = listens(page)
        field = page.get_by_role("combobox", name="Workflow", exact=True)
        rows = page.locator("main").get_by_role("listitem").filter(has=page.locator("[href^='/executions/']"))
        await expect(field).to_have_value("Tide 00")
        await expect(rows).to_have_count(1)
        await field.click()
        await expect(page.get_by_role("listbox").get_by_role("option")).to_have_count(20)
        await expect(page.get_by_text("The first 20. Type to find others.")).to_be_visible()
        await field.press_sequentially("nowhere")
        await expect(page.get_by_text("Nothing is called “nowhere”.")).to_be_visible()
        await expect(page.get_by_role("listbox").get_by_role("option")).to_have_count(0)
        await field.fill("tide 29")
        await expect(page.get_by_role("listbox").get_by_role("option")).to_have_count(1)
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await page.wait_for_url("**workflow=flow-29")
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text("Tide 29")
        await page.reload()
        await expect(field).to_have_value("Tide 29")
        await field.fill("")
        await page.wait_for_url("**/executions")
        await expect(rows).to_have_count(2)
        await field.fill("what is not chosen")
        await page.keyboard.press("Tab")
        await expect(field).to_have_value("")
    assert asked, "the server finds them"
    assert all("limit=20" in one or "id=flow-" in one for one in asked)


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


async def test_many_tools_are_shown_page_by_page_found_by_words_and_narrowed_to_where_they_come_from(
    opens: Opens, served: Served
) -> None:
    add_tools(served, 60)
    async with opens("/tools") as page:
        ours = page.get_by_role("table", name="Python")
        await expect(ours.get_by_role("row")).to_have_count(51)
        await expect(page.get_by_role("table", name="Built in")).to_have_count(0)
        await page.get_by_role("button", name="Show more").click()
        await expect(ours.get_by_role("row")).to_have_count(61)
        await expect(page.get_by_role("table", name="Built in")).to_be_visible()
        await page.get_by_role("button", name="Built in").click()
        await expect(ours).to_have_count(0)
        await expect(page.get_by_role("table", name="Built in").get_by_role("link", name="calculator")).to_be_visible()
        await page.get_by_role("button", name="Built in").click()
        await page.get_by_label("Search tools").fill("crate 41")
        await expect(ours.get_by_role("row")).to_have_count(2)
        await expect(ours.get_by_role("link", name="lift_41")).to_be_visible()


async def test_an_agent_is_given_one_of_many_tools_by_words_that_say_what_it_does(opens: Opens, served: Served) -> None:
    add_tools(served, 60)
    said = {"name": "mate", "agent": {"system": "You keep watch.", "tools": ["lift_59", "abacus"]}}
    assert (await served.client.post("/api/agents", json=said)).status_code == 201
    async with opens("/agents/mate") as page:
        await expect(page.get_by_title("There is no such tool here.")).to_contain_text("abacus")
        await expect(page.get_by_title("Lifts crate 59 out of the hold.")).to_contain_text("lift_59")
        field = page.get_by_role("combobox", name="Tools", exact=True)
        await field.press_sequentially("crate 37")
        option = page.get_by_role("listbox").get_by_role("option")
        await expect(option).to_have_count(1)
        await expect(option).to_contain_text("lift_37")
        await field.press("ArrowDown")
        await field.press("Enter")
        await expect(page.get_by_role("link", name="lift_37")).to_be_visible()
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text("saved", exact=True)).to_be_visible()
        await page.reload()
        await expect(page.get_by_title("Lifts crate 37 out of the hold.")).to_be_visible()


async def test_many_agents_are_shown_page_by_page_and_a_name_that_is_taken_is_told(
    opens: Opens, served: Served
) -> None:
    for number in range(55):
        said = {"name": f"mate-{number:02}", "agent": {"system": f"You keep watch {number:02}."}}
        assert (await served.client.post("/api/agents", json=said)).status_code == 201
    async with opens("/agents") as page:
        rows = page.get_by_role("table", name="Agents").get_by_role("row")
        await expect(rows).to_have_count(51)
        await page.get_by_role("button", name="Show more").click()
        await expect(rows).to_have_count(56)
        await page.get_by_role("button", name="New agent").click()
        await page.get_by_role("dialog").get_by_label("Name").fill("mate-54")
        await expect(page.get_by_text("There is one of this name already.")).to_be_visible()
        await page.keyboard.press("Escape")
        await page.get_by_role("button", name="Discard", exact=True).click()
        await page.get_by_label("Search agents").fill("watch 54")
        await expect(rows).to_have_count(2)
        await expect(rows.nth(1)).to_contain_text("mate-54")


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

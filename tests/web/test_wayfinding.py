"""People know where they are: tabs have names, the menu says which page is open, what is not there leads back."""

from __future__ import annotations

from playwright.async_api import Route, expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens


async def test_tabs_of_the_browser_are_called_by_what_they_show(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    waits = await served.execute("letter", {"goal": "tides"})
    async with opens("/workflows") as page:
        await expect(page).to_have_title("Workflows · Pointsman")
        for path, title in (
            ("/executions", "Executions · Pointsman"),
            ("/workflows/letter", "letter · Pointsman"),
            (f"/executions/{waits}", "letter, waiting · Pointsman"),
            ("/inbox", "Inbox · Pointsman"),
            ("/chat", "Chat · Pointsman"),
            ("/schedules", "Schedules · Pointsman"),
        ):
            await page.goto(f"{served.client.base_url}{path}".replace("//", "/").replace(":/", "://"))
            await expect(page).to_have_title(title)


async def test_the_menu_says_which_of_its_pages_is_open(opens: Opens, served: Served) -> None:
    async with opens("/schedules") as page:
        more = page.get_by_role("button", name="More: Schedules")
        await more.click()
        await page.get_by_role("menuitem", name="Keys").click()
        await page.wait_for_url("**/keys")
        await expect(page.get_by_role("button", name="More: Keys")).to_be_visible()
        await page.get_by_role("link", name="Workflows", exact=True).click()
        await expect(page.get_by_role("button", name="More", exact=True)).to_be_visible()


async def test_what_is_not_there_says_so_and_leads_to_its_list(opens: Opens, served: Served) -> None:
    async with opens("/workflows/nope", lenient=True) as page:
        await expect(page.get_by_role("heading", name="nope", exact=True)).to_be_visible()
        await expect(page.get_by_role("alert")).to_have_text("there is no workflow 'nope'")
        await page.get_by_role("main").get_by_role("link", name="Workflows").click()
        await page.wait_for_url("**/workflows")
    async with opens("/executions/exec-nope", lenient=True) as page:
        await expect(page.get_by_role("heading", name="exec-nope", exact=True)).to_be_visible()
        await expect(page.get_by_role("alert")).not_to_contain_text("pointsman")
        await page.get_by_role("main").get_by_role("link", name="Executions").click()
        await page.wait_for_url("**/executions")
    async with opens("/worklfows", lenient=True) as page:
        await expect(page.get_by_role("heading", name="There is no such page.", exact=True)).to_be_visible()
        await page.get_by_role("link", name="To the workflows").click()
        await page.wait_for_url("**/workflows")


async def test_a_page_that_breaks_leaves_the_menu_to_the_others(opens: Opens, served: Served) -> None:
    async with opens("/workflows", told=("TypeError",)) as page:

        async def nonsense(route: Route) -> None:
            await route.fulfill(status=200, content_type="application/json", body='{"models": 7}')

        await page.route("**/api/models", nonsense)
        await page.goto(f"{str(served.client.base_url).rstrip('/')}/models")
        await expect(page.get_by_role("heading", name="This page cannot be shown", exact=True)).to_be_visible()
        await page.unroute("**/api/models")
        await page.get_by_role("button", name="Try again").click()
        await page.get_by_role("link", name="Inbox").click()
        await expect(page.get_by_role("heading", name="Inbox", exact=True)).to_be_visible()


async def test_a_workflow_is_cloned_left_and_deleted_by_dialogs_of_the_app(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    async with opens("/workflows/chain", lenient=True) as page:  # The browser tells of each refusal.
        await page.get_by_role("button", name="Clone").click()
        await page.get_by_label("The id of the clone").fill("chain")
        await page.get_by_role("dialog").get_by_role("button", name="Clone").click()
        await expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()
        await page.get_by_label("The id of the clone").fill("second")
        await page.get_by_label("The id of the clone").press("Enter")
        await page.wait_for_url("**/workflows/second")
        await page.get_by_label("Tags").fill("tides")
        await expect(page.get_by_text("one change not saved")).to_be_visible()
        await page.get_by_role("link", name="Inbox").click()
        await page.get_by_role("dialog", name="Leave without saving?").get_by_role("button", name="Cancel").click()
        await expect(page.get_by_text("one change not saved")).to_be_visible()
        await page.get_by_role("link", name="Inbox").click()
        await page.get_by_role("button", name="Leave").click()
        await page.wait_for_url("**/inbox")
        await expect(page.get_by_role("heading", name="Inbox", exact=True)).to_be_visible()
        await page.go_back()
        await expect(page.get_by_text("one change not saved")).to_be_visible()
        await page.get_by_role("button", name="Delete", exact=True).click()
        await page.get_by_role("dialog", name="Delete second?").get_by_role("button", name="Delete").click()
        await page.wait_for_url("**/workflows")
        await expect(page.get_by_role("link", name="chain", exact=True)).to_be_visible()
        await expect(page.get_by_role("link", name="second", exact=True)).to_have_count(0)

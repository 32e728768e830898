"""The page of an execution: it follows what happens, travels in time, forks, and survives a server that goes away."""

from __future__ import annotations

import asyncio

import pytest
from playwright.async_api import Locator, Page, expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens


async def show(page: Page) -> None:
    await expect(page.get_by_label("The workflow as a graph")).to_be_visible()


def node(page: Page, name: str) -> Locator:
    return page.locator(".react-flow__node").filter(has_text=name)


@pytest.mark.requirement("S1-150")
async def test_what_happens_is_seen_while_it_happens(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    async with opens(f"/executions/{execution}") as page:
        await expect(node(page, "review").get_by_text("waiting")).to_be_attached()
        await expect(node(page, "write").get_by_text("done")).to_be_attached()
        await served.act(execution, "respond", {"gateId": "review", "action": "again"})
        await expect(node(page, "write").get_by_text("2/2")).to_be_visible()
        await served.act(execution, "respond", {"gateId": "review", "action": "approve"})
        await expect(page.get_by_text("completed", exact=True).first).to_be_visible()
        await expect(node(page, "send").get_by_text("passed")).to_be_attached()


async def test_the_slider_shows_it_as_it_was_and_a_fork_begins_there(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    await served.act(execution, "respond", {"gateId": "review", "action": "approve"})
    before = await served.read(execution)
    async with opens(f"/executions/{execution}") as page:
        slider = page.get_by_label("Travel in time")
        await expect(slider).to_be_enabled()
        await slider.press("Home")
        await expect(node(page, "review").get_by_text("passed")).to_have_count(0)
        await expect(page.get_by_role("button", name="Back to now")).to_be_visible()
        for _ in range(2):
            await slider.press("ArrowRight")
        await page.get_by_role("button", name="Fork from here").click()
        await page.get_by_role("dialog").get_by_role("button", name="Fork").click()
        await page.wait_for_url(lambda url: execution not in url)
        fork = page.url.rpartition("/")[2]
        await expect(page.get_by_role("heading", name="Send it?", exact=True)).to_be_visible()
    assert (await served.read(fork))["status"] == "waiting"
    assert await served.read(execution) == before, "what happened stays as it happened"


@pytest.mark.requirement("S1-147")
async def test_a_step_tells_what_it_was_given_and_what_it_changed(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    execution = await served.execute("chain")
    async with opens(f"/executions/{execution}") as page:
        await node(page, "second").click()
        panel = page.get_by_role("complementary")
        await expect(panel.get_by_role("heading", name="second", exact=True)).to_be_visible()
        await expect(panel.get_by_text("Changed")).to_be_visible()
        await expect(panel.get_by_text('"prompt": "two"')).to_be_visible()


async def test_a_page_that_lost_its_server_goes_on_when_it_is_back(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    async with opens(f"/executions/{execution}", lenient=True) as page:
        await show(page)
        await expect(node(page, "review").get_by_text("waiting")).to_be_attached()
        await page.context.set_offline(True)
        served.desk.channels.let_go()
        await expect(page.get_by_text("The server does not answer; it is asked again.")).to_be_visible()
        served.desk.channels._closed = False  # pyright: ignore[reportPrivateUsage] - as after a restart
        await served.act(execution, "respond", {"gateId": "review", "action": "approve"})
        await page.context.set_offline(False)
        await expect(page.get_by_text("completed", exact=True).first).to_be_visible()


async def test_names_from_strangers_are_only_text(opens: Opens, served: Served) -> None:
    hostile = "<img src=x onerror=alert(1)>\\u202eevil" + "x" * 10_000
    document = flows.CHAIN.replace("id: chain", f'id: chain\nname: "{hostile}"').replace(
        "{id: first, type: agent", f'{{id: first, name: "{hostile}", type: agent'
    )
    await served.save(document)
    execution = await served.execute("chain")
    async with opens("/workflows") as page:
        await expect(page.get_by_role("link", name="<img src=x").first).to_be_visible()
        assert await page.evaluate("document.documentElement.scrollWidth <= window.innerWidth")
        await page.goto(f"{served.client.base_url}/executions/{execution}")
        await expect(node(page, "<img src=x")).to_be_visible()
        assert await page.locator("img[src=x]").count() == 0


async def test_two_pages_see_the_same(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    async with opens(f"/executions/{execution}") as one, opens(f"/executions/{execution}") as other:
        asked = [page.get_by_role("heading", name="Send it?", exact=True) for page in (one, other)]
        await asyncio.gather(*(expect(heading).to_be_visible() for heading in asked))
        await one.get_by_role("button", name="Approve").click()
        await expect(other.get_by_text("completed", exact=True).first).to_be_visible()
        await expect(other.get_by_role("heading", name="Send it?", exact=True)).to_have_count(0)

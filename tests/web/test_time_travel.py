"""Time travel: earlier states, a fork with other data, the list of forks, and the comparison of two executions."""

from __future__ import annotations

import json
import re

from playwright.async_api import Page, expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_execution import node

CHANGED = "Dear harbour, all is well."


async def approved(served: Served) -> str:
    await served.save(flows.LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    await served.act(execution, "respond", {"gateId": "review", "action": "approve"})
    return execution


async def test_time_travel_shows_earlier_data_and_changes_and_playback_ends_at_the_present(
    opens: Opens, served: Served
) -> None:
    execution = await approved(served)
    async with opens(f"/executions/{execution}") as page:
        data = page.get_by_role("list", name="Data")
        await expect(data.get_by_text("text", exact=True)).to_be_visible()
        slider = page.get_by_label("History")
        await expect(slider).to_be_enabled()
        await slider.press("Home")
        await expect(page.get_by_text("Data after event 1")).to_be_visible()
        await expect(data.get_by_text("text", exact=True)).to_have_count(0)
        for _ in range(2):
            await page.get_by_role("button", name="Next event").click()
        await expect(page.get_by_text("Data after event 2")).to_be_visible()
        await expect(data.get_by_role("listitem").filter(has_text="text")).to_contain_text("(changed)")
        await page.get_by_label("Search in Data").fill("nowhere at all")
        await expect(page.get_by_text("No matches.")).to_be_visible()
        await page.get_by_role("button", name="Back to live").click()
        await page.get_by_role("button", name="Play").click()
        await expect(page.get_by_role("button", name="Back to live")).to_be_visible()
        await expect(page.get_by_role("button", name="Back to live")).to_have_count(0)
        await expect(page.get_by_role("button", name="Play")).to_be_visible()


async def edit(page: Page, field: str, value: str) -> None:
    dialog = page.get_by_role("dialog")
    await dialog.get_by_text("Edit data").click()
    area = dialog.get_by_label("Data", exact=True)
    await area.fill("{")
    await expect(dialog.get_by_text("Not valid JSON")).to_be_visible()
    await expect(dialog.get_by_role("button", name="Fork")).to_be_disabled()
    await area.fill(json.dumps({"goal": "tides", field: value}))
    await page.keyboard.press("Escape")
    await page.get_by_role("dialog", name="Discard your input?").get_by_text("Keep editing").click()
    await expect(area).to_be_focused()


async def test_a_fork_starts_with_other_data_and_executions_are_compared_branch_by_branch(
    opens: Opens, served: Served
) -> None:
    execution = await approved(served)
    before = await served.read(execution)
    async with opens(f"/executions/{execution}") as page:
        slider = page.get_by_label("History")
        await expect(slider).to_be_enabled()
        await slider.press("Home")
        await expect(node(page, "review").get_by_text("passed")).to_have_count(0)
        await expect(page.get_by_role("button", name="Back to live")).to_be_visible()
        for _ in range(3):
            await slider.press("ArrowRight")
        await page.get_by_role("button", name="Fork from here").click()
        await edit(page, "text", CHANGED)
        await expect(page.get_by_role("dialog").get_by_text(f"+ After: {CHANGED}")).to_be_visible()
        await page.get_by_role("dialog").get_by_role("button", name="Fork").click()
        await page.wait_for_url(lambda url: execution not in url)
        fork = page.url.rpartition("/")[2]
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_text("completed", exact=True).first).to_be_visible()
        assert (await served.read(fork))["output"] == {"letter": CHANGED}
        assert await served.read(execution) == before, "what happened stays as it happened"
        await page.get_by_role("tab", name="Related executions").click()
        await expect(page.locator(f"main a[title='{execution}']").last).to_be_visible()
        await expect(page.get_by_text("at event 2", exact=True)).to_be_visible()
        await page.get_by_role("link", name="Compare").click()
        await expect(page.get_by_role("heading", name="Compare two executions", exact=True)).to_be_visible()
        await expect(page.get_by_text("the same", exact=False).first).to_be_visible()
        await expect(page.get_by_text("Fork at event 2 of A")).to_be_visible()
        await expect(page.get_by_text(CHANGED).first).to_be_visible()
    await served.save(FAN)
    first = await served.execute("fan", {"places": ["north", "south"]})
    other = await served.execute("fan", {"places": ["north", "west", "east"]})
    async with opens(f"/executions/compare?a={first}&b={other}") as page:
        await expect(page.get_by_text("The inputs differ")).to_be_visible()
        group = page.get_by_role("row").filter(has=page.get_by_role("rowheader", name="Each place: branch"))
        await expect(group).to_have_text(
            [re.compile("branch 1.*the same"), re.compile("branch 2.*different"), re.compile("branch 3.*only in B")]
        )
        drafts = page.get_by_role("rowheader", name="Draft", exact=True)
        await expect(drafts).to_have_count(1)
        await group.nth(0).get_by_role("button").click()
        await expect(drafts).to_have_count(2)
        await page.get_by_label("Only differences").check()
        await expect(group).to_have_count(2)
    async with opens(f"/executions/compare?a={first}&b={other}", language="de", theme="dark", size=(390, 844)) as page:
        await expect(page.get_by_role("rowheader", name="Jeder Ort: Zweig 2")).to_be_visible()
        await expect(page.get_by_text("Die Eingaben sind verschieden")).to_be_visible()


FAN = """\
pointsman: 1
id: fan
input: {type: object, required: [places], properties: {places: {type: array, items: {type: string}}}}
output: {all: all}
nodes:
  - {id: each, type: parallel, name: {en: Each place, de: Jeder Ort}, config: {items: places}}
  - {id: draft, type: agent, name: {en: Draft, de: Entwerfen}, config: {prompt: "About {item}"}}
  - {id: meet, type: join, config: {aggregate: list}, outputs: {all: result}}
edges: [{source: each, target: draft}, {source: draft, target: meet}]
"""

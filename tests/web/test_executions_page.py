"""The list of executions: narrowed by what the address keeps, several acted on at once, two compared."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import AXE, Opens

BREAKS = """\
pointsman: 1
id: breaks
input: {type: object}
nodes:
  - {id: split, type: transform, config: {set: {part: "1 / by"}}}
"""


async def test_the_list_is_narrowed_by_what_the_address_keeps(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    await served.save(flows.LETTER)
    done = await served.execute("chain")
    waits = await served.execute("letter", {"goal": "tides"})
    ended = await served.execute("letter", {"goal": "harbours"})
    await served.act(ended, "cancel")
    async with opens("/executions") as page:
        rows = page.locator("main").get_by_role("listitem").filter(has=page.locator("[href^='/executions/']"))
        await expect(rows).to_have_count(3)
        await expect(rows.nth(0)).to_contain_text(ended)
        await page.get_by_label("Order").select_option("asc")
        await expect(rows.nth(0)).to_contain_text(done)
        await page.get_by_role("button", name="waiting", exact=True).click()
        await page.get_by_role("button", name="cancelled", exact=True).click()
        await expect(rows).to_have_count(2)
        await page.reload()
        await expect(rows).to_have_count(2)
        await expect(rows.nth(0)).to_contain_text(waits)
        await page.get_by_role("button", name="Clear", exact=True).click()
        await expect(rows).to_have_count(3)
        await page.get_by_label("Workflow", exact=True).fill("cha")
        await page.get_by_role("listbox").get_by_role("option", name="chain").click()
        await expect(rows).to_have_count(1)
        await page.get_by_label("To", exact=True).fill("2001-01-01")
        await expect(page.get_by_text("No execution fits.")).to_be_visible()
        await page.get_by_role("button", name="Clear", exact=True).click()
        await page.get_by_role("searchbox").fill("harbours")
        await page.wait_for_url("**q=harbours*")
        await expect(rows).to_have_count(1)
        await expect(rows.nth(0)).to_contain_text(ended)


async def test_what_became_of_each_that_was_chosen_is_told(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    await served.save(flows.LETTER)
    done = await served.execute("chain")
    waits = [await served.execute("letter", {"goal": "tides"}) for _ in range(2)]
    async with opens("/executions") as page:
        await page.get_by_label("Select all").check()
        await expect(page.get_by_text("3 selected")).to_be_visible()
        await page.get_by_role("button", name="Pause (2)").click()
        await expect(page.get_by_text("2 executions were paused.")).to_be_visible()
        await expect(page.get_by_text("One refused:")).to_be_visible()
        await expect(page.get_by_role("status").filter(has_text=done)).to_contain_text("there is nothing to pause")
        for one in waits:
            await page.get_by_label(f"Select {one}").check()
        await page.get_by_role("button", name="Cancel (2)").click()
        await page.get_by_role("dialog").get_by_role("button", name="Cancel 2 executions").click()
        await expect(page.get_by_text("2 executions were cancelled.")).to_be_visible()
        assert [(await served.read(one))["status"] for one in waits] == ["cancelled"] * 2
        await page.get_by_label(f"Select {done}").check()
        await page.get_by_role("button", name="Delete (1)").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete the execution").click()
        await expect(page.get_by_text("One execution was deleted.")).to_be_visible()
    assert (await served.client.get(f"/api/workflows/executions/{done}")).status_code == 404


async def test_several_are_resumed_and_retried_at_once(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    await served.save(BREAKS)
    paused = [await served.execute("letter", {"goal": f"tides {number}"}) for number in range(2)]
    for one in paused:
        await served.act(one, "pause")
    failed = [await served.execute("breaks", {"by": 0}) for _ in range(2)]
    async with opens("/executions") as page:
        await page.get_by_label("Select all").check()
        await expect(page.get_by_text("4 selected")).to_be_visible()
        await page.get_by_role("button", name="Resume (2)").click()
        await expect(page.get_by_text("2 executions were resumed.")).to_be_visible()
        refused = page.get_by_role("status").filter(has_text=failed[0])
        await expect(refused).to_contain_text("there is nothing to resume")
        assert [(await served.read(one))["status"] for one in paused] == ["waiting"] * 2
        for one in failed:
            await page.get_by_label(f"Select {one}").check()
        await page.get_by_role("button", name="Retry (2)").click()
        await expect(page.get_by_text("2 executions were retried.")).to_be_visible()
    for one in failed:
        told = (await served.client.get(f"/api/workflows/executions/{one}/events")).json()["events"]
        assert "retried" in [event["kind"] for event in told]
    assert [(await served.read(one))["status"] for one in paused] == ["waiting"] * 2, "nothing else was touched"


async def test_two_that_are_chosen_are_compared_the_older_first(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    first, second = [await served.execute("chain") for _ in range(2)]
    async with opens("/executions") as page:
        await page.get_by_label("Select all").check()
        await page.get_by_role("button", name="Compare", exact=True).click()
        await page.wait_for_url("**/executions/compare**")
        await expect(page.get_by_role("heading", name="Compare two executions", exact=True)).to_be_visible()
        assert page.url.index(first) < page.url.index(second)


@pytest.mark.parametrize(("theme", "size"), [("light", (1280, 800)), ("dark", (390, 844))])
async def test_nothing_on_it_is_out_of_reach(opens: Opens, served: Served, theme: str, size: tuple[int, int]) -> None:
    await served.save(flows.CHAIN)
    one = await served.execute("chain")
    async with opens("/executions", theme=theme, size=size, lenient=True) as page:
        await page.get_by_label(f"Select {one}").check()
        await expect(page.get_by_text("1 selected")).to_be_visible()
        await page.evaluate(AXE.read_text())
        wrong: Any = await page.evaluate("axe.run().then(f => f.violations.map(v => `${v.id}: ${v.nodes[0].html}`))")
        assert wrong == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_workflows_are_called_by_their_names_in_the_language_of_the_page(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER.replace("id: letter", "id: letter\nname: {en: The letter, de: Der Brief}"))
    execution = await served.execute("letter", {"goal": "tides"})
    for language, name in (("de", "Der Brief"), ("en", "The letter")):
        async with opens("/executions", language=language) as page:
            entry = page.locator(f"[href='/executions/{execution}']")
            await expect(entry.get_by_title("letter", exact=True)).to_have_text(name)
            await page.goto(page.url.replace("/executions", "/inbox"))
            await expect(page.get_by_role("main").get_by_text(name).first).to_be_visible()

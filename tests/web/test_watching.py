"""Watching: many windows over few connections, servers that go away, what is live, and journals that are long."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from pointsman.models.script_reader import read_script
from tests.patience import PATIENCE_S
from tests.server import flows
from tests.server.conftest import Served, serving
from tests.web.conftest import Opens


def node(page: Page, name: str) -> Locator:
    return page.locator(".react-flow__node").filter(has_text=name)


@pytest.mark.requirement("S4-11")
async def test_eight_windows_watch_eight_executions_over_one_browsers_connections(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    ids = [await served.execute("letter", {"goal": f"tides {number}"}) for number in range(8)]
    async with opens(f"/executions/{ids[0]}") as first:
        tabs = [first]
        for execution in ids[1:]:
            tab = await first.context.new_page()
            await tab.goto(f"{served.client.base_url}/executions/{execution}")
            tabs.append(tab)
        for tab in tabs:
            await expect(node(tab, "review").get_by_text("waiting")).to_be_attached()
        async with asyncio.timeout(PATIENCE_S):
            while served.desk.channels.subscribers > 3:  # The board, and two that are looked at: in their own time.
                await first.evaluate("new Promise(requestAnimationFrame)")
        for execution in ids:
            await served.act(execution, "respond", {"gateId": "review", "action": "approve"})
        for tab in tabs:
            await expect(tab.get_by_text("completed", exact=True).first).to_be_visible()
        for tab in tabs[1:]:
            await tab.close()
        async with asyncio.timeout(PATIENCE_S):
            while served.desk.channels.subscribers > 1:
                await first.evaluate("new Promise(requestAnimationFrame)")


SCRIPT = """\
rules:
  - {node: tell, contains: noon, text: It is noon in the harbour.}
  - {node: tell, text: Let me see., toolCalls: [{name: clock, arguments: {zone: UTC}}]}
tools:
  clock:
    description: The time.
    parameters: {type: object, properties: {zone: {type: string}}}
    result: {time: noon}
"""
STUCK = """\
pointsman: 1
id: stuck
entry: say
input: {type: object}
nodes: [{id: say, type: agent, config: {prompt: "Say it."}}, {id: done, type: end}]
edges:
  - {source: say, target: done, condition: {type: expression, expression: "result == 'enough'"}}
  - {source: say, target: say, condition: {type: expression, expression: "result != 'enough'"}}
"""
STEERED = """\
pointsman: 1
id: waits
config: {humanInLoop: real_time}
input: {type: object}
nodes:
  - {id: knock, type: wait, config: {event: knock}, outputs: {heard: result}}
  - {id: then, type: wait, config: {event: bell}}
edges: [{source: knock, target: then}]
"""
ASKS = """\
pointsman: 1
id: asks
input: {type: object}
output: {said: a}
nodes:
  - {id: tell, type: agent, config: {prompt: "What time is it?", tools: [clock]}, outputs: {a: result}}
"""
FAN = """\
pointsman: 1
id: fan
input: {type: object}
nodes:
  - {id: each, type: parallel, config: {items: "[1, 2, 3]"}}
  - {id: ask, type: agent, config: {prompt: "Say {item}"}}
  - {id: gather, type: join}
edges:
  - {source: each, target: ask}
  - {source: ask, target: gather}
"""


@pytest_asyncio.fixture(loop_scope="session")
async def scripted(tmp_path: Path) -> AsyncGenerator[Served, None]:
    async with serving(f"sqlite:///{tmp_path}/scripted.db", script=read_script(SCRIPT)) as one:
        yield one


async def test_calls_of_tools_stand_with_their_arguments_and_results(opens: Opens, scripted: Served) -> None:
    await scripted.save(ASKS)
    execution = await scripted.execute("asks")
    async with opens() as page:
        await page.goto(f"{scripted.client.base_url}/executions/{execution}")
        await node(page, "tell").click()
        panel = page.get_by_role("complementary")
        await expect(panel.get_by_text("Let me see.")).to_be_visible()
        await panel.get_by_text("clock", exact=True).click()
        await expect(panel.get_by_text('"zone": "UTC"')).to_be_visible()
        await expect(panel.get_by_text('"time": "noon"')).to_be_visible()
        await page.get_by_role("tab", name="Costs").click()
        row = page.get_by_role("row").filter(has=page.get_by_role("button", name="tell"))
        await expect(row.get_by_role("cell").nth(3)).to_have_text("2")


async def test_branches_have_lanes_and_can_be_looked_at_one_by_one(opens: Opens, served: Served) -> None:
    await served.save(FAN)
    execution = await served.execute("fan")
    async with opens(f"/executions/{execution}") as page:
        await expect(node(page, "ask").get_by_text("3/3")).to_be_visible()
        lane = page.get_by_title("each[1.1]", exact=True)
        await expect(lane).to_have_attribute("aria-expanded", "true")
        await lane.click()
        await expect(lane).to_have_attribute("aria-expanded", "false")
        await page.get_by_label("Show", exact=True).select_option(label="each: branch 2")
        await expect(node(page, "ask").get_by_text("3/3")).to_have_count(0)
        await expect(node(page, "ask").get_by_text("done")).to_be_attached()
        await page.get_by_role("toolbar", name="Timeline").get_by_role("button", name="Zoom in").click()
        await expect(page.get_by_role("button", name="Fit", exact=True)).to_be_enabled()


async def test_a_limit_is_raised_by_its_name_and_agents_are_told_something(opens: Opens, served: Served) -> None:
    await served.save(
        flows.LETTER.replace("id: letter", "id: letter\nconfig: {humanInLoop: real_time, limits: {steps: 1}}")
    )
    execution = await served.execute("letter", {"goal": "tides"})
    async with opens(f"/executions/{execution}") as page:
        await page.get_by_role("button", name="Resume").click()
        await expect(page.get_by_text("Now it is 1; 1 are used.")).to_be_visible()
        await expect(page.get_by_label("New limit: Steps")).to_have_value("2")
        await page.get_by_label("New limit: Steps").fill("9")
        await page.get_by_role("button", name="Raise and resume").click()
        await expect(page.get_by_role("heading", name="Send it?", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Steer").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Go on at").select_option("write")
        await dialog.get_by_role("button", name="Steer").click()
        await expect(node(page, "write").get_by_text("2/2")).to_be_visible()


async def test_who_stands_still_for_repeating_itself_is_given_more_tries_and_nobody_is_asked_for_a_number(
    opens: Opens, served: Served
) -> None:
    await served.save(STUCK)
    execution = await served.execute("stuck")
    async with opens(f"/executions/{execution}") as page:
        await page.get_by_role("button", name="Resume").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog.get_by_text("It may try 3 times more.")).to_be_visible()
        await expect(dialog.get_by_role("spinbutton")).to_have_count(0)
        await dialog.get_by_role("button", name="Let it go on").click()
        await expect(dialog).to_have_count(0)
        await expect(page.get_by_text("the same to the same 6 times")).to_be_visible()


async def test_what_is_steered_is_only_what_was_changed_by_hand(opens: Opens, served: Served) -> None:
    await served.save(STEERED)
    execution = await served.execute("waits", {"tone": "dry"})
    async with opens(f"/executions/{execution}") as page:
        await page.get_by_role("button", name="Steer").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_text("Change the data").click()
        data = dialog.get_by_label("Data", exact=True)
        await expect(data).to_have_value(re.compile('"tone": "dry"'))
        await data.fill(str(await data.input_value()).replace("dry", "warm"))
        await served.act(execution, "signals", {"name": "knock", "data": "one"})
        await expect(node(page, "then").get_by_text("waiting")).to_be_attached()
        await expect(dialog.get_by_text("heard")).to_have_count(0)
        await dialog.get_by_role("button", name="Steer").click()
        await expect(dialog).to_have_count(0)
    state = (await served.read(execution))["state"]
    assert (state["tone"], state["heard"]) == ("warm", "one")


async def test_an_execution_is_exported_and_deleted(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    execution = await served.execute("chain")
    async with opens(f"/executions/{execution}") as page:
        async with page.expect_download() as started:
            await page.get_by_label("Export").click()
        assert (await (await started.value).path()).read_text(encoding="utf-8").count("\n") > 2
        await page.get_by_role("button", name="Delete").click()
        await page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        await expect(page.get_by_role("heading", name="Executions", exact=True)).to_be_visible()
    assert (await served.client.get(f"/api/workflows/executions/{execution}")).status_code == 404


BROKEN = """\
pointsman: 1
id: posts
input: {type: object}
nodes:
  - {id: begin, type: start}
  - {id: part, name: {en: Divide, de: Teilen}, type: transform, config: {set: {x: "1 / 0"}}}
edges: [{source: begin, target: part}]
"""


async def test_why_it_cannot_go_on_with_a_change_is_said_in_german(opens: Opens, served: Served) -> None:
    await served.save(BROKEN)
    execution = await served.execute("posts")
    mended = BROKEN.replace("part", "other").replace("1 / 0", "1")
    reply = await served.client.put("/api/workflows/posts", content=mended)
    assert reply.status_code == 200, reply.text
    async with opens(f"/executions/{execution}", language="de") as page:
        go = page.get_by_role("button", name="Mit den Änderungen erneut versuchen")
        await expect(go).to_be_enabled()
        await go.click()
        why = page.get_by_role("alert").get_by_role("listitem")
        await expect(why).to_contain_text("Den Knoten gibt es in der anderen Definition nicht.")
        await expect(why.locator("bdi")).to_have_text("Teilen")
        await expect(why.locator("[lang=en]")).to_have_text("the other definition has no such node")

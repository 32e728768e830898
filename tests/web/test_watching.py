"""Live pages: many windows over few connections, restarted servers, live output and long journals."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Locator, Page, expect

from pointsman.models.script import read_script
from tests.patience import PATIENCE_S
from tests.server import flows
from tests.server.conftest import Served, serving
from tests.web.conftest import Opens


def node(page: Page, name: str) -> Locator:
    return page.locator(".react-flow__node").filter(has_text=name)


@pytest.mark.requirement("S4-11")
async def test_eight_windows_watch_eight_executions_over_shared_connections(opens: Opens, served: Served) -> None:
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
            while served.desk.broker.subscribers > 3:  # The list and two open executions unsubscribe at their own pace.
                await first.evaluate("new Promise(requestAnimationFrame)")
        for execution in ids:
            await served.act(execution, "respond", {"gateId": "review", "action": "approve"})
        for tab in tabs:
            await expect(tab.get_by_text("completed", exact=True).first).to_be_visible()
        for tab in tabs[1:]:
            await tab.close()
        async with asyncio.timeout(PATIENCE_S):
            while served.desk.broker.subscribers > 1:
                await first.evaluate("new Promise(requestAnimationFrame)")


SCRIPT = """\
rules:
  - {node: ask, text: Said.}
  - {node: tell, contains: noon, text: It is noon in the harbour.}
  - {node: tell, text: Let me see., toolCalls: [{name: clock, arguments: {zone: UTC}}]}
tools:
  clock:
    description: The time.
    parameters: {type: object, properties: {zone: {type: string}}}
    result: {time: noon}
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


async def test_tool_calls_and_parallel_branches_are_shown_one_by_one(opens: Opens, scripted: Served) -> None:
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
    await scripted.save(FAN)
    execution = await scripted.execute("fan")
    async with opens() as page:
        await page.goto(f"{scripted.client.base_url}/executions/{execution}")
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

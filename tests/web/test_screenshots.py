"""The pages that the documentation shows: `make screenshots` saves their pictures."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

import pytest_asyncio
from playwright.async_api import expect

from pointsman.workflows.scripts import parse_script
from tests.server.conftest import Served, serving
from tests.web.conftest import Opens, screenshot

ROOT: Final = Path(__file__).parents[2]
SCRIPT: Final = """\
rules:
  - {node: write, text: Your order left on Monday and arrives on Friday.}
tools:
  find_order: {result: {sent: Monday, arrives: Friday}}
  send_reply: {result: sent}
"""
DESK: Final = """\
id: desk
name: Help desk
description: Finds an order, writes a reply, and asks a person before it is sent.
tags: [customers]
input:
  type: object
  required: [customer, number]
  properties: {customer: {type: string}, number: {type: string}}
output: {reply: reply, sent: sent}
nodes:
  - id: find
    type: tool
    name: Find the order
    outputs: {order: result}
    config: {tool: find_order, parameters: {number: "{number}"}}
  - id: write
    type: agent
    name: Write a reply
    outputs: {reply: result}
    config: {prompt: "Tell {customer}: the order left on {order.sent} and arrives on {order.arrives}."}
  - id: approve
    type: human
    name: Approve
    config: {message: "Send this to {customer}?", show: [reply], editable: [reply], actions: [approve, edit, reject]}
  - id: send
    type: tool
    name: Send
    outputs: {sent: result}
    config: {tool: send_reply, parameters: {customer: "{customer}", text: "{reply}"}}
edges:
  - {source: find, target: write}
  - {source: write, target: approve}
  - {source: approve, target: send}
"""


@pytest_asyncio.fixture(loop_scope="session")
async def served(tmp_path: Path) -> AsyncGenerator[Served, None]:
    async with serving(f"sqlite:///{tmp_path}/store.db", script=parse_script(SCRIPT)) as one:
        yield one


async def test_lists_inbox_editor_and_an_execution_show_a_help_desk(opens: Opens, served: Served) -> None:
    await served.save(DESK)
    done = await served.execute("desk", {"customer": "Ada", "number": "7"})
    await served.act(done, "respond", {"gateId": "approve", "action": "approve"})
    await served.execute("desk", {"customer": "Ben", "number": "8"})
    async with opens("/workflows", size=(1280, 640)) as page:
        await expect(page.get_by_role("link", name="Help desk").first).to_be_visible()
        await screenshot(page, "how-to/pictures/workflows")
        await page.get_by_role("link", name="Executions", exact=True).first.click()
        await expect(page.get_by_text("completed", exact=True).first).to_be_visible()
        await screenshot(page, "tutorial/pictures/executions")
        await page.get_by_role("link", name="Inbox 1").click()
        await expect(page.get_by_text("Send this to Ben?").first).to_be_visible()
        await screenshot(page, "how-to/pictures/inbox")
    async with opens("/workflows/desk") as page:
        await expect(page.locator(".react-flow__node-box")).to_have_count(4)
        await screenshot(page, "how-to/pictures/editor", fits=True)
    async with opens(f"/executions/{done}") as page:
        await expect(page.locator(".react-flow__node-box")).to_have_count(4)
        await screenshot(page, "how-to/pictures/execution", fits=True)

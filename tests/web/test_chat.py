"""The chat: turns stream, show agents and calls, ask people, can be stopped, and survive a reload."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from pointsman.settings import Settings
from pointsman.workflows.scripts import parse_script
from tests.server.conftest import Served, serving
from tests.web.conftest import WAITS_MS, Opens

DESK: Final = """\
pointsman: 1
id: desk
name: {en: Help desk, de: Auskunft}
description: Answers questions about ships.
config: {conversational: true}
nodes:
  - {id: plan, type: agent, name: Planner, chatVisible: false, config: {}}
  - {id: answer, type: agent, name: Answerer, config: {tools: [find_ships]}}
edges: [{source: plan, target: answer}]
"""
ASKS: Final = """\
pointsman: 1
id: asks
config: {conversational: true}
nodes:
  - {id: ask, type: human, config: {message: "May I look it up?", options: [{value: approve}, {value: reject}]}}
  - {id: look, type: agent, config: {}}
edges: [{source: ask, target: look, condition: {type: label, label: approve}}]
"""
LONG: Final = " ".join(f"word{number}" for number in range(3000))
SCRIPT: Final = f"""\
rules:
  - {{node: plan, contains: which ships, text: "an inner thought: which ships"}}
  - {{node: plan, contains: slowly, text: "an inner thought: slowly"}}
  - {{node: plan, text: an inner thought}}
  - {{node: answer, contains: slowly, tokenDelay: 0.02s, text: "{LONG}"}}
  - {{node: answer, contains: which ships, toolCalls: [{{name: find_ships, arguments: {{port: Oslo}}}}]}}
  - {{node: answer, contains: Nordlys, text: "**Two** ships wait:\\n\\n- Nordlys\\n- Fram\\n\\n```\\nberth 4\\n```"}}
  - {{node: answer, text: Good day.}}
  - {{node: look, text: I looked it up.}}
tools:
  find_ships: {{result: [Nordlys, Fram]}}
"""


@pytest_asyncio.fixture(loop_scope="session")
async def served(tmp_path: Path) -> AsyncGenerator[Served, None]:
    store = f"sqlite:///{tmp_path}/store.db"
    async with serving(store, script=parse_script(SCRIPT), settings=Settings(delays=True)) as one:
        for document in (DESK, ASKS):
            await one.save(document)
        yield one


@pytest.fixture(autouse=True)
def patient() -> None:
    """Allow a turn to take long."""
    expect.set_options(timeout=WAITS_MS)


async def say(page: Page, words: str) -> None:
    await page.get_by_label("Message", exact=True).fill(words)
    await page.get_by_label("Message", exact=True).press("Enter")


@pytest.mark.requirement("S1-O15")
async def test_chat_turns_show_agents_calls_and_answers_and_hide_internal_data(opens: Opens, served: Served) -> None:
    async with opens("/chat") as page:
        await page.get_by_role("link", name="Help desk").click()
        await say(page, "Tell me which ships wait")
        await expect(page.get_by_text("Two", exact=True)).to_have_css("font-weight", "700")
        await expect(page.get_by_role("listitem").filter(has_text=re.compile("^Fram$"))).to_be_visible()
        await expect(page.get_by_role("button", name="Copy code")).to_be_visible()
        await page.get_by_text("find_ships").click()
        await expect(page.get_by_text('"port": "Oslo"')).to_be_visible()
        await page.get_by_text("one step").click()
        await expect(page.get_by_role("article").get_by_text("Answerer")).to_be_visible()
        await expect(page.get_by_text("Planner")).to_have_count(0)
        await expect(page.get_by_text("an inner thought")).to_have_count(0)
        await page.get_by_label("Message", exact=True).press("ArrowUp")
        await expect(page.get_by_label("Message", exact=True)).to_have_value("Tell me which ships wait")
        await say(page, "Hello")
        await expect(page.get_by_text("Good day.")).to_be_visible()
        await page.reload()
        await expect(page.get_by_role("article")).to_have_count(2)
        await expect(page.get_by_text("Good day.")).to_be_visible()
        session = page.url.rpartition("/")[2]
    told = (await served.client.get(f"/api/sessions/{session}")).json()
    assert [one["content"] for one in told["messages"] if one["role"] == "user"] == [
        "Tell me which ships wait",
        "Hello",
    ]


async def test_a_reload_during_an_answer_loses_and_repeats_nothing_and_the_answer_can_be_stopped(
    opens: Opens, served: Served
) -> None:
    async with opens("/chat/desk") as page:
        await say(page, "slowly please")
        await expect(page.get_by_text("word20 ")).to_be_visible()
        await expect(page.get_by_text("Answerer is working…")).to_be_visible()
        await page.wait_for_url("**/chat/desk/chat-*")
        await page.reload()
        await expect(page.get_by_text("word30 ")).to_be_visible()
        heard = (await page.locator(".markdown").inner_text()).split()
        assert heard[:-1] == [f"word{number}" for number in range(len(heard) - 1)]
        await page.get_by_label("Message", exact=True).press("Escape")
        await expect(page.get_by_role("button", name="Resend")).to_be_visible()
        await expect(page.get_by_role("article").get_by_text("cancelled").last).to_be_visible()
        await say(page, "Hello")
        await expect(page.get_by_text("Good day.")).to_be_visible()

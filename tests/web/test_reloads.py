"""A page that is reloaded in the middle of work shows everything once and continues."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

import pytest_asyncio
from playwright.async_api import Page, expect

from pointsman.settings import Settings
from pointsman.workflows.scripts import parse_script
from tests.server.conftest import Served, serving
from tests.web.conftest import Opens
from tests.web.line import a_line
from tests.web.test_chat import DESK, SCRIPT, say

RULES: Final = parse_script(SCRIPT.replace("tokenDelay: 0.02s", "tokenDelay: 0.06s"))
"""An answer of three minutes, so that nothing ends during a test."""
SLOW: Final = Settings(delays=True)


@pytest_asyncio.fixture(loop_scope="session")
async def served(tmp_path: Path) -> AsyncGenerator[Served, None]:
    async with serving(f"sqlite:///{tmp_path}/store.db", script=RULES, settings=SLOW) as one:
        await one.save(DESK)
        yield one


async def hears_on(page: Page, word: int) -> None:
    """Check that each word occurs once, in order, and that new ones arrive."""
    await page.wait_for_function(
        """(least) => {
          const heard = document.querySelector(".markdown")?.innerText.split(/\\s+/).filter(Boolean) ?? [];
          return heard.length > least && heard.slice(0, -1).every((one, at) => one === `word${at}`);
        }""",
        arg=word,
    )


async def test_an_answer_is_shown_once_and_completely_after_reload_and_navigation(opens: Opens, served: Served) -> None:
    async with opens("/chat/desk") as page:
        await say(page, "slowly please")
        await page.wait_for_url("**/chat/desk/chat-*")
        await hears_on(page, 10)
        await page.get_by_label("Message", exact=True).fill("And then")
        await page.reload()
        await hears_on(page, 30)
        await expect(page.get_by_label("Message", exact=True)).to_have_value("And then")
        await page.get_by_role("link", name="Inbox").click()
        await expect(page.get_by_role("heading", name="Inbox", exact=True)).to_be_visible()
        await page.go_back()
        await page.wait_for_url("**/chat/desk/chat-*")
        await hears_on(page, 60)
        await expect(page.get_by_role("article")).to_have_count(1)
        await expect(page.get_by_label("Message", exact=True)).to_have_value("And then")
        await page.get_by_role("button", name="Stop").click()
        await expect(page.get_by_role("button", name="Resend")).to_be_visible()


async def test_an_answer_continues_once_after_a_restart_of_the_server(opens: Opens, tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/other.db"
    async with a_line() as line, opens(lenient=True) as page:
        async with serving(store, script=RULES, settings=SLOW) as first:
            await first.save(DESK)
            line.to = first.client.base_url.port or 0
            await page.goto(f"{line.address}/chat/desk")
            await say(page, "slowly please")
            await page.wait_for_url("**/chat/desk/chat-*")
            await hears_on(page, 40)
            line.cut()
            await expect(page.get_by_role("article").get_by_text("Connection lost")).to_be_visible()
        async with serving(store, script=RULES, settings=SLOW) as second:
            line.to = second.client.base_url.port or 0
            line.mend()
            await page.evaluate("dispatchEvent(new Event('online'))")
            (entry,) = (await second.client.get("/api/workflows/executions")).json()["executions"]
            await second.client.post(f"/api/workflows/executions/{entry['executionId']}/resume")
            await hears_on(page, 60)
            await expect(page.get_by_role("article")).to_have_count(1)
            await expect(page.get_by_text("Connection lost")).to_have_count(0)
            await page.get_by_role("button", name="Stop").click()
            await expect(page.get_by_role("button", name="Resend")).to_be_visible()

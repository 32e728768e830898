"""An agent is talked to on its page: as it stands there, with its tools, its questions and what it costs."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest_asyncio
from playwright.async_api import expect

from tests.server.conftest import Served, serving
from tests.server.test_agent_trials import WRITER, post_letter, script
from tests.web.conftest import Opens


@pytest_asyncio.fixture(loop_scope="session")
async def served(tmp_path: Path) -> AsyncGenerator[Served, None]:
    async with serving(f"sqlite:///{tmp_path}/store.db", script=script()) as one:
        one.app.tools.add(post_letter)
        yield one


async def test_one_talks_to_an_agent_with_changes_that_are_not_saved(opens: Opens, served: Served) -> None:
    await served.client.post("/api/agents", json={"name": "writer", "agent": WRITER})
    async with opens("/agents/writer") as page:
        trying = page.get_by_role("region", name="Try it")
        await expect(trying).to_contain_text("It answers as it is saved.")
        await page.get_by_role("textbox", name="Who it is").fill("You are kind.")
        await expect(trying).to_contain_text("with your changes")
        await trying.get_by_role("textbox", name="Message").fill("Hello")
        await trying.get_by_role("textbox", name="Message").press("Enter")
        await expect(trying.get_by_text("Good morning.")).to_be_visible()
        await expect(trying.get_by_text("tokens")).to_be_visible()
        await trying.get_by_role("textbox", name="Message").fill("Send it")
        await trying.get_by_role("button", name="Send").click()
        await trying.get_by_role("button", name="approve").click()
        await expect(trying.get_by_text("It is on its way.")).to_be_visible()
        await trying.get_by_text("post_letter").last.click()
        await expect(trying.get_by_text("sent to Ada").last).to_be_visible()
        await page.get_by_role("button", name="Start over").click()
        await expect(trying.get_by_text("It is on its way.")).to_have_count(0)
    every = (await served.client.get("/api/workflows/executions?trials=true")).json()["executions"]
    ran = f"/api/workflows/executions/{every[0]['executionId']}/workflow"
    document = (await served.client.get(ran)).json()["document"]
    assert (len(every), document["agents"]["writer"]["system"]) == (2, "You are kind.")
    assert (await served.client.get("/api/agents/writer")).json()["agent"] == WRITER

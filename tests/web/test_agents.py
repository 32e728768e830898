"""Saved agents: made, told what they may do, looked at as they were, and deleted with who uses them in view."""

from __future__ import annotations

import re
from typing import Any

from playwright.async_api import expect

from tests.server.conftest import Served
from tests.web.conftest import Opens

USES = "pointsman: 1\nid: letter\nnodes:\n  - {id: write, type: agent, config: {agent: writer, prompt: hello}}\n"


async def saved(served: Served) -> Any:
    return (await served.client.get("/api/agents/writer")).json()


async def test_an_agent_is_made_and_told_what_it_may_do(opens: Opens, served: Served) -> None:
    async with opens("/agents") as page:
        await expect(page.get_by_text("No agent is saved yet.")).to_be_visible()
        await page.get_by_role("button", name="New agent").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_role("textbox", name="Name").fill("writer")
        await dialog.get_by_role("textbox", name="Who it is").fill("You write letters.")
        await dialog.get_by_role("button", name="Make it").click()
        await page.wait_for_url("**/agents/writer")
        await page.get_by_label("Tools").fill("calculator")
        await page.get_by_label("Tools").press("Enter")
        await page.get_by_label("Temperature").fill("0.3")
        await page.get_by_label("Messages it sees").select_option("of the conversation")
        await page.get_by_role("button", name="Of its answer").click()
        await page.get_by_role("textbox", name="what a model says yes to").fill("Is it polite?")
        await expect(page.get_by_text("not saved", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("saved", exact=True)).to_be_visible()
        await expect(page.get_by_role("table", name="Revisions").get_by_role("row")).to_have_count(3)
    one = await saved(served)
    assert (one["revision"], one["agent"]) == (
        2,
        {
            "system": "You write letters.",
            "tools": ["calculator"],
            "temperature": 0.3,
            "memory": {"scope": "session"},
            "guardrails": {"after": [{"prompt": "Is it polite?"}]},
        },
    )


async def test_an_older_revision_is_brought_back(opens: Opens, served: Served) -> None:
    await served.client.post("/api/agents", json={"name": "writer", "agent": {"system": "First."}})
    await served.client.put("/api/agents/writer", json={"agent": {"system": "Second."}})
    async with opens("/agents/writer") as page:
        await expect(page.get_by_role("textbox", name="Who it is")).to_have_value("Second.")
        await page.get_by_role("button", name="Show revision 1").click()
        await expect(page.get_by_role("dialog").get_by_text("First.")).to_be_visible()
        await page.get_by_role("dialog").get_by_role("button", name="Make it the newest again").click()
        await expect(page.get_by_role("textbox", name="Who it is")).to_have_value("First.")
    one = await saved(served)
    assert (one["revision"], one["agent"]["system"]) == (3, "First.")


async def test_what_somebody_else_saved_meanwhile_is_not_written_over(opens: Opens, served: Served) -> None:
    await served.client.post("/api/agents", json={"name": "writer", "agent": {"system": "First."}})
    async with opens("/agents/writer", lenient=True) as page:
        await page.get_by_role("textbox", name="Who it is").fill("Mine.")
        await served.client.put("/api/agents/writer", json={"agent": {"system": "Theirs."}})
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("alert").filter(has_text="is at revision 2 now")).to_be_visible()
        await expect(page.get_by_role("textbox", name="Who it is")).to_have_value("Mine.")
        await page.get_by_role("button", name="Drop mine, take theirs").click()
        await expect(page.get_by_role("textbox", name="Who it is")).to_have_value("Theirs.")
    assert (await saved(served))["revision"] == 2


async def test_what_is_wrong_with_an_agent_is_told_and_who_uses_it_before_it_goes(opens: Opens, served: Served) -> None:
    await served.client.post("/api/agents", json={"name": "writer", "agent": {"system": "First."}})
    await served.save(USES)
    async with opens("/agents/writer", lenient=True) as page:
        await page.get_by_text("All of it as JSON").click()
        await page.get_by_role("textbox", name="The description").fill('{"system": "First.", "temperature": 9}')
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("alert")).to_contain_text("temperature")
        await expect(page.get_by_role("table", name="Who uses it").get_by_role("link", name="letter")).to_be_visible()
        await page.get_by_role("button", name="Delete").click()
        dialog = page.get_by_role("dialog")
        await expect(dialog).to_contain_text("cannot start without it: letter")
        await dialog.get_by_role("button", name="Delete").click()
        await page.wait_for_url(re.compile("/agents$"))
        await expect(page.get_by_text("No agent is saved yet.")).to_be_visible()
    assert (await served.client.get("/api/agents/writer")).status_code == 404

"""Keys, people, secrets and settings are created and deleted by hand, and secret values are not visible."""

from __future__ import annotations

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.typing_in import PROMPT


async def test_a_viewer_sees_no_action_that_would_be_refused(opens: Opens, served: Served) -> None:
    owner = await served.key("ada", "editor", "tides")
    reader = await served.key("bob", "viewer", "tides")
    await served.key("root", "admin")
    made = await served.client.post("/api/workflows", content=flows.LETTER, headers=owner)
    assert made.status_code == 201, made.text
    share = {"audience": "groups", "groups": ["tides"]}
    assert (await served.client.put("/api/workflows/letter/sharing", json=share, headers=owner)).status_code == 200
    body = {"input": {"goal": "tides"}, "wait": True}
    begun = await served.client.post("/api/workflows/letter/execute", json=body, headers=owner)
    execution = begun.json()["executionId"]
    async with opens("/workflows", lenient=True) as page:
        await page.get_by_label("Key").fill(reader["authorization"].removeprefix("Bearer "))
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("link", name="letter", exact=True)).to_be_visible()
        for offer in ("New", "Import", "Start", "Share"):
            await expect(page.get_by_role("button", name=offer, exact=False)).to_have_count(0)
        await expect(page.get_by_role("switch")).to_have_count(0)
        await page.get_by_role("link", name="letter", exact=True).click()
        await expect(page.locator(".react-flow__node").filter(has_text="review")).to_be_visible()
        await expect(
            page.get_by_text("You can view this workflow. Changing it requires the editor role.")
        ).to_be_visible()
        for offer in ("Save", "Duplicate", "Delete", "Start", "Test"):
            await expect(page.get_by_role("button", name=offer, exact=True)).to_have_count(0)
        await page.locator(".react-flow__node").filter(has_text="write").click()
        await expect(page.get_by_label(PROMPT)).to_have_text("Write about {goal}")
        await page.get_by_label(PROMPT).press_sequentially("mine")
        await page.get_by_role("button", name="Remove node").click()
        await expect(page.locator(".react-flow__node").filter(has_text="write")).to_be_visible()
        await expect(page.get_by_text("unsaved change")).to_have_count(0)
        await page.goto(f"{served.client.base_url}/executions/{execution}")
        await expect(page.locator(".react-flow__node").filter(has_text="review")).to_be_visible()
        for offer in ("Pause", "Cancel", "Steer", "Fork", "Delete"):
            await expect(page.get_by_role("button", name=offer, exact=True)).to_have_count(0)

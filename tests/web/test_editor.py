"""The editor: a workflow is drawn, connected, configured, undone and saved by hand."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.typing_in import write


async def saved(served: Served, workflow: str = "chain") -> Any:
    return (await served.client.get(f"/api/workflows/{workflow}?dialect=native")).json()["document"]


async def connect(page: Page, source: str, target: str) -> None:
    start = page.locator(f'.react-flow__node[data-id="{source}"] .react-flow__handle.source:not([data-handleid])')
    await start.drag_to(page.locator(f'.react-flow__node[data-id="{target}"] .react-flow__handle.target'))


@pytest.mark.requirement("S1-135", "S1-137", "S1-146", "S4-52")
async def test_edges_are_drawn_with_their_conditions(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    async with opens("/workflows/letter") as page:
        await connect(page, "write", "send")
        await expect(page.locator(".react-flow__edge")).to_have_count(4)
        await page.locator(".react-flow__edge").last.dispatch_event("click")
        await page.get_by_label("Follow this path").select_option("If a condition holds")
        await write(page.get_by_role("textbox", name="expression"), "result == 'done'")
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text("revision 2")).to_be_visible()
    edge = (await saved(served, "letter"))["edges"][3]
    assert (edge["source"], edge["target"]) == ("write", "send")
    assert edge["condition"] == {"type": "expression", "expression": "result == 'done'"}

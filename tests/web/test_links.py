"""A link to a node of a workflow, or to a field of it, opens and focuses it."""

from __future__ import annotations

import json
import re

import pytest
from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_execution import node
from tests.web.typing_in import PROMPT, write

LONG = json.dumps(
    {
        "pointsman": 1,
        "id": "long",
        "entry": "n0",
        "nodes": [{"id": f"n{at}", "type": "transform", "config": {"set": {f"x{at}": "1"}}} for at in range(60)],
        "edges": [{"source": f"n{at}", "target": f"n{at + 1}"} for at in range(59)],
    }
)


@pytest.mark.requirement("T1-23")
async def test_failed_node_is_opened_from_the_execution_and_fixed_and_links_lead_to_nodes_and_fields(
    opens: Opens, served: Served
) -> None:
    await served.save(flows.CHAIN.replace("prompt: two", 'prompt: "{missing.part}"'))
    execution = await served.execute("chain")
    assert (await served.read(execution))["status"] == "failed"
    async with opens(f"/executions/{execution}") as page:
        await expect(node(page, "second").get_by_text("failed")).to_be_attached()
        await page.get_by_role("link", name="Open in editor").click()
        await expect(page).to_have_url(re.compile("/workflows/chain#node=second$"))
        await expect(page.get_by_role("heading", name="second", level=2)).to_be_visible()
        await expect(node(page, "second")).to_be_in_viewport()
        await write(page.get_by_label(PROMPT), "two")
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text("revision 2")).to_be_visible()
        await page.go_back()
        await page.get_by_role("button", name="Retry with the changes").click()
        await expect(node(page, "second").get_by_text("done")).to_be_attached()
        await expect(page.get_by_text("completed", exact=True).first).to_be_visible()
    assert (await served.read(execution))["status"] == "completed"
    await served.save(flows.CHAIN)
    await served.save(LONG)
    async with opens("/workflows/chain#node=second&field=/config/prompt") as page:
        await expect(page.get_by_label(PROMPT)).to_be_focused()
        await expect(page.get_by_label(PROMPT)).to_have_text("two")
    async with opens("/workflows/chain#node=third") as page:
        await expect(page.get_by_text("Node third does not exist here")).to_be_visible()
        await expect(node(page, "first")).to_be_visible()
    async with opens("/workflows/long#node=n59") as page:
        await expect(page.get_by_role("heading", name="n59", level=2)).to_be_visible()
        await expect(node(page, "n59")).to_be_in_viewport()

"""Test runs in the editor: the displayed workflow runs, and the canvas shows the results."""

from __future__ import annotations

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_execution import node
from tests.web.typing_in import PROMPT, write


async def test_a_draft_is_run_in_place_without_being_saved(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    async with opens("/workflows/chain") as page:
        await node(page, "second").click()
        await write(page.get_by_label(PROMPT), "unsaved change")
        await page.get_by_role("tab", name="Test").click()
        await page.get_by_role("button", name="Run all").click()
        shown = page.get_by_role("region", name="Test run")
        await expect(shown.get_by_text("completed", exact=True).first).to_be_visible()
        await expect(node(page, "first").get_by_text("done", exact=True)).to_be_attached()
        await expect(page.get_by_text("1 unsaved change")).to_be_visible()
    (trial,) = (await served.client.get("/api/workflows/executions?trials=true")).json()["executions"]
    ran = (await served.client.get(f"/api/workflows/executions/{trial['executionId']}/workflow")).json()
    assert ran["document"]["nodes"][1]["config"]["prompt"] == "unsaved change"
    assert (await served.client.get("/api/workflows/executions")).json()["executions"] == []


async def test_the_last_result_of_a_node_is_pinned_and_survives_a_reload(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    await served.execute("chain")
    async with opens("/workflows/chain") as page:
        await page.get_by_role("tab", name="Test").click()
        await node(page, "first").click()
        await page.get_by_role("button", name="Pin result").click()
        await expect(node(page, "first").get_by_text("Result is pinned")).to_be_attached()
        await page.reload()
        await expect(node(page, "first").get_by_text("Result is pinned")).to_be_attached()
        await page.get_by_role("tab", name="Test").click()
        await page.get_by_role("button", name="Run all").click()
        await expect(node(page, "second").get_by_text("done", exact=True)).to_be_attached()
    (trial, _) = (await served.client.get("/api/workflows/executions?trials=true")).json()["executions"]
    told = await served.read(trial["executionId"])
    assert list(told["trial"]["pinned"]) == ["first"]
    assert told["usage"]["modelCalls"] == 1


async def test_run_to_pin_and_breakpoint_are_available_in_menu_and_properties(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    await served.execute("chain")
    async with opens("/workflows/chain") as page:
        await node(page, "first").click(button="right")
        await page.get_by_role("menuitem", name="Pin result").click()
        await expect(node(page, "first").get_by_text("Result is pinned")).to_be_attached()
        await page.get_by_role("toolbar", name="Test first").get_by_role("button", name="Unpin").click()
        await expect(node(page, "first").get_by_text("Result is pinned")).to_have_count(0)
        await page.get_by_role("toolbar", name="Test first").get_by_role("button", name="Set breakpoint").click()
        await expect(node(page, "first").get_by_text("Test runs stop before this node")).to_be_attached()
        await node(page, "first").click(button="right")
        await page.get_by_role("menuitem", name="Remove breakpoint").click()
        await node(page, "first").click(button="right")
        await page.get_by_role("menuitem", name="Run up to here").click()
        shown = page.get_by_role("region", name="Test run")
        await expect(shown.get_by_text("completed", exact=True).first).to_be_visible()
        await expect(node(page, "first").get_by_text("done", exact=True)).to_be_attached()
    (trial, _) = (await served.client.get("/api/workflows/executions?trials=true")).json()["executions"]
    found = await served.read(trial["executionId"])
    assert (found["usage"]["modelCalls"], found["trial"]["until"]) == (1, ["first"])

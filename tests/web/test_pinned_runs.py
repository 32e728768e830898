"""Test runs with pins, estimates and names, and test runs that were left open."""

from __future__ import annotations

from typing import Final

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_execution import node
from tests.web.typing_in import PROMPT, write

LONG_MODEL: Final = "anthropic:claude-a-model-with-a-name-that-is-very-long-indeed-20260101"
"""A model without a known price."""


async def test_a_pinned_gate_answer_is_chosen_and_a_wrong_one_is_refused(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    async with opens("/workflows/letter", lenient=True) as page:
        await page.get_by_role("tab", name="Test").click()
        await page.get_by_role("textbox", name="goal").fill("tides")
        await node(page, "review").click()
        await page.get_by_role("button", name="Pin custom value").click()
        await expect(page.get_by_text("so this is only an example")).to_be_visible()
        await expect(page.get_by_label("Answer")).to_have_value("approve")
        brings = page.get_by_label("Result to use")
        await brings.fill('{"action": ')
        await expect(page.get_by_text("Not valid JSON.")).to_be_visible()
        await brings.fill('{"action": "maybe"}')
        await page.get_by_role("button", name="Run all").click()
        alert = page.get_by_role("alert")
        await expect(alert).to_contain_text("No connection of review matches the pinned result.")
        await expect(alert).to_contain_text("Possible answers: Approve or again.")
        await page.get_by_label("Answer").select_option("approve")
        await page.get_by_role("button", name="Run all").click()
        shown = page.get_by_role("region", name="Test run")
        await expect(shown.get_by_text("completed", exact=True).first).to_be_visible()
        await expect(page.get_by_role("alert")).to_have_count(0)
        await page.get_by_role("button", name="Unpin", exact=True).click()
        await expect(page.get_by_role("button", name="Pin custom value")).to_be_visible()
    (trial,) = (await served.client.get("/api/workflows/executions?trials=true")).json()["executions"]
    assert (await served.read(trial["executionId"]))["path"] == ["write", "review", "send"]


async def test_estimates_respect_pins_and_breakpoints_follow_renamed_nodes_in_every_window(
    opens: Opens, served: Served
) -> None:
    await served.save(flows.CHAIN)
    served.app.context.services.model = LONG_MODEL
    async with opens("/workflows/chain") as page:
        await page.get_by_role("tab", name="Test").click()
        await node(page, "first").click()
        await page.get_by_role("button", name="Pin custom value").click()
        await page.get_by_role("button", name="Estimate cost").click()
        told = page.get_by_role("region", name="Estimated cost")
        await expect(told.get_by_role("rowheader", name="second")).to_contain_text(LONG_MODEL)
        await expect(told.get_by_role("rowheader", name="first")).to_have_count(0)
        await expect(told.get_by_text(f"Unknown price: {LONG_MODEL}.")).to_be_visible()
        await expect(told.get_by_text("Outdated")).to_have_count(0)
        wide = await told.evaluate(
            "box => [...box.querySelectorAll('*')].some(one => one.scrollWidth > box.clientWidth)"
        )
        assert not wide, "it stays within its frame"
        await page.get_by_role("button", name="Unpin", exact=True).click()
        await expect(told.get_by_text("Outdated")).to_be_visible()
        await told.get_by_role("button", name="Close estimate").click()
        await expect(told).to_have_count(0)
    await served.save(flows.CHAIN)
    async with opens("/workflows/chain") as page:
        await node(page, "second").click()
        await page.get_by_role("toolbar", name="Test second").get_by_role("button", name="Set breakpoint").click()
        await expect(node(page, "second").get_by_text("Test runs stop before this node")).to_be_attached()
        other = await page.context.new_page()
        await other.goto(page.url)
        await expect(node(other, "second").get_by_text("Test runs stop before this node")).to_be_attached()
        await node(other, "first").click()
        await other.get_by_role("toolbar", name="Test first").get_by_role("button", name="Set breakpoint").click()
        await expect(node(page, "first").get_by_text("Test runs stop before this node")).to_be_attached()
        await page.get_by_text("Execution settings").click()
        await page.get_by_label("Id", exact=True).fill("later")
        await page.get_by_label("Id", exact=True).press("Enter")
        await expect(node(page, "later").get_by_text("Test runs stop before this node")).to_be_attached()
        await page.get_by_role("button", name="Undo").click()
        await expect(node(page, "second").get_by_text("Test runs stop before this node")).to_be_attached()


async def test_a_paused_partial_run_survives_a_reload_and_is_stopped_by_the_next_one(
    opens: Opens, served: Served
) -> None:
    await served.save(flows.LETTER)
    async with opens("/workflows/letter") as page:
        await page.get_by_role("tab", name="Test").click()
        await node(page, "write").click()
        await page.get_by_role("button", name="Set breakpoint").click()
        await page.get_by_role("textbox", name="goal").fill("tides")
        await page.get_by_role("button", name="Run all").click()
        await expect(page.get_by_text("Stopped before write.")).to_be_visible()
        await page.reload()
        await expect(node(page, "write").get_by_text("paused", exact=True)).to_be_attached()
        await page.get_by_role("tab", name="Test").click()
        await expect(page.get_by_text("Stopped before write.")).to_be_visible()
        await expect(page.get_by_role("button", name="Clear test run")).to_have_count(0)
        await (
            page.get_by_role("list", name="Pinned results and breakpoints")
            .get_by_role("button", name="Remove breakpoint")
            .click()
        )
        await page.get_by_role("button", name="Run all").click()
        await expect(page.get_by_role("region", name="Send it?")).to_be_visible()
        (now, before) = (await served.client.get("/api/workflows/executions?trials=true")).json()["executions"]
        assert (await served.ended(before["executionId"]))["status"] == "cancelled"
        assert now["status"] == "waiting"


FAN: Final = """\
pointsman: 1
id: fan
input: {type: object}
output: {all: all, last: last}
nodes:
  - {id: each, type: parallel, config: {items: '["north", "south"]'}}
  - {id: draft, type: agent, config: {prompt: "About {item}"}}
  - {id: meet, type: join, config: {aggregate: list}, outputs: {all: result}}
  - {id: end, type: agent, config: {prompt: "Of {all}"}, outputs: {last: result}}
edges: [{source: each, target: draft}, {source: draft, target: meet}, {source: meet, target: end}]
"""


async def test_a_node_after_a_parallel_runs_with_the_results_of_its_branches_until_one_changes(
    opens: Opens, served: Served
) -> None:
    await served.save(FAN)
    first = await served.read(await served.execute("fan"))
    async with opens("/workflows/fan") as page:
        shown = page.get_by_role("region", name="Test run")
        link = shown.get_by_role("link", name="Open test run")
        await page.get_by_role("tab", name="Test").click()
        await node(page, "end").click()
        await page.get_by_role("button", name="Run only this node").click()
        await expect(shown.get_by_text("completed", exact=True).first).to_be_visible()
        await expect(node(page, "end").get_by_text("done", exact=True)).to_be_attached()
        (trial, _) = (await served.client.get("/api/workflows/executions?trials=true")).json()["executions"]
        found = await served.read(trial["executionId"])
        assert (found["usage"]["modelCalls"], found["state"]["all"]) == (1, first["state"]["all"])
        await page.get_by_role("tab", name="Properties").click()
        await node(page, "draft").click()
        await write(page.get_by_label(PROMPT), "Anew about {item}")
        await page.get_by_role("tab", name="Test").click()
        await node(page, "end").click()
        before = await link.get_attribute("href")
        assert before is not None
        await page.get_by_role("button", name="Run only this node").click()
        await expect(link).not_to_have_attribute("href", before)
        await expect(shown.get_by_text("completed", exact=True).first).to_be_visible()
        await expect(node(page, "end").get_by_text("done", exact=True)).to_be_attached()
    trials = (await served.client.get("/api/workflows/executions?trials=true")).json()["executions"]
    found = await served.read(trials[0]["executionId"])
    assert found["usage"]["modelCalls"] == 3, "what was changed is performed anew"

"""Trying in the editor: what is on the screen runs, and the canvas shows it in place."""

from __future__ import annotations

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_execution import node
from tests.web.typing_in import write


async def test_a_draft_is_run_in_place_without_being_saved(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    async with opens("/workflows/chain") as page:
        await node(page, "second").click()
        await write(page.get_by_label("prompt"), "not saved")
        await page.get_by_role("tab", name="Try it").click()
        await page.get_by_role("button", name="Run all of it").click()
        shown = page.get_by_role("region", name="The trial")
        await expect(shown.get_by_text("completed", exact=True).first).to_be_visible()
        await expect(node(page, "first").get_by_text("done", exact=True)).to_be_attached()
        await expect(page.get_by_text("one change not saved")).to_be_visible()
    (trial,) = (await served.client.get("/api/workflows/executions?trials=true")).json()["executions"]
    ran = (await served.client.get(f"/api/workflows/executions/{trial['executionId']}/workflow")).json()
    assert ran["document"]["nodes"][1]["config"]["prompt"] == "not saved"
    assert (await served.client.get("/api/workflows/executions")).json()["executions"] == []


async def test_what_a_node_brought_last_is_pinned_and_survives_a_reload(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    await served.execute("chain")
    async with opens("/workflows/chain") as page:
        await page.get_by_role("tab", name="Try it").click()
        await node(page, "first").click()
        await page.get_by_role("button", name="Pin its result").click()
        await expect(node(page, "first").get_by_text("Its value is pinned")).to_be_attached()
        await page.reload()
        await expect(node(page, "first").get_by_text("Its value is pinned")).to_be_attached()
        await page.get_by_role("tab", name="Try it").click()
        await page.get_by_role("button", name="Run all of it").click()
        await expect(node(page, "second").get_by_text("done", exact=True)).to_be_attached()
    (trial, _) = (await served.client.get("/api/workflows/executions?trials=true")).json()["executions"]
    told = await served.read(trial["executionId"])
    assert list(told["trial"]["pinned"]) == ["first"]
    assert told["usage"]["modelCalls"] == 1


async def test_it_stops_at_a_breakpoint_goes_on_by_a_step_and_asks_in_place(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    async with opens("/workflows/letter") as page:
        await page.get_by_role("tab", name="Try it").click()
        await node(page, "write").click()
        await page.get_by_role("button", name="Stop before it").click()
        await page.get_by_role("textbox", name="goal").fill("tides")
        await page.get_by_role("button", name="Run all of it").click()
        await expect(page.get_by_text("It stopped before write.")).to_be_visible()
        await page.get_by_role("button", name="One step").click()
        await expect(page.get_by_text("It stopped before review.")).to_be_visible()
        await page.get_by_role("button", name="Go on").click()
        await page.get_by_role("region", name="Send it?").get_by_role("button", name="Approve").click()
        await expect(node(page, "send").get_by_text("done", exact=True)).to_be_attached()


async def test_one_node_runs_with_what_came_before_it_as_it_was(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    await served.execute("chain")
    async with opens("/workflows/chain", language="de", theme="dark", size=(390, 844)) as page:
        await page.get_by_role("tab", name="Ausprobieren").click()
        await node(page, "second").click()
        await page.get_by_role("button", name="Diesen Knoten ausführen").click()
        await expect(page.get_by_role("region", name="Der Versuch")).to_be_visible()
        await expect(node(page, "second").get_by_text("fertig", exact=True)).to_be_attached()
    told = (await served.client.get("/api/workflows/executions?trials=true")).json()["executions"][0]
    found = await served.read(told["executionId"])
    assert (found["usage"]["modelCalls"], found["trial"]["until"]) == (1, ["second"])


async def test_the_cost_is_estimated_and_nothing_is_called(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    async with opens("/workflows/chain", language="de") as page:
        await page.get_by_role("tab", name="Ausprobieren").click()
        await page.get_by_role("button", name="Kosten schätzen").click()
        await expect(page.get_by_role("rowheader", name="first")).to_be_visible()
    assert (await served.client.get("/api/workflows/executions?trials=true")).json()["executions"] == []


async def test_a_node_is_run_to_pinned_and_stopped_at_from_its_menu_and_its_properties(
    opens: Opens, served: Served
) -> None:
    await served.save(flows.CHAIN)
    await served.execute("chain")
    async with opens("/workflows/chain") as page:
        await node(page, "first").click(button="right")
        await page.get_by_role("menuitem", name="Pin its result").click()
        await expect(node(page, "first").get_by_text("Its value is pinned")).to_be_attached()
        await page.get_by_role("toolbar", name="Try first").get_by_role("button", name="Unpin").click()
        await expect(node(page, "first").get_by_text("Its value is pinned")).to_have_count(0)
        await page.get_by_role("toolbar", name="Try first").get_by_role("button", name="Stop before it").click()
        await expect(node(page, "first").get_by_text("A trial stops before it")).to_be_attached()
        await node(page, "first").click(button="right")
        await page.get_by_role("menuitem", name="Do not stop").click()
        await node(page, "first").click(button="right")
        await page.get_by_role("menuitem", name="Run to here").click()
        shown = page.get_by_role("region", name="The trial")
        await expect(shown.get_by_text("completed", exact=True).first).to_be_visible()
        await expect(node(page, "first").get_by_text("done", exact=True)).to_be_attached()
    (trial, _) = (await served.client.get("/api/workflows/executions?trials=true")).json()["executions"]
    found = await served.read(trial["executionId"])
    assert (found["usage"]["modelCalls"], found["trial"]["until"]) == (1, ["first"])


async def test_what_keeps_a_trial_from_beginning_is_told_wherever_it_was_asked_for(
    opens: Opens, served: Served
) -> None:
    await served.save(flows.LETTER)
    async with opens("/workflows/letter", lenient=True) as page:
        await node(page, "write").click(button="right")
        await page.get_by_role("menuitem", name="Run to here").click()
        await expect(page.get_by_role("alert")).to_contain_text("goal")
        await page.get_by_role("textbox", name="goal").fill("tides")
        await page.get_by_role("region", name="Try write").get_by_role("button", name="Run to this node").click()
        await expect(page.get_by_role("region", name="The trial")).to_be_visible()
        await expect(page.get_by_role("alert")).to_have_count(0)

"""The editor: a workflow is drawn, connected, described, undone and saved by hand."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_execution import node
from tests.web.typing_in import write


async def saved(served: Served, workflow: str = "chain") -> Any:
    return (await served.client.get(f"/api/workflows/{workflow}?dialect=native")).json()["document"]


async def connect(page: Page, source: str, target: str) -> None:
    start = page.locator(f'.react-flow__node[data-id="{source}"] .react-flow__handle.source')
    await start.drag_to(page.locator(f'.react-flow__node[data-id="{target}"] .react-flow__handle.target'))


async def test_a_node_is_added_described_connected_and_saved_and_the_author_keeps_the_text(
    opens: Opens, served: Served
) -> None:
    await served.save(f"# Two steps.\n{flows.CHAIN}")
    async with opens("/workflows/chain") as page:
        await node(page, "second").click()
        await page.get_by_label("What can be added").get_by_role("button", name="Person").click()
        await expect(node(page, "human")).to_be_visible()
        await page.get_by_label("message").fill("Is it good?")
        await expect(page.get_by_text("2 changes not saved")).to_be_visible()
        await page.get_by_role("tab", name="Problems").click()
        await expect(page.get_by_text("Nothing is wrong with it.")).to_be_visible()
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text("revision 2")).to_be_visible()
        await expect(page.get_by_text("not saved")).to_have_count(0)
    document = await saved(served)
    assert [one["id"] for one in document["nodes"]] == ["first", "second", "human"]
    assert document["nodes"][2]["config"]["message"] == "Is it good?"
    assert [(one["source"], one["target"]) for one in document["edges"]] == [("first", "second"), ("second", "human")]
    text = (await served.client.get("/api/workflows/chain")).json()["text"]
    assert text.startswith("# Two steps.\n"), "comments stay"


async def test_what_was_done_is_undone_step_by_step_and_typing_is_one_step(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    async with opens("/workflows/chain") as page:
        await node(page, "first").click()
        await page.get_by_label("prompt").press("Control+End")
        await page.get_by_label("prompt").press_sequentially(" and more")
        await page.get_by_role("button", name="Remove the node").click()
        await expect(node(page, "first")).to_have_count(0)
        await expect(page.get_by_text("2 changes not saved")).to_be_visible()
        await page.get_by_role("button", name="Undo").click()
        await expect(node(page, "first")).to_be_visible()
        await expect(page.locator(".react-flow__edge")).to_have_count(1)
        await page.get_by_role("button", name="Undo").click()
        await expect(page.get_by_text("not saved")).to_have_count(0)
        await page.get_by_role("button", name="Redo").click()
        await node(page, "first").click()
        await expect(page.get_by_label("prompt")).to_have_text("one and more")
    assert (await saved(served))["nodes"][0]["config"]["prompt"] == "one", "nothing was saved"


@pytest.mark.requirement("S1-135", "S1-137", "S1-146", "S4-52")
async def test_edges_are_drawn_and_say_when_they_are_taken(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    async with opens("/workflows/letter") as page:
        await connect(page, "write", "send")
        await expect(page.locator(".react-flow__edge")).to_have_count(4)
        await page.locator(".react-flow__edge").last.dispatch_event("click")
        await page.get_by_label("Taken").select_option("when an expression holds")
        await write(page.get_by_role("textbox", name="expression"), "result == 'done'")
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text("revision 2")).to_be_visible()
    edge = (await saved(served, "letter"))["edges"][3]
    assert (edge["source"], edge["target"]) == ("write", "send")
    assert edge["condition"] == {"type": "expression", "expression": "result == 'done'"}


async def test_what_would_be_wrong_is_told_while_it_is_typed_and_leads_to_its_node(
    opens: Opens, served: Served
) -> None:
    await served.save(flows.CHAIN)
    async with opens("/workflows/chain") as page:
        await node(page, "second").click()
        await write(page.get_by_label("prompt"), "About {nothing_of_that_name}")
        await node(page, "first").click()
        await page.get_by_role("tab", name="Problems").click()
        await page.get_by_role("button", name="nothing_of_that_name").click()
        await expect(page.get_by_role("heading", name="second", exact=True)).to_be_visible()


async def test_changes_survive_a_reload_and_nobody_saves_over_another(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    async with opens("/workflows/chain", lenient=True) as page:
        await node(page, "first").click()
        await write(page.get_by_label("prompt"), "mine")
        await expect(page.get_by_text("one change not saved")).to_be_visible()
        await page.reload()
        await expect(page.get_by_text("one change not saved")).to_be_visible()
        theirs = flows.CHAIN.replace("prompt: two", "prompt: theirs")
        assert (await served.client.put("/api/workflows/chain", content=theirs)).status_code == 200
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_role("region", name="Changed elsewhere")).to_contain_text("revision 2")
    assert [one["config"]["prompt"] for one in (await saved(served))["nodes"]] == ["one", "theirs"]

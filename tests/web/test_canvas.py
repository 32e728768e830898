"""The canvas: selection, copying between workflows, groups, layout, search, and reasons for refused edges."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from playwright.async_api import Locator, Page, expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens

LOOPS = """\
pointsman: 1
id: loops
input: {type: object}
nodes:
  - {id: begin, type: start}
  - {id: each, type: parallel, config: {items: "[1, 2]"}}
  - {id: write, type: transform, config: {set: {said: item}}}
  - {id: together, type: join}
  - {id: again, type: loop, config: {maxIterations: 2}}
  - {id: mend, type: transform, config: {set: {mended: "true"}}}
  - {id: over, type: end}
edges:
  - {source: begin, target: each}
  - {source: each, target: write}
  - {source: write, target: together}
  - {source: together, target: again}
  - {source: again, target: mend}
  - {source: mend, target: again}
  - {source: again, target: over}
state: {said: {reduce: append}}
"""


def box(page: Page, node: str) -> Locator:
    return page.locator(f'.react-flow__node[data-id="{node}"]')


def boxes(page: Page) -> Locator:
    return page.locator(".react-flow__node-box")


def arrows(page: Page) -> Locator:
    return page.locator(".react-flow__edge")


async def saved(served: Served, workflow: str) -> Any:
    return (await served.client.get(f"/api/workflows/{workflow}?dialect=native")).json()["document"]


def content(path: Path) -> bytes:
    return path.read_bytes()


async def save(page: Page) -> None:
    await page.get_by_role("button", name="Save", exact=True).click()
    await expect(page.get_by_text("revision 2")).to_be_visible()


async def spot(page: Page) -> None:
    """Click an empty place."""
    await page.locator(".react-flow__pane").click(position={"x": 40, "y": 40})


async def test_selected_nodes_are_duplicated_moved_and_removed_as_one_undo_each(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    async with opens("/workflows/letter") as page:
        await expect(box(page, "write")).to_be_visible()
        first = await box(page, "write").bounding_box()
        second = await box(page, "review").bounding_box()
        assert first is not None
        assert second is not None
        await page.keyboard.down("Shift")
        await page.mouse.move(first["x"] - 15, first["y"] - 60)
        await page.mouse.down()
        await page.mouse.move(second["x"] + second["width"] / 2, second["y"] + second["height"] + 15, steps=5)
        await page.mouse.up()
        await page.keyboard.up("Shift")
        await expect(page.locator(".react-flow__node.selected")).to_have_count(2)
        await page.keyboard.press("Delete")
        await expect(boxes(page)).to_have_count(1)
        await page.keyboard.press("Control+z")
        await expect(boxes(page)).to_have_count(3)
    await served.save(flows.LETTER)
    async with opens("/workflows/letter") as page:
        await spot(page)
        await page.keyboard.press("Control+a")
        await page.keyboard.press("Control+d")
        await expect(boxes(page)).to_have_count(6)
        await expect(arrows(page)).to_have_count(6)
        await expect(page.get_by_text("1 unsaved change")).to_be_visible()
        await page.keyboard.press("Delete")
        await expect(boxes(page), "the copies were selected").to_have_count(3)
        await page.keyboard.press("Control+z")
        await expect(boxes(page)).to_have_count(6)
        await page.keyboard.press("Control+z")
        await expect(page.get_by_text("unsaved change")).to_have_count(0)
        await box(page, "write").click()
        await box(page, "send").click(modifiers=["Control"])
        await expect(page.locator(".react-flow__node.selected")).to_have_count(2)
        await box(page, "send").focus()
        for _ in range(3):
            await page.keyboard.press("ArrowDown")
        await expect(page.get_by_text("1 unsaved change")).to_be_visible()
        await save(page)
    nodes = {one["id"]: one for one in (await saved(served, "letter"))["nodes"]}
    assert nodes["write"]["position"]["y"] == nodes["send"]["position"]["y"] > nodes["review"]["position"]["y"]


async def test_nodes_are_copied_from_one_workflow_into_another(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    await served.save(flows.CHAIN.replace("first", "write"))
    async with opens("/workflows/letter") as page:
        await spot(page)
        await page.keyboard.press("Control+a")
        await page.keyboard.press("Control+c")
        await expect(page.get_by_text("3 nodes copied.")).to_be_visible()
        other = await page.context.new_page()
        await other.goto(page.url.replace("letter", "chain"))
        await spot(other)
        await other.keyboard.press("Control+v")
        await expect(boxes(other)).to_have_count(5)
        await save(other)
    document = await saved(served, "chain")
    assert [one["id"] for one in document["nodes"]] == ["write", "second", "write_2", "review", "send"]
    assert ("review", "write_2") in [(one["source"], one["target"]) for one in document["edges"]]


@pytest.mark.requirement("S1-149", "S1-136")
async def test_nodes_are_added_from_the_palette_by_typing_by_dragging_and_on_an_edge(
    opens: Opens, served: Served
) -> None:
    await served.save(flows.CHAIN)
    async with opens("/workflows/chain") as page:
        await page.locator(".react-flow__pane").dblclick(position={"x": 300, "y": 60})
        await page.get_by_role("combobox", name="Search node types").fill("note")
        await page.keyboard.press("Enter")
        await expect(box(page, "note")).to_be_visible()
        wire = await page.locator(".react-flow__edge-interaction").first.bounding_box()
        assert wire is not None
        await page.mouse.move(wire["x"] + wire["width"] / 2, wire["y"] + wire["height"] / 2)
        await page.get_by_role("button", name="Insert node on this connection").click()
        await page.get_by_role("dialog").get_by_role("combobox").fill("tool")
        await page.keyboard.press("Enter")
        await expect(box(page, "tool")).to_be_visible()
        await expect(arrows(page)).to_have_count(2)
        agent = page.get_by_label("Node palette").get_by_role("button", name="Agent")
        await agent.drag_to(page.locator(".react-flow__pane"), target_position={"x": 420, "y": 500})
        await expect(box(page, "agent")).to_be_visible()
        await save(page)
    document = await saved(served, "chain")
    assert [(one["source"], one["target"]) for one in document["edges"]] == [("first", "tool"), ("tool", "second")]
    assert all("position" in one for one in document["nodes"])


async def drag(page: Page, source: str, target: str) -> None:
    """Drag from the handle of one node to the middle of another, as people do."""
    await expect(box(page, target)).to_be_visible()
    start = await box(page, source).bounding_box()
    end = await box(page, target).bounding_box()
    assert start is not None
    assert end is not None
    await page.mouse.move(start["x"] + start["width"], start["y"] + start["height"] / 2)
    await page.mouse.down()
    await page.mouse.move(end["x"] + end["width"] / 2, end["y"] - 15, steps=8)
    await page.mouse.move(end["x"] + end["width"] / 2, end["y"] + end["height"] / 2, steps=5)
    await page.mouse.up()


async def test_dragging_shows_forbidden_targets_and_an_edge_ends_at_the_node_below(
    opens: Opens, served: Served
) -> None:
    await served.save(LOOPS)
    async with opens("/workflows/loops") as page:
        await expect(box(page, "write")).to_be_visible()
        handle = await box(page, "write").locator(".react-flow__handle-right").bounding_box()
        assert handle is not None
        await page.mouse.move(handle["x"] + 5, handle["y"] + 5)
        await page.mouse.down()
        await page.mouse.move(handle["x"] + 40, handle["y"] + 90, steps=4)
        await expect(box(page, "begin").get_by_text("a start has no incoming connections")).to_be_attached()
        await expect(box(page, "together").get_by_text("already connected")).to_be_attached()
        await expect(box(page, "write").get_by_text("cannot connect to itself")).to_be_attached()
        await expect(box(page, "again").get_by_text("connected")).to_have_count(0)
        await page.mouse.up()
        await expect(box(page, "begin").get_by_text("a start has no incoming connections")).to_have_count(0)
        await expect(page.get_by_role("dialog", name="Add node")).to_be_visible()
        await page.get_by_role("dialog").get_by_role("combobox").fill("human")
        await page.keyboard.press("Enter")
        await expect(arrows(page)).to_have_count(8)
    await served.save(flows.LETTER)
    async with opens("/workflows/letter") as page:
        await drag(page, "write", "send")
        await expect(page.locator(".react-flow__edge")).to_have_count(4)
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await drag(page, "send", "write")
        await expect(page.locator(".react-flow__edge"), "nothing leads on from an end").to_have_count(4)
        await expect(page.get_by_role("dialog"), "and nothing is added instead").to_have_count(0)
        await page.get_by_role("button", name="Save", exact=False).first.click()
        await expect(page.get_by_text("revision 2")).to_be_visible()
    edges = [(one["source"], one["target"]) for one in (await saved(served, "letter"))["edges"]]
    assert ("write", "send") in edges
    assert ("send", "write") not in edges


@pytest.mark.requirement("T1-23")
async def test_nodes_are_found_tidied_up_and_folded_in_editor_and_execution(opens: Opens, served: Served) -> None:
    await served.save(LOOPS)
    async with opens("/workflows/loops") as page:
        await spot(page)
        await page.keyboard.press("Control+f")
        await page.get_by_role("combobox", name="Id, name, type").fill("mended")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", name="mend", exact=True)).to_be_visible()
        await spot(page)
        await page.keyboard.press("?")
        await expect(page.get_by_role("dialog", name="Keyboard shortcuts")).to_be_visible()
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await page.get_by_role("button", name="Tidy up").click()
        await expect(page.get_by_text("Already tidy.")).to_be_visible()
        await box(page, "write").click()
        for _ in range(9):
            await page.keyboard.press("ArrowDown")
        await expect(page.get_by_text("1 unsaved change")).to_be_visible()
        await page.get_by_role("button", name="Tidy up").click()
        await expect(page.get_by_text("2 unsaved changes")).to_be_visible()
        await save(page)
    at = {one["id"]: one["position"] for one in (await saved(served, "loops"))["nodes"]}
    assert len({at[one]["y"] for one in ("begin", "each", "write", "together")}) == 1
    order = ["begin", "each", "write", "together"]
    assert [at[one]["x"] for one in order] == sorted(at[one]["x"] for one in order)
    assert len({(one["x"], one["y"]) for one in at.values()}) == 7
    await served.save(LOOPS)
    execution = await served.execute("loops")
    async with opens("/workflows/loops") as page:
        await page.get_by_role("button", name="Collapse each").click()
        await expect(box(page, "write")).to_have_count(0)
        await expect(page.get_by_role("button", name="Expand each")).to_be_visible()
        # A click on a box outside the view would scroll the canvas, which React Flow undoes: the click misses the box.
        await page.get_by_role("button", name="Fit view").click()
        await box(page, "again").click()
        await expect(page.get_by_role("heading", name="again", exact=True)).to_be_visible()
        await box(page, "again").dblclick()
        await expect(box(page, "mend")).to_have_count(0)
        await page.reload()
        await expect(box(page, "each")).to_be_visible()
        await expect(box(page, "write")).to_have_count(0)
        await page.goto(page.url.replace("/workflows/loops", f"/executions/{execution}"))
        inside = page.get_by_role("button", name="Expand each")
        await expect(inside).to_be_visible()
        await expect(page.locator(".react-flow__node-folded").get_by_text("passed").first).to_be_attached()
        await inside.click()
        await expect(box(page, "write")).to_be_visible()


@pytest.mark.requirement("T1-23")
async def test_a_long_graph_keeps_its_direction_until_its_author_asks_for_rows(opens: Opens, served: Served) -> None:
    names = [f"step{at}" for at in range(9)]
    nodes = [{"id": name, "type": "transform", "config": {"set": {"at": "1"}}} for name in names]
    edges = [{"source": a, "target": b} for a, b in pairwise([*names, "done"])]
    long = {"pointsman": 1, "id": "long", "nodes": [*nodes, {"id": "done", "type": "end"}], "edges": edges}
    await served.save(json.dumps(long))

    async def rows(revision: int) -> int:
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text(f"revision {revision}")).to_be_visible()
        return len({one["position"]["y"] for one in (await saved(served, "long"))["nodes"]})

    async with opens("/workflows/long") as page:
        await spot(page)
        await page.keyboard.press("Shift+T")
        await expect(page.get_by_text("1 unsaved change")).to_be_visible()
        assert await rows(2) > 1
        await spot(page)
        await page.keyboard.press("t")
        await expect(page.get_by_text("1 unsaved change")).to_be_visible()
        assert await rows(3) == 1


async def grown(page: Page, *wanted: tuple[str, str]) -> None:
    """Add nodes one after the other in the outline, each by search words, with its resulting name."""
    tree = page.get_by_role("tree", name="Workflow outline")
    for words, made in wanted:
        await page.keyboard.press("+")
        await page.get_by_role("combobox", name="Search node types").fill(words)
        await page.keyboard.press("Enter")
        if made == "end":  # A person is before it: the first answer is chosen.
            await expect(page.get_by_role("combobox", name="Which answer?")).to_be_focused()
            await page.keyboard.press("Enter")
            await expect(tree).to_be_focused()
        await expect(tree.get_by_role("treeitem", name=made).first).to_be_visible()
        await expect(tree).to_be_focused()


@pytest.mark.requirement("S1-135")
async def test_a_workflow_is_built_by_keyboard_only(opens: Opens, served: Served) -> None:
    await served.save("pointsman: 1\nid: keys\nnodes:\n  - {id: start, type: start}\n")
    async with opens("/workflows/keys") as page:
        await expect(box(page, "start")).to_be_visible()
        press = page.keyboard.press
        await press("o")
        tree = page.get_by_role("tree", name="Workflow outline")
        await expect(tree).to_be_focused()
        await grown(page, ("agent", "agent"), ("person", "human"), ("end", "end"))
        await expect(arrows(page)).to_have_count(3)
        await press("ArrowUp")
        await expect(tree.get_by_role("treeitem", selected=True)).to_contain_text("human")
        await press("c")
        choice = page.get_by_role("combobox", name="Connect to")
        await expect(page.get_by_role("option", name="start")).to_contain_text("a start has no incoming connections")
        await choice.fill("agent")
        await press("Enter")
        await page.get_by_role("combobox", name="Which answer?").fill("reject")
        await press("Enter")
        await expect(arrows(page)).to_have_count(4)
        await expect(tree).to_be_focused()
        here = tree.get_by_role("treeitem", selected=True)
        for key in ("ArrowRight", "ArrowDown", "ArrowDown"):
            await press(key)
        await expect(here).to_contain_text("to agent")
        await press("c")
        await choice.fill("human")
        await press("Enter")
        await expect(here).to_contain_text("human")
        await expect(tree).to_be_focused()
        for key in ("ArrowDown", "ArrowDown"):
            await press(key)
        await expect(here).to_contain_text("to human")
        await press("Delete")
        await expect(arrows(page)).to_have_count(3)
        await press("e")
        await expect(here).to_contain_text("end")
        await press("Delete")
        await expect(boxes(page)).to_have_count(3)
        await press("Control+z")
        await press("Home")
        await press("ArrowDown")
        await press("Enter")
        await expect(page.get_by_role("heading", name="agent", exact=True)).to_be_visible()
        await save(page)
    document = await saved(served, "keys")
    edges = [(one["source"], one["target"]) for one in document["edges"]]
    assert edges == [("start", "agent"), ("agent", "human"), ("human", "end")]


async def test_the_image_and_every_dialect_are_exported(opens: Opens, served: Served) -> None:
    name = "<b>Loops</b> & 'more'"
    await served.save(LOOPS.replace("id: loops\n", f'id: loops\nname: "{name}"\n'))
    async with opens("/workflows/loops") as page:
        await expect(box(page, "begin")).to_be_visible()
        taken: dict[str, bytes] = {}
        for wanted in ("SVG", "PNG", "Mermaid", "Graph"):
            await page.get_by_role("button", name="Export").click()
            dialog = page.get_by_role("dialog", name="Export")
            await dialog.get_by_role("radio", name=wanted).check()
            if wanted == "Graph":
                await expect(dialog.get_by_role("heading", name="Not supported in this format")).to_be_visible()
            async with page.expect_download() as waiting:
                await dialog.get_by_role("button", name="Download").click()
            download = await waiting.value
            taken[download.suggested_filename] = content(await download.path())
            await expect(dialog).to_have_count(0)
    assert [*taken] == ["loops.svg", "loops.png", "loops.mmd", "loops.graph.json"]
    drawing = ElementTree.fromstring(taken["loops.svg"])
    words = ["".join(one.itertext()) for one in drawing.iter("{http://www.w3.org/2000/svg}text")]
    assert {"begin", "write", "mend", "Parallel"} <= {*words}
    assert drawing.findtext("{http://www.w3.org/2000/svg}title") == name
    assert taken["loops.png"].startswith(b"\x89PNG")
    assert json.loads(taken["loops.graph.json"])["nodes"]

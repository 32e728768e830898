"""Notes and frames on the canvas: written in place, coloured, moved with nodes, undone, and saved in the document."""

from __future__ import annotations

from typing import Any

from playwright.async_api import Locator, Page, expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_canvas import box, save, saved, spot


async def place(one: Locator) -> tuple[float, float]:
    found = await one.bounding_box()
    assert found is not None
    return round(found["x"]), round(found["y"])


async def nodes_in(served: Served, workflow: str) -> dict[str, Any]:
    return {node["id"]: node for node in (await saved(served, workflow))["nodes"]}


async def focus_canvas(page: Page) -> None:
    await expect(box(page, "write")).to_be_visible()
    await spot(page)


async def test_a_note_is_written_in_place_coloured_saved_and_undone(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    async with opens("/workflows/letter") as page:
        await focus_canvas(page)
        await page.keyboard.press("n")
        text = page.get_by_role("textbox", name="Text of the note (Markdown)")
        await expect(text).to_be_focused()
        await page.keyboard.type("**Ask legal** first")
        await page.keyboard.press("Escape")
        note = box(page, "note")
        await expect(note.locator("strong")).to_have_text("Ask legal")
        await expect(note.locator(".react-flow__handle")).to_have_count(0)
        await page.get_by_role("button", name="Blue").click()
        await expect(note.locator('[data-note-color="blue"]')).to_be_visible()
        await page.get_by_role("button", name="Undo").click()
        await expect(note.locator('[data-note-color="yellow"]')).to_be_visible()
        await page.get_by_role("button", name="Redo").click()
        await save(page)
        stored = (await nodes_in(served, "letter"))["note"]
        assert stored["config"] == {"text": "**Ask legal** first", "color": "blue"}
        await page.reload()
        await expect(box(page, "note").locator("strong")).to_have_text("Ask legal")


async def test_a_frame_moves_its_nodes_and_keeps_them_when_the_canvas_is_tidied(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    async with opens("/workflows/letter") as page:
        await focus_canvas(page)
        await box(page, "review").click()
        await page.keyboard.press("f")
        title = page.get_by_role("textbox", name="Title of the frame")
        await expect(title).to_be_focused()
        await page.keyboard.type("Check")
        await page.keyboard.press("Enter")
        frame = box(page, "frame")
        bar = frame.locator(".note-title")
        await expect(bar).to_have_text("Check")
        before = await place(box(page, "review"))
        other = await place(box(page, "write"))
        at = await bar.bounding_box()
        assert at is not None
        await page.mouse.move(at["x"] + 60, at["y"] + 8)
        await page.mouse.down()
        await page.mouse.move(at["x"] + 90, at["y"] + 88, steps=6)
        await page.mouse.up()
        after = await place(box(page, "review"))
        assert after[1] - before[1] > 60
        assert await place(box(page, "write")) == other
        await page.get_by_role("button", name="Tidy up").click()
        await page.wait_for_function("() => !document.querySelector('[aria-busy=true]')")
        await save(page)
        nodes = await nodes_in(served, "letter")
        config, corner, inner = nodes["frame"]["config"], nodes["frame"]["position"], nodes["review"]["position"]
        assert config["frame"] is True
        assert config["text"] == "Check"
        assert corner["x"] < inner["x"] < corner["x"] + config["width"]
        assert corner["y"] < inner["y"] < corner["y"] + config["height"]

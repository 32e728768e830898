"""A large workflow is one drawing when zoomed out, and nodes when zoomed in."""

from __future__ import annotations

import json

import pytest
from playwright.async_api import expect

from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_canvas import box, boxes, spot


@pytest.mark.requirement("S1-148")
async def test_a_large_workflow_is_one_drawing_when_zoomed_out_and_nodes_when_zoomed_in(
    opens: Opens, served: Served
) -> None:
    nodes = [{"id": f"n{at}", "type": "transform", "config": {"set": {f"x{at}": "1"}}} for at in range(300)]
    edges = [{"source": f"n{at}", "target": f"n{at + 10}"} for at in range(290)]
    await served.save(json.dumps({"id": "large", "entry": "n0", "nodes": nodes, "edges": edges}))
    async with opens("/workflows/large") as page:
        await expect(boxes(page).first).to_be_visible()
        assert await boxes(page).count() < 200, "what is out of sight is not built"
        await page.get_by_role("button", name="Fit view").click()
        drawing = page.get_by_role("img", name="Overview of 300 nodes")
        await expect(drawing).to_be_visible()
        await expect(boxes(page)).to_have_count(0)
        painted = "one => one.getContext('2d').getImageData(0, 0, one.width, one.height).data.some(value => value > 0)"
        assert await drawing.evaluate(painted)
        await page.locator(".react-flow__pane").dblclick(position={"x": 350, "y": 350})
        await expect(drawing).to_have_count(0)
        await expect(boxes(page).first).to_be_visible()
        await spot(page)
        await page.keyboard.press("/")
        await page.get_by_role("combobox", name="Id, name, type").fill("x237")
        await page.keyboard.press("Enter")
        await expect(box(page, "n237")).to_be_visible()

"""Automatic layout of workflows: nothing overlaps, and everything is visible."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Final

from playwright.async_api import Page, expect
from playwright.async_api import TimeoutError as SandboxTimeout

from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_accessibility import address

EXAMPLES: Final = Path(__file__).parents[2] / "examples"
WORKFLOWS: Final = (
    "research/research.json",
    "2nchat/2nchat.json",
    "agentforge/agentforge.yaml",
    "restaurant-finder/restaurant-finder.json",
    "news-desk/news-desk.json",
    "compare-clouds/compare-clouds.json",
)
"""One of each dialect, and the largest."""

LOOKS_EVERY_MS: Final = 250

FAULTS: Final = """(inRows) => {
  const rect = (one) => one.getBoundingClientRect();
  const all = (selector) => [...document.querySelectorAll(selector)];
  const boxes = all('.react-flow__node-box').map((one) => ({ id: one.dataset.id, at: rect(one) }));
  const words = all('.react-flow__edgelabel-renderer > div').map((one) => ({ id: one.textContent, at: rect(one) }));
  const meets = (a, b) =>
    a.left + 1 < b.right && b.left + 1 < a.right && a.top + 1 < b.bottom && b.top + 1 < a.bottom;
  const faults = [];
  const things = [...boxes, ...words];
  things.forEach((one, at) => {
    for (const other of things.slice(at + 1)) if (meets(one.at, other.at)) faults.push(`${other.id} upon ${one.id}`);
  });
  for (const edge of all('.react-flow__edge')) {
    const path = edge.querySelector('path.react-flow__edge-path');
    const ends = edge.dataset.id.replace(/ [0-9]+$/, '').split('->');
    const [length, onScreen] = [path.getTotalLength(), path.getScreenCTM()];
    const points = Array.from({ length: 201 }, (_, step) =>
      path.getPointAtLength((length * step) / 200).matrixTransform(onScreen));
    const inside = ({ x, y }, at) => x > at.left + 1 && x < at.right - 1 && y > at.top + 1 && y < at.bottom - 1;
    for (const { id, at } of boxes) {
      if (!ends.includes(id) && points.some((point) => inside(point, at))) faults.push(`${edge.dataset.id} over ${id}`);
    }
  }
  const canvas = rect(document.querySelector('.react-flow'));
  for (const { id, at } of boxes) {
    // A long graph that is not in rows goes on to the right of the view; its beginning is in view.
    if (at.left < canvas.left || (inRows && at.right > canvas.right)) faults.push(`${id} is cut off`);
    if (at.height < 25) faults.push(`${id} is too small to be read`);
  }
  return faults;
}"""


async def faults(page: Page, *, in_rows: bool = False) -> list[str]:
    """Return the faults of the picture, once there are none or after a limit."""
    with suppress(SandboxTimeout):
        await page.wait_for_function(
            f"(inRows) => ({FAULTS})(inRows).length === 0", arg=in_rows, polling=LOOKS_EVERY_MS
        )
    found: list[str] = await page.evaluate(FAULTS, in_rows)
    return found


async def test_workflows_without_positions_are_laid_out_readably(opens: Opens, served: Served) -> None:
    found: dict[str, list[str]] = {}
    async with opens("/inbox", lenient=True) as page:
        for name in WORKFLOWS:
            workflow = await served.save((EXAMPLES / name).read_text())
            native = (await served.client.get(f"/api/workflows/{workflow}?dialect=native")).json()["document"]
            await page.goto(address(served, f"/workflows/{workflow}"))
            await expect(page.locator(".react-flow__node-box")).to_have_count(len(native["nodes"]))
            found[name] = await faults(page)
            await page.locator(".react-flow__pane").click(position={"x": 40, "y": 40})
            await page.keyboard.press("Shift+T")
            found[f"{name} in rows"] = await faults(page, in_rows=True)
        body = {"input": {"topic": "tea"}, "wait": False}
        started = await served.client.post("/api/workflows/research-workflow/execute", json=body)
        await page.goto(address(served, f"/executions/{started.json()['executionId']}"))
        await expect(page.locator(".react-flow__node-box")).to_have_count(12)
        found["an execution"] = await faults(page)
    assert {name: told for name, told in found.items() if told} == {}


BESIDE: Final = """\
pointsman: 1
id: beside
nodes:
  - {id: first, type: transform, config: {set: {a: "1"}}, position: {x: 0, y: 0}}
  - {id: last, type: transform, config: {set: {b: "2"}}, position: {x: 700, y: 0}}
  - {id: other, type: transform, config: {set: {c: "3"}}, position: {x: 350, y: 200}}
edges:
  - {source: first, target: last}
  - {source: first, target: other}
"""

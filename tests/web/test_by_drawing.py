"""A first-time user draws a research workflow, runs it, approves, and reads the result."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from pointsman.workflows.scripts import parse_script
from tests.server.conftest import Served, serving
from tests.web.conftest import Opens, screenshot
from tests.web.typing_in import PROMPT, write

SCRIPT: Final = """\
rules:
  - {node: agent, json: {questions: [Who uses tidal power?, What does it cost?]}}
  - {node: agent_2, item: "Who uses tidal power?", text: France and South Korea.}
  - {node: agent_2, item: "What does it cost?", text: About 150 euros per megawatt hour.}
  - {node: agent_3, text: "Tidal power: used in France and South Korea, and dear."}
"""


@pytest_asyncio.fixture(loop_scope="session")
async def served(tmp_path: Path) -> AsyncGenerator[Served, None]:
    async with serving(f"sqlite:///{tmp_path}/store.db", script=parse_script(SCRIPT)) as one:
        yield one


async def add(page: Page, kind: str) -> None:
    """Click an entry of the palette: the node is added after the selected one and becomes selected."""
    await page.get_by_label("Node palette").get_by_role("button", name=kind, exact=True).click()
    await expect(page.get_by_role("region", name="Node", exact=True)).to_contain_text(kind)


INSIDE: Final = """() => {
  const canvas = document.querySelector('.react-flow').getBoundingClientRect();
  const node = document.querySelector('.react-flow__node[data-id=start]').getBoundingClientRect();
  return (
    canvas.left <= node.left && canvas.top <= node.top && node.right <= canvas.right && node.bottom <= canvas.bottom
  );
}"""
"""Whether the canvas shows the whole start node. The ratio of areas that a browser computes is not exact."""


async def keeps(page: Page, name: str) -> None:
    await page.get_by_label("Output variable").fill(name)


async def create_workflow(page: Page) -> None:
    """Create a workflow with the input `topic`."""
    await page.get_by_role("button", name="New", exact=True).click()
    await page.get_by_role("textbox", name="Name").fill("My research")
    await page.keyboard.press("Enter")
    await page.get_by_role("button", name="Add field").click()
    await expect(page.get_by_label("Field name")).to_be_focused()
    await page.keyboard.type("topic")
    await page.keyboard.press("Enter")


@pytest.mark.requirement("S1-135", "S1-146")
async def test_a_research_workflow_is_drawn_run_approved_and_read(opens: Opens, served: Served) -> None:
    async with opens() as page:
        await create_workflow(page)
        await add(page, "Agent")
        await expect(page.get_by_text("Write the prompt")).to_be_visible()
        await write(page.get_by_role("textbox", name=PROMPT), "Ask two questions about {topic}")
        answer = page.get_by_role("group", name="Structured output (JSON Schema)")
        await answer.get_by_role("button", name="Add field").click()
        await expect(answer.get_by_label("Field name")).to_be_focused()
        await page.keyboard.type("questions")
        await answer.get_by_label("Type").select_option("list")
        await keeps(page, "plan")
        await add(page, "Parallel")
        await page.wait_for_function(INSIDE)  # What is small stays in sight as it grows.
        await write(page.get_by_role("textbox", name="Items"), "plan.questions")
        await add(page, "Agent")
        await write(page.get_by_role("textbox", name=PROMPT), "{item}")
        await add(page, "Join")
        await keeps(page, "findings")
        await add(page, "Agent")
        await write(page.get_by_role("textbox", name=PROMPT), "Write about {topic} from {findings}")
        await keeps(page, "report")
        await expect(page.get_by_text("Later nodes use it as {report}.")).to_be_visible()
        await add(page, "Person")
        await write(page.get_by_role("textbox", name="Message"), "Publish this? {report}")
        await page.get_by_label("Node palette").get_by_role("button", name="End", exact=True).click()
        await page.get_by_role("dialog", name="Which answer?").get_by_role("option", name="Approve").click()
        await expect(page.locator(".react-flow__node-box")).to_have_count(8)
        await screenshot(page, "tutorial/pictures/drawn", fits=True)

        await page.get_by_role("button", name="Save and start").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("topic").fill("tidal power")
        await dialog.get_by_role("button", name="Start", exact=True).click()
        await expect(page.get_by_role("heading", name="Publish this?")).to_contain_text("dear")
        await screenshot(page, "tutorial/pictures/asked", fits=True)
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_text("completed", exact=True).first).to_be_visible()
        await expect(page.get_by_text("Tidal power: used in France").first).to_be_visible()
        await screenshot(page, "tutorial/pictures/done", fits=True)
        execution = page.url.rpartition("/")[2]
    told = await served.read(execution)
    assert told["status"] == "completed"
    assert told["state"]["findings"] == ["France and South Korea.", "About 150 euros per megawatt hour."]

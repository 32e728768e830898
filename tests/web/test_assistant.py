"""The assistant: a workflow from a description, and described changes that are reviewed before they are accepted."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from pointsman.workflows.scripts import parse_script
from tests.server import flows
from tests.server.conftest import Served, serving
from tests.web.conftest import Opens
from tests.web.test_editor import saved
from tests.web.test_execution import node

SCRIPT: Final = Path(__file__).parents[2] / "examples" / "designing" / "script.yaml"
REVIEW: Final = "Add a review loop before publishing"


@pytest_asyncio.fixture(loop_scope="session")
async def served(tmp_path: Path) -> Any:
    """With the script of the shipped example, so that no model is called."""
    async with serving(f"sqlite:///{tmp_path}/store.db", script=parse_script(SCRIPT.read_text())) as one:
        yield one


async def assistant(page: Page) -> None:
    await page.get_by_role("tab", name="Assistant").click()


async def say(page: Page, words: str) -> None:
    await page.get_by_label("What should change?").fill(words)
    await page.keyboard.press("Enter")


@pytest.mark.requirement("S1-139", "S4-35")
async def test_a_workflow_is_described_corrected_in_rounds_reviewed_and_opened(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    async with opens("/workflows") as page:
        await page.get_by_role("button", name="Describe with AI").click()
        await page.get_by_label("What should the workflow do?").fill("A letter that a person sees before it is sent.")
        await page.keyboard.press("Enter")
        rounds = page.get_by_role("list", name="Rounds")
        await expect(rounds.get_by_text("Round 1: 2 problems")).to_be_visible()
        await expect(rounds.get_by_text("Round 2: no problems")).to_be_visible()
        await expect(page.get_by_role("dialog").get_by_text("tokens")).to_be_visible()
        await expect(node(page, "review")).to_be_visible()
        assert (await served.client.get("/api/workflows/letter-2")).status_code == 404, "nothing is saved yet"
        await expect(page.get_by_label("Workflow id")).to_have_value("letter-2")
        await page.get_by_label("Workflow id").fill("letter")
        await expect(page.get_by_text("This id is already in use.")).to_be_visible()
        await expect(page.get_by_role("button", name="Save and open")).to_be_disabled()
        await page.get_by_label("Workflow id").fill("note")
        await page.get_by_role("button", name="Save and open").click()
        await page.wait_for_url("**/workflows/note")
        await expect(node(page, "sent")).to_be_visible()
        await assistant(page)
        await expect(page.get_by_text("A letter that a person sees before it is sent.")).to_be_visible()
    assert [one["id"] for one in (await saved(served, "note"))["nodes"]] == ["write", "review", "sent"]


@pytest.mark.requirement("S1-139")
async def test_a_proposal_is_accepted_in_part_and_the_model_receives_the_choice(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    asked: list[str] = []
    async with opens("/workflows/chain") as page:
        page.on("request", lambda one: asked.append(one.post_data or "") if one.url.endswith("/edit") else None)
        await assistant(page)
        await page.get_by_role("button", name=REVIEW).click()
        parts = page.get_by_role("group", name="Changes to apply")
        await expect(parts.get_by_role("checkbox", checked=True)).to_have_count(6)
        await parts.get_by_role("checkbox", name="Add node published").press("Space")
        needing = parts.get_by_role("checkbox", name="Connect review → published")
        await expect(needing).to_be_disabled()
        await expect(needing).not_to_be_checked()
        await expect(parts.get_by_text("Requires a part that is not selected.")).to_be_visible()
        entry = parts.get_by_role("checkbox", name="Change workflow entry")
        await entry.press("Space")
        await expect(page.get_by_text(re.compile(r"Adds (one|\d+) problem"))).to_be_visible()
        await entry.press("Space")
        await page.get_by_role("button", name="Accept 4 of 6").press("Enter")
        await expect(page.get_by_text("accepted: 4 of 6 parts")).to_be_visible()
        await expect(page.get_by_text("1 unsaved change")).to_be_visible()
        await expect(node(page, "review")).to_be_visible()
        await expect(node(page, "published")).to_have_count(0)
        await page.get_by_role("button", name="Undo").click()
        await expect(node(page, "review")).to_have_count(0)
        await page.get_by_role("button", name="Redo").click()
        await expect(node(page, "review")).to_be_visible()
        await say(page, "Call it a check instead.")
        await expect(page.get_by_role("button", name="Accept", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Save as draft").click()
        await expect(page.get_by_text("revision 2")).to_be_visible()
    (earlier,) = next(json.loads(one)["earlier"] for one in asked if "Call it a check" in one)
    taken = sorted(one["op"] for one in json.loads(earlier["answer"])["operations"])
    assert taken == ["add_node", "change_workflow", "connect", "connect"]
    document = await saved(served)
    assert [one["id"] for one in document["nodes"]] == ["first", "second", "review"]
    assert ("review", "first") in [(one["source"], one["target"]) for one in document["edges"]]

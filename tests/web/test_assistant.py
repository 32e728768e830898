"""The assistant: a workflow from words, and changes by words that are looked at before they are taken."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from playwright.async_api import Page, expect

from pointsman.authoring.design import Round
from pointsman.authoring.verbs import AuthoringVerbs
from pointsman.values import JsonObject
from pointsman.workflows.scripts import parse_script
from tests.patience import PATIENCE_S
from tests.server import flows
from tests.server.conftest import Served, serving
from tests.web.conftest import AXE, Opens
from tests.web.test_editor import saved
from tests.web.test_execution import node

SCRIPT: Final = Path(__file__).parents[2] / "examples" / "designing" / "script.yaml"
REVIEW: Final = "Add a review loop before publishing"


@pytest_asyncio.fixture(loop_scope="session")
async def served(tmp_path: Path) -> Any:
    """With the script of the shipped example: no model is asked."""
    async with serving(f"sqlite:///{tmp_path}/store.db", script=parse_script(SCRIPT.read_text())) as one:
        yield one


async def assistant(page: Page) -> None:
    await page.get_by_role("tab", name="Assistant").click()


async def say(page: Page, words: str) -> None:
    await page.get_by_label("What shall be different?").fill(words)
    await page.keyboard.press("Enter")


@pytest.mark.requirement("S1-139", "S4-35")
async def test_a_workflow_is_described_mended_in_rounds_looked_at_and_opened(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    async with opens("/workflows") as page:
        await page.get_by_role("button", name="Describe what you need").click()
        await page.get_by_label("What shall it do?").fill("A letter that a person sees before it is sent.")
        await page.keyboard.press("Enter")
        rounds = page.get_by_role("list", name="Rounds")
        await expect(rounds.get_by_text("Round 1: 2 problems")).to_be_visible()
        await expect(rounds.get_by_text("Round 2: nothing is wrong")).to_be_visible()
        await expect(page.get_by_role("dialog").get_by_text("tokens")).to_be_visible()
        await expect(node(page, "review")).to_be_visible()
        assert (await served.client.get("/api/workflows/letter-2")).status_code == 404, "nothing is saved yet"
        await expect(page.get_by_label("Its id")).to_have_value("letter-2")
        await page.get_by_label("Its id").fill("letter")
        await expect(page.get_by_text("There is a workflow of this id.")).to_be_visible()
        await expect(page.get_by_role("button", name="Save and open it")).to_be_disabled()
        await page.get_by_label("Its id").fill("note")
        await page.get_by_role("button", name="Save and open it").click()
        await page.wait_for_url("**/workflows/note")
        await expect(node(page, "sent")).to_be_visible()
        await assistant(page)
        await expect(page.get_by_text("A letter that a person sees before it is sent.")).to_be_visible()
    assert [one["id"] for one in (await saved(served, "note"))["nodes"]] == ["write", "review", "sent"]


@pytest.mark.requirement("S1-139", "S4-35")
async def test_a_change_by_words_is_seen_taken_as_one_undo_and_saved(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    async with opens("/workflows/chain") as page:
        await assistant(page)
        await page.get_by_role("button", name=REVIEW).click()
        proposal = page.get_by_role("region", name="The proposal")
        await expect(proposal.get_by_text("It brings no problems.")).to_be_visible()
        await proposal.get_by_role("tab", name="List").click()
        await expect(proposal.get_by_role("tabpanel", name="List").get_by_text("review", exact=True)).to_be_visible()
        await expect(page.get_by_text("not saved")).to_have_count(0)
        await page.get_by_role("button", name="Accept").click()
        await expect(page.get_by_text("one change not saved")).to_be_visible()
        await expect(node(page, "review")).to_be_visible()
        await page.get_by_role("button", name="Undo").click()
        await expect(node(page, "review")).to_have_count(0)
        await expect(page.get_by_text("not saved")).to_have_count(0)
        await page.get_by_role("button", name="Redo").click()
        await say(page, "Call it a check instead.")
        await expect(page.get_by_role("button", name="Accept")).to_be_visible()
        await page.reload()
        await assistant(page)
        await page.get_by_role("button", name="Accept").click()
        await expect(page.get_by_text("2 changes not saved")).to_be_visible()
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.get_by_text("revision 2")).to_be_visible()
    document = await saved(served)
    assert {one["id"]: one.get("name") for one in document["nodes"]}["review"] == "Check"
    assert ("review", "first") in [(one["source"], one["target"]) for one in document["edges"]]


@pytest.mark.requirement("S1-139")
async def test_of_a_proposal_a_part_is_taken_and_the_rest_refused_and_the_model_hears_which(
    opens: Opens, served: Served
) -> None:
    await served.save(flows.CHAIN)
    asked: list[str] = []
    async with opens("/workflows/chain") as page:
        page.on("request", lambda one: asked.append(one.post_data or "") if one.url.endswith("/edit") else None)
        await assistant(page)
        await page.get_by_role("button", name=REVIEW).click()
        parts = page.get_by_role("group", name="What to take of it")
        await expect(parts.get_by_role("checkbox", checked=True)).to_have_count(6)
        await parts.get_by_role("checkbox", name="Add the node published").press("Space")
        needing = parts.get_by_role("checkbox", name="Connect review → published")
        await expect(needing).to_be_disabled()
        await expect(needing).not_to_be_checked()
        await expect(parts.get_by_text("It needs a part that is left out.")).to_be_visible()
        entry = parts.get_by_role("checkbox", name="Change of the workflow entry")
        await entry.press("Space")
        await expect(page.get_by_text(re.compile(r"It brings (one|\d+) problem"))).to_be_visible()
        await entry.press("Space")
        await page.get_by_role("button", name="Accept 4 of 6").press("Enter")
        await expect(page.get_by_text("accepted: 4 of 6 parts")).to_be_visible()
        await expect(page.get_by_text("one change not saved")).to_be_visible()
        await expect(node(page, "review")).to_be_visible()
        await expect(node(page, "published")).to_have_count(0)
        await page.get_by_role("button", name="Undo").click()
        await expect(node(page, "review")).to_have_count(0)
        await page.get_by_role("button", name="Redo").click()
        await expect(node(page, "review")).to_be_visible()
        await say(page, "Call it a check instead.")
        await expect(page.get_by_role("button", name="Accept", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Save as a draft").click()
        await expect(page.get_by_text("revision 2")).to_be_visible()
    (earlier,) = next(json.loads(one)["earlier"] for one in asked if "Call it a check" in one)
    taken = sorted(one["op"] for one in json.loads(earlier["answer"])["operations"])
    assert taken == ["add_node", "change_workflow", "connect", "connect"]
    document = await saved(served)
    assert [one["id"] for one in document["nodes"]] == ["first", "second", "review"]
    assert ("review", "first") in [(one["source"], one["target"]) for one in document["edges"]]


async def test_what_is_refused_changes_nothing_and_what_fails_is_told_and_tried_again(
    opens: Opens, served: Served
) -> None:
    await served.save(flows.CHAIN)
    async with opens("/workflows/chain") as page:
        await assistant(page)
        await page.get_by_role("button", name=REVIEW).click()
        await page.get_by_role("button", name="Refuse").click()
        await expect(page.get_by_text("refused", exact=True)).to_be_visible()
        await expect(node(page, "review")).to_have_count(0)
        await say(page, "Boom.")
        await expect(page.get_by_role("alert")).to_contain_text("no change of 'chain' came of it")
        await expect(page.get_by_role("button", name="Try again")).to_be_visible()
        await expect(page.get_by_text("not saved")).to_have_count(0)
    assert len((await saved(served))["nodes"]) == 2


async def test_work_is_stopped_by_a_button(opens: Opens, served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = asyncio.Event()

    async def endless(
        _: AuthoringVerbs, __: str, words: str, *, hear: Callable[[Round], None], **how: object
    ) -> JsonObject:
        hear(Round(1, "scripted", words, ()))
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return {}

    monkeypatch.setattr(AuthoringVerbs, "edit_by_words", endless)
    await served.save(flows.CHAIN)
    async with opens("/workflows/chain") as page:
        await assistant(page)
        await say(page, "Better.")
        await expect(page.get_by_text("Round 1: nothing is wrong")).to_be_visible()
        await page.get_by_role("button", name="Stop").click()
        await expect(page.get_by_text("stopped", exact=True)).to_be_visible()
        await asyncio.wait_for(ended.wait(), PATIENCE_S)


async def test_where_no_model_is_the_page_says_how_to_have_one(opens: Opens, served: Served) -> None:
    served.app.context.services.script = None
    await served.save(flows.CHAIN)
    async with opens("/workflows/chain", lenient=True) as page:
        await assistant(page)
        await say(page, "Better.")
        await expect(page.get_by_role("alert")).to_contain_text("No model is set up")
        await expect(page.get_by_role("alert")).to_contain_text('design = "openai:gpt-5"')
        await page.add_script_tag(path=AXE)
        found = await page.evaluate("axe.run('aside', {runOnly: ['wcag2a', 'wcag2aa', 'wcag21aa', 'wcag22aa']})")
        assert [one["id"] for one in found["violations"]] == []

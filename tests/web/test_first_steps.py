"""From nothing to a result: a document is imported, started, asked about, answered; all by hand."""

from __future__ import annotations

import json

from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens


async def test_a_document_is_pasted_checked_saved_and_started_and_its_gate_is_answered(
    opens: Opens, served: Served
) -> None:
    async with opens() as page:
        await expect(page.get_by_text("There are no workflows yet.")).to_be_visible()
        await page.get_by_role("button", name="Import").click()
        await page.get_by_label("The document").fill(flows.LETTER)
        await expect(page.get_by_text("Nothing is wrong with it.")).to_be_visible()
        await page.get_by_role("button", name="Save", exact=True).click()
        await page.wait_for_url("**/workflows/letter")
        await expect(page.get_by_label("What can be added")).to_be_visible()
        await page.get_by_role("button", name="Start", exact=True).first.click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("goal").fill("tides")
        await dialog.get_by_role("button", name="Start", exact=True).click()
        await expect(page.get_by_role("heading", name="Send it?", exact=True)).to_be_visible()
        await expect(page.get_by_role("link", name="Inbox 1")).to_be_visible()
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_text("completed", exact=True).first).to_be_visible()
        execution = page.url.rpartition("/")[2]
    told = await served.read(execution)
    assert (told["status"], told["input"], told["answers"][0]["action"]) == ("completed", {"goal": "tides"}, "approve")


async def test_what_a_document_lacks_is_told_before_it_is_saved(opens: Opens, served: Served) -> None:
    wrong = flows.LETTER.replace("target: send", "target: sned")
    async with opens() as page:
        await page.get_by_role("button", name="Import").click()
        await page.get_by_label("The document").fill(wrong)
        await expect(page.get_by_text("sned").last).to_be_visible()
        await expect(page.get_by_role("button", name="Save", exact=True)).to_be_disabled()
        await page.get_by_label("The document").fill("{")
        await expect(page.get_by_role("button", name="Save", exact=True)).to_be_disabled()
    assert json.loads((await served.client.get("/api/workflows?builtIn=false")).text)["workflows"] == []


async def test_the_inbox_shows_what_waits_and_takes_the_answer(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    first = await served.execute("letter", {"goal": "one"})
    second = await served.execute("letter", {"goal": "two"})
    async with opens("/inbox") as page:
        await expect(page.get_by_role("button", name="Send it? letter")).to_have_count(2)
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_role("button", name="Send it? letter")).to_have_count(1)
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    assert [(await served.ended(one))["status"] for one in (first, second)] == ["completed", "completed"]


async def test_words_are_in_the_language_of_the_browser_and_can_be_changed(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    async with opens(language="de") as page:
        await expect(page.get_by_role("heading", name="Abläufe", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Sprache").click()
        await expect(page.get_by_role("heading", name="Workflows", exact=True)).to_be_visible()
        await page.reload()
        await expect(page.get_by_role("heading", name="Workflows", exact=True)).to_be_visible()


async def test_a_new_workflow_begins_as_a_name_and_never_over_another(opens: Opens, served: Served) -> None:
    await served.save(flows.CHAIN)
    async with opens(lenient=True) as page:
        await page.get_by_role("button", name="New", exact=True).click()
        dialog = page.get_by_role("dialog")
        await expect(dialog.get_by_label("Name")).to_be_focused()
        await page.keyboard.type("Chain")
        await expect(dialog.get_by_label("Id")).to_have_value("chain")
        await page.keyboard.press("Enter")
        await expect(dialog.get_by_role("alert")).to_contain_text("already")
        await dialog.get_by_label("Id").fill("other-chain")
        await dialog.get_by_role("button", name="Draw it").click()
        await page.wait_for_url("**/workflows/other-chain")
        await expect(page.get_by_role("heading", name="Chain", level=1)).to_be_visible()
        await expect(page.locator(".react-flow__node")).to_have_count(1)
    assert (await served.client.get("/api/workflows/chain")).json()["revision"] == 1

"""Answering a gate: what would be refused is said before it is sent, or not offered at all, and to whom."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, Request, Route, expect

from tests.server import flows
from tests.server.conftest import Served
from tests.web.conftest import Opens

ASKS = flows.LETTER.replace(
    'message: "Send it?"',
    'message: "Send it?", form: {type: object, required: [copies], properties: {copies: {type: integer, minimum: 2}}}',
).replace("{value: again}", "{value: again}, {value: reject}")

DESK = flows.LETTER.replace('message: "Send it?"', 'message: "Send it?", approvers: {groups: [desk], delegable: true}')


def answers_of(page: Page) -> list[Request]:
    """Those that the page sends from now on."""
    sent: list[Request] = []
    page.on("request", lambda one: sent.append(one) if one.url.endswith("/respond") else None)
    return sent


async def test_a_form_is_checked_before_it_is_sent_and_who_rejects_need_not_fill_it_in(
    opens: Opens, served: Served
) -> None:
    await served.save(ASKS)
    first = await served.execute("letter", {"goal": "one"})
    second = await served.execute("letter", {"goal": "two"})
    async with opens("/inbox") as page:
        sent = answers_of(page)
        copies = page.get_by_role("spinbutton", name="copies")
        await expect(copies).to_be_visible()
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_text("is required")).to_be_visible()
        await expect(copies).to_be_focused()
        await copies.fill("1")
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_text("has to be at least 2")).to_be_visible()
        assert sent == [], "it was seen in the page"
        await copies.fill("3")
        await page.get_by_role("button", name="Approve").click()
        link = page.get_by_role("link", name="Open the execution of letter")
        await expect(link).to_have_attribute("href", f"/executions/{second}")
        await expect(copies).to_be_visible()
        await page.get_by_role("button", name="Reject").click()
        await expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    approved, rejected = (await served.ended(first))["answers"], (await served.ended(second))["answers"]
    assert [one["data"] for one in approved] == [{"copies": 3}]
    assert [(one["action"], one["data"]) for one in rejected] == [("reject", None)]


async def test_who_is_not_asked_is_told_who_is_and_offered_no_answer(opens: Opens, served: Served) -> None:
    await served.save(DESK)
    execution = await served.execute("letter", {"goal": "one"})
    await served.key("root", "admin")
    ada = await served.key("ada", "operator", "desk")
    keys = [await served.key("eve", "operator"), await served.key("ben", "viewer", "desk"), ada]
    asked = "It is not you who is asked, but the group desk."
    looks = "You may look at this, not answer it: that takes an operator."
    for key, said in zip(keys, (asked, looks, "You passed your right to answer on to eve."), strict=True):
        async with opens(f"/executions/{execution}", lenient=True) as page:
            await page.get_by_label("Key").fill(key["authorization"].removeprefix("Bearer "))
            await page.get_by_role("button", name="Enter").click()
            if key is ada:
                await page.get_by_role("button", name="Pass on").click()
                dialog = page.get_by_role("dialog")
                await dialog.get_by_label("To whom").fill("eve")
                await dialog.get_by_role("button", name="Pass on").click()
                await expect(dialog).to_have_count(0)
            await expect(page.get_by_text(said)).to_be_visible()
            for offer in ("Approve", "again", "Pass on"):
                await expect(page.get_by_role("button", name=offer)).to_have_count(0)
            await expect(page.get_by_label("Comment")).to_have_count(0)
    async with opens("/inbox", lenient=True) as page:
        await page.get_by_label("Key").fill(keys[0]["authorization"].removeprefix("Bearer "))
        await page.get_by_role("button", name="Enter").click()
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    told = await served.client.get(f"/api/workflows/executions/{execution}", headers=keys[0])
    assert (told.json()["status"], told.json()["answers"][0]["by"]) == ("completed", "eve")


SENDS = """\
pointsman: 1
id: sends
config: {humanInLoop: real_time}
input: {type: object, properties: {letter: {type: string}}}
output: {letter: letter}
nodes:
  - id: review
    type: human
    config: {message: Send it?, show: [letter], editable: [letter], actions: [approve, edit, reject]}
  - {id: done, type: end}
edges:
  - {source: review, target: done, condition: {type: label, label: approve}}
  - {source: review, target: done, condition: {type: label, label: edit}}
"""
MOVED = "This changed while you were reading. Look again before you answer."


@pytest.mark.parametrize("place", ["/inbox", "/executions/{}"])
async def test_a_question_that_changes_under_its_reader_is_looked_at_again(
    opens: Opens, served: Served, place: str
) -> None:
    await served.save(SENDS)
    execution = await served.execute("sends", {"letter": "old"})
    async with opens(place.format(execution)) as page:
        sent = answers_of(page)
        letter = page.get_by_label("Edit letter")
        await expect(letter).to_have_value("old")
        await letter.fill("mine")
        await page.get_by_label("Comment").fill("shorter")
        await served.act(execution, "steer", {"set": {"letter": "new"}})
        await expect(page.get_by_text(MOVED)).to_be_visible()
        await expect(letter).to_have_value("mine")
        await expect(page.get_by_label("Comment")).to_have_value("shorter")
        await expect(page.get_by_role("deletion").filter(has_text="new")).to_be_visible()
        for name in ("Approve", "Edit", "Reject"):
            await expect(page.get_by_role("button", name=name, exact=False).first).to_be_disabled()
        assert sent == []
        await expect(page.get_by_text("It does not wait for you any more")).to_have_count(0)
        await page.get_by_role("button", name="Answer what is shown now").click()
        await expect(page.get_by_text(MOVED)).to_have_count(0)
        await page.get_by_role("button", name="Edit").click()
        await expect(page.get_by_label("Edit letter")).to_have_count(0)
    (answer,) = (await served.ended(execution))["answers"]
    assert (answer["data"], answer["comment"], answer["changes"][0]["before"]) == ({"letter": "mine"}, "shorter", "new")


async def test_an_answer_that_crosses_a_change_is_refused_in_words_and_the_page_shows_the_change(
    opens: Opens, served: Served
) -> None:
    await served.save(SENDS)
    execution = await served.execute("sends", {"letter": "old"})
    async with opens(f"/executions/{execution}", lenient=True) as page:
        await expect(page.get_by_label("Edit letter")).to_have_value("old")

        async def first_changed(route: Route) -> None:
            await served.act(execution, "steer", {"set": {"letter": "new"}})
            await route.continue_()

        await page.route("**/respond", first_changed, times=1)
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_text(MOVED)).to_be_visible()
        await expect(page.get_by_label("Edit letter")).to_have_value("new")
        await page.get_by_role("button", name="Answer what is shown now").click()
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_label("Edit letter")).to_have_count(0)
    assert (await served.ended(execution))["output"] == {"letter": "new"}

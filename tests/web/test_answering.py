"""Answering a gate: what would be refused is said before it is sent, or not offered at all, and to whom."""

from __future__ import annotations

from playwright.async_api import Page, Request, expect

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


async def test_a_question_that_changes_under_its_reader_is_looked_at_again(opens: Opens, served: Served) -> None:
    await served.save(SENDS)
    execution = await served.execute("sends", {"letter": "old"})
    async with opens(f"/executions/{execution}") as page:
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

"""The inbox: what waits is answered by keys, one after another; of two who answer, one is told who was first."""

from __future__ import annotations

import json

from playwright.async_api import Page, Route, expect

from tests.server import flows
from tests.server.conftest import Served
from tests.server.test_languages import POLYGLOT
from tests.web.conftest import Opens

EDITABLE = (
    flows.LETTER.replace('message: "Send it?"', 'message: "Send it?", show: [text], editable: [text]')
    .replace("{value: again}", "{value: edit}, {value: again}")
    .replace("{id: review,", "{id: review, name: Look it over,")
    .replace(
        "label: approve}}",
        "label: approve}}\n  - {source: review, target: send, condition: {type: label, label: edit}}",
    )
)

QUORUM = flows.LETTER.replace(
    'message: "Send it?"', 'message: "Send it?", approvers: {users: [ada, ben, cyd], quorum: 2, delegable: true}'
)


async def enter(page: Page, key: dict[str, str]) -> None:
    await page.get_by_label("Key").fill(key["authorization"].removeprefix("Bearer "))
    await page.get_by_role("button", name="Enter").click()


async def test_questions_are_answered_by_keys_and_the_next_one_opens(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    first = await served.execute("letter", {"goal": "one"})
    second = await served.execute("letter", {"goal": "two"})
    async with opens("/inbox") as page:
        link = page.get_by_role("link", name="Open the execution of letter")
        await expect(link).to_have_attribute("href", f"/executions/{first}")
        await page.keyboard.press("j")
        await expect(link).to_have_attribute("href", f"/executions/{second}")
        await page.keyboard.press("k")
        await expect(link).to_have_attribute("href", f"/executions/{first}")
        await page.keyboard.press("a")
        await expect(link).to_have_attribute("href", f"/executions/{second}")
        await page.keyboard.press("a")
        await expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
        third = await served.execute("letter", {"goal": "three"})
        await expect(link).to_have_attribute("href", f"/executions/{third}")
    for execution in (first, second):
        assert (await served.ended(execution))["status"] == "completed"
    assert (await served.read(third))["status"] == "waiting"


async def test_what_is_edited_is_shown_beside_what_was_proposed(opens: Opens, served: Served) -> None:
    await served.save(EDITABLE)
    execution = await served.execute("letter", {"goal": "one"})
    async with opens("/inbox") as page:
        await expect(page.get_by_text("Look it over", exact=True)).to_be_visible()
        await page.get_by_label("Edit text").fill("Better words")
        await expect(page.get_by_text("+ Now: Better words")).to_be_visible()
        await expect(page.get_by_role("button", name="Approve")).to_be_disabled()
        await page.get_by_role("button", name="Edit").click()
        await expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    assert (await served.ended(execution))["output"] == {"letter": "Better words"}


async def test_of_two_who_answer_at_once_the_second_is_told_how_the_first_one_did(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    execution = await served.execute("letter", {"goal": "one"})
    async with opens("/inbox", lenient=True) as page:
        await expect(page.get_by_role("button", name="Approve")).to_be_visible()

        async def late(route: Route) -> None:
            """Another one is faster, while this answer is on its way."""
            await served.act(execution, "respond", {"gateId": "review", "action": "approve"})
            await route.continue_()

        await page.route("**/respond", late, times=1)
        await page.get_by_label("Comment").fill("Too dry")
        await page.get_by_role("button", name="again").click()
        await expect(page.get_by_role("alert")).to_contain_text("is closed")
        await expect(page.get_by_text("It does not wait for you any more")).to_be_visible()
        await expect(page.get_by_label("Comment")).to_have_value("Too dry")
        await page.get_by_role("button", name="The next question").click()
        await expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    assert (await served.ended(execution))["status"] == "completed"


async def test_a_question_that_another_one_answers_does_not_change_under_the_hands(
    opens: Opens, served: Served
) -> None:
    await served.save(flows.LETTER)
    first = await served.execute("letter", {"goal": "one"})
    second = await served.execute("letter", {"goal": "two"})
    async with opens("/inbox") as page:
        link = page.get_by_role("link", name="Open the execution of letter")
        await expect(link).to_have_attribute("href", f"/executions/{first}")
        await served.act(first, "respond", {"gateId": "review", "action": "approve"})
        await expect(page.get_by_text("It does not wait for you any more")).to_be_visible()
        await expect(link).to_have_attribute("href", f"/executions/{first}")
        await page.get_by_role("button", name="The next question").click()
        await expect(link).to_have_attribute("href", f"/executions/{second}")


async def test_an_answer_is_kept_while_the_server_is_away_and_counts_once(opens: Opens, served: Served) -> None:
    await served.save(flows.LETTER)
    execution = await served.execute("letter", {"goal": "one"})
    keys: list[str] = []
    async with opens("/inbox", lenient=True) as page:

        async def away(route: Route) -> None:
            """First nobody is there; then the answer comes to be, and only the word of it is lost."""
            body = json.loads(route.request.post_data or "{}")
            keys.append(body["key"])
            if len(keys) == 1:
                await route.abort("connectionrefused")
            elif len(keys) == 2:
                await served.act(execution, "respond", body)
                await route.fulfill(status=503, json={"code": "closing", "detail": "It goes."})
            else:
                await route.continue_()

        await page.route("**/respond", away)
        await page.get_by_role("button", name="again").click()
        await expect(page.get_by_text("Your answer is kept and sent again.")).to_be_visible()
        link = page.get_by_role("link", name="Open the execution of letter")
        await expect(link).to_be_visible()
        await expect(page.get_by_text("Your answer is kept and sent again.")).to_have_count(0)
        await expect(page.get_by_role("alert")).to_have_count(0)
    assert len(set(keys)) == 1
    assert len(keys) == 3
    asked = [one for one in (await served.read(execution))["waiting"] if one["nodeId"] == "review"]
    assert [one["visit"] for one in asked] == [2], "it was sent back once"


async def test_two_of_three_agree_and_one_passes_her_right_on(opens: Opens, served: Served) -> None:
    await served.save(QUORUM)
    execution = await served.execute("letter", {"goal": "one"})
    await served.key("root", "admin")
    ada, ben, dora = [await served.key(name, "operator") for name in ("ada", "ben", "dora")]
    async with opens("/inbox", lenient=True) as page:
        await enter(page, ada)
        await expect(page.get_by_text("0 of 2 votes")).to_be_visible()
        await page.get_by_label("Comment").fill("Fine by me")
        await page.get_by_role("button", name="Approve").click()
        await expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
    async with opens("/inbox", lenient=True) as page:
        await enter(page, ben)
        await expect(page.get_by_text("1 of 2 votes")).to_be_visible()
        await expect(page.get_by_role("list", name="Votes")).to_contain_text("ada: Approve – Fine by me")
        await page.get_by_label("Asked").select_option("whoever comes first")
        await expect(page.get_by_text("Nothing of that kind waits.")).to_be_visible()
        await page.get_by_label("Asked").select_option("me by name")
        await page.get_by_role("button", name="Pass on").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("To whom").fill("dora")
        await dialog.get_by_label("Why").fill("She knows the tides")
        await dialog.get_by_role("button", name="Pass on").click()
        await expect(dialog).to_have_count(0)
        await expect(page.get_by_role("button", name="Approve")).to_have_count(0)
    async with opens("/inbox", lenient=True, language="de", theme="dark", size=(390, 844)) as page:
        await page.get_by_label("Schlüssel").fill(dora["authorization"].removeprefix("Bearer "))
        await page.get_by_role("button", name="Anmelden", exact=True).click()
        await expect(page.get_by_text("ben gab es an dora weiter")).to_be_visible()
        await page.get_by_role("button", name="Freigeben").click()
        await expect(page.get_by_text("Nichts wartet auf Sie.")).to_be_visible()
    told = await served.client.get(f"/api/workflows/executions/{execution}", headers=ada)
    assert told.json()["status"] == "completed"


async def test_admins_see_what_waits_for_everybody(opens: Opens, served: Served) -> None:
    await served.save(QUORUM)
    execution = await served.execute("letter", {"goal": "one"})
    root = await served.key("root", "admin")
    async with opens("/inbox", lenient=True) as page:
        await enter(page, root)
        await expect(page.get_by_text("Nothing waits for you.")).to_be_visible()
        await page.get_by_label("Asked").select_option("everybody")
        link = page.get_by_role("link", name="Open the execution of letter")
        await expect(link).to_have_attribute("href", f"/executions/{execution}")
        await expect(page.get_by_text("It is not you who is asked, but ada, ben, or cyd.")).to_be_visible()
        for offer in ("Approve", "again", "Pass on"):
            await expect(page.get_by_role("button", name=offer)).to_have_count(0)


async def test_each_is_asked_in_their_language_and_nodes_are_called_by_their_names(
    opens: Opens, served: Served
) -> None:
    await served.save(POLYGLOT)
    execution = await served.execute("polyglot", {"goal": "tides"})
    async with opens("/inbox", language="de") as page:
        await expect(page.get_by_role("heading", name="tides abschicken?")).to_be_visible()
        await expect(page.get_by_role("button", name="tides abschicken?")).to_be_visible()
        await expect(page.get_by_text("Durchsicht", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Abschicken", exact=True).click()
        await expect(page.get_by_role("heading", name="Nachsehen")).to_be_visible()
        await expect(page.get_by_role("listitem").get_by_role("button", name="Nachsehen")).to_be_visible()
        await expect(page.get_by_role("button", name="Freigeben")).to_be_visible()
    async with opens(f"/executions/{execution}") as page:
        await expect(page.get_by_role("heading", name="Look", exact=True)).to_be_visible()
        await expect(page.get_by_role("button", name="Approve")).to_be_visible()

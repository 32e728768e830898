"""What is remembered: found by whose it is and by words, looked into, corrected, forgotten."""

from __future__ import annotations

import re

import pytest
from playwright.async_api import expect

from tests.server.conftest import Served
from tests.web.conftest import Opens
from tests.web.test_accessibility import settled, violations


async def remember(served: Served, scope: str, owner: str, key: str, value: object, **more: object) -> None:
    reply = await served.client.put(
        f"/api/memory/{scope}/value", params={"owner": owner, "key": key}, json={"value": value, **more}
    )
    assert reply.status_code == 200, reply.text


async def test_a_value_is_found_looked_into_corrected_and_forgotten(opens: Opens, served: Served) -> None:
    await remember(served, "user", "ada", "likes", {"places": ["the sea", "maps"]})
    await remember(served, "user", "ada", "note", "hello")
    await remember(served, "user", "bob", "note", "other")
    async with opens("/memory") as page:
        await page.get_by_label("Search whose").fill("ad")
        table = page.get_by_role("table", name="People")
        await expect(table.get_by_role("row")).to_have_count(2)
        await table.get_by_role("link", name="ada").click()
        await expect(page.get_by_role("table", name="What is remembered").get_by_role("row")).to_have_count(3)
        await page.get_by_label("Search what is remembered").fill("maps")
        await expect(page.get_by_role("table", name="What is remembered").get_by_role("row")).to_have_count(2)
        await page.get_by_role("button", name="likes").click()
        dialog = page.get_by_role("dialog", name="likes")
        await dialog.get_by_role("button", name="places: list of 2").click()
        await expect(dialog.get_by_text("the sea")).to_have_count(0)
        await dialog.get_by_role("button", name="Edit").click()
        await dialog.get_by_label("The value (JSON)").fill('{"places": ')
        await expect(dialog.get_by_text("This is not JSON yet.")).to_be_visible()
        await expect(dialog.get_by_role("button", name="Save")).to_be_disabled()
        await dialog.get_by_label("The value (JSON)").fill('{"places": ["hills"]}')
        await dialog.get_by_label("Forget it").select_option("in a day")
        await dialog.get_by_role("button", name="Save").click()
        await expect(dialog).to_have_count(0)
        values = (await served.client.get("/api/memory/user?owner=ada")).json()["values"]
        assert values[0]["value"] == {"places": ["hills"]}
        assert round(values[0]["expiresAt"] - values[0]["changedAt"]) == 86_400
        await page.get_by_label("Search what is remembered").fill("")
        await page.get_by_role("button", name="note").click()
        await page.get_by_role("dialog").get_by_role("button", name="Forget").click()
        await page.get_by_role("dialog", name="Forget note?").get_by_role("button", name="Forget").click()
        await expect(page.get_by_role("table", name="What is remembered").get_by_role("row")).to_have_count(2)
    assert [one["key"] for one in (await served.client.get("/api/memory/user?owner=ada")).json()["values"]] == ["likes"]
    assert len((await served.client.get("/api/memory/user?owner=bob")).json()["values"]) == 1


async def test_something_new_is_remembered_and_everything_is_forgotten(opens: Opens, served: Served) -> None:
    await remember(served, "shared", "team", "plan", 1)
    async with opens("/memory/shared/team") as page:
        await page.get_by_role("button", name="Remember something").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Key").fill("goal")
        await dialog.get_by_label("The value (JSON)").fill('"ship"')
        await dialog.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("button", name="goal")).to_be_visible()
        assert (await served.client.get("/api/memory/shared/value?owner=team&key=goal")).json()["value"] == "ship"
        await page.get_by_role("button", name="Forget all").click()
        await page.get_by_role("dialog").get_by_role("button", name="Forget all").click()
        await page.wait_for_url(re.compile("/memory$"))
        await expect(page.get_by_text("Nothing is remembered yet.")).to_be_visible()
    assert (await served.client.get("/api/memory")).json()["owners"] == []


NOTE = """
id: note
name: Travel desk
input: {type: object}
nodes:
  - {id: keep, type: memory, config: {scope: user, operation: set, key: likes, value: likes}}
edges: []
"""


async def test_who_wrote_a_value_and_what_it_was_is_seen_and_put_back(opens: Opens, served: Served) -> None:
    await served.save(NOTE)
    execution = await served.execute("note", {"likes": {"places": ["the sea"]}})
    await remember(served, "user", "local", "likes", {"places": ["the sea", "maps"]})
    await remember(served, "user", "local", "likes", {"places": ["hills"]})
    async with opens("/memory/user/local") as page:
        await page.get_by_role("button", name="likes", exact=True).click()
        dialog = page.get_by_role("dialog", name="likes", exact=True)
        past = dialog.get_by_role("list", name="What it was before", exact=True).locator("> li")
        await expect(past).to_have_count(3)
        await expect(past.nth(0)).to_contain_text("now")
        await expect(past.nth(2)).to_contain_text("Travel desk")
        await past.nth(1).locator("summary").click()
        await expect(past.nth(1)).to_contain_text("Written by local (at this machine)")
        await expect(past.nth(1).get_by_text("places[1]", exact=True)).to_be_visible()
        await expect(past.nth(1).locator("ins")).to_have_text("maps")
        await past.nth(2).locator("summary").click()
        link = past.nth(2).get_by_role("link", name="Travel desk", exact=True)
        await expect(link).to_have_attribute("href", f"/executions/{execution}")
        await past.nth(1).get_by_role("button", name="Put back", exact=True).click()
        ask = page.get_by_role("dialog", name="Put back an earlier value of likes?", exact=True)
        await expect(ask).to_contain_text('{"places":["the sea","maps"]}')
        await ask.get_by_role("button", name="Put back", exact=True).click()
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await expect(page.get_by_role("table", name="What is remembered")).to_contain_text('["the sea","maps"]')
        await page.get_by_role("button", name="likes", exact=True).click()
        await expect(past).to_have_count(4)
        await expect(past.nth(1)).to_contain_text("hills")
        await past.nth(3).locator("summary").click()
        await past.nth(3).get_by_role("link", name="Travel desk", exact=True).click()
        await page.wait_for_url(re.compile(f"/executions/{execution}"))
    told = (await served.client.get("/api/memory/user/history?owner=local&key=likes")).json()["changes"]
    assert [(one["number"], one["value"]["places"]) for one in told] == [
        (4, ["the sea", "maps"]),
        (3, ["hills"]),
        (2, ["the sea", "maps"]),
        (1, ["the sea"]),
    ]


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_what_it_is_now_is_not_put_back_and_is_told_in_german(opens: Opens, served: Served, theme: str) -> None:
    await remember(served, "shared", "team", "plan", {"until": "May"})
    await remember(served, "shared", "team", "plan", {"until": "June"})
    async with opens("/memory/shared/team", language="de", theme=theme, lenient=True) as page:
        await page.get_by_role("button", name="plan", exact=True).click()
        past = page.get_by_role("list", name="Was es vorher war", exact=True).locator("> li")
        await expect(past).to_have_count(2)
        await past.nth(0).locator("summary").click()
        await expect(past.nth(0)).to_contain_text("Geschrieben von local (an diesem Rechner)")
        await expect(past.nth(0).get_by_role("button", name="Zurückholen")).to_have_count(0)
        await expect(past.nth(0).locator("del")).to_have_text("May")
        await past.nth(1).locator("summary").click()
        await expect(past.nth(1).get_by_role("button", name="Zurückholen", exact=True)).to_be_visible()
        await settled(page)
        assert await violations(page) == []


async def test_names_and_values_of_strangers_are_text(opens: Opens, served: Served) -> None:
    hostile = '<img src=x onerror="document.title=1">/..?owner=bob#x'
    await remember(served, "user", hostile, hostile, {hostile: hostile})
    async with opens("/memory") as page:
        await page.get_by_role("link", name=hostile).click()
        await page.get_by_role("button", name=hostile).click()
        await expect(page.get_by_role("dialog").get_by_text(hostile).first).to_be_visible()
        assert await page.locator("img[src=x]").count() == 0

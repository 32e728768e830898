"""Keys, people, secrets and settings: made and taken back by hand, and what is secret is not to be seen."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.server import flows
from tests.server.conftest import Served
from tests.server.test_logins import log_in
from tests.web.conftest import Opens


async def test_the_first_key_is_made_shown_once_and_opens_the_server_and_another_is_revoked(
    opens: Opens, served: Served
) -> None:
    async with opens("/keys", lenient=True) as page:
        await expect(page.get_by_text("No key is made.")).to_be_visible()
        await page.get_by_role("button", name="Make a key").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Name").fill("root")
        await expect(dialog.get_by_label("Role")).to_have_value("admin")
        await dialog.get_by_role("button", name="Make a key").click()
        shown = str(await dialog.locator("code").inner_text())
        await dialog.get_by_role("button", name="I have kept it").click()
        await expect(page.get_by_role("row", name="root")).to_be_visible()
        assert (await served.client.get("/api/me")).status_code == 401, "from now on a key is asked for"
        await expect(page.get_by_role("button", name="Log out")).to_be_visible()
        assert shown not in await page.content()
        await page.get_by_role("button", name="Make a key").click()
        await dialog.get_by_label("Name").fill("ada")
        await dialog.get_by_label("Role").select_option("editor")
        await dialog.get_by_label("Groups").fill("desk, night, desk")
        await dialog.get_by_label("Days").fill("30")
        await dialog.get_by_role("button", name="Make a key").click()
        await dialog.get_by_role("button", name="I have kept it").click()
        await expect(page.get_by_role("row", name="ada")).to_contain_text("desk, night")
        (ada, _) = await served.desk.keys.all()
        assert (ada.role, ada.groups, ada.expires is not None) == ("editor", ("desk", "night"), True)
        await page.get_by_role("button", name="Revoke ada").click()
        await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        await expect(page.get_by_role("row", name="ada")).to_have_count(0)
        await page.get_by_role("button", name="Revoke root").click()
        await page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        await expect(page.get_by_role("alert")).to_contain_text("the only key of an admin")
    assert [one.name for one in await served.desk.keys.all()] == ["root"]


async def test_people_are_found_logged_out_everywhere_and_their_rights_are_looked_up(
    opens: Opens, served: Served
) -> None:
    for number in range(50):
        await served.key(f"bob{number}", "operator")
    root, ada = await served.key("root", "admin"), await served.key("ada", "viewer", "desk")
    browser = await log_in(served, ada)
    async with opens("/people", lenient=True) as page:
        await page.get_by_label("Key").fill(root["authorization"].removeprefix("Bearer "))
        await page.get_by_role("button", name="Enter").click()
        people = page.get_by_role("table", name="People", exact=True)
        await expect(people.get_by_role("row", name="bob0")).to_be_visible()
        await expect(people.get_by_role("row", name="root")).to_have_count(0)
        await page.get_by_label("Search people").fill("desk")
        await expect(people.get_by_role("row")).to_have_count(2)
        await page.get_by_label("Search people").fill("")
        await page.get_by_role("button", name="Show more").first.click()
        await expect(people.get_by_role("row", name="root")).to_be_visible()
        await page.get_by_role("button", name="Log ada out everywhere").click()
        await page.get_by_role("dialog").get_by_role("button", name="Log out everywhere").click()
        await expect(page.get_by_role("dialog")).to_have_count(0)
        await expect(page.get_by_role("button", name="Log ada out everywhere")).to_have_count(0)
        assert (await served.client.get("/api/me", headers=browser)).status_code == 401
        await page.get_by_label("Search operations").fill("rollback")
        row = page.get_by_role("row", name="POST /api/workflows/{id}/rollback")
        await expect(row.get_by_role("img", name="yes")).to_have_count(2)


async def test_a_secret_goes_in_is_used_replaced_and_deleted_and_never_comes_out(
    opens: Opens, served: Served, monkeypatch: pytest.MonkeyPatch, tmp_path: object
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    await served.save(flows.CHAIN.replace("prompt: one", 'prompt: "with secret.WEATHER"'))
    async with opens("/secrets") as page:
        await page.get_by_role("button", name="Add a secret").click()
        dialog = page.get_by_role("dialog")
        await dialog.get_by_label("Name").fill("2 bad")
        await expect(dialog.get_by_text("not a digit first")).to_be_visible()
        await dialog.get_by_label("Name").fill("WEATHER")
        await dialog.get_by_label("Value").fill("short")
        await expect(dialog.get_by_role("button", name="Keep it")).to_be_disabled()
        await dialog.get_by_label("Value").fill("canary-one-1")
        await dialog.get_by_role("button", name="Keep it").click()
        row = page.get_by_role("row", name="secret.WEATHER")
        await expect(row.get_by_role("link", name="chain")).to_be_visible()
        assert served.app.settings.secret("WEATHER") == "canary-one-1"
        await page.get_by_role("button", name="Replace WEATHER").click()
        await dialog.get_by_label("Value").fill("canary-two-2")
        await dialog.get_by_role("button", name="Keep it").click()
        await expect(dialog).to_have_count(0)
        assert served.app.settings.secret("WEATHER") == "canary-two-2"
        assert "canary" not in await page.content()
        await page.get_by_role("button", name="Delete WEATHER").click()
        await dialog.get_by_role("button", name="Delete").click()
        await expect(page.get_by_text("No secret is kept.")).to_be_visible()
    assert await served.app.vault.all() == []


async def test_settings_are_read_and_pages_of_admins_are_not_offered_to_others(opens: Opens, served: Served) -> None:
    async with opens("/settings") as page:
        await expect(page.get_by_text("sqlite:", exact=False).first).to_be_visible()
        await page.get_by_label("Search settings").fill("delays")
        await expect(page.get_by_role("row", name="delays")).to_contain_text("false")
    ada = await served.key("ada", "editor")
    async with opens("/settings", lenient=True) as page:
        await page.get_by_label("Key").fill(ada["authorization"].removeprefix("Bearer "))
        await page.get_by_role("button", name="Enter").click()
        await expect(page.get_by_role("alert")).to_contain_text("may not read the settings")
        await page.get_by_role("button", name="More").click()
        await expect(page.get_by_role("menuitem", name="Usage")).to_be_visible()
        await expect(page.get_by_role("menuitem", name="Keys")).to_have_count(0)


async def test_whose_key_is_revoked_is_asked_who_they_are_where_they_are(opens: Opens, served: Served) -> None:
    ada = await served.key("ada", "viewer")
    await served.key("root", "admin")
    async with opens("/usage", lenient=True) as page:
        await expect(page.get_by_role("heading", name="Who are you?", exact=True)).to_be_visible()
        await page.get_by_label("Key", exact=True).fill(ada["authorization"].removeprefix("Bearer "))
        await page.get_by_role("button", name="Enter").click()
        await expect(page.get_by_role("heading", name="Usage", exact=True)).to_be_visible()
        await served.desk.keys.revoke("ada")
        await expect(page.get_by_role("heading", name="Who are you?", exact=True)).to_be_visible()


async def test_who_is_let_in_to_read_is_offered_nothing_that_would_be_refused(opens: Opens, served: Served) -> None:
    owner = await served.key("ada", "editor", "tides")
    reader = await served.key("bob", "viewer", "tides")
    await served.key("root", "admin")
    made = await served.client.post("/api/workflows", content=flows.LETTER, headers=owner)
    assert made.status_code == 201, made.text
    share = {"audience": "groups", "groups": ["tides"]}
    assert (await served.client.put("/api/workflows/letter/sharing", json=share, headers=owner)).status_code == 200
    body = {"input": {"goal": "tides"}, "wait": True}
    begun = await served.client.post("/api/workflows/letter/execute", json=body, headers=owner)
    execution = begun.json()["executionId"]
    async with opens("/workflows", lenient=True) as page:
        await page.get_by_label("Key").fill(reader["authorization"].removeprefix("Bearer "))
        await page.get_by_role("button", name="Enter").click()
        await expect(page.get_by_role("link", name="letter", exact=True)).to_be_visible()
        for offer in ("New workflow", "Import", "Start", "Who may see"):
            await expect(page.get_by_role("button", name=offer, exact=False)).to_have_count(0)
        await expect(page.get_by_role("switch")).to_have_count(0)
        await page.get_by_role("link", name="letter", exact=True).click()
        await expect(page.locator(".react-flow__node").filter(has_text="review")).to_be_visible()
        await expect(page.get_by_text("You may look at this workflow, not change it")).to_be_visible()
        for offer in ("Save", "Clone", "Delete", "Start", "Try it"):
            await expect(page.get_by_role("button", name=offer, exact=True)).to_have_count(0)
        await page.locator(".react-flow__node").filter(has_text="write").click()
        await expect(page.get_by_label("prompt")).to_have_text("Write about {goal}")
        await page.get_by_label("prompt").press_sequentially("mine")
        await page.get_by_role("button", name="Remove the node").click()
        await expect(page.locator(".react-flow__node").filter(has_text="write")).to_be_visible()
        await expect(page.get_by_text("not saved")).to_have_count(0)
        await page.goto(f"{served.client.base_url}/executions/{execution}")
        await expect(page.locator(".react-flow__node").filter(has_text="review")).to_be_visible()
        for offer in ("Pause", "Cancel", "Steer", "Fork", "Delete"):
            await expect(page.get_by_role("button", name=offer, exact=True)).to_have_count(0)

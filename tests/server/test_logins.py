"""Browser logins: a key is sent once, and a cookie replaces it until the logout."""

from __future__ import annotations

from typing import Any

import pytest

from pointsman.auth.people import EACH_MAX, Logins
from pointsman.server.context import COOKIE
from pointsman.values import Instant
from tests.installation import HandClock
from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN


async def log_in(served: Served, key: dict[str, str]) -> dict[str, str]:
    """Return the headers that a browser sends after the login, from a page of the server."""
    shown = key["authorization"].removeprefix("Bearer ")
    reply = await served.client.post("/api/login", json={"key": shown})
    assert reply.status_code == 200, reply.text
    set_cookie = reply.headers["set-cookie"]
    flags = {part.strip().lower() for part in set_cookie.split(";")[1:]}
    assert {"httponly", "secure", "samesite=strict", "path=/"} <= flags
    assert not any(flag.startswith("domain") for flag in flags)
    name, _, value = set_cookie.partition(";")[0].partition("=")
    assert name == COOKIE
    assert shown not in set_cookie
    return {"cookie": f"{name}={value}", "origin": str(served.client.base_url).rstrip("/")}


async def me(served: Served, headers: dict[str, str]) -> Any:
    return (await served.client.get("/api/me", headers=headers)).json()


async def test_a_cookie_replaces_the_key_until_logout(file_store: str) -> None:
    async with serving(file_store, is_local=False) as served:
        key = await served.key("ada", "editor", "desk")
        browser = await log_in(served, key)
        found = await me(served, browser)
        assert (found["name"], found["role"], found["groups"], found["entrance"]) == (
            "ada",
            "editor",
            ["desk"],
            "login",
        )
        assert (await me(served, key))["entrance"] == "key"
    async with serving(file_store, is_local=False) as again:
        browser["origin"] = str(again.client.base_url).rstrip("/")
        saved = await again.client.post("/api/workflows", content=CHAIN, headers=browser)
        assert saved.status_code == 201, "a login outlives the process that began it"
        out = await again.client.post("/api/logout", headers=browser)
        assert out.status_code == 204
        assert "max-age=0" in out.headers["set-cookie"].lower()
        assert (await again.client.get("/api/me", headers=browser)).status_code == 401


async def test_a_login_has_the_present_rights_of_its_key(served: Served) -> None:
    await served.key("root", "admin")
    browser = await log_in(served, await served.key("ada", "editor"))
    await served.desk.keys.revoke("ada")
    assert (await served.client.get("/api/me", headers=browser)).status_code == 401
    await served.key("ada", "admin")
    assert (await served.client.get("/api/me", headers=browser)).status_code == 401, "another key of the same name"


async def test_a_cookie_works_only_for_pages_of_the_server(served: Served) -> None:
    browser = await log_in(served, await served.key("ada", "editor"))
    cookie = {"cookie": browser["cookie"]}
    for headers in ({}, {"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}):
        reply = await served.client.post("/api/workflows", content=CHAIN, headers={**cookie, **headers})
        assert (reply.status_code, reply.json()["code"]) == (403, "origin-refused"), headers
    assert (await served.client.get("/api/workflows?builtIn=false", headers=cookie)).json() == {
        "workflows": [],
        "next": None,
    }
    own = {**cookie, "sec-fetch-site": "same-origin"}
    assert (await served.client.post("/api/workflows", content=CHAIN, headers=own)).status_code == 201


@pytest.mark.parametrize("cookie", ["", "x", "../../etc/passwd", '"', "a" * 4000])
async def test_a_forged_cookie_grants_no_access(served: Served, cookie: str) -> None:
    await served.key("ada", "viewer")
    reply = await served.client.get("/api/me", headers={"cookie": f"{COOKIE}={cookie}"})
    assert (reply.status_code, reply.json()["code"]) == (401, "not-signed-in")


async def test_a_wrong_key_does_not_log_in(served: Served) -> None:
    await served.key("ada", "viewer")
    reply = await served.client.post("/api/login", json={"key": "pm_guess"})
    assert (reply.status_code, reply.json()["code"]) == (401, "not-signed-in")
    assert "set-cookie" not in reply.headers


async def test_logins_are_listed_and_ended_by_their_users_and_by_admins(served: Served) -> None:
    admin = await served.key("root", "admin")
    ada, bob = await served.key("ada", "viewer"), await served.key("bob", "viewer")
    browser = await log_in(served, ada)
    (one,) = (await served.client.get("/api/logins", headers=ada)).json()["logins"]
    assert one["name"] == "ada"
    assert one["id"] not in browser["cookie"]
    assert (await served.client.get("/api/logins", headers=bob)).json()["logins"] == []
    assert (await served.client.get("/api/logins?everyone=true", headers=bob)).status_code == 403
    assert len((await served.client.get("/api/logins?everyone=true", headers=admin)).json()["logins"]) == 1
    refused = await served.client.delete(f"/api/logins/{one['id']}", headers=bob)
    assert (refused.status_code, refused.json()["code"]) == (404, "no-such-login")
    assert (await me(served, browser))["name"] == "ada"
    assert (await served.client.delete(f"/api/logins/{one['id']}", headers=admin)).status_code == 204
    assert (await served.client.get("/api/me", headers=browser)).status_code == 401


async def test_a_new_login_of_a_browser_ends_its_previous_one(served: Served) -> None:
    token = await served.desk.keys.make("ada", "viewer")

    async def logged_in(headers: dict[str, str]) -> dict[str, str]:
        reply = await served.client.post("/api/login", json={"key": token}, headers=headers)
        served.client.cookies.clear()
        return {"cookie": reply.headers["set-cookie"].partition(";")[0]}

    async def status(headers: dict[str, str]) -> int:
        return (await served.client.get("/api/me", headers=headers)).status_code

    first = await logged_in({})
    elsewhere = await logged_in({})
    again = await logged_in(first)
    assert [await status(one) for one in (first, again, elsewhere)] == [401, 200, 200]


async def test_a_login_expires_and_the_oldest_is_replaced(served: Served) -> None:
    clock = HandClock()
    logins = Logins(served.app.store.entries, clock, served.desk.keys, lasts=served.app.settings.access.login.seconds)
    token = await served.desk.keys.make("ada", "viewer", expires=Instant(4_000_000_000.0))
    ada = await served.desk.keys.caller(token)
    assert ada is not None
    first, entered = await logins.begin(ada, key=token)
    assert entered.until == clock.at + 43_200
    rest: list[str] = []
    for _ in range(EACH_MAX):
        clock.at += 1
        rest.append((await logins.begin(ada, key=token))[0])
    assert await logins.caller(first) is None, "the oldest made room"
    assert await logins.caller(rest[0]) is not None
    assert len(await logins.all("ada")) == EACH_MAX
    clock.at += 43_200
    assert await logins.caller(rest[-1]) is None
    assert await logins.purge() == EACH_MAX
    assert await logins.all() == []


async def test_keys_are_made_listed_and_revoked_over_http(served: Served) -> None:
    first = await served.client.post("/api/settings/keys", json={"name": "root", "role": "admin"})
    assert first.status_code == 201, "while no key is made, this machine may make one"
    root = {"authorization": f"Bearer {first.json()['key']}"}
    made = await served.client.post(
        "/api/settings/keys", json={"name": "ada", "role": "viewer", "groups": ["desk"], "days": 2}, headers=root
    )
    ada = {"authorization": f"Bearer {made.json()['key']}"}
    assert (await me(served, ada))["groups"] == ["desk"]
    twice = await served.client.post("/api/settings/keys", json={"name": "ada"}, headers=root)
    assert (twice.status_code, twice.json()["code"]) == (409, "key-exists")
    listed = await served.client.get("/api/settings/keys", headers=root)
    assert [key["name"] for key in listed.json()["keys"]] == ["ada", "root"]
    assert not any(key["key"] in listed.text for key in (first.json(), made.json()))
    assert (await served.client.delete("/api/settings/keys/ada", headers=root)).status_code == 204
    assert (await served.client.get("/api/me", headers=ada)).status_code == 401
    last = await served.client.delete("/api/settings/keys/root", headers=root)
    assert (last.status_code, last.json()["code"]) == (409, "last-admin")
    assert (await me(served, root))["name"] == "root"


@pytest.mark.parametrize("name", ["a/b", "..", "\n", "x" * 101, "\u0000", "\u202e"])
async def test_a_key_name_must_be_usable_in_a_path(served: Served, name: str) -> None:
    reply = await served.client.post("/api/settings/keys", json={"name": name})
    assert reply.status_code == 422
    assert await served.desk.keys.all() == []

"""Connecting tools over HTTP: for admins, from the server's own pages, without the key in any answer or log."""

from __future__ import annotations

import logging

import pytest

from pointsman.auth.callers import Role
from pointsman.settings import Settings
from tests.server.conftest import serving

CANARY = "tk-canary-31d1f1e0"
PLACE = "/api/tool-connections/desk"
SAVED = {
    "kind": "mcp",
    "url": "https://mcp.example.com/mcp",
    "tools": ["*"],
    "auth": "bearer",
    "key": CANARY,
    "test": False,
}
TESTED = {name: value for name, value in SAVED.items() if name != "test"}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_VAULT_KEYS", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")


async def test_a_server_is_connected_changed_and_disconnected_without_its_key_in_any_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(settings=Settings()) as served:
        client = served.client
        answers = [await client.put(PLACE, json=SAVED)]
        assert answers[0].json() == {"saved": True, "test": None}
        etag = answers[0].headers["etag"]
        answers.append(await client.put(PLACE, json={**SAVED, "key": None}, headers={"if-match": etag}))
        answers += [await client.get(f"/api/{path}") for path in ("tool-connections", "secrets", "audit", "settings")]
        listed = answers[2].json()["connections"]
        assert [(one["name"], one["auth"], one["etag"] != etag) for one in listed] == [("desk", "bearer", True)]
        answers += [await client.put(PLACE, json={**SAVED, "url": "ftp://x"})]
        answers += [await client.put(PLACE, json={**SAVED, "surprise": 1})]
        answers += [await client.put(PLACE, json=SAVED, headers={"if-match": etag})]
        answers += [await client.delete(PLACE, headers={"if-match": etag})]
        assert [one.status_code for one in answers] == [*[200] * 6, 422, 422, 409, 409]
        assert all(CANARY not in one.text for one in answers)
        assert (await client.delete(PLACE)).status_code == 204
        assert (await client.delete(PLACE)).status_code == 404
    assert CANARY not in caplog.text


async def test_a_server_of_the_settings_is_not_connected() -> None:
    settings = Settings.model_validate({"mcp": {"desk": {"url": "https://mcp.example.com/mcp"}}})
    async with serving(settings=settings) as served:
        for method, path, body in (("PUT", PLACE, SAVED), ("POST", f"{PLACE}/test", TESTED)):
            reply = await served.client.request(method, path, json=body)
            assert (reply.status_code, reply.json()["code"]) == (409, "tool-connection-in-settings")


@pytest.mark.parametrize("role", ["viewer", "operator", "editor"])
async def test_other_roles_are_refused_and_recorded(role: Role) -> None:
    async with serving(is_local=False, settings=Settings()) as served:
        admin, eve = await served.key("root", "admin"), await served.key("eve", role)
        for method, path, body in (
            ("PUT", PLACE, SAVED),
            ("DELETE", PLACE, None),
            ("POST", f"{PLACE}/test", TESTED),
            ("GET", "/api/tool-connections", None),
        ):
            reply = await served.client.request(method, path, json=body, headers=eve)
            assert (reply.status_code, reply.json()["code"]) == (403, "not-allowed")
        assert (await served.client.put(PLACE, json=SAVED)).status_code == 401
        entries = (await served.client.get("/api/audit?who=eve", headers=admin)).json()["entries"]
        assert {one["what"] for one in entries} == {
            "PUT /api/tool-connections/{name}",
            "DELETE /api/tool-connections/{name}",
            "POST /api/tool-connections/{name}/test",
        }


async def test_pages_of_other_origins_cannot_connect_tools() -> None:
    async with serving(settings=Settings()) as served:
        for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
            reply = await served.client.put(PLACE, json=SAVED, headers=headers)
            assert (reply.status_code, reply.json()["code"]) == (403, "origin-refused")
        assert (await served.client.get("/api/tool-connections")).json()["connections"] == []

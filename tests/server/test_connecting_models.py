"""Connecting models over HTTP: for admins, from the server's own pages, without the key in any answer or log."""

from __future__ import annotations

import logging

import pytest

from pointsman.auth.callers import Role
from pointsman.settings import Settings
from tests.server.conftest import serving

CANARY = "sk-canary-31d1f1e0"
PLACE = "/api/models/providers/gw"
BODY = {"kind": "openai-compatible", "key": CANARY, "baseUrl": "https://llm.example.com/v1", "model": "m"}
SAVED = {**BODY, "test": False, "default": True}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_VAULT_KEYS", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")


async def test_a_provider_is_connected_chosen_and_disconnected_without_its_key_in_any_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(model=None, settings=Settings()) as served:
        answers = [await served.client.put(PLACE, json=SAVED)]
        assert answers[0].json() == {"saved": True, "ping": None, "default": "gw:m"}
        read = (await served.client.get("/api/models")).json()
        old = {"if-match": read["defaultEtag"]}
        answers.append(await served.client.put("/api/models/default", json={"model": "gw:other"}))
        assert (await served.client.get("/api/models")).json()["default"] == "gw:other"
        assert (await served.client.get("/ready")).json()["model"] == "configured"
        paths = ("models", "models/keys", "models/kinds", "secrets", "audit", "settings")
        answers += [await served.client.get(f"/api/{path}") for path in paths]
        answers += [await served.client.put(PLACE, json={**SAVED, "baseUrl": "ftp://x"})]
        answers += [await served.client.put(PLACE, json={**SAVED, "surprise": 1})]
        assert [one.status_code for one in answers] == [200, 204, *[200] * len(paths), 422, 422]
        assert all(CANARY not in one.text for one in answers)
        late = await served.client.put("/api/models/default", json={"model": "gw:late"}, headers=old)
        assert (late.status_code, late.json()["code"]) == (409, "revision-moved")
        etag = {"if-match": read["providers"][0]["etag"]}
        assert (await served.client.put(PLACE, json={**SAVED, "default": False}, headers=etag)).status_code == 200
        for late in (
            await served.client.put(PLACE, json=SAVED, headers=etag),
            await served.client.delete(PLACE, headers=etag),
        ):
            assert (late.status_code, late.json()["code"]) == (409, "revision-moved")
        assert (await served.client.delete(PLACE)).status_code == 204
        assert (await served.client.delete(PLACE)).status_code == 404
        assert (await served.client.get("/api/models")).json()["default"] is None
    assert CANARY not in caplog.text


async def test_a_provider_of_the_settings_is_not_connected() -> None:
    settings = Settings.model_validate({"providers": {"gw": {"kind": "openai", "keys": ["k"]}}})
    async with serving(model=None, settings=settings) as served:
        reply = await served.client.put(PLACE, json=SAVED)
        assert (reply.status_code, reply.json()["code"]) == (409, "provider-in-settings")


@pytest.mark.parametrize("role", ["viewer", "operator", "editor"])
async def test_other_roles_are_refused_and_recorded(role: Role) -> None:
    async with serving(is_local=False, model=None, settings=Settings()) as served:
        admin, eve = await served.key("root", "admin"), await served.key("eve", role)
        for method, path, body in (
            ("PUT", PLACE, SAVED),
            ("DELETE", PLACE, None),
            ("PUT", "/api/models/default", {"model": "gw:m"}),
            ("GET", "/api/models/kinds", None),
        ):
            reply = await served.client.request(method, path, json=body, headers=eve)
            assert (reply.status_code, reply.json()["code"]) == (403, "not-allowed")
        assert (await served.client.put(PLACE, json=SAVED)).status_code == 401
        entries = (await served.client.get("/api/audit?who=eve", headers=admin)).json()["entries"]
        assert {one["what"] for one in entries} == {f"{method} {path}" for method, path in RECORDED}
        assert {one["refused"] for one in entries} == {"not-allowed"}


RECORDED = (
    ("PUT", "/api/models/providers/{name}"),
    ("DELETE", "/api/models/providers/{name}"),
    ("PUT", "/api/models/default"),
)


async def test_pages_of_other_origins_cannot_connect_a_model() -> None:
    async with serving(model=None, settings=Settings()) as served:
        for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}):
            reply = await served.client.put(PLACE, json=SAVED, headers=headers)
            assert (reply.status_code, reply.json()["code"]) == (403, "origin-refused")
        assert (await served.client.get("/api/models")).json()["providers"] == []

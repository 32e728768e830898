"""Access: every operation with every role; every operation outside of this table is refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from pointsman import Pointsman
from pointsman.auth.callers import Caller, Role
from pointsman.auth.keys import KNOWN_FOR_S, KeyExists, Keys, LastAdmin, NoSuchKey
from pointsman.settings import Settings
from pointsman.values import Instant
from tests.installation import HandClock
from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN, LETTER, secret_of
from tests.server.matrix import matrix

LEAST: Final[dict[str, Role | None]] = {
    "GET /health": None,
    "GET /ready": None,
    "GET /metrics": "admin",
    "GET /api/usage": "viewer",
    "GET /api/inbox": "viewer",
    "GET /api/inbox/answered": "viewer",
    "POST /api/answer-links/read": None,
    "POST /api/answer-links/answer": None,
    "GET /api/comments": "viewer",
    "POST /api/comments": "operator",
    "PATCH /api/comments/{cid}": "operator",
    "DELETE /api/comments/{cid}": "operator",
    "GET /api/mentions": "viewer",
    "POST /api/mentions/read": "viewer",
    "POST /api/presence": "viewer",
    "GET /api/datasets": "viewer",
    "GET /api/datasets/{name}": "viewer",
    "PUT /api/datasets/{name}": "editor",
    "DELETE /api/datasets/{name}": "editor",
    "POST /api/datasets/{name}/cases": "editor",
    "POST /api/datasets/{name}/evaluate": "operator",
    "GET /api/evaluations": "viewer",
    "GET /api/evaluations/{eid}": "viewer",
    "GET /api/templates": "viewer",
    "GET /api/templates/{name}": "viewer",
    "POST /api/templates/{name}/try": "operator",
    "POST /api/templates/{name}/use": "editor",
    "GET /api/workflows": "viewer",
    "POST /api/workflows": "editor",
    "POST /api/workflows/check": "viewer",
    "GET /api/workflows/{id}": "viewer",
    "PUT /api/workflows/{id}": "editor",
    "DELETE /api/workflows/{id}": "editor",
    "POST /api/workflows/{id}/clone": "editor",
    "GET /api/workflows/{id}/versions": "viewer",
    "GET /api/workflows/{id}/diff": "viewer",
    "GET /api/workflows/operations": "viewer",
    "GET /api/workflows/schema": "viewer",
    "POST /api/workflows/generate": "editor",
    "POST /api/workflows/{id}/edit": "editor",
    "GET /api/expressions/functions": "viewer",
    "POST /api/expressions/check": "viewer",
    "POST /api/expressions/evaluate": "viewer",
    "GET /api/workflows/{id}/changes": "viewer",
    "POST /api/workflows/{id}/rollback": "editor",
    "POST /api/workflows/{id}/try": "editor",
    "POST /api/workflows/{id}/execute": "operator",
    "GET /api/workflows/executions": "viewer",
    "GET /api/workflows/executions/stream": "viewer",
    "GET /api/workflows/executions/{eid}": "viewer",
    "DELETE /api/workflows/executions/{eid}": "admin",
    "GET /api/workflows/executions/{eid}/events": "viewer",
    "GET /api/workflows/executions/{eid}/state": "viewer",
    "GET /api/workflows/executions/{eid}/workflow": "viewer",
    "GET /api/workflows/executions/{eid}/stream": "viewer",
    "GET /api/workflows/executions/{eid}/family": "viewer",
    "GET /api/workflows/executions/{eid}/calls": "viewer",
    "POST /api/workflows/executions/{eid}/respond": "operator",
    "POST /api/workflows/executions/{eid}/delegate": "operator",
    "POST /api/workflows/executions/{eid}/move": "operator",
    "POST /api/workflows/executions/{eid}/replay": "operator",
    "GET /api/workflows/executions/{eid}/timeline": "viewer",
    "POST /api/workflows/executions/{eid}/pause": "operator",
    "POST /api/workflows/executions/{eid}/resume": "operator",
    "POST /api/workflows/executions/{eid}/cancel": "operator",
    "POST /api/workflows/executions/{eid}/retry": "operator",
    "POST /api/workflows/executions/{eid}/fork": "operator",
    "POST /api/workflows/executions/{eid}/steer": "operator",
    "POST /api/workflows/executions/{eid}/messages": "operator",
    "POST /api/workflows/executions/{eid}/signals": "operator",
    "GET /api/audit": "admin",
    "POST /api/backup": "admin",
    "GET /api/audit/state": "admin",
    "GET /api/audit/export": "admin",
    "GET /api/people": "admin",
    "GET /api/rights": "viewer",
    "GET /api/settings": "admin",
    "GET /api/workers": "admin",
    "GET /api/secrets/{name}/uses": "admin",
    "DELETE /api/logins": "viewer",
    "GET /api/me": "viewer",
    "GET /api/login": None,
    "POST /api/login": None,
    "GET /api/login/oidc": None,
    "GET /api/login/oidc/callback": None,
    "POST /api/logout": "viewer",
    "GET /api/logins": "viewer",
    "DELETE /api/logins/{id}": "viewer",
    "GET /api/settings/keys": "admin",
    "POST /api/settings/keys": "admin",
    "DELETE /api/settings/keys/{name}": "admin",
    "GET /api/workflows/{id}/sharing": "viewer",
    "PUT /api/workflows/{id}/sharing": "editor",
    "PATCH /api/workflows/{id}": "editor",
    "POST /api/workflows/convert": "viewer",
    "POST /api/workflows/{id}/dry-run": "operator",
    "POST /api/workflows/{id}/execute/files": "operator",
    "POST /api/workflows/executions/bulk": "operator",
    "POST /api/workflows/executions/import": "admin",
    "GET /api/workflows/executions/{eid}/export": "operator",
    "GET /api/workflows/executions/{eid}/artifacts": "viewer",
    "GET /api/workflows/executions/{eid}/artifacts/{name}": "viewer",
    "GET /api/agents": "viewer",
    "POST /api/agents": "editor",
    "GET /api/agents/{name}": "viewer",
    "PUT /api/agents/{name}": "editor",
    "DELETE /api/agents/{name}": "editor",
    "GET /api/agents/{name}/sharing": "viewer",
    "PUT /api/agents/{name}/sharing": "editor",
    "GET /api/agents/{name}/versions": "viewer",
    "GET /api/tools": "viewer",
    "GET /api/tools/{name}": "viewer",
    "POST /api/agents/{name}/try": "editor",
    "POST /api/tools/{name}/try": "editor",
    "GET /api/models": "viewer",
    "GET /api/models/keys": "operator",
    "GET /api/budgets": "viewer",
    "POST /api/models/ping": "admin",
    "PUT /api/workflows/{id}/published": "editor",
    "PUT /api/workflows/{id}/folder": "editor",
    "GET /api/folders": "viewer",
    "POST /api/folders": "editor",
    "PATCH /api/folders": "editor",
    "DELETE /api/folders": "editor",
    "GET /api/folders/sharing": "viewer",
    "PUT /api/folders/sharing": "editor",
    "DELETE /api/workflows/{id}/published": "editor",
    "GET /api/workflows/{id}/publication": "editor",
    "PUT /api/workflows/{id}/publication": "editor",
    "DELETE /api/workflows/{id}/publication": "editor",
    "GET /api/published/{token}": None,
    "GET /api/published/{token}/chat": None,
    "POST /api/published/{token}/chat": None,
    "GET /api/published/{token}/chat/{conversation}": None,
    "POST /api/published/{token}/runs": None,
    "GET /api/published/{token}/runs/{run}": None,
    "GET /api/models/kinds": "admin",
    "PUT /api/models/providers/{name}": "admin",
    "DELETE /api/models/providers/{name}": "admin",
    "PUT /api/models/default": "admin",
    "PUT /api/settings/mail": "admin",
    "DELETE /api/settings/mail": "admin",
    "POST /api/settings/mail/test": "admin",
    "PUT /api/settings/{name}": "admin",
    "DELETE /api/settings/{name}": "admin",
    "POST /api/notifications/addresses/{name}/test": "admin",
    "PUT /api/notifications/addresses/{name}": "admin",
    "DELETE /api/notifications/addresses/{name}": "admin",
    "GET /api/tool-connections": "admin",
    "POST /api/tool-connections/{name}/test": "admin",
    "PUT /api/tool-connections/{name}": "admin",
    "DELETE /api/tool-connections/{name}": "admin",
    "GET /api/memory": "viewer",
    "GET /api/secrets": "admin",
    "PUT /api/secrets/{name}": "admin",
    "DELETE /api/secrets/{name}": "admin",
    "PUT /api/secrets/{name}/credential": "admin",
    "POST /api/secrets/{name}/authorization": "admin",
    "PUT /api/secrets/{name}/authorization": "admin",
    "GET /api/memory/{scope}": "viewer",
    "DELETE /api/memory/{scope}": "operator",
    "GET /api/memory/{scope}/value": "viewer",
    "PUT /api/memory/{scope}/value": "operator",
    "DELETE /api/memory/{scope}/value": "operator",
    "GET /api/memory/{scope}/history": "viewer",
    "POST /api/memory/{scope}/history": "operator",
    "GET /api/chat/workflows": "viewer",
    "GET /api/sessions": "viewer",
    "GET /api/sessions/{id}": "viewer",
    "PATCH /api/sessions/{id}": "operator",
    "DELETE /api/sessions/{id}": "operator",
    "POST /api/events": "operator",
    "GET /api/schedules": "viewer",
    "POST /api/schedules": "editor",
    "GET /api/schedules/{sid}": "viewer",
    "GET /api/schedules/{sid}/times": "viewer",
    "POST /api/schedules/{sid}/pause": "operator",
    "POST /api/schedules/{sid}/resume": "operator",
    "DELETE /api/schedules/{sid}": "editor",
    "POST /api/schedules/times": "viewer",
    "PUT /api/schedules/{sid}": "editor",
    "POST /api/schedules/{sid}/run": "operator",
    "GET /api/webhooks": "editor",
    "GET /api/workflows/{id}/triggers/{trigger}/deliveries": "editor",
    "POST /api/workflows/{id}/triggers/{trigger}/try": "operator",
    "GET /api/notifications": "admin",
    "POST /api/notifications/{id}/retry": "admin",
    "POST /api/notifications/revoke-links": "admin",
    "GET /api/agents/{name}/uses": "viewer",
    "POST /api/webhooks/{path}": None,
    "GET /v1/models": "viewer",
    "GET /v1/models/{id}": "viewer",
    "POST /v1/chat/completions": "operator",
    "POST /v1/responses": "operator",
    "POST /run": "operator",
    "POST /run/legacy": "operator",
    "GET /session/{id}": "viewer",
}
"""The minimum role of each operation; None: no key. Operations outside of this table must not exist."""


def test_every_operation_requires_the_role_of_the_table() -> None:
    """The row "access matrix" of tests/reliability calls each as every role, and compares with the page of roles."""
    assert matrix() == LEAST, "state the lowest role in LEAST: it proves the role in `@verb`"


@pytest.mark.requirement("S1-28")
async def test_a_workflow_of_a_group_is_hidden_from_other_groups() -> None:
    async with serving(is_local=False) as served:
        admin = await served.key("root", "admin")
        inside = await served.key("ada", "editor", "desk", "night")
        outside = await served.key("bob", "editor", "day")
        assert (
            await served.client.post("/api/workflows", content=secret_of("desk"), headers=inside)
        ).status_code == 201
        assert (await served.client.post("/api/workflows", content=CHAIN, headers=outside)).status_code == 201
        started = await served.client.post(
            "/api/workflows/secret/execute", json={"input": {}, "wait": True}, headers=inside
        )
        execution = started.json()["executionId"]
        shut = [
            ("GET", "/api/workflows/secret"),
            ("PUT", "/api/workflows/secret"),
            ("DELETE", "/api/workflows/secret"),
            ("GET", "/api/workflows/secret/versions"),
            ("GET", "/api/workflows/secret@1/diff"),
            ("POST", "/api/workflows/secret/execute"),
            ("GET", f"/api/workflows/executions/{execution}"),
            ("GET", f"/api/workflows/executions/{execution}/events"),
            ("GET", f"/api/workflows/executions/{execution}/state"),
            ("GET", f"/api/workflows/executions/{execution}/stream"),
            ("POST", f"/api/workflows/executions/{execution}/cancel"),
            ("POST", f"/api/workflows/executions/{execution}/fork"),
        ]
        for method, address in shut:
            reply = await served.client.request(method, address, headers=outside, json={})
            expected = "unknown-execution" if execution in address else "unknown-workflow"
            assert (reply.status_code, reply.json()["code"]) == (404, expected), (method, address)
        listed = {}
        for name, header in (("admin", admin), ("inside", inside), ("outside", outside)):
            saved = (await served.client.get("/api/workflows?builtIn=false", headers=header)).json()["workflows"]
            ran = (await served.client.get("/api/workflows/executions", headers=header)).json()["executions"]
            listed[name] = ([one["id"] for one in saved], len(ran))
        assert listed == {
            "admin": (["chain", "secret"], 1),
            "inside": (["chain", "secret"], 1),
            "outside": (["chain"], 0),
        }
        unknown = await served.client.get("/api/workflows/nope", headers=outside)
        assert "secret" not in unknown.text


async def test_executions_of_a_group_stay_hidden_when_their_workflow_is_opened_or_deleted() -> None:
    async with serving(is_local=False) as served:
        inside, outside = await served.key("ada", "editor", "desk"), await served.key("bob", "editor", "day")
        gate = LETTER.replace("id: letter", "id: letter\nallowedGroups: [desk]")
        assert (await served.client.post("/api/workflows", content=gate, headers=inside)).status_code == 201
        body = {"input": {"goal": "tides"}, "wait": True, "sessionId": "s1"}
        address = "/api/workflows/letter/execute"
        assert (await served.client.post(address, json=body, headers=inside)).json()["status"] == "waiting"

        async def seen(header: dict[str, str]) -> tuple[int, int]:
            listed = (await served.client.get("/api/workflows/executions", headers=header)).json()["executions"]
            gates = (await served.client.get("/api/inbox", headers=header)).json()["gates"]
            return len(listed), len(gates)

        assert (await seen(inside), await seen(outside)) == ((1, 1), (0, 0))
        assert (await served.client.post("/api/workflows", content=LETTER, headers=inside)).status_code == 201
        assert (await seen(inside), await seen(outside)) == ((1, 1), (0, 0))
        assert (await served.client.delete("/api/workflows/letter", headers=inside)).status_code == 204
        assert (await seen(inside), await seen(outside)) == ((1, 1), (0, 0))


async def test_saving_a_workflow_again_does_not_take_it_from_its_group() -> None:
    async with serving(is_local=False) as served:
        inside = await served.key("ada", "editor", "desk")
        outside = await served.key("bob", "editor", "day")
        assert (
            await served.client.post("/api/workflows", content=secret_of("desk"), headers=inside)
        ).status_code == 201
        mine = secret_of("day")
        reply = await served.client.post("/api/workflows", content=mine, headers=outside)
        assert (reply.status_code, reply.json()["code"]) == (409, "id-taken")


async def test_a_store_that_had_a_key_always_requires_one(file_store: str) -> None:
    async with serving(file_store) as served:
        assert (await served.client.get("/api/workflows")).status_code == 200
        await served.key("ada", "admin")
        await served.desk.keys.revoke("ada")
        assert (await served.client.get("/api/workflows")).status_code == 401
        assert (await served.client.post("/mcp", json={})).status_code == 401
        assert (await served.client.get("/api/login")).json()["asks"] is True
    async with serving(file_store) as served:
        assert (await served.client.get("/api/workflows")).status_code == 401, "also after a restart"
        again = await served.key("bob", "admin")
        assert (await served.client.get("/api/workflows", headers=again)).status_code == 200


async def test_a_store_requires_keys_after_all_have_expired_or_were_deleted() -> None:
    async with Pointsman("memory:", model="scripted") as app:
        clock = HandClock()
        keys = Keys(app.store.entries, clock)
        await keys.make("ada", "viewer", expires=Instant(clock.at + 1))
        clock.at += 10
        assert await keys.are_made()
        await app.store.entries.delete("api-key", "ada")
        assert await Keys(app.store.entries, clock).are_made()


async def test_a_store_of_an_older_version_requires_keys_after_its_last_is_revoked() -> None:
    async with Pointsman("memory:", model="scripted") as app:
        keys = Keys(app.store.entries, app.clock)
        await keys.make("ada", "viewer")
        await app.store.entries.delete("access", "keys")
        later = Keys(app.store.entries, app.clock)
        assert await later.are_made()
        await later.revoke("ada")
        assert await Keys(app.store.entries, app.clock).are_made()


async def test_a_store_used_with_an_identity_provider_stays_closed_without_it() -> None:
    async with Pointsman("memory:", model="scripted") as app:
        keys = Keys(app.store.entries, app.clock)
        assert not await keys.are_made()
        await keys.require()
        assert await Keys(app.store.entries, app.clock).are_made()


async def test_a_restored_backup_requires_keys(file_store: str, tmp_path: Path) -> None:
    async with Pointsman(file_store, model="scripted") as app:
        keys = Keys(app.store.entries, app.clock)
        await keys.make("ada", "admin")
        await keys.revoke("ada")
        await app.storage.back_up(tmp_path / "kept.backup")
    async with Pointsman(f"sqlite:///{tmp_path / 'other.db'}", model="scripted") as app:
        assert not await Keys(app.store.entries, app.clock).are_made()
        await app.storage.restore(tmp_path / "kept.backup")
        assert await Keys(app.store.entries, app.clock).are_made()


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest) -> str:
    return str(request.getfixturevalue("file_store" if request.param == "sqlite" else "postgres_url"))


async def test_first_keys_made_concurrently_all_work_and_close_the_store(store_url: str) -> None:
    async with Pointsman(store_url, model="scripted") as here, Pointsman(store_url, model="scripted") as there:
        near, far = Keys(here.store.entries, here.clock), Keys(there.store.entries, there.clock)
        assert (await near.are_made(), await far.are_made()) == (False, False)
        made = await asyncio.gather(
            *(one.make(name, "admin") for one in (near, far) for name in ("ada", "bob")), return_exceptions=True
        )
        assert len([one for one in made if isinstance(one, str)]) == 2, "each name once"
        assert all(isinstance(one, str | KeyExists) for one in made)
        assert await Keys(there.store.entries, there.clock).are_made()
        assert sorted(key.name for key in await far.admins()) == ["ada", "bob"]
        await asyncio.gather(near.revoke("ada"), far.revoke("bob"))
        assert await Keys(here.store.entries, here.clock).are_made(), "a store that had a key asks for one for ever"


async def test_two_admins_who_revoke_each_other_leave_one_admin(store_url: str) -> None:
    async with Pointsman(store_url, model="scripted") as here, Pointsman(store_url, model="scripted") as there:
        for number in range(20):
            one, other = f"a{number}", f"b{number}"
            near, far = Keys(here.store.entries, here.clock), Keys(there.store.entries, there.clock)
            await near.make(one, "admin")
            await near.make(other, "admin")
            ended = await asyncio.gather(
                near.revoke(one, but_last_admin=True),
                far.revoke(other, but_last_admin=True),
                near.revoke(other, but_last_admin=True),
                return_exceptions=True,
            )
            left = [key.name for key in await near.admins()]
            assert len(left) == 1, (ended, left)
            assert any(isinstance(why, LastAdmin) for why in ended)
            with pytest.raises(LastAdmin):
                await far.revoke(left[0], but_last_admin=True)
            await near.revoke(left[0])


async def test_a_key_whose_revocation_crashed_can_be_revoked_and_made_again() -> None:
    async with Pointsman("memory:", model="scripted") as app:
        keys = Keys(app.store.entries, app.clock)
        await keys.make("ada", "admin")
        await keys.make("bob", "admin")
        await app.store.entries.put("access", "keys", {"asks": True, "revoking": ["ada"]})
        with pytest.raises(LastAdmin):
            await keys.revoke("bob", but_last_admin=True)
        await keys.revoke("ada", but_last_admin=True)
        await keys.make("ada", "admin")
        await keys.revoke("bob", but_last_admin=True)
        assert [key.name for key in await keys.admins()] == ["ada"]


@pytest.mark.parametrize("ada", [7200.0, None])
@pytest.mark.parametrize("bob", [3600.0, 7200.0, None])
async def test_the_key_of_an_admin_is_revoked_only_if_another_is_valid_as_long(
    served: Served, ada: float | None, bob: float | None
) -> None:
    clock = HandClock()
    keys = Keys(served.app.store.entries, clock)
    for name, lasts in (("ada", ada), ("bob", bob)):
        await keys.make(name, "admin", expires=None if lasts is None else Instant(clock.at + lasts))
    if bob is not None and (ada is None or bob < ada):
        with pytest.raises(LastAdmin, match="'bob'"):
            await keys.revoke("ada", but_last_admin=True)
        assert len(await keys.admins()) == 2
    else:
        await keys.revoke("ada", but_last_admin=True)
        assert [key.name for key in await keys.admins()] == ["bob"]


async def test_a_key_grants_access_until_it_expires_or_is_revoked(served: Served) -> None:
    clock = HandClock()
    keys = Keys(served.app.store.entries, clock)
    assert not await keys.are_made()
    token = await keys.make("ada", "viewer", groups=("desk",), expires=Instant(clock.at + 3600))
    assert await keys.are_made()
    assert await keys.caller(token) == Caller(name="ada", role="viewer", groups=("desk",))
    (key,) = await keys.all()
    assert key.used == clock.at
    assert token not in repr(key)
    clock.at += 3600
    assert await keys.caller(token) is None
    other = await keys.make("bob", "viewer")
    elsewhere = Keys(served.app.store.entries, clock)
    assert await keys.caller(other)
    await elsewhere.revoke("bob")
    assert await elsewhere.caller(other) is None
    clock.at += KNOWN_FOR_S
    assert await keys.caller(other) is None, "a key that another process revoked opens no longer than a second"
    with pytest.raises(NoSuchKey, match="'bob'"):
        await keys.revoke("bob")
    with pytest.raises(KeyExists):
        await keys.make("ada", "admin")


async def test_the_first_key_ends_access_without_a_key_from_this_machine_too(served: Served) -> None:
    assert (await served.client.get("/api/workflows")).status_code == 200
    key = await served.key("ada", "viewer")
    assert (await served.client.get("/api/workflows")).status_code == 401
    assert (await served.client.get("/api/workflows", headers=key)).status_code == 200


async def test_a_server_for_other_machines_requires_a_key_from_the_first_request() -> None:
    async with serving(is_local=False) as served:
        assert (await served.client.get("/api/workflows")).status_code == 401
        assert (await served.client.get("/health")).status_code == 200


async def test_cross_origin_requests_change_nothing_and_other_host_names_are_refused(served: Served) -> None:
    own = str(served.client.base_url).rstrip("/")
    for headers in ({"origin": "https://evil.example"}, {"sec-fetch-site": "cross-site"}, {"origin": "null"}):
        reply = await served.client.post("/api/workflows", content=CHAIN, headers=headers)
        assert (reply.status_code, reply.json()["code"]) == (403, "origin-refused"), headers
    for host in ("evil.example", "127.0.0.1.evil.example:80", "", "[::1", "localhost@evil.example"):
        reply = await served.client.get("/api/workflows", headers={"host": host})
        assert reply.status_code in (400, 403), host
    assert (await served.client.get("/api/workflows?builtIn=false")).json() == {"workflows": [], "next": None}
    same = {"origin": own, "sec-fetch-site": "same-origin"}
    assert (await served.client.post("/api/workflows", content=CHAIN, headers=same)).status_code == 201


async def test_every_response_has_the_security_headers(served: Served) -> None:
    for address in ("/health", "/api/workflows", "/nowhere", "/api/openapi.json"):
        headers = (await served.client.get(address)).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert "server" not in headers


async def test_bodies_over_the_limit_are_not_read() -> None:
    settings = Settings(delays=False)
    async with serving(settings=settings, body_bytes_max=1000) as served:
        declared = await served.client.post("/api/workflows", content=b"x" * 1001)
        assert (declared.status_code, declared.json()["code"]) == (413, "body-too-large")

        async def parts() -> AsyncIterator[bytes]:
            for _ in range(5):
                yield b"x" * 300

        streamed = await served.client.post("/api/workflows", content=parts())
        assert (streamed.status_code, streamed.json()["code"]) == (413, "body-too-large")


async def test_groups_of_the_latest_revision_apply_to_earlier_ones() -> None:
    async with serving(is_local=False) as served:
        root = await served.key("root", "admin")
        inside, outside = await served.key("ada", "editor", "desk"), await served.key("bob", "editor")
        await served.client.post("/api/workflows", content=CHAIN, headers=inside)
        closed = CHAIN.replace("id: chain", "id: chain\nallowedGroups: [desk]")
        assert (await served.client.put("/api/workflows/chain", content=closed, headers=inside)).status_code == 200
        for headers, status in ((outside, 404), (inside, 200), (root, 200)):
            found = await served.client.get("/api/workflows/chain@1", headers=headers)
            ran = await served.client.post("/api/workflows/chain@1/execute", json={"wait": True}, headers=headers)
            assert (found.status_code, ran.status_code) == (status, status)
        copied = await served.client.post("/api/workflows/chain@1/clone", json={"id": "copy"}, headers=outside)
        assert (copied.status_code, copied.json()["code"]) == (404, "unknown-workflow")

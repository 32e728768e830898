"""Audit entries are chained and written before the change, and rate limits hold."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest

from pointsman.app import Pointsman
from pointsman.auth import audit as log
from pointsman.auth.audit import Audit, AuditRow
from pointsman.auth.callers import Caller
from pointsman.auth.rate_limiter import RateLimiter, TooManyRequests
from pointsman.operations.health import damage
from pointsman.settings import Settings
from pointsman.settings.sections import AccessSettings
from tests.installation import HandClock
from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN

ADA = Caller(name="ada", role="editor")


async def told(served: Served, headers: dict[str, str], query: str = "") -> list[Any]:
    return (await served.client.get(f"/api/audit{query}", headers=headers)).json()["entries"]


async def test_every_change_is_audited_with_its_caller_and_result(file_store: str) -> None:
    async with serving(file_store, is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "viewer")
        root = await served.key("root", "admin")
        assert (await served.client.post("/api/workflows", content=CHAIN, headers=ada)).status_code == 201
        assert (await served.client.get("/api/workflows", headers=ada)).status_code == 200
        assert (await served.client.delete("/api/workflows/chain", headers=bob)).status_code == 403
        assert (await served.client.post("/api/workflows/nope/execute", json={}, headers=ada)).status_code == 404
        assert (await served.client.post("/api/workflows/chain/execute", json={"x": 1}, headers=ada)).status_code == 422
        assert (await served.client.delete("/api/workflows/chain")).status_code == 401
    async with serving(file_store, is_local=False) as served:
        entries = await told(served, root)
        assert [(one["who"], one["what"], one["target"], one["refused"]) for one in entries] == [
            ("ada", "POST /api/workflows/{id}/execute", "id=chain", "request-invalid"),
            ("ada", "POST /api/workflows/{id}/execute", "id=nope", "unknown-workflow"),
            ("bob", "DELETE /api/workflows/{id}", "id=chain", "not-allowed"),
            ("ada", "POST /api/workflows", "id=chain, revision=1", None),
        ]
        assert {(one["origin"], one["entrance"]) for one in entries} == {("127.0.0.1", "key")}
        assert [one["who"] for one in await told(served, root, "?who=bob")] == ["bob"]
        assert len(await told(served, root, "?what=execute")) == 2
        assert (await served.client.get("/api/audit", headers=ada)).status_code == 403
        assert await damage(served.app.context) == []


async def test_the_audit_entry_of_a_refused_creation_has_the_requested_id() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        root = await served.key("root", "admin")
        assert (await served.client.post("/api/workflows", content=CHAIN, headers=ada)).status_code == 201
        sharing = {"audience": "private"}
        assert (await served.client.put("/api/workflows/chain/sharing", json=sharing, headers=ada)).status_code == 200
        taken = await served.client.post("/api/workflows", content=CHAIN, headers=bob)
        assert taken.status_code == 409, taken.text
        copied = {"id": "chain"}
        clone = await served.client.post("/api/workflows/pointsman:pipeline/clone", json=copied, headers=bob)
        assert clone.status_code in (404, 409), clone.text
        refused = [one for one in await told(served, root) if one["refused"] and one["who"] == "bob"]
    assert [(one["what"], one["target"]) for one in refused][-1] == ("POST /api/workflows", "id=chain")
    assert "id=chain" in refused[0]["target"]


async def test_a_changed_or_removed_audit_row_is_detected(served: Served) -> None:
    entries, clock = served.app.store.entries, HandClock()
    audit = Audit(entries, clock)
    for number in range(5):
        clock.at += 1
        await audit.record_request(ADA, f"PUT {number}")
    assert await audit.damage() == []
    kind = "audit-000000"
    second = (await entries.list(kind))[1]
    row = msgspec.convert(second.value, AuditRow, strict=False)
    forged = msgspec.structs.replace(row, entries=(msgspec.structs.replace(row.entries[0], who="eve"),))
    await entries.put(kind, second.key, msgspec.to_builtins(forged))
    assert await damage(served.app.context) == [
        "row 2 of the audit log was changed, or does not follow the row before it"
    ]
    await entries.put(kind, second.key, second.value)
    assert await audit.damage() == []
    await entries.delete(kind, second.key)
    assert (await audit.damage())[0] == "the audit log has no row 2"


async def test_two_processes_alternate_and_waiting_entries_share_a_row(
    file_store: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with Pointsman(file_store) as app:
        monkeypatch.setattr(log, "ROWS_OF_KIND", 7)
        entries, clock = app.store.entries, HandClock()
        both = Audit(entries, clock), Audit(entries, clock)
        names = await asyncio.gather(*(both[n % 2].record_request(ADA, f"PUT {n}") for n in range(60)))
        assert len({*names}) == 60
        for number in range(30):
            await both[number % 2].record_request(ADA, f"DELETE {number}")
        third = Audit(entries, clock)
        assert await third.damage() == []
        found: list[Any] = []
        before: str | None = None
        while True:
            entries, before = await third.page(before=before, limit=10)
            found += entries
            if before is None:
                break
        assert len(found) == len({one["id"] for one in found}) == 90
        assert [one["what"] for one in found[:30]] == [f"DELETE {n}" for n in reversed(range(30))]
        assert int(found[0]["id"].partition(".")[0]) < 90, "what waited came in one row"


async def test_a_response_over_the_rate_limit_has_a_retry_time() -> None:
    settings = Settings(delays=False, access=AccessSettings(requests_per_s=0.01, burst=3))
    async with serving(is_local=False, settings=settings) as served:
        ada, bob = await served.key("ada", "viewer"), await served.key("bob", "viewer")
        for _ in range(3):
            assert (await served.client.get("/api/me", headers=ada)).status_code == 200
        reply = await served.client.get("/api/me", headers=ada)
        assert (reply.status_code, reply.json()["code"]) == (429, "too-many-requests")
        assert 90 <= int(reply.headers["retry-after"]) <= 100
        assert (await served.client.get("/api/me", headers=bob)).status_code == 200, "each has a bucket of their own"


def test_the_rate_limit_recovers_with_time() -> None:
    clock = HandClock()
    pace = RateLimiter(clock, per_s=2, burst=4, says="asks too often")
    for _ in range(4):
        pace.take("ada")
    with pytest.raises(TooManyRequests) as why:
        pace.take("ada")
    assert why.value.retry_after_s == 0.5
    clock.at += 0.5
    pace.take("ada")
    with pytest.raises(TooManyRequests):
        pace.take("ada")
    clock.at += 3600
    for _ in range(4):
        pace.take("ada")
    with pytest.raises(TooManyRequests):
        pace.take("ada")


async def test_read_requests_are_not_audited(served: Served) -> None:
    await served.save(CHAIN)
    assert (await served.client.post("/api/workflows/check", json={"document": CHAIN})).status_code == 200
    assert (await served.client.post("/api/workflows/chain/dry-run", json={"input": {}})).status_code == 200
    body = {"document": CHAIN, "to": "mermaid"}
    assert (await served.client.post("/api/workflows/convert", json=body)).status_code == 200
    formula = {"text": "score > 1"}
    assert (await served.client.post("/api/expressions/check", json=formula)).status_code == 200
    tried = formula | {"values": {"score": 2}}
    assert (await served.client.post("/api/expressions/evaluate", json=tried)).status_code == 200
    assert (await served.client.post("/api/schedules/times", json={"every": 60})).status_code == 200
    assert [one["what"] for one in await told(served, {})] == ["POST /api/workflows"]


async def test_an_audit_entry_has_the_result_of_its_action_and_is_found_by_its_id(file_store: str) -> None:
    async with serving(file_store) as served:
        await served.save(CHAIN)
        execution = await served.execute("chain")
        made = await served.client.post("/api/settings/keys", json={"name": "root", "role": "admin"})
        root = {"authorization": f"Bearer {made.json()['key']}"}
        (entry,) = await told(served, root, f"?what={execution}")
        assert (entry["what"], entry["target"]) == (
            "POST /api/workflows/{id}/execute",
            f"id=chain, executionId={execution}",
        )
        clone = await served.client.post("/api/workflows/chain/clone", json={"id": "chain-2"}, headers=root)
        assert clone.status_code == 201
    async with serving(file_store) as served:
        entries = await told(served, root)
        assert [one["target"].partition(", rev")[0] for one in entries[:2]] == [
            "id=chain, id=chain-2",
            "name=root, role=admin",
        ]
        assert made.json()["key"] not in str(entries)
        assert await damage(served.app.context) == []


async def test_the_audit_log_is_filtered_by_time_and_exported_as_a_whole(served: Served) -> None:
    entries, clock = served.app.store.entries, HandClock()
    audit = Audit(entries, clock)
    for number in range(5):
        clock.at += 10
        await audit.record_request(ADA, f"PUT {number}")
    begin = clock.at - 40
    between = await told(served, {}, f"?since={begin + 10}&until={begin + 30}")
    assert [one["what"] for one in between] == ["PUT 3", "PUT 2", "PUT 1"]
    state = (await served.client.get("/api/audit/state")).json()
    export = await served.client.get("/api/audit/export")
    assert "attachment" in export.headers["content-disposition"]
    lines = [msgspec.json.decode(line) for line in export.content.splitlines()]
    assert [line["row"] for line in lines] == [1, 2, 3, 4, 5, 6]
    assert lines[-1]["entries"][0]["what"] == "GET /api/audit/export", "an export is in the log too"
    assert state == {"rows": 5, "hash": lines[-2]["hash"], "damage": []}
    second = (await entries.list("audit-000000"))[1]
    await entries.delete("audit-000000", second.key)
    assert (await served.client.get("/api/audit/state")).json()["damage"][0] == "the audit log has no row 2"

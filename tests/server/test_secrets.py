"""Secrets over HTTP: they can be written but never read."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any, Final

import httpx2
import pytest
from cryptography.fernet import Fernet

from pointsman.settings import Settings
from tests.server.conftest import Served, serving

CANARY: Final = "canary-over-the-wire-88d1"
KEYED: Final = Settings.model_validate({"delays": False, "vault": {"keys": [Fernet.generate_key().decode()]}})


async def put(served: Served, name: str, value: Any, header: dict[str, str]) -> httpx2.Response:
    return await served.client.put(f"/api/secrets/{name}", json={"value": value}, headers=header)


async def test_an_admin_sets_lists_and_deletes_secrets_and_no_answer_has_their_values(
    file_store: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    said = list[str]()
    async with serving(file_store, is_local=False, settings=KEYED) as served:
        admin = await served.key("ada", "admin")
        set_one = await put(served, "WEATHER", CANARY, admin)
        assert set_one.status_code == 204
    async with serving(file_store, is_local=False, settings=KEYED) as served:
        assert served.app.settings.secret("WEATHER") == CANARY, "also after a restart"
        listed = await served.client.get("/api/secrets", headers=admin)
        (entry,) = listed.json()["secrets"]
        assert (entry["name"], entry["changedBy"], entry["etag"]) == ("WEATHER", "ada", set_one.headers["etag"])
        places = {"hosts", "tools", "workflows", "groups"}
        assert set(entry) == {"name", "changedAt", "changedBy", "stored", "credential", "etag", *places}
        assert all(entry[place] == [] for place in places)
        audit = await served.client.get("/api/audit", headers=admin)
        assert "PUT /api/secrets/{name}" in audit.text
        assert "name=WEATHER" in audit.text
        assert (await served.client.get("/api/secrets/WEATHER", headers=admin)).status_code == 405
        gone = await served.client.delete("/api/secrets/WEATHER", headers=admin)
        assert gone.status_code == 204
        again = await served.client.delete("/api/secrets/WEATHER", headers=admin)
        assert (again.status_code, again.json()["code"]) == (404, "no-such-secret")
        assert served.app.settings.secret("WEATHER") is None
        said += [listed.text, audit.text, again.text, caplog.text]
    assert CANARY not in str(said)


@pytest.mark.parametrize(
    ("name", "body", "status", "code"),
    [
        ("WEATHER", {"value": "short"}, 422, "secret-invalid"),
        ("WEATHER", {"value": CANARY * 3000}, 422, "secret-invalid"),
        ("1st", {"value": CANARY}, 422, "name-invalid"),
        ("a%20b", {"value": CANARY}, 422, "name-invalid"),
        ("WEATHER", {"value": [CANARY]}, 422, "request-invalid"),
        ("WEATHER", {"value": CANARY, "more": CANARY}, 422, "request-invalid"),
        ("WEATHER", CANARY, 422, "request-invalid"),
    ],
)
async def test_a_refusal_does_not_repeat_the_sent_value(name: str, body: Any, status: int, code: str) -> None:
    async with serving(settings=KEYED) as served:
        reply = await served.client.put(f"/api/secrets/{name}", json=body)
        assert (reply.status_code, reply.json()["code"]) == (status, code)
        assert CANARY not in reply.text
        assert (await served.client.get("/api/secrets")).json()["secrets"] == []


async def test_an_invalid_secret_name_is_a_problem_document() -> None:
    broken = Settings.model_validate({"vault": {"keys": ["none"]}})
    async with serving(settings=broken) as served:
        reply = await served.client.put("/api/secrets/WEATHER", json={"value": CANARY})
        assert (reply.status_code, reply.json()["code"]) == (503, "vault-key-invalid")
        assert CANARY not in reply.text


async def test_a_stream_masks_a_secret_that_was_set_while_it_was_open(tmp_path: Path) -> None:
    """A value that arrives in another way than through its handle is masked too."""
    flow = {
        "id": "echo",
        "nodes": [
            {"id": "ask", "type": "human", "config": {"message": "Go on?"}},
            {"id": "say", "type": "transform", "config": {"set": {"said": "input.text"}}},
        ],
        "edges": [{"source": "ask", "target": "say"}],
        "output": {"said": "said"},
        "config": {"observability": "full"},
    }
    async with serving(f"sqlite:///{tmp_path}/store.db", settings=KEYED) as served:
        await served.save(json.dumps(flow))
        execution = await served.execute("echo", {"text": f"my key is {CANARY}"})
        async with served.stream(execution) as events:
            first = await anext(events)
            assert first.event
            assert (await put(served, "WEATHER", CANARY, {})).status_code == 204
            (gate,) = (await served.read(execution))["waiting"]
            answer = {"gateId": gate["gateId"], "action": "approve"}
            await served.act(execution, "respond", answer)
            rest = [event async for event in events]
        assert "***" in str(rest)
        assert CANARY not in str(rest)

"""Notifications over HTTP: destinations of the settings, results of deliveries, and repeated deliveries."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from pointsman.settings import Settings
from pointsman.settings.sections import NotificationSettings
from pointsman.triggers.notifications import Notice, Notifier, Outbox, OutboxNotice
from pointsman.values import JsonObject
from tests.server.conftest import Served, serving

TOLD = Settings(
    delays=False,
    notifications={
        "desk": NotificationSettings(url="https://u:p@chat.example/hooks/T00/s3cr3t?key=x", secret="whsec-0123456789")
    },
)


DONE = json.dumps(
    {
        "pointsman": 1,
        "id": "done",
        "nodes": [{"id": "a", "type": "transform", "config": {"set": {"x": "1"}}}],
        "edges": [],
    }
)
PLACE = "/api/notifications/addresses/alerts"
CANARY = "T00-canary-31d1f1e0"
SLACK = {"format": "slack", "url": f"https://chat.example.com/hooks/{CANARY}", "events": ["failed"]}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_VAULT_KEYS", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")


async def given_up(served: Served, id: str) -> None:
    outbox = Outbox(served.app.context)
    body: JsonObject = {"event": "workflow.failed", "executionId": "exec-1"}
    kept = await outbox.put(Notice(id, "failed", "letter", body), "desk", 1_000.0)
    assert kept is not None
    dead = OutboxNotice(to="desk", body=kept.letter.body, at=1_000.0, state="dead", attempts=8, error="answered 500")
    await outbox.change(kept, dead)


async def test_notification_addresses_are_shown_without_secrets() -> None:
    async with serving(settings=TOLD) as served:
        told = (await served.client.get("/api/notifications")).json()
    assert told["addresses"] == [
        {
            "name": "desk",
            "source": "pointsman.toml",
            "inUse": True,
            "url": "https://chat.example/…",
            "events": ["gate", "failed"],
            "workflows": ["*"],
            "signed": True,
            "format": "json",
            "recipients": [],
            "answerLinks": False,
            "language": "",
            "mailTo": [],
            "changedAt": 0.0,
            "changedBy": "",
            "etag": "",
        }
    ]


async def test_a_failed_notification_can_be_sent_again_after_a_restart(file_store: str) -> None:
    async with serving(file_store) as served:
        await given_up(served, "exec-1/failed")
    async with serving(file_store) as served:
        (notice,) = (await served.client.get("/api/notifications?state=dead")).json()["notices"]
        assert (notice["id"], notice["state"], notice["attempts"], notice["due"], notice["error"]) == (
            "desk/exec-1/failed",
            "dead",
            8,
            None,
            "answered 500",
        )
        again = (await served.client.post(f"/api/notifications/{notice['id']}/retry")).json()
        assert (again["state"], again["attempts"]) == ("pending", 0)
        assert again["due"] is not None
        assert (await served.client.get("/api/notifications?state=dead")).json()["notices"] == []
        unknown = await served.client.post("/api/notifications/desk/nothing/retry")
        assert (unknown.status_code, unknown.json()["code"]) == (404, "no-such-notice")


async def test_a_destination_is_added_changed_and_deleted_without_its_address_in_any_answer(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(settings=TOLD) as served:
        client = served.client
        answers = [await client.put(PLACE, json=SLACK)]
        etag = answers[0].headers["etag"]
        answers.append(
            await client.put(PLACE, json={"format": "slack", "events": ["gate"]}, headers={"if-match": etag})
        )
        answers += [await client.get(f"/api/{path}") for path in ("notifications", "secrets", "audit", "settings")]
        listed = answers[2].json()["addresses"]
        assert [(one["name"], one["source"], one["url"], one["events"]) for one in listed] == [
            ("desk", "pointsman.toml", "https://chat.example/…", ["gate", "failed"]),
            ("alerts", "app", "https://chat.example.com/…", ["gate"]),
        ]
        answers += [await client.put(PLACE, json={**SLACK, "url": f"ftp://x/{CANARY}"})]
        answers += [await client.put(PLACE, json={**SLACK, "events": []})]
        answers += [await client.put(PLACE, json={"format": "mail", "recipients": []})]
        answers += [await client.put(PLACE, json=SLACK, headers={"if-match": etag})]
        answers += [await client.delete(PLACE, headers={"if-match": etag})]
        assert [one.status_code for one in answers] == [*[200] * 6, 422, 422, 422, 409, 409]
        assert all(CANARY not in one.text for one in answers)
        assert (await client.delete(PLACE)).status_code == 204
        assert (await client.delete(PLACE)).status_code == 404
        assert "NOTIFICATION_URL" not in (await client.get("/api/secrets")).text
    assert CANARY not in caplog.text


async def test_a_destination_of_the_settings_is_not_changed_and_others_are_for_admins_only() -> None:
    async with serving(settings=TOLD, is_local=False) as served:
        root, eve = await served.key("root", "admin"), await served.key("eve", "editor")
        for method, path in (("PUT", ""), ("POST", "/test")):
            place = f"/api/notifications/addresses/desk{path}"
            reply = await served.client.request(method, place, json=SLACK, headers=root)
            assert (reply.status_code, reply.json()["code"]) == (409, "notification-in-settings")
            assert (await served.client.request(method, f"{PLACE}{path}", json=SLACK, headers=eve)).status_code == 403
            assert (await served.client.request(method, f"{PLACE}{path}", json=SLACK)).status_code == 401


@asynccontextmanager
async def listener() -> AsyncGenerator[tuple[int, list[bytes]]]:
    """A web server that accepts every request: its port, and what it received."""
    received: list[bytes] = []

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = next(
            int(one.split(b":")[1]) for one in head.split(b"\r\n") if one.lower().startswith(b"content-length")
        )
        received.append(head + await reader.readexactly(length))
        writer.write(b"HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1], received
    finally:
        server.close()
        await server.wait_closed()


async def test_a_test_message_is_sent_and_notices_follow_without_a_restart() -> None:
    async with listener() as (port, received):
        http = {"networks": ["127.0.0.0/8"], "ports": [port], "plain": True}
        async with serving(settings=Settings.model_validate({"http": http, "delays": False})) as served:
            hook = {"format": "json", "url": f"http://127.0.0.1:{port}/hook", "key": "whsec-0123456789"}
            tested = await served.client.post(f"{PLACE}/test", json=hook)
            assert tested.json() == {"sent": True, "error": ""}
            assert b"workflow.test" in received[0]
            assert b"webhook-signature" in received[0].lower()
            assert (await served.client.get("/api/notifications")).json()["addresses"] == [], "a test saves nothing"
            view = (await served.client.put(PLACE, json={**hook, "events": ["completed"]})).json()
            assert (view["signed"], view["inUse"]) == (True, True)
            notifier = Notifier(served.app.context)
            await notifier.round(served.app.context.clock.now())
            await served.save(DONE)
            await served.read_events(await served.execute("done", {}))
            await notifier.round(served.app.context.clock.now())
            assert b"workflow.complete" in received[1]
            assert b"webhook-signature" in received[1].lower()
            await served.client.delete(PLACE)
            refused = await served.client.post(f"{PLACE}/test", json={**hook, "url": f"http://127.0.0.1:{port + 1}/"})
            assert refused.status_code == 422, "the address obeys [http]"

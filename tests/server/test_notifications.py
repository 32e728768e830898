"""Notifications over HTTP: destinations of the settings, results of deliveries, and repeated deliveries."""

from __future__ import annotations

from pointsman.settings import Settings
from pointsman.settings.sections import NotificationSettings
from pointsman.triggers.notifications import Notice, Outbox, OutboxNotice
from pointsman.values import JsonObject
from tests.server.conftest import Served, serving

TOLD = Settings(
    delays=False,
    notifications={
        "desk": NotificationSettings(url="https://u:p@chat.example/hooks/T00/s3cr3t?key=x", secret="whsec-0123456789")
    },
)


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
            "url": "https://chat.example/…",
            "events": ["gate", "failed"],
            "workflows": ["*"],
            "signed": True,
            "format": "json",
            "recipients": [],
            "answerLinks": False,
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

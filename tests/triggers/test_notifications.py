"""Notifications are delivered at least once, also across crashes; failed deliveries are retried and listed."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import msgspec
import pytest

from pointsman.app import Workflow
from pointsman.engine.decide.human_tasks import GateChangedMeanwhile
from pointsman.operations.health import findings
from pointsman.settings import Settings
from pointsman.settings.sections import NotificationSettings
from pointsman.tools.egress.addresses import AddressRefused, AddressUnreachable
from pointsman.triggers.notifications import ATTEMPTS_MAX, NoSuchNotice, Notifier, post
from pointsman.triggers.signatures import key_of, verify
from pointsman.values import Json, JsonObject
from tests.http_server import LOOKS_EVERY_S
from tests.installation import HandClock, asking, noting, opened

pytestmark = pytest.mark.integration

SECRET = "a secret of more than sixteen characters"


@dataclass
class Address:
    """An HTTP server with given answers, which records the requests."""

    url: str
    status: int = 204
    calls: list[tuple[dict[str, str], bytes]] = field(default_factory=list[tuple[dict[str, str], bytes]])

    @property
    def bodies(self) -> list[JsonObject]:
        return [msgspec.json.decode(body) for _, body in self.calls]


@pytest.fixture
def address() -> Iterator[Address]:
    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            found.calls.append(({name.lower(): value for name, value in self.headers.items()}, body))
            self.send_response(found.status)
            self.send_header("location", "http://127.0.0.1:9/elsewhere")
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            return None

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    found = Address(f"http://127.0.0.1:{server.server_address[1]}/hook")
    thread = threading.Thread(target=server.serve_forever, args=(LOOKS_EVERY_S,), daemon=True)
    thread.start()
    yield found
    server.shutdown()
    server.server_close()
    thread.join()


def told(address: Address, *events: str, **more: Json) -> Settings:
    desk = NotificationSettings.model_validate(
        {"url": address.url, "events": events, "private": True, "secret": SECRET, **more}
    )
    return Settings(notifications={"desk": desk})


BILINGUAL = """\
pointsman: 1
id: letter
nodes: [{id: ask, type: human, config: {message: {en: "Send it?", de: "Abschicken?"}}}]
"""
FAILS: Json = {"id": "end", "type": "end", "config": {"status": "failed"}}


@pytest.mark.parametrize(("language", "message"), [("de", "Abschicken?"), ("fr", "Send it?"), ("", "Send it?")])
async def test_a_notification_has_the_language_of_its_address_and_all_others(
    tmp_path: Path, address: Address, language: str, message: str
) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock, settings=told(address, "gate", language=language)) as app:
        notifier = Notifier(app.context)
        await notifier.round(clock.now())
        await (await app.start(Workflow.parse(BILINGUAL))).settled()
        await notifier.round(clock.now())
    (body,) = address.bodies
    assert (body["message"], body["messages"]) == (message, {"en": "Send it?", "de": "Abschicken?"})


async def test_an_open_gate_sends_one_signed_notification(tmp_path: Path, address: Address) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock, settings=told(address, "gate")) as app:
        notifier = Notifier(app.context)
        await notifier.round(clock.now())
        execution = await app.start(asking())
        await execution.settled()
        for _ in range(3):
            clock.move(2)
            await notifier.round(clock.now())
        ((headers, body),) = address.calls
        (said,) = address.bodies
        assert (said["event"], said["executionId"], said["nodeId"]) == ("workflow.human.required", execution.id, "gate")
        assert said["message"] == "go on?"
        assert headers["webhook-id"] == said["id"]
        assert verify(key_of(SECRET), "standard", body, headers, clock.now()).ok


@pytest.mark.parametrize("name", ["team.ops", "\u00fcbersicht", "a b"])
async def test_any_recipient_name_gives_a_signable_id(tmp_path: Path, address: Address, name: str) -> None:
    clock = HandClock()
    settings = told(address, "gate", "completed")
    named = settings.model_copy(update={"notifications": {name: settings.notifications["desk"]}})
    async with opened(tmp_path, clock, settings=named) as app:
        notifier = Notifier(app.context)
        await notifier.round(clock.now())
        await (await app.start(asking())).settled()
        await (await app.start(noting())).settled()
        await notifier.round(clock.now())
        assert len(address.calls) == 2
        for headers, body in address.calls:
            assert verify(key_of(SECRET), "standard", body, headers, clock.now()).ok, headers["webhook-id"]


async def test_events_from_before_a_leader_started_are_notified_later(tmp_path: Path, address: Address) -> None:
    clock = HandClock()
    settings = told(address, "gate", "failed", "completed")
    async with opened(tmp_path, clock, settings=settings) as app:
        await Notifier(app.context).round(clock.now())
    async with opened(tmp_path, clock) as app:
        clock.move(3600)
        for source in (asking(), noting(), Workflow.of({"id": "fails", "nodes": [FAILS], "edges": []})):
            await (await app.start(source)).settled()
    clock.move(3600)
    async with opened(tmp_path, clock, settings=settings) as app:
        await Notifier(app.context).round(clock.now())
    events = sorted(str(said["event"]) for said in address.bodies)
    assert events == ["workflow.complete", "workflow.failed", "workflow.human.required"]
    failed = next(said for said in address.bodies if said["event"] == "workflow.failed")
    assert isinstance(failed["error"], dict)
    assert failed["error"]["code"] == "ended-as-failed"


async def test_events_before_the_first_round_are_not_notified(tmp_path: Path, address: Address) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock, settings=told(address, "completed")) as app:
        await (await app.start(noting())).settled()
        clock.move(3600)
        await Notifier(app.context).round(clock.now())
        assert address.calls == []


async def test_a_crash_after_sending_repeats_the_notification_with_the_same_id(
    tmp_path: Path, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = HandClock()
    settings = told(address, "completed")
    async with opened(tmp_path, clock, settings=settings) as app:
        notifier = Notifier(app.context)
        await notifier.round(clock.now())
        await (await app.start(noting())).settled()
        clock.move(2)
        change = notifier.outbox.change

        async def crash(kept: object, letter: object) -> object:
            if address.calls:
                raise OSError("the power is gone")
            return await change(kept, letter)  # pyright: ignore[reportArgumentType] - what it was given

        monkeypatch.setattr(notifier.outbox, "change", crash)
        with pytest.raises(OSError, match="power"):
            await notifier.round(clock.now())
    async with opened(tmp_path, clock, settings=settings) as app:
        await Notifier(app.context).round(clock.now())
        clock.move(100)
        await Notifier(app.context).round(clock.now())
    assert len(address.calls) == 2
    assert len({str(said["id"]) for said in address.bodies}) == 1


async def test_a_refused_notification_is_retried_with_growing_delays_and_then_dropped(
    tmp_path: Path, address: Address
) -> None:
    clock = HandClock()
    address.status = 500
    settings = told(address, "completed")
    async with opened(tmp_path, clock, settings=settings) as app:
        notifier = Notifier(app.context)
        await notifier.round(clock.now())
        await (await app.start(noting())).settled()
        clock.move(2)
        await notifier.round(clock.now())
        (kept,) = await notifier.outbox.list()
        assert (kept.letter.state, kept.letter.attempts, kept.letter.error) == ("pending", 1, "answered 500")
        await notifier.round(clock.now())
        assert len(address.calls) == 1, "not before its time"
    async with opened(tmp_path, clock, settings=settings) as app:
        notifier = Notifier(app.context)
        for _ in range(ATTEMPTS_MAX + 3):
            clock.move(3601)
            await notifier.round(clock.now())
        assert len(address.calls) == ATTEMPTS_MAX
        (kept,) = await notifier.outbox.list()
        assert kept.letter.state == "dead"
        address.status = 200
        with pytest.raises(NoSuchNotice):
            await notifier.outbox.try_again("nothing")
        await notifier.outbox.try_again(kept.id)
        clock.move(60)
        await notifier.round(clock.now())
        (kept,) = await notifier.outbox.list()
        assert kept.letter.state == "sent"
        clock.move(7200)
        await notifier.round(clock.now())
        clock.move(7200)
        await notifier.round(clock.now())
        assert await notifier.outbox.list() == [], "what was sent is forgotten"


@pytest.mark.parametrize(("status", "state"), [(302, "pending"), (410, "dead"), (201, "sent")])
async def test_a_notification_needs_a_success_status_and_follows_no_redirect(
    tmp_path: Path, address: Address, status: int, state: str
) -> None:
    clock = HandClock()
    address.status = status
    async with opened(tmp_path, clock, settings=told(address, "completed")) as app:
        notifier = Notifier(app.context)
        await notifier.round(clock.now())
        await (await app.start(noting())).settled()
        await notifier.round(clock.now())
        (kept,) = await notifier.outbox.list()
        assert kept.letter.state == state
        assert len(address.calls) == 1


async def test_each_address_receives_its_chosen_events(tmp_path: Path, address: Address) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock, settings=told(address, "completed", workflows=["news-*"])) as app:
        notifier = Notifier(app.context)
        await notifier.round(clock.now())
        for id in ("news-desk", "sports-desk"):
            await (await app.start(noting(id))).settled()
        await notifier.round(clock.now())
        assert [said["workflowId"] for said in address.bodies] == ["news-desk"]


async def test_a_notification_without_its_secret_waits_for_it(
    tmp_path: Path, address: Address, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, settings = HandClock(), told(address, "completed", secret="secret.DESK")
    async with opened(tmp_path, clock, settings=settings) as app:
        notifier = Notifier(app.context)
        await notifier.round(clock.now())
        await (await app.start(noting())).settled()
        await notifier.round(clock.now())
        (kept,) = await notifier.outbox.list()
        assert (kept.letter.state, kept.letter.attempts, address.calls) == ("pending", 1, [])
        assert "secret.DESK" in kept.letter.error
    monkeypatch.setenv("POINTSMAN_SECRET_DESK", SECRET)
    async with opened(tmp_path, clock, settings=settings) as app:
        clock.move(3600)
        notifier = Notifier(app.context)
        await notifier.round(clock.now())
        (kept,) = await notifier.outbox.list()
        assert (kept.letter.state, len(address.calls)) == ("sent", 1)


async def test_dropped_notifications_are_reported_by_the_log_and_the_doctor(
    tmp_path: Path, address: Address, caplog: pytest.LogCaptureFixture
) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock, settings=told(address, "completed", secret="secret.DESK")) as app:
        notifier = Notifier(app.context)
        await notifier.round(clock.now())
        await (await app.start(noting())).settled()
        for _ in range(ATTEMPTS_MAX + 1):
            await notifier.round(clock.now())
            clock.move(3600)
        (found,) = [one for one in await findings(app.context) if one.code == "notices-given-up"]
        assert "1 notices to 'desk'" in found.message
        assert "secret.DESK" in found.message
        assert [record.levelname for record in caplog.records if "given-up" in record.getMessage()] == ["WARNING"]


@pytest.mark.parametrize(
    "url",
    [
        "https://127.0.0.1/x",
        "https://localhost/x",
        "https://[::1]/x",
        "https://[::ffff:10.0.0.1]/x",
        "https://169.254.169.254/latest",
        "https://0.0.0.0/x",
        "http://1.1.1.1/x",
        "ftp://1.1.1.1/x",
        "https://user:secret@1.1.1.1/x",
        "https:///x",
        "https://1.1.1.1:99999/x",
        "no address",
    ],
)
async def test_notifications_to_internal_addresses_need_permission(url: str) -> None:
    with pytest.raises(AddressRefused):
        await post(url, b"{}", {}, private=False)


async def test_a_host_with_one_internal_address_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def answers(host: str, *_: object, **__: object) -> list[tuple[int, int, int, str, tuple[str, int]]]:
        return [(2, 1, 6, "", (address, 443)) for address in ("1.1.1.1", "10.0.0.1")]

    monkeypatch.setattr("socket.getaddrinfo", answers)
    with pytest.raises(AddressRefused, match=r"10\.0\.0\.1"):
        await post("https://rebinding.example/x", b"{}", {}, private=False)


async def test_an_unanswered_notification_times_out(address: Address) -> None:
    with pytest.raises(AddressUnreachable):
        await post("http://127.0.0.1:9/x", b"{}", {}, private=True)
    assert await post(address.url, b"{}", {}, private=True) == 204


SHOWS = """\
pointsman: 1
id: letter
input: {type: object}
config: {humanInLoop: real_time}
nodes: [{id: ask, type: human, config: {message: "Send {text}?", show: [text]}}]
"""


async def test_a_gate_whose_data_changed_is_announced_again_with_its_new_digest(
    tmp_path: Path, address: Address
) -> None:
    clock = HandClock()
    async with opened(tmp_path, clock, settings=told(address, "gate")) as app:
        notifier = Notifier(app.context)
        await notifier.round(clock.now())
        execution = await app.start(Workflow.parse(SHOWS), {"text": "the old one"})
        await execution.settled()
        await notifier.round(clock.now())
        clock.move(7200)
        await notifier.round(clock.now())
        await execution.steer(set={"text": "the new one"})
        await notifier.round(clock.now())
        await notifier.round(clock.now())
        first, second = address.bodies
        assert [one["message"] for one in (first, second)] == ["Send the old one?", "Send the new one?"]
        assert first["id"] != second["id"]
        with pytest.raises(GateChangedMeanwhile):
            await execution.answer("ask", "approve", digest=str(first["digest"]))
        await execution.answer("ask", "approve", digest=str(second["digest"]))
        assert await execution.settled() == "completed"

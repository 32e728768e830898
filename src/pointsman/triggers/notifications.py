"""Notifications: posts notices (a gate opened, an execution ended) to addresses of the operator.

    gates that opened, executions that ended ─▶ outbox: one entry per address ─▶ post ─▶ sent │ due later │ dead

The leader fills the outbox from the store, not from events in its own process: after a crash, the next leader fills it
again. The id of a notice derives from its cause, so that each notice enters the outbox once. A round starts somewhat
before the end of the last recorded round, because rows of other processes may arrive late. A delivery may be sent twice
under the same id.
"""

from __future__ import annotations

import asyncio
import fnmatch
import logging
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias, cast
from urllib.parse import quote, urlsplit

import msgspec
from msgspec import Struct
from msgspec.structs import replace
from typing_extensions import TypedDict

from pointsman.auth.redaction import redactor_for
from pointsman.background import BackgroundRound
from pointsman.context import AppContext
from pointsman.engine.events.lifecycle import (
    ExecutionCancelled,
    ExecutionCompleted,
    ExecutionFailed,
    ExecutionInterrupted,
)
from pointsman.errors import CallerError, OperatorError, sentences
from pointsman.executions.views import failure_view
from pointsman.redaction import head, hiding, unfinished
from pointsman.runtime.summary import MESSAGE_CHARS_MAX
from pointsman.settings import Settings
from pointsman.settings.sections import NotificationSettings
from pointsman.store.errors import EntryMoved
from pointsman.store.records import ExecutionQuery, GateEntry, InboxQuery, Summary
from pointsman.tools.egress.addresses import EVERYWHERE, AddressRefused, NotReached
from pointsman.triggers.signatures import key_of, sign
from pointsman.values import ExecutionId, Instant, Json, JsonObject, json_of

LOG: Final = logging.getLogger("pointsman")
LOOKS_S: Final = 2.0
"""Interval between two rounds."""
LATE_S: Final = 60.0
"""Maximum delay with which a row of another process arrives."""
NOTES_S: Final = 30.0
"""How often to record how far the outbox is filled, and to read what other processes changed in it."""
KEPT_S: Final = 3600.0
"""How long sent notices stay in the list."""
ATTEMPTS_MAX: Final = 12
WAIT_S: Final = 5.0
WAIT_S_MAX: Final = 3600.0
AT_ONCE: Final = 8
GONE: Final = 410
ERROR_CHARS_MAX: Final = 500
GATE: Final = "gate"
TAIL: Final = 20
"""An execution ends in one of its last rows; later rows only record deliveries to other executions."""
PAGE: Final = 200
NAMES: Final = {
    "completed": "workflow.complete",
    "failed": "workflow.failed",
    "cancelled": "workflow.cancelled",
    "interrupted": "workflow.interrupted",
}
"""Status -> the name of the event, as in the feed."""


class Notice(NamedTuple):
    """Notice of a gate or an end: names and ids, no data of the execution. Its `id` derives from its cause."""

    id: str
    about: str
    """`gate`, or the status of the execution."""
    workflow: str
    body: JsonObject


def wants(settings: NotificationSettings, notice: Notice) -> bool:
    workflows = (fnmatch.fnmatchcase(notice.workflow, pattern) for pattern in settings.workflows)
    return notice.about in settings.events and any(workflows)


def translated(notice: Notice, language: str) -> Notice:
    """Replace the message of a gate by its translation into this language, if the author wrote one."""
    messages = notice.body.get("messages")
    if not isinstance(messages, dict) or language not in messages:
        return notice
    return notice._replace(body={**notice.body, "message": messages[language]})


async def notices_since(app: AppContext, since: float, wanted: Iterable[str]) -> AsyncIterator[Notice]:
    """Yield the notices of these kinds at or after `since` (unix seconds)."""
    kinds = frozenset(wanted)
    if GATE in kinds:
        async for gate in _gates(app, since):
            yield gate_notice(gate)
    if kinds - {GATE}:
        async for summary in _ended(app, since, kinds - {GATE}):
            notice = await ended_notice(app, summary)
            if notice is not None:
                yield notice


async def _gates(app: AppContext, since: float) -> AsyncIterator[GateEntry]:
    after = since, ExecutionId(""), ""
    while page := await app.store.executions.inbox(InboxQuery(after=after, limit=PAGE)):
        for gate in page:
            yield gate
        after = page[-1].opened, page[-1].execution, page[-1].gate


async def _ended(app: AppContext, since: float, statuses: frozenset[str]) -> AsyncIterator[Summary]:
    query = ExecutionQuery(statuses=statuses, since=Instant(since), limit=PAGE)
    while page := await app.store.executions.list(query):
        for summary in page:
            if summary.parent is None:
                yield summary
        query = replace(query, before=(page[-1].started, page[-1].execution))


def gate_notice(gate: GateEntry) -> Notice:
    """Return the notice of an open gate."""
    body: JsonObject = {
        "event": "workflow.human.required",
        "executionId": gate.execution,
        "workflowId": gate.workflow,
        "at": gate.opened,
        "gateId": gate.gate,
        "nodeId": gate.node,
        "message": gate.message,
        **({"messages": {**gate.messages}} if gate.messages else {}),
        "digest": gate.digest,
        "deadline": gate.deadline,
        "users": [*gate.users],
        "groups": [*gate.groups],
        "scripted": gate.scripted,
    }
    return Notice(f"{gate.execution}/{gate.gate}/{gate.opened * 1e6:.0f}", GATE, gate.workflow, body)


async def ended_notice(app: AppContext, summary: Summary) -> Notice | None:
    """Return the notice of an end or an interruption; None if the execution continued since."""
    journal = app.store.journal
    last = await journal.last(summary.execution)
    found: Notice | None = None
    async for row in journal.read(summary.execution, after=max(0, last - TAIL)):
        for number, event in enumerate(row.events):
            details: JsonObject = {}
            match event:
                case ExecutionCompleted():
                    about = "completed"
                case ExecutionFailed():
                    node = event.step.node if event.step is not None else None
                    about = "failed"
                    details["error"] = {**json_of(failure_view(event.failure, node)), "details": None}
                case ExecutionCancelled():
                    about = "cancelled"
                    details |= {"reason": event.reason, "by": event.by}
                case ExecutionInterrupted():
                    about = "interrupted"
                    details |= {"limit": event.limit, "message": event.message}
                case _:
                    continue
            body: JsonObject = {
                "event": NAMES[about],
                "executionId": summary.execution,
                "workflowId": summary.workflow,
                "at": row.at,
                "scripted": summary.scripted,
                **details,
            }
            found = Notice(f"{summary.execution}/{row.seq}-{number}", about, summary.workflow, body)
    return found if found is not None and found.about == summary.status else None


KIND: Final = "notice"
MARK: Final = "notices-mark"
"""Kind of the single entry with the time up to which the outbox is filled."""
SINCE: Final = "since"


class NoSuchNotice(CallerError):
    """The outbox has no notice of this id."""

    code: ClassVar[str] = "no-such-notice"


class OutboxNotice(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One notice to one address."""

    to: str
    """The name of the address in the settings."""
    body: JsonObject
    at: float
    """When it entered the outbox."""
    state: Literal["pending", "sent", "dead"] = "pending"
    attempts: int = 0
    due: float = 0.0
    """When the next attempt is due."""
    error: str = ""
    """Why the last attempt failed."""


class StoredNotice(NamedTuple):
    """Entry of the outbox. `id` is also the id of its delivery, `webhook-id`."""

    id: str
    letter: OutboxNotice
    version: int


class Outbox:
    """Outbox of one store: for each notice and each address that wants it, its state and its next attempt."""

    def __init__(self, app: AppContext) -> None:
        self._app = app

    async def put(self, notice: Notice, to: str, now: float) -> StoredNotice | None:
        """Add a notice for an address. None: the outbox has it already."""
        # The signature covers `webhook-id`, in which a full stop would end the id.
        id = quote(f"{to}/{notice.id}").replace(".", "%2E")
        letter = OutboxNotice(to=to, body={"id": id, **notice.body}, at=now, due=now)
        try:
            return await self.change(StoredNotice(id, letter, 0), letter)
        except EntryMoved:
            return None

    async def change(self, notice: StoredNotice, letter: OutboxNotice) -> StoredNotice:
        """Write a changed notice. Raises `EntryMoved` if another process changed it first."""
        version = await self._app.store.entries.put(KIND, notice.id, msgspec.to_builtins(letter), after=notice.version)
        return StoredNotice(notice.id, letter, version)

    async def list(self) -> list[StoredNotice]:
        found = await self._app.store.entries.list(KIND)
        return [StoredNotice(entry.key, msgspec.convert(entry.value, OutboxNotice), entry.version) for entry in found]

    async def forget(self, before: float) -> None:
        """Delete notices that were sent and are older than `before`, which is too old to be added again."""
        for notice in await self.list():
            if notice.letter.state == "sent" and notice.letter.at < before:
                await self._app.store.entries.delete(KIND, notice.id)

    async def try_again(self, id: str) -> StoredNotice:
        """Send a notice again, starting with the first attempt. Raises `NoSuchNotice`."""
        found = {notice.id: notice for notice in await self.list()}
        if id not in found:
            raise NoSuchNotice(f"there is no notice {id!r}", hint="`pointsman notifications list` lists them.")
        letter = replace(found[id].letter, state="pending", attempts=0, due=self._app.clock.now())
        return await self.change(found[id], letter)

    async def filled(self) -> float | None:
        """Return the time up to which the outbox is filled; None: never filled."""
        entry = await self._app.store.entries.find(MARK, SINCE)
        return float(entry.value) if entry is not None and isinstance(entry.value, int | float) else None

    async def note_filled(self, at: float) -> None:
        await self._app.store.entries.put(MARK, SINCE, at)


class Notifier:
    """Periodic job of the leader. Rounds run in a task of their own, because posting takes long."""

    def __init__(self, app: AppContext) -> None:
        self._app = app
        self.outbox = Outbox(app)
        self._redact = redactor_for(app.settings)
        self._pending: dict[str, StoredNotice] = {}
        self._known: dict[str, None] = {}
        """Ids of notices that this process added lately; the oldest are dropped."""
        self._filled: float | None = None
        self._noted: float | None = None
        self._looked = 0.0
        self._round = BackgroundRound()

    async def next_due(self) -> float | None:
        """Return when the next round is due; None: the settings name no address."""
        return self._looked + LOOKS_S if self._app.settings.notifications else None

    async def fire(self, now: float) -> None:
        """Start a round, unless one is running. Raises the error of the last round."""
        if self._round.begin(lambda: self.round(now)):
            self._looked = now

    async def close(self) -> None:
        """Stop. Notices that are not recorded as sent are sent again later."""
        await self._round.close()

    async def round(self, now: float) -> None:
        """Fill the outbox and send the notices that are due. Raises the errors of the store."""
        if self._noted is None or now - self._noted >= NOTES_S:
            await self._note(now)
        await self._fill(now)
        due = [notice for notice in self._pending.values() if notice.letter.due <= now]
        limit = asyncio.Semaphore(AT_ONCE)

        async def send(notice: StoredNotice) -> None:
            async with limit:
                await self._send(notice, now)

        await asyncio.gather(*map(send, due))

    async def _note(self, now: float) -> None:
        """Record how far the outbox is filled, and read the pending notices, also those of other processes."""
        if self._filled is None:
            self._filled = await self.outbox.filled()
        if self._filled is None:
            self._filled = now
        await self.outbox.note_filled(self._filled)
        await self.outbox.forget(self._filled - KEPT_S)
        self._pending = {notice.id: notice for notice in await self.outbox.list() if notice.letter.state == "pending"}
        self._noted = now

    async def _fill(self, now: float) -> None:
        assert self._filled is not None
        settings = self._app.settings.notifications
        events = {event for one in settings.values() for event in one.events}
        async for notice in notices_since(self._app, self._filled - LATE_S, events):
            for name, one in settings.items():
                if notice.id in self._known or not wants(one, notice):
                    continue
                text = translated(notice, one.language)
                stored = await self.outbox.put(text._replace(body=self._without_secrets(text.body)), name, now)
                if stored is not None:
                    self._pending[stored.id] = stored
            self._known[notice.id] = None
        while len(self._known) > 10_000:
            del self._known[next(iter(self._known))]
        self._filled = now

    def _without_secrets(self, body: JsonObject) -> JsonObject:
        with hiding(self._redact.redaction):
            return self._redact(cast("JsonObject", _whole(body)))

    async def _send(self, notice: StoredNotice, now: float) -> None:
        letter = notice.letter
        settings = self._app.settings.notifications.get(letter.to)
        if settings is None:
            after = replace(letter, state="dead", error=f"the settings have no address named {letter.to!r}")
        else:
            with hiding(self._redact.redaction):
                after = await self._posted(notice, settings, now)
        self._pending.pop(notice.id, None)
        if after.state == "dead":
            LOG.warning(
                "notification.given-up", extra={"told": {"id": notice.id, "to": letter.to, "error": after.error}}
            )
        try:
            changed = await self.outbox.change(notice, after)
        except EntryMoved:
            return  # A person asked to send it again: the next `_note` reads it.
        if changed.letter.state == "pending":
            self._pending[notice.id] = changed

    async def _posted(self, notice: StoredNotice, settings: NotificationSettings, now: float) -> OutboxNotice:
        """Return the notice after one attempt."""
        letter = replace(notice.letter, attempts=notice.letter.attempts + 1)
        body = msgspec.json.encode(letter.body)
        headers = {"content-type": "application/json", "webhook-id": notice.id, "webhook-timestamp": str(int(now))}
        try:
            await self._app.settings.refresh()
            secret = self._app.settings.resolved(settings.secret)
        except OperatorError as why:
            return _later(letter, now, _error_text(why))
        if settings.secret and secret is None:
            return _later(letter, now, f"the secret {settings.secret!r} is not set")
        if secret:
            headers["webhook-signature"] = sign(key_of(secret), notice.id, int(now), body)
        try:
            status = await post(settings.url, body, headers, private=settings.private)
        except AddressRefused as why:
            return replace(letter, state="dead", error=_error_text(why))
        except NotReached as why:
            return _later(letter, now, _error_text(why))
        if 200 <= status < 300:
            return replace(letter, state="sent", error="")
        error = f"answered {status}"
        return replace(letter, state="dead", error=error) if status == GONE else _later(letter, now, error)


def _error_text(why: OperatorError) -> str:
    return head(f"[{why.code}] {sentences(str(why), why.hint)}", ERROR_CHARS_MAX)


def _whole(value: Json) -> Json:
    """Return a body whose cut texts do not end with what may be the beginning of a secret."""
    if isinstance(value, dict):
        return {name: _whole(one) for name, one in value.items()}
    return unfinished(value) if isinstance(value, str) and len(value) == MESSAGE_CHARS_MAX else value


def _later(letter: OutboxNotice, now: float, error: str) -> OutboxNotice:
    if letter.attempts >= ATTEMPTS_MAX:
        return replace(letter, state="dead", error=error)
    return replace(letter, due=now + min(WAIT_S * 2 ** (letter.attempts - 1), WAIT_S_MAX), error=error)


TIMEOUT_S: Final = 15.0
"""Limit of a whole call."""


async def post(url: str, body: bytes, headers: Mapping[str, str], *, private: bool) -> int:
    """Return the status of the answer. `private` allows addresses inside this network, and plain http.

    Raises `AddressRefused`, `NotReached`.
    """
    from pointsman.tools.egress.http_calls import EgressPolicy, HttpCall, Outgoing  # Loads an HTTP client.

    rules = EgressPolicy(networks=EVERYWHERE if private else (), ports=None, plain=private)
    outgoing = Outgoing(rules, timeout_s=TIMEOUT_S)
    return await outgoing.status(HttpCall(method="POST", url=url, body=body, headers=headers))


NoticeState: TypeAlias = Literal["pending", "sent", "dead"]


class AddressView(TypedDict):
    """An address from the settings, without its secret."""

    name: str
    url: str
    """Scheme and host: the rest is often a secret."""
    events: list[str]
    workflows: list[str]
    signed: bool


class NoticeView(TypedDict):
    """One notice to one address."""

    id: str
    to: str
    event: str
    executionId: str
    state: NoticeState
    """`dead`: given up; it is not sent again automatically."""
    at: float
    attempts: int
    due: float | None
    """When the next attempt is due; null: there is none."""
    error: str | None
    """Why the last attempt failed."""


class NoticePage(TypedDict):
    """The addresses, and the notices by id."""

    addresses: list[AddressView]
    notices: list[NoticeView]
    next: str | None
    """The `after` of the next page; null: this was the last."""


def notice_view(notice: StoredNotice) -> NoticeView:
    letter = notice.letter
    return {
        "id": notice.id,
        "to": letter.to,
        "event": str(letter.body["event"]),
        "executionId": str(letter.body["executionId"]),
        "state": letter.state,
        "at": letter.at,
        "attempts": letter.attempts,
        "due": letter.due if letter.state == "pending" else None,
        "error": letter.error or None,
    }


def address_views(settings: Settings) -> list[AddressView]:
    """Return the addresses of the settings, with only scheme and host of their URLs: the rest is often a secret."""
    return [
        {
            "name": name,
            "url": _public(one.url),
            "events": [*one.events],
            "workflows": [*one.workflows],
            "signed": bool(one.secret),
        }
        for name, one in settings.notifications.items()
    ]


def _public(url: str) -> str:
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}/…" if parts.path.strip("/") or parts.query else f"{parts.scheme}://{host}"

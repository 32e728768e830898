"""Notifications: sends notices (a gate opened, an execution ended) to destinations of the operator.

    gates that opened, executions that ended ─▶ outbox: one entry per address ─▶ send ─▶ sent │ due later │ dead
                                                  ▲ reminder: due later               │
                                                  └────── gate still open ◀───────────┘

The leader fills the outbox from the store, not from events in its own process: after a crash, the next leader fills it
again. The id of a notice derives from its cause, so that each notice enters the outbox once. A round starts somewhat
before the end of the last recorded round, because rows of other processes may arrive late. A delivery may be sent twice
under the same id.

Messages to people (mail, Slack, Teams) and reminders are sent only while the gate asks the same question; mail only to
recipients whom it asks. A recipient whom a later level of escalation may ask has an entry that is due at the deadline.
"""

from __future__ import annotations

import asyncio
import fnmatch
import logging
import secrets
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple, TypeAlias, cast
from urllib.parse import quote

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
from pointsman.extras import need
from pointsman.redaction import head, hiding, unfinished
from pointsman.runtime.summary import MESSAGE_CHARS_MAX
from pointsman.settings.sections import NotificationSettings, RecipientSettings
from pointsman.store.errors import EntryMoved
from pointsman.store.records import ExecutionQuery, GateEntry, InboxQuery, Summary
from pointsman.tools.egress.addresses import EVERYWHERE, AddressRefused
from pointsman.tools.mail import send as send_mail
from pointsman.tools.tool import ToolFailed
from pointsman.triggers.answer_links import ANSWER_LINKS, Question, asks, is_asked, open_gate, question_of
from pointsman.triggers.destinations import (
    DESTINATIONS,
    DestinationRequest,
    Destinations,
    checked_destination,
    destination_etag,
    public_address,
    read_destination,
    set_by,
    stored_destination,
)
from pointsman.triggers.destinations import KIND as DESTINATION
from pointsman.triggers.notice_formats import (
    TEST_EVENT,
    Item,
    NoticeLink,
    Notices,
    as_mail,
    as_slack,
    as_teams,
    item_of,
    moment,
    text,
)
from pointsman.triggers.signatures import key_of, sign
from pointsman.values import ExecutionId, Instant, Json, JsonObject, json_of

if TYPE_CHECKING:
    from pointsman.tools.egress.http_calls import EgressPolicy

LOG: Final = logging.getLogger("pointsman")
LOOKS_S: Final = 2.0
"""Interval between two rounds."""
LOOKS_IDLE_S: Final = 10.0
"""The same while there is no destination."""
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


async def notices_since(app: AppContext, since: float, names: Iterable[str]) -> AsyncIterator[Notice]:
    """Yield the notices of these kinds at or after `since` (unix seconds)."""
    kinds = frozenset(names)
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
    notice: Notice | None = None
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
            notice = Notice(f"{summary.execution}/{row.seq}-{number}", about, summary.workflow, body)
    return notice if notice is not None and notice.about == summary.status else None


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
    recipient: str = ""
    """The recipient of a mail."""
    reminder: int = 0
    """Number of the reminder; 0: the first notice."""


class StoredNotice(NamedTuple):
    """Entry of the outbox. `id` is also the id of its delivery, `webhook-id`."""

    id: str
    letter: OutboxNotice
    version: int


class Outbox:
    """Outbox of one store: for each notice and each address that wants it, its state and its next attempt."""

    def __init__(self, app: AppContext) -> None:
        self._app = app

    async def put(
        self, notice: Notice, to: str, now: float, *, recipient: str = "", due: float | None = None
    ) -> StoredNotice | None:
        """Add a notice for an address. None: the outbox has it already. `due`: when it is sent; None: at once."""
        # The signature covers `webhook-id`, in which a full stop would end the id.
        id = quote("/".join([to, *([recipient] if recipient else []), notice.id])).replace(".", "%2E")
        body: JsonObject = {"id": id, **notice.body}
        letter = OutboxNotice(to=to, recipient=recipient, body=body, at=now, due=now if due is None else due)
        return await self._added(id, letter)

    async def put_reminder(self, notice: StoredNotice, due: float) -> StoredNotice | None:
        """Add the next reminder of a notice. None: the outbox has it already."""
        letter, number = notice.letter, notice.letter.reminder + 1
        id = f"{notice.id.removesuffix(f'/reminder-{letter.reminder}')}/reminder-{number}"
        body: JsonObject = {**letter.body, "id": id, "reminder": number}
        again = replace(letter, body=body, state="pending", attempts=0, at=due, due=due, error="", reminder=number)
        return await self._added(id, again)

    async def drop(self, notice: StoredNotice) -> None:
        """Delete a notice that will not be sent."""
        await self._app.store.entries.delete(KIND, notice.id)

    async def _added(self, id: str, letter: OutboxNotice) -> StoredNotice | None:
        try:
            return await self.change(StoredNotice(id, letter, 0), letter)
        except EntryMoved:
            return None

    async def change(self, notice: StoredNotice, letter: OutboxNotice) -> StoredNotice:
        """Write a changed notice. Raises `EntryMoved` if another process changed it first."""
        version = await self._app.store.entries.put(KIND, notice.id, msgspec.to_builtins(letter), after=notice.version)
        return StoredNotice(notice.id, letter, version)

    async def list(self) -> list[StoredNotice]:
        entries = await self._app.store.entries.list(KIND)
        return [StoredNotice(entry.key, msgspec.convert(entry.value, OutboxNotice), entry.version) for entry in entries]

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
        self._destinations = Destinations(app.settings.notifications, frozenset())
        self._pending: dict[str, StoredNotice] = {}
        self._known: dict[str, None] = {}
        """Ids of notices that this process added lately; the oldest are dropped."""
        self._filled: float | None = None
        self._noted: float | None = None
        self._looked = 0.0
        self._round = BackgroundRound()

    async def next_due(self) -> float | None:
        """Return when the next round is due. Without a destination, rounds only look whether one was added."""
        return self._looked + (LOOKS_S if self._destinations.settings else LOOKS_IDLE_S)

    async def fire(self, now: float) -> None:
        """Start a round, unless one is running. Raises the error of the last round."""
        if self._round.begin(lambda: self.round(now)):
            self._looked = now

    async def close(self) -> None:
        """Stop. Notices that are not recorded as sent are sent again later."""
        await self._round.close()

    async def round(self, now: float) -> None:
        """Fill the outbox and send the notices that are due. Raises the errors of the store."""
        had_any, self._destinations = bool(self._destinations.settings), await self._app[DESTINATIONS].read()
        if not self._destinations.settings and not had_any:
            return
        if self._noted is None or now - self._noted >= NOTES_S:
            await self._note(now)
        await self._fill(now)
        groups: defaultdict[tuple[str, str, str], list[StoredNotice]] = defaultdict(list)
        for notice in self._pending.values():
            if notice.letter.due <= now:
                groups[self._message_of(notice)].append(notice)
        limit = asyncio.Semaphore(AT_ONCE)

        async def send(group: list[StoredNotice]) -> None:
            async with limit:
                await self._send(group, now)

        await asyncio.gather(*map(send, groups.values()))

    def _message_of(self, notice: StoredNotice) -> tuple[str, str, str]:
        """Return the key of the message that a notice is sent in: notices of a digest are sent together."""
        settings = self._destinations.settings.get(notice.letter.to)
        alone = settings is None or settings.digest_interval is None
        return notice.letter.to, notice.letter.recipient, notice.id if alone else ""

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
        settings = self._destinations.settings
        events = {event for one in settings.values() for event in one.events}
        async for notice in notices_since(self._app, self._filled - LATE_S, events):
            for name, setting in settings.items():
                if notice.id in self._known or not wants(setting, notice):
                    continue
                for recipient in recipients_of(setting):
                    await self._put(notice, name, setting, recipient, now)
            self._known[notice.id] = None
        while len(self._known) > 10_000:
            del self._known[next(iter(self._known))]
        self._filled = now

    def _without_secrets(self, body: JsonObject) -> JsonObject:
        with hiding(self._redact.redaction):
            return self._redact(cast("JsonObject", _whole(body)))

    async def _put(
        self, notice: Notice, name: str, setting: NotificationSettings, recipient: RecipientSettings | None, now: float
    ) -> None:
        text = translated(notice, language_of(setting, recipient))
        due = now
        deadline = notice.body.get("deadline")
        users, groups = (cast("list[str]", notice.body.get(name, [])) for name in ("users", "groups"))
        if recipient is not None and notice.about == GATE and not is_asked(recipient, users, groups):
            if not isinstance(deadline, int | float):
                return
            due = deadline  # A later level may ask the recipient.
        elif setting.digest_interval is not None:
            period = setting.digest_interval.seconds
            due = (now // period + 1) * period
        stored = await self.outbox.put(
            text._replace(body=self._without_secrets(text.body)),
            name,
            now,
            recipient="" if recipient is None else recipient.name,
            due=due,
        )
        if stored is not None:
            self._pending[stored.id] = stored

    async def _send(self, group: list[StoredNotice], now: float) -> None:
        """Send the notices of one message that are still needed."""
        settings = self._destinations.settings.get(group[0].letter.to)
        needed: list[tuple[StoredNotice, GateEntry | None]] = []
        for notice in group:
            entry = None if settings is None else await self._open_gate(notice, settings)
            if settings is None or await self._is_needed(notice, entry, settings, now):
                needed.append((notice, entry))
        if not needed:
            return
        if settings is None:
            outcome = SendOutcome("dead", f"there is no destination named {group[0].letter.to!r}")
        else:
            with hiding(self._redact.redaction):
                is_entered = group[0].letter.to in self._destinations.entered
                outcome = await NoticeSender(self._app, settings, now, is_entered=is_entered).send(needed)
        for notice, _ in needed:
            await self._record(notice, outcome, settings, now)

    async def _open_gate(self, notice: StoredNotice, settings: NotificationSettings) -> GateEntry | None:
        """Return the gate of a notice while it asks the same question; None also where that does not matter."""
        matters = settings.format != "json" or settings.answer_links or notice.letter.reminder
        question = _question(notice.letter.body)
        return await open_gate(self._app, question) if matters and question is not None else None

    async def _is_needed(
        self, notice: StoredNotice, entry: GateEntry | None, settings: NotificationSettings, now: float
    ) -> bool:
        """Return whether to send a notice now. Otherwise delete it, or postpone it until its gate may ask another
        person."""
        letter = notice.letter
        if _question(letter.body) is None or (settings.format == "json" and not letter.reminder):
            return True
        if entry is not None:
            recipient = settings.recipient(letter.recipient)
            if not letter.recipient or recipient is None or asks(entry, recipient):
                return True
            if entry.deadline is not None and entry.deadline > now and recipient.name not in entry.without:
                with suppress(EntryMoved):
                    self._pending[notice.id] = await self.outbox.change(notice, replace(letter, due=entry.deadline))
                return False
        self._pending.pop(notice.id, None)
        await self.outbox.drop(notice)
        return False

    async def _record(
        self, notice: StoredNotice, outcome: SendOutcome, settings: NotificationSettings | None, now: float
    ) -> None:
        letter = replace(notice.letter, attempts=notice.letter.attempts + 1)
        after = outcome.applied(letter, now)
        self._pending.pop(notice.id, None)
        if after.state == "dead":
            LOG.warning(
                "notification.given-up", extra={"told": {"id": notice.id, "to": letter.to, "error": after.error}}
            )
        if after.state == "sent" and settings is not None and settings.reminder_interval is not None:
            await self._remind(notice, settings, now + settings.reminder_interval.seconds)
        try:
            changed = await self.outbox.change(notice, after)
        except EntryMoved:
            return  # A person asked to send it again: the next `_note` reads it.
        if changed.letter.state == "pending":
            self._pending[notice.id] = changed

    async def _remind(self, notice: StoredNotice, settings: NotificationSettings, due: float) -> None:
        """Add the next reminder before the notice is recorded as sent, so that a crash does not lose it."""
        if _question(notice.letter.body) is None or notice.letter.reminder >= settings.reminders_max:
            return
        added = await self.outbox.put_reminder(notice, due)
        if added is not None:
            self._pending[added.id] = added


class SendOutcome(NamedTuple):
    """SendOutcome of one attempt to send a message."""

    kind: Literal["sent", "later", "dead"]
    error: str = ""

    def applied(self, letter: OutboxNotice, now: float) -> OutboxNotice:
        """Return a notice of the message after the attempt."""
        if self.kind == "later":
            return _later(letter, now, self.error)
        return replace(letter, state=self.kind, error=self.error)


class NoticeSender:
    """Sends one message to one destination."""

    def __init__(
        self, app: AppContext, settings: NotificationSettings, now: float, *, is_entered: bool = False
    ) -> None:
        """`is_entered`: an admin entered the address in the app, so that it obeys `[http]`."""
        self._app = app
        self._settings = settings
        self._now = now
        self._is_entered = is_entered

    async def send(self, notices: Sequence[tuple[StoredNotice, GateEntry | None]]) -> SendOutcome:
        """Send notices as one message; each with its open gate, if it is about one."""
        first = notices[0][0]
        try:
            await self._app.settings.refresh()
            if self._settings.format == "json":
                return await self._signed(first, notices[0][1])
            return await self._message(notices)
        except AddressRefused as why:
            return SendOutcome("dead", _error_text(why))
        except ToolFailed as why:
            failure = why.failure
            error = head(f"[{failure.code}] {sentences(failure.message, failure.hint)}", ERROR_CHARS_MAX)
            return SendOutcome("later" if failure.retryable else "dead", error)
        except OperatorError as why:
            return SendOutcome("later", _error_text(why))

    async def _signed(self, notice: StoredNotice, entry: GateEntry | None) -> SendOutcome:
        """Post a notice as JSON, signed."""
        setting = self._settings
        secret = self._app.settings.resolved(setting.secret)
        if setting.secret and secret is None:
            return SendOutcome("later", f"the secret {setting.secret!r} is not set")
        link = await self._answer_link(notice, entry)
        body = msgspec.json.encode({**notice.letter.body, **({"answerUrl": link.url} if link else {})})
        headers = {"webhook-id": notice.id, "webhook-timestamp": str(int(self._now))}
        if secret:
            headers["webhook-signature"] = sign(key_of(secret), notice.id, int(self._now), body)
        return await self._post(body, headers)

    async def _message(self, notices: Sequence[tuple[StoredNotice, GateEntry | None]]) -> SendOutcome:
        """Send notices as a message for people."""
        setting, first = self._settings, notices[0][0]
        recipient = setting.recipient(first.letter.recipient)
        if recipient is None and setting.format == "mail":
            return SendOutcome("dead", f"the settings have no recipient named {first.letter.recipient!r}")
        language = language_of(setting, recipient) or self._app.settings.current.language
        items = [await self._item(notice, entry, language) for notice, entry in notices]
        message = Notices(items, language)
        match setting.format:
            case "slack":
                return await self._post(msgspec.json.encode(as_slack(message)), {})
            case "teams":
                return await self._post(msgspec.json.encode(as_teams(message)), {})
            case _:
                assert recipient is not None
                return await self._mail(message, recipient, key=" ".join(notice.id for notice, _ in notices))

    async def _item(self, notice: StoredNotice, entry: GateEntry | None, language: str) -> Item:
        body = notice.letter.body
        link = await self._answer_link(notice, entry)
        server = self._app.settings.server.url.rstrip("/")
        page = f"{server}/executions/{quote(str(body['executionId']))}" if server else ""
        answer = NoticeLink(text("answer", language), link.url) if link else None
        note = text("link", language, name=link.name, time=moment(link.until)) if link else ""
        return item_of(body, language, page=page, answer=answer, note=note)

    async def _answer_link(self, notice: StoredNotice, entry: GateEntry | None) -> SignedLink | None:
        """Return the answer link for the recipient of a notice; None: there is none, see `answer_links`."""
        setting, letter = self._settings, notice.letter
        recipient = setting.recipient(letter.recipient)
        if not setting.answer_links or recipient is None or entry is None or not entry.by_link:
            return None
        if not asks(entry, recipient):
            return None
        until = self._now + setting.link_lifetime.seconds
        token = await self._app[ANSWER_LINKS].sign(question_of(entry), letter.to, recipient.name, until)
        return SignedLink(f"{self._app.settings.server.url.rstrip('/')}/answer#{token}", recipient.name, until)

    async def _mail(self, message: Notices, recipient: RecipientSettings, *, key: str) -> SendOutcome:
        need("tools", "The format `mail` of notifications")
        server = self._app.settings.outgoing_mail
        if server is None:
            return SendOutcome("later", "there is no mail server")
        settings = server.settings
        password = self._app.settings.resolved(settings.password) if settings.password else ""
        if password is None:
            return SendOutcome("later", f"the secret {settings.password!r} is not set")
        mail = as_mail(message, recipient, settings, key=key, at=self._now)
        await send_mail(mail, server, password=password, recipients=[recipient.address])
        return SendOutcome("sent")

    async def _post(self, body: bytes, headers: Mapping[str, str]) -> SendOutcome:
        setting, settings = self._settings, self._app.settings
        url = settings.resolved(setting.url)
        if url is None:
            return SendOutcome("later", f"the secret {setting.url!r} is not set")
        rules = settings.http.egress_policy() if self._is_entered else None
        content = {"content-type": "application/json", **headers}
        status = await post(url, body, content, private=setting.private, rules=rules)
        if 200 <= status < 300:
            return SendOutcome("sent")
        return SendOutcome("dead" if status == GONE else "later", f"answered {status}")


class SignedLink(NamedTuple):
    """An answer link."""

    url: str
    name: str
    """The recipient."""
    until: float


def recipients_of(setting: NotificationSettings) -> Sequence[RecipientSettings | None]:
    """Return the recipients of a notice of their own; None stands for the address of the destination."""
    return setting.recipients if setting.format == "mail" else (None,)


def language_of(setting: NotificationSettings, recipient: RecipientSettings | None) -> str:
    return (recipient.language if recipient is not None else "") or setting.language


def _question(body: JsonObject) -> Question | None:
    """Return the question that a notice is about; None: it is about an end."""
    if "gateId" not in body:
        return None
    return Question(
        str(body["executionId"]), str(body["gateId"]), float(cast("float", body["at"])), str(body["digest"])
    )


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


async def post(
    url: str, body: bytes, headers: Mapping[str, str], *, private: bool, rules: EgressPolicy | None = None
) -> int:
    """Return the status of the answer. `private` allows addresses inside this network, and plain http; `rules` replace
    it.

    Raises `AddressRefused`, `AddressUnreachable`.
    """
    from pointsman.tools.egress.http_calls import EgressPolicy, HttpCall, Outgoing  # Loads an HTTP client.

    rules = rules or EgressPolicy(networks=EVERYWHERE if private else (), ports=None, plain=private)
    outgoing = Outgoing(rules, timeout_s=TIMEOUT_S)
    return await outgoing.status(HttpCall(method="POST", url=url, body=body, headers=headers))


NoticeState: TypeAlias = Literal["pending", "sent", "dead"]


class RecipientView(TypedDict):
    """A recipient of mail."""

    name: str
    address: str


class AddressView(TypedDict):
    """A destination of notices, without its secret."""

    name: str
    source: str
    """`app`, or the source of the settings, which have precedence and cannot be changed here."""
    inUse: bool
    """False: the settings have a destination of the same name."""
    url: str
    """Scheme and host: the rest is often a secret. Empty: the notices are mail."""
    events: list[str]
    workflows: list[str]
    signed: bool
    format: Literal["json", "slack", "teams", "mail"]
    recipients: list[str]
    """The names of the recipients."""
    answerLinks: bool
    """Whether notices contain links for answers, where the workflow allows it."""
    language: str
    mailTo: list[RecipientView]
    """The recipients of mail."""
    changedAt: float
    changedBy: str
    etag: str
    """ETag of the present version, for `If-Match`; empty: it is not changed here."""


class TestedDestination(TypedDict):
    """The outcome of a test."""

    sent: bool
    error: str
    """Why the message was not sent; empty: it was."""


class NoticeView(TypedDict):
    """One notice to one address."""

    id: str
    to: str
    recipient: str | None
    """The recipient of a mail; null: the notice goes to the address of the destination."""
    reminder: int
    """Number of the reminder; 0: the first notice."""
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
        "recipient": letter.recipient or None,
        "reminder": letter.reminder,
        "event": str(letter.body["event"]),
        "executionId": str(letter.body["executionId"]),
        "state": letter.state,
        "at": letter.at,
        "attempts": letter.attempts,
        "due": letter.due if letter.state == "pending" else None,
        "error": letter.error or None,
    }


async def address_views(app: AppContext) -> list[AddressView]:
    """Return the destinations, those of the settings first, with only scheme and host of their addresses."""
    settings = app.settings
    views = [_address_view(name, one, set_by(settings, name)) for name, one in settings.notifications.items()]
    for entry in await app.store.entries.list(DESTINATION):
        one = read_destination(entry)
        view = _address_view(one.name, one.setting, "app")
        views.append(
            {
                **view,
                "url": one.shown,
                "inUse": not set_by(settings, one.name),
                "changedAt": one.changed,
                "changedBy": one.by,
                "etag": destination_etag(entry),
            }
        )
    return views


def _address_view(name: str, setting: NotificationSettings, source: str) -> AddressView:
    return {
        "name": name,
        "source": source,
        "inUse": True,
        "url": public_address(setting.url) if setting.url else "",
        "events": [*setting.events],
        "workflows": [*setting.workflows],
        "signed": bool(setting.secret),
        "format": setting.format,
        "recipients": [recipient.name for recipient in setting.recipients],
        "answerLinks": setting.answer_links,
        "language": setting.language,
        "mailTo": [{"name": one.name, "address": one.address} for one in setting.recipients if one.address],
        "changedAt": 0.0,
        "changedBy": "",
        "etag": "",
    }


async def try_destination(app: AppContext, name: str, request: DestinationRequest, *, by: str) -> TestedDestination:
    """Send one test message, to all recipients of mail. Nothing is saved. Raises `NotificationInvalid`,
    `NotificationInSettings`."""
    before = await stored_destination(app, name)
    record = checked_destination(app, name, request, before, by=by)
    typed: dict[str, str] = {}
    if request.url and record.format != "mail":
        typed["url"] = request.url.strip()
    if request.key and record.key_secret:
        typed["secret"] = request.key.strip()
    setting = record.setting.model_copy(update=typed)
    now = app.clock.now()
    body: JsonObject = {
        "event": TEST_EVENT,
        "executionId": "test",
        "workflowId": "test",
        "at": now,
        "message": f"Pointsman: test of the destination {name!r}",
    }
    sender = NoticeSender(app, setting, now, is_entered=True)
    await app.settings.refresh(at_once=True)
    for recipient in recipients_of(setting):
        to = "" if recipient is None else recipient.name
        id = f"test-{secrets.token_hex(8)}"
        letter = OutboxNotice(to=name, recipient=to, body={**body, "id": id}, at=now)
        with hiding(redactor_for(app.settings).redaction):
            outcome = await sender.send([(StoredNotice(id, letter, 0), None)])
        if outcome.kind != "sent":
            return {"sent": False, "error": outcome.error}
    return {"sent": True, "error": ""}

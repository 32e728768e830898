"""The notifier: fills the outbox with what happened, and sends what is in it. Done by whoever keeps the store.

round ─▶ what happened since the last one ─▶ outbox ─▶ post what is due ─▶ sent │ due later │ dead after twelve attempts

It begins with what happens from the first round of the store on. A round begins where the last one that was noted
ended, and somewhat before: rows of other processes may come late. A delivery has an id, under which it may come twice.
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final, cast

import msgspec
from msgspec.structs import replace

from pointsman.auth.redaction import redactor_for
from pointsman.context import AppContext
from pointsman.errors import OperatorError, sentences
from pointsman.redaction import head, hiding, unfinished
from pointsman.runtime.summary import MESSAGE_CHARS_MAX
from pointsman.settings.sections import NotificationSettings
from pointsman.store.errors import EntryMoved
from pointsman.tools.egress.failures import AddressRefused, NotReached
from pointsman.triggers.notifications.notices import notices_since, told_in, wants
from pointsman.triggers.notifications.outbox import Outbox, OutboxNotice, StoredNotice
from pointsman.triggers.notifications.outgoing import post
from pointsman.triggers.signatures import key_of, sign
from pointsman.values import Json, JsonObject

LOG: Final = logging.getLogger("pointsman")
LOOKS_S: Final = 2.0
"""How often to look for what happened."""
LATE_S: Final = 60.0
"""How much later than its time a row may come."""
NOTES_S: Final = 30.0
"""How often to note how far the outbox is filled, and to read what others changed in it."""
KEPT_S: Final = 3600.0
"""How long letters that were sent stay in the list."""
ATTEMPTS_MAX: Final = 12
WAIT_S: Final = 5.0
WAIT_S_MAX: Final = 3600.0
AT_ONCE: Final = 8
GONE: Final = 410
ERROR_CHARS_MAX: Final = 500


class Notifier:
    """A chore of the keeper: what takes long is done beside it."""

    def __init__(self, app: AppContext) -> None:
        self._app = app
        self.outbox = Outbox(app)
        self._redact = redactor_for(app.settings)
        self._pending: dict[str, StoredNotice] = {}
        self._known: dict[str, None] = {}
        """What was put into the outbox lately."""
        self._filled: float | None = None
        self._noted: float | None = None
        self._looked = 0.0
        self._round: asyncio.Task[None] | None = None

    async def next_due(self) -> float | None:
        """None: nobody wants to hear anything."""
        return self._looked + LOOKS_S if self._app.settings.notifications else None

    async def fire(self, now: float) -> None:
        """Begin a round, unless one is under way. Raises what broke the last one."""
        if self._round is not None:
            if not self._round.done():
                return
            ended, self._round = self._round, None
            ended.result()
        self._looked = now
        self._round = asyncio.create_task(self.round(now))

    async def close(self) -> None:
        """Stop; what is not noted as sent will be sent again."""
        if self._round is not None:
            self._round.cancel()
            await asyncio.gather(self._round, return_exceptions=True)

    async def round(self, now: float) -> None:
        """Fill the outbox, send what is due. Raises what is wrong with the store."""
        if self._noted is None or now - self._noted >= NOTES_S:
            await self._note(now)
        await self._fill(now)
        due = [kept for kept in self._pending.values() if kept.letter.due <= now]
        limit = asyncio.Semaphore(AT_ONCE)

        async def send(kept: StoredNotice) -> None:
            async with limit:
                await self._send(kept, now)

        await asyncio.gather(*map(send, due))

    async def _note(self, now: float) -> None:
        """Note how far it is filled, and read what is to be sent: another process may have put it there."""
        if self._filled is None:
            self._filled = await self.outbox.filled()
        if self._filled is None:
            self._filled = now
        await self.outbox.note_filled(self._filled)
        await self.outbox.forget(self._filled - KEPT_S)
        self._pending = {kept.id: kept for kept in await self.outbox.list() if kept.letter.state == "pending"}
        self._noted = now

    async def _fill(self, now: float) -> None:
        assert self._filled is not None
        settings = self._app.settings.notifications
        wanted = {event for one in settings.values() for event in one.events}
        async for notice in notices_since(self._app, self._filled - LATE_S, wanted):
            for name, one in settings.items():
                if notice.id in self._known or not wants(one, notice):
                    continue
                told = told_in(notice, one.language)
                kept = await self.outbox.put(told._replace(body=self._without_secrets(told.body)), name, now)
                if kept is not None:
                    self._pending[kept.id] = kept
            self._known[notice.id] = None
        while len(self._known) > 10_000:
            del self._known[next(iter(self._known))]
        self._filled = now

    def _without_secrets(self, body: JsonObject) -> JsonObject:
        with hiding(self._redact.redaction):
            return self._redact(cast("JsonObject", _whole(body)))

    async def _send(self, kept: StoredNotice, now: float) -> None:
        letter = kept.letter
        settings = self._app.settings.notifications.get(letter.to)
        if settings is None:
            after = replace(letter, state="dead", error=f"the settings name no address {letter.to!r}")
        else:
            with hiding(self._redact.redaction):
                after = await self._posted(kept, settings, now)
        self._pending.pop(kept.id, None)
        if after.state == "dead":
            LOG.warning("notification.given-up", extra={"told": {"id": kept.id, "to": letter.to, "error": after.error}})
        try:
            changed = await self.outbox.change(kept, after)
        except EntryMoved:
            return  # Somebody asked for it to be sent again: it is read with the rest.
        if changed.letter.state == "pending":
            self._pending[kept.id] = changed

    async def _posted(self, kept: StoredNotice, settings: NotificationSettings, now: float) -> OutboxNotice:
        """The letter after one attempt."""
        letter = replace(kept.letter, attempts=kept.letter.attempts + 1)
        body = msgspec.json.encode(letter.body)
        headers = {"content-type": "application/json", "webhook-id": kept.id, "webhook-timestamp": str(int(now))}
        try:
            await self._app.settings.refresh()
            secret = self._app.settings.resolved(settings.secret)
        except OperatorError as why:
            return _later(letter, now, _said(why))
        if settings.secret and secret is None:
            return _later(letter, now, f"the secret {settings.secret!r} is not set")
        if secret:
            headers["webhook-signature"] = sign(key_of(secret), kept.id, int(now), body)
        try:
            status = await post(settings.url, body, headers, private=settings.private)
        except AddressRefused as why:
            return replace(letter, state="dead", error=_said(why))
        except NotReached as why:
            return _later(letter, now, _said(why))
        if 200 <= status < 300:
            return replace(letter, state="sent", error="")
        error = f"answered {status}"
        return replace(letter, state="dead", error=error) if status == GONE else _later(letter, now, error)


def _said(why: OperatorError) -> str:
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

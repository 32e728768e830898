"""Webhooks: calls from outside that start a workflow or publish an event, and the outcomes of their latest calls.

    path, body, headers ─▶ signature ─▶ data ─▶ start, or an event; a repeated call finds the first
                               │                    └─▶ delivery, written at once to the entry of the webhook
                               └─▶ refused: buffered in this process, written within 5 s, and only for existing webhooks

A caller without the secret cannot find out whether a path exists: both cases are refused in the same words, after the
same work. A refused call writes nothing itself: otherwise its duration would reveal whether the path exists, and
strangers could keep the store busy. Bodies are not stored; a body becomes the input of the execution.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import parse_qsl

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from pointsman.arguments import checks_arguments
from pointsman.auth.callers import Caller, combined_caller
from pointsman.auth.redaction import redactor_for
from pointsman.auth.vault import refusal_of
from pointsman.context import AppContext
from pointsman.errors import CallerError, OperatorError, Outage, PointsmanError
from pointsman.executions.inputs import event_key
from pointsman.json_meter import LESS, DuplicateKey, JsonUnreadable, TooMuchJson, decode_sent_json, unique_object
from pointsman.settings import HANDLE
from pointsman.store.errors import EntryMoved
from pointsman.tools.egress.addresses import SecretRefused
from pointsman.triggers.events import Events, Published
from pointsman.triggers.signatures import KEY_BYTES_MIN, Signed, key_of, key_of_unsigned, verify
from pointsman.triggers.starts import WEBHOOK, Declared, author_for, read_declared
from pointsman.values import ExecutionId, Json
from pointsman.workflows.library import LIBRARY, read_saved_beside

if TYPE_CHECKING:
    from pointsman.ports import Clock
    from pointsman.store.api import ConfigStore


KIND: Final = "deliveries"
"""Kind of the single entry of each webhook; its key is the path."""
KEPT: Final = 50
"""Deliveries kept per webhook; the newest."""
REFUSED_KEPT: Final = 10
"""How many of them may be refusals, which strangers can cause."""
PATHS_MAX: Final = 1000
"""Paths for which a process buffers refusals."""
TRIES: Final = 20
HELD_S: Final = 5.0
"""Maximum time for which a refusal is buffered: a crash loses at most so much, and another process shows it so late."""

Outcome: TypeAlias = Literal["started", "published", "ignored", "failed", "refused"]


class Delivery(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of a webhook."""

    id: str
    """The sender's id of the call; empty if it is not known."""
    at: float
    """Unix seconds."""
    bytes: int
    """Size of its body."""
    outcome: Outcome
    """`ignored`: its `match` did not hold. `failed`: it was signed, but starting or publishing failed with `code`."""
    signed: bool = False
    code: str = ""
    why: str = ""
    hint: str = ""
    """What to do about it."""
    execution: ExecutionId | None = None
    """The execution it started."""
    delivered: int = 0
    """How many executions accepted the event."""


class Deliveries:
    """Latest calls of the webhooks of one app."""

    def __init__(self, entries: ConfigStore, clock: Clock) -> None:
        self._entries = entries
        self._clock = clock
        self._refused: dict[str, deque[Delivery]] = {}
        self._turn = asyncio.Lock()
        self._writes: asyncio.Task[None] | None = None

    def refused(self, path: str, delivery: Delivery) -> None:
        """Buffer a refusal. It costs the same for a path without a webhook, whose refusals are never written."""
        deliveries = self._refused.pop(path, None) or deque(maxlen=REFUSED_KEPT)
        deliveries.append(delivery)
        self._refused[path] = deliveries
        if len(self._refused) > PATHS_MAX:
            del self._refused[next(iter(self._refused))]
        if self._writes is None or self._writes.done():
            self._writes = asyncio.create_task(self._write_later())

    async def _write_later(self) -> None:
        while self._refused:  # A call may be refused while the earlier ones are being written.
            await self._clock.sleep_until(self._clock.now() + HELD_S)
            with suppress(OperatorError):  # Other users of the store report its failure.
                await self._write()

    async def _write(self) -> None:
        """Write the buffered refusals of existing webhooks; drop those of other paths."""
        async with self._turn:  # Otherwise a webhook deleted meanwhile would get an entry again.
            paths = [*self._refused]
            webhooks = {one.key for one in await self._entries.list(WEBHOOK)} if paths else set[str]()
            for path in paths:
                if path in webhooks:
                    await self.note(path)
                else:
                    self._refused.pop(path, None)

    async def close(self) -> None:
        """Write the buffered refusals."""
        if self._writes is not None:
            self._writes.cancel()
            await asyncio.gather(self._writes, return_exceptions=True)
        with suppress(OperatorError):  # A store that cannot be written must not prevent shutdown.
            await self._write()

    async def note(self, path: str, *delivery: Delivery) -> list[Delivery]:
        """Write deliveries and buffered refusals of a webhook. Return all that are kept, the newest first."""
        new = [*delivery, *self._refused.pop(path, ())]
        for _ in range(TRIES):
            entry = await self._entries.find(KIND, path)
            earlier = [] if entry is None else msgspec.convert(entry.value, list[Delivery])
            newest = _newest([*new, *earlier])
            if not new:
                return newest
            try:
                await self._entries.put(KIND, path, msgspec.to_builtins(newest), after=entry.version if entry else 0)
            except EntryMoved:
                continue  # Another call was faster: its entry is kept.
            return newest
        return _newest(new)

    async def forget(self, path: str) -> None:
        """Delete the deliveries of a deleted webhook."""
        async with self._turn:
            self._refused.pop(path, None)
            await self._entries.delete(KIND, path)


def _newest(deliveries: list[Delivery]) -> list[Delivery]:
    """Return the newest deliveries. Refused calls cannot displace signed ones."""
    refused = sorted((one for one in deliveries if one.outcome == "refused"), key=_when)[-REFUSED_KEPT:]
    taken = sorted((one for one in deliveries if one.outcome != "refused"), key=_when)[-(KEPT - REFUSED_KEPT) :]
    return sorted([*refused, *taken], key=_when, reverse=True)


def _when(delivery: Delivery) -> float:
    return delivery.at


FIELDS_MAX: Final = 1000
"""Maximum number of fields of a form."""
HIDDEN: Final = frozenset(
    {"authorization", "cookie", "proxy-authorization", "webhook-signature", "x-hub-signature", "x-hub-signature-256"}
)
"""Headers hidden from formulas, which would write them to the journal."""
IN_DOCUMENT: Final = "document"
ID_CHARS_MAX: Final = 200
WHY_CHARS_MAX: Final = 500


class WebhookRefused(CallerError):
    """No webhook accepts this call: the path does not exist, or the signature is invalid."""

    code: ClassVar[str] = "webhook-refused"


class BodyTooLarge(CallerError):
    """The body of a call is too large."""

    code: ClassVar[str] = "body-too-large"


class BodyInvalid(CallerError):
    """The body of a call does not match its content type, or the type is not supported."""

    code: ClassVar[str] = "body-invalid"


class SecretMissing(OperatorError):
    """The secret of a webhook is not set, empty or too short to sign with."""

    code: ClassVar[str] = "secret-missing"


class Received(NamedTuple):
    """Outcome of a call: it started an execution, or published an event. Neither: its `match` does not hold."""

    delivery: str
    started: ExecutionId | None = None
    published: Published | None = None


@checks_arguments
class Webhooks:
    """Receiver of webhook calls."""

    def __init__(self, app: AppContext, events: Events) -> None:
        self._app = app
        self._events = events
        self.deliveries = Deliveries(app.store.entries, app.clock)

    async def receive(
        self, path: str, body: bytes, headers: Mapping[str, str], *, caller: Caller | None = None
    ) -> Received:
        """Process a call: for the owner of the webhook, and for `caller` if it is a test call.

        Raises `WebhookRefused`, `BodyTooLarge`, `BodyInvalid`, `TriggerStopped`, and the errors of starting. The
        outcome is recorded as a delivery, also why the secret of the webhook cannot be used.
        """
        most = self._app.settings.server.webhook_bytes_max
        if len(body) > most:
            hint = f"At most {most} bytes: `webhook_bytes_max` under [server] in the settings."
            raise BodyTooLarge(f"the body has {len(body)} bytes", hint=hint)
        lower = {name.lower(): value for name, value in headers.items()}
        entry = await self._app.store.entries.find(WEBHOOK, path)
        declared = None if entry is None else read_declared(entry.value)
        signed = await self._signed(declared, body, lower)
        now = self._app.clock.now()
        if declared is None or not signed.ok:
            hint = "Check the path and the secret; a signature is valid for five minutes."
            refusal = WebhookRefused("no webhook accepts this call", hint=hint)
            refused = Delivery(id="", at=now, bytes=len(body), outcome="refused", code=refusal.code)
            if signed.fault is not None:
                refused = replace(refused, code=signed.fault.code, why=str(signed.fault), hint=signed.fault.hint)
            else:
                refused = replace(refused, why=_why_refused(declared, lower))
            self.deliveries.refused(path, refused)
            raise refusal
        delivery = Delivery(
            id=signed.delivery[:ID_CHARS_MAX], at=now, bytes=len(body), outcome="ignored", signed=bool(declared.secret)
        )
        try:
            received = await self._taken(path, declared, signed, body, lower, caller)
        except PointsmanError as why:
            message, hint = await self._told(declared, why)
            await self.deliveries.note(path, replace(delivery, outcome="failed", code=why.code, why=message, hint=hint))
            raise
        await self.deliveries.note(path, _came(delivery, received))
        return received

    async def _told(self, declared: Declared, why: PointsmanError) -> tuple[str, str]:
        """Return the message and the hint of a refusal as far as they may be stored: they may quote what was sent."""
        workflow = await read_saved_beside(await self._app[LIBRARY].current(declared.workflow))
        settings = self._app.settings
        if settings.observability.level_for(workflow.config and workflow.config.observability) == "minimal":
            return "", ""
        redacted = redactor_for(settings)({"message": str(why), "hint": why.hint})
        return str(redacted["message"])[:WHY_CHARS_MAX], str(redacted["hint"])[:WHY_CHARS_MAX]

    async def _taken(
        self,
        path: str,
        declared: Declared,
        signed: Signed,
        body: bytes,
        headers: Mapping[str, str],
        caller: Caller | None,
    ) -> Received:
        data = read_body(body, headers.get("content-type", ""))
        visible = {name: value for name, value in headers.items() if name not in HIDDEN}
        delivery = signed.delivery or os.urandom(16).hex()
        key = event_key("webhook", path, signed.key or delivery)
        if not declared.accepts(data, visible):
            return Received(delivery)
        if declared.event:
            owner = await author_for(self._app, declared.workflow)
            by = owner if caller is None else combined_caller(caller, owner)
            published = await self._events.publish(
                declared.event, data, key=key, by=f"webhook {path}", headers=visible, caller=by
            )
            return Received(delivery, published=published)
        return Received(delivery, started=await self._events.begin(declared, data, key, visible, caller=caller))

    async def _signed(self, declared: Declared | None, body: bytes, headers: Mapping[str, str]) -> Signed:
        if declared is not None and declared.open:
            delivery = headers.get("webhook-id") or headers.get("x-github-delivery") or ""
            return Signed(ok=True, delivery=delivery, key=key_of_unsigned(delivery, body))
        now = self._app.clock.now()
        if declared is None or not declared.secret:
            return verify(None, "standard", body, headers, now)
        try:
            key = key_of(await self.secret_of(declared))
        except Outage:
            raise
        except (OperatorError, CallerError) as why:  # Not for the caller: the message names secrets and workflows.
            return verify(None, declared.scheme, body, headers, now)._replace(fault=why)
        return verify(key, declared.scheme, body, headers, now)

    async def secret_of(self, declared: Declared) -> str:
        """Return the secret, from the secrets of the app or from the document. Raises `SecretMissing`, and
        `SecretRefused` if the rule of the secret excludes the workflow."""
        current = await self._app[LIBRARY].current(declared.workflow)
        workflow, revision = await read_saved_beside(current), current.revision
        if declared.secret != IN_DOCUMENT:
            name = declared.secret.removeprefix(HANDLE)
            await self._app.settings.refresh()
            rule, saved = self._app.settings.rule(name), f"{declared.workflow}@{revision}"
            if why := await refusal_of(name, rule, saved, self._app.store.workflows):
                hint = f"An admin can allow it: `pointsman secrets allow {name} --workflow {declared.workflow}`."
                raise SecretRefused(why, hint=hint)
            found = self._app.settings.secret(name)
            if found is None or not found.strip():
                raise SecretMissing(
                    f"the secret {name!r} of webhook {declared.id!r} is {'not set' if found is None else 'empty'}",
                    hint=f"`pointsman secrets set {name}`, or set POINTSMAN_SECRET_{name}.",
                )
            _must_be_long(found, f"the secret {name!r} of webhook {declared.id!r}")
            return found
        for trigger in self._app[LIBRARY].resolved(workflow).triggers or ():
            if trigger.id == declared.trigger and trigger.secret and trigger.secret.strip():
                _must_be_long(trigger.secret, f"the secret of webhook {declared.id!r}")
                return trigger.secret
        raise SecretMissing(
            f"the document of {declared.workflow!r} contains no secret for {declared.trigger!r} any more"
        )


def _why_refused(declared: Declared | None, headers: Mapping[str, str]) -> str:
    """Return the reason for owners of the webhook; the caller does not receive it."""
    if declared is not None and not declared.secret:
        return "the webhook has no secret, and its trigger does not have `auth: none`"
    other = {"standard": "x-hub-signature-256", "github": "webhook-signature"}
    if declared is not None and other[declared.scheme] in headers:
        return f"the signature does not have the scheme {declared.scheme!r}, which `scheme` of the trigger sets"
    return "the signature is invalid"


def _must_be_long(secret: str, source: str) -> None:
    """Raise `SecretMissing` for a secret that is too short."""
    if len(key_of(secret)) < KEY_BYTES_MIN:
        hint = f"It must have at least {KEY_BYTES_MIN} bytes; after `whsec_` they are written in base 64."
        raise SecretMissing(f"{source} is too short", hint=hint)


def _came(delivery: Delivery, received: Received) -> Delivery:
    """Return the delivery of an accepted call."""
    if received.started is not None:
        return replace(delivery, id=received.delivery[:ID_CHARS_MAX], outcome="started", execution=received.started)
    if received.published is not None:
        return replace(
            delivery,
            id=received.delivery[:ID_CHARS_MAX],
            outcome="published",
            delivered=len(received.published.delivered),
        )
    return replace(delivery, id=received.delivery[:ID_CHARS_MAX])


def read_body(body: bytes, content_type: str) -> Json:
    """Return the data of a call. Raises `BodyInvalid`."""
    kind = content_type.partition(";")[0].strip().lower()
    if not body:
        return {}
    if kind == "application/x-www-form-urlencoded":
        try:
            fields = parse_qsl(body.decode(), keep_blank_values=True, max_num_fields=FIELDS_MAX)
            return unique_object([*fields])
        except ValueError as why:
            raise BodyInvalid(f"the form cannot be read: {why}", hint=f"UTF-8, at most {FIELDS_MAX} fields.") from None
    if kind not in ("", "application/json") and not kind.endswith("+json"):
        hint = "Send application/json or application/x-www-form-urlencoded."
        raise BodyInvalid(f"bodies of type {kind[:100]!r} are not supported", hint=hint)
    try:
        return decode_sent_json(body)
    except DuplicateKey as why:
        raise BodyInvalid(f"the body cannot be read: {why}", hint="Keep one of them.") from None
    except TooMuchJson as why:
        raise BodyInvalid(f"the body {why}", hint=LESS) from None
    except JsonUnreadable as why:
        raise BodyInvalid(f"the body is not JSON: {why}", hint="Send JSON in UTF-8, or set the content type.") from None

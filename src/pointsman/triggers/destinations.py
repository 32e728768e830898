"""Destinations of notices: those of the settings, and those that an admin adds while the app runs.

    request ─▶ test: one message ─▶ address and key, sealed in the vault ─▶ an entry of the store ─▶ the next round

- A destination of the settings has precedence: none of its name can be added, and one that is stored is not used.
- The address of a webhook is a secret, as many services put a key in it. Only scheme and host are shown.
- An entered address obeys `[http]` in the settings; mail is sent by the server of `[mail]`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import ClassVar, Final, Literal, NamedTuple, TypeAlias
from urllib.parse import urlsplit

import msgspec
from msgspec import Struct
from pydantic import ValidationError

from pointsman.auth.sealed_entries import delete_sealed, read_for_change, sealed_name, write_sealed
from pointsman.context import AppContext, Part
from pointsman.errors import CallerError, FieldInvalid
from pointsman.etags import content_etag, etag_of
from pointsman.settings import HANDLE, Settings
from pointsman.settings.sections import NotificationSettings
from pointsman.store.records import ConfigEntry
from pointsman.tools.egress.addresses import AddressRefused
from pointsman.values import Instant, JsonObject

KIND: Final = "notification"
"""Kind of the entries, one for each destination; their keys are its names."""
KNOWN_FOR_S: Final = 1.0
NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,29}")
RECIPIENTS_MAX: Final = 100

Format: TypeAlias = Literal["json", "slack", "teams", "mail"]
NoticeEvent: TypeAlias = Literal["gate", "completed", "failed", "cancelled", "interrupted"]


class NotificationInvalid(FieldInvalid):
    """A part of a destination is missing or invalid."""

    code: ClassVar[str] = "notification-invalid"


class NotificationInSettings(CallerError):
    """The settings have a destination of this name, and have precedence."""

    code: ClassVar[str] = "notification-in-settings"


class NoSuchNotification(CallerError):
    """No destination of this name was added."""

    code: ClassVar[str] = "no-such-notification"


class DestinationRecipient(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A person who receives mail."""

    name: str
    address: str


class DestinationRequest(Struct, frozen=True, kw_only=True):
    """What an admin enters for a destination."""

    format: Format
    url: str | None = None
    """None: the address that it has already."""
    key: str | None = None
    """The key that signs; None: the one that it has already; empty: not signed."""
    events: tuple[NoticeEvent, ...] = ("gate", "failed")
    workflows: tuple[str, ...] = ("*",)
    recipients: tuple[DestinationRecipient, ...] = ()
    answer_links: bool = False
    language: str = ""


class StoredDestination(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The record of a destination, without its address and its key."""

    name: str
    format: Format
    events: tuple[NoticeEvent, ...]
    workflows: tuple[str, ...]
    recipients: tuple[DestinationRecipient, ...] = ()
    answer_links: bool = False
    language: str = ""
    shown: str = ""
    """Scheme and host of the address."""
    url_secret: str = ""
    """Name of the secret with the address; empty: it has none."""
    key_secret: str = ""
    """Name of the secret with the key that signs; empty: messages are not signed."""
    changed: Instant = Instant(0.0)
    by: str = ""

    @property
    def setting(self) -> NotificationSettings:
        """Return it as settings; address and key are handles."""
        members: JsonObject = {
            "format": self.format,
            "url": HANDLE + self.url_secret if self.url_secret else "",
            "secret": HANDLE + self.key_secret if self.key_secret else "",
            "events": [*self.events],
            "workflows": [*self.workflows],
            "recipients": [{"name": one.name, "address": one.address} for one in self.recipients],
            "answer_links": self.answer_links,
            "language": self.language,
        }
        return NotificationSettings.model_validate(members)


class Destinations(NamedTuple):
    """The destinations in effect."""

    settings: Mapping[str, NotificationSettings]
    entered: frozenset[str]
    """Those that an admin added."""


class DestinationReader:
    """Reads the destinations, at most once a second."""

    def __init__(self, app: AppContext) -> None:
        self._app = app
        self._read_at = float("-inf")
        self._known: Destinations = Destinations({}, frozenset())

    async def read(self) -> Destinations:
        """Return the destinations in effect. Raises the errors of the store."""
        now, own = self._app.clock.now(), self._app.settings.notifications
        if not self._read_at <= now < self._read_at + KNOWN_FOR_S:
            stored = [read_destination(entry) for entry in await self._app.store.entries.list(KIND)]
            added = {one.name: one.setting for one in stored if one.name not in own}
            known = Destinations({**own, **added}, frozenset(added))
            if known != self._known:
                await self._app.settings.refresh(at_once=True)  # Their secrets were stored before them.
            self._known, self._read_at = known, now
        return self._known

    def changed(self) -> None:
        """Read the entries at the next call, because this process changed them."""
        self._read_at = float("-inf")


DESTINATIONS: Final = Part[DestinationReader]("notification destinations", DestinationReader)


def read_destination(entry: ConfigEntry) -> StoredDestination:
    return msgspec.convert(entry.value, StoredDestination)


def set_by(settings: Settings, name: str) -> str:
    """Return the source of the settings that have a destination of this name; empty: they have none."""
    return settings.sources.get("notifications", "pointsman.toml") if name in settings.notifications else ""


def public_address(url: str) -> str:
    """Return scheme and host of an address: the rest is often a secret."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2]
    return f"{parts.scheme}://{host}/…" if parts.path.strip("/") or parts.query else f"{parts.scheme}://{host}"


async def stored_destination(app: AppContext, name: str) -> StoredDestination | None:
    entry = await app.store.entries.find(KIND, name)
    return None if entry is None else read_destination(entry)


def checked_destination(
    app: AppContext, name: str, request: DestinationRequest, before: StoredDestination | None, *, by: str
) -> StoredDestination:
    """Return the record for a request. Raises `NotificationInvalid`, `NotificationInSettings`."""
    settings = app.settings
    if NAME.fullmatch(name) is None:
        hint = "Use 1 to 30 lower-case letters, digits and hyphens, beginning with a letter."
        raise NotificationInvalid(f"{name[:60]!r} is not a valid name of a destination", hint=hint, field="name")
    if source := set_by(settings, name):
        hint = "Change it there and restart the server, or choose another name."
        raise NotificationInSettings(f"{source} has the destination {name!r}, and has precedence", hint=hint)
    if not request.events:
        raise NotificationInvalid("no event is chosen", hint="Choose at least one.", field="events")
    _check_address(settings, request, before)
    if request.format == "mail" and settings.outgoing_mail is None:
        hint = "Enter it on the page Settings."
        raise NotificationInvalid("there is no mail server", hint=hint, field="format")
    if request.answer_links and not settings.server.url:
        hint = "The operator sets `url` under [server] in pointsman.toml."
        raise NotificationInvalid("links for answers need the address of this server", hint=hint, field="answerLinks")
    record = StoredDestination(
        name=name,
        format=request.format,
        events=request.events,
        workflows=request.workflows or ("*",),
        recipients=request.recipients,
        answer_links=request.answer_links,
        language=request.language,
        shown=public_address(request.url) if request.url else before.shown if before and not _is_mail(request) else "",
        url_secret=_url_secret(name, request, before),
        key_secret=_key_secret(name, request, before),
        changed=Instant(app.clock.now()),
        by=by,
    )
    try:
        _ = record.setting  # Validates it.
    except ValidationError as why:
        wrong = str(why.errors(include_url=False, include_context=False)[0]["msg"]).removeprefix("Value error, ")
        field = "recipients" if record.format == "mail" else ""
        raise NotificationInvalid(
            f"the destination cannot be used: {wrong}", hint="Correct this part.", field=field
        ) from None
    return record


def _url_secret(name: str, request: DestinationRequest, before: StoredDestination | None) -> str:
    if _is_mail(request):
        return ""
    if request.url or before is None:
        return sealed_name(f"NOTIFICATION_URL_{name}")
    return before.url_secret


def _key_secret(name: str, request: DestinationRequest, before: StoredDestination | None) -> str:
    if request.format != "json" or request.key == "":
        return ""
    if request.key is None:
        return "" if before is None else before.key_secret
    return sealed_name(f"NOTIFICATION_KEY_{name}")


def _secrets_of(record: StoredDestination | None) -> list[str]:
    """Return the secrets that a record names."""
    return [] if record is None else [one for one in (record.url_secret, record.key_secret) if one]


def _is_mail(request: DestinationRequest) -> bool:
    return request.format == "mail"


def _check_address(settings: Settings, request: DestinationRequest, before: StoredDestination | None) -> None:
    if _is_mail(request):
        if request.url or request.key:
            raise NotificationInvalid("mail has no web address and no key", hint="Remove them.", field="url")
        return
    if request.url is None or not request.url.strip():
        if before is None or not before.shown:
            raise NotificationInvalid("the address is missing", hint="Paste the address of the webhook.", field="url")
        return
    import httpx2

    from pointsman.tools.egress.http_calls import admit  # Deferred: it loads an HTTP client.

    try:
        admit(httpx2.URL(request.url), settings.http.egress_policy())
    except httpx2.InvalidURL:
        hint = "Write https://host/path."
        raise NotificationInvalid("the address is not a web address", hint=hint, field="url") from None
    except AddressRefused as why:
        raise NotificationInvalid(str(why), hint=why.hint, field="url") from None


async def save_destination(
    app: AppContext, name: str, request: DestinationRequest, *, by: str, match: str | None = None
) -> str:
    """Store a destination, with its address and key sealed. Return the ETag. It takes effect with the next round, in
    every process.

    `match`: see `etags.match_etag`. Raises `NotificationInvalid`, `NotificationInSettings`, `RevisionMoved`, and the
    errors of `Vault.set`.
    """
    what = f"the destination {name[:60]!r}"
    entry = await read_for_change(app, KIND, name, match, what)
    before = None if entry is None else read_destination(entry)
    record = checked_destination(app, name, request, before, by=by)
    entered: dict[str, str] = {}
    if request.url and record.url_secret:
        entered[record.url_secret] = request.url.strip()
    if request.key and record.key_secret:
        entered[record.key_secret] = request.key.strip()
    replaced = {*_secrets_of(before)} - {*_secrets_of(record)}
    value = msgspec.to_builtins(record)
    await write_sealed(app, KIND, name, value, before=entry, entered=entered, replaced=replaced, by=by, what=what)
    app[DESTINATIONS].changed()
    await app.settings.refresh(at_once=True)
    return etag_of(content_etag(value))


async def delete_destination(app: AppContext, name: str, *, match: str | None = None) -> None:
    """Delete a destination with its address and key. Raises `NoSuchNotification`, `RevisionMoved`."""
    if await stored_destination(app, name) is None:
        hint = "GET /api/notifications lists the destinations."
        raise NoSuchNotification(f"no destination was added as {name[:60]!r}", hint=hint)
    what = f"the destination {name[:60]!r}"
    await delete_sealed(
        app, KIND, name, match=match, replaced=lambda entry: _secrets_of(read_destination(entry)), what=what
    )
    app[DESTINATIONS].changed()


def destination_etag(entry: ConfigEntry) -> str:
    return etag_of(content_etag(entry.value))

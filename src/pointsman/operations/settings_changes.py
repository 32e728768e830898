"""Settings that an admin changes while the app runs, and the mail server. See `settings.entered` for the rules.

    request ─▶ checked like the file ─▶ the password, sealed in the vault ─▶ an entry of the store ─▶ `Settings.current`

A password is sent to the server and the user for which it was entered, and to no others. The server obeys `[http]`.
"""

from __future__ import annotations

import ipaddress
import re
import secrets
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from typing import ClassVar, Final, Literal, TypeAlias, cast

import msgspec
from msgspec import Struct
from pydantic import ValidationError
from typing_extensions import TypedDict

from pointsman.auth.redaction import redactor_for
from pointsman.auth.sealed_entries import delete_sealed, read_for_change, sealed_name, write_sealed
from pointsman.auth.vault import VALUE_CHARS_MAX
from pointsman.context import AppContext
from pointsman.errors import CallerError, FieldInvalid, sentences
from pointsman.etags import content_etag, etag_of
from pointsman.extras import need
from pointsman.redaction import ANYWHERE_CHARS_MIN, hiding
from pointsman.settings import HANDLE, Settings, ShownSetting, shown, wrong_field
from pointsman.settings.entered import ENTERABLE, KIND, EnteredSetting
from pointsman.settings.sections import HOST_NAME
from pointsman.store.records import ConfigEntry
from pointsman.store.sqlite.connection import path_of
from pointsman.tools.egress.addresses import AddressRefused
from pointsman.tools.mail import (
    MailAddressInvalid,
    MailMessage,
    MailSettings,
    OutgoingMail,
    address_of,
    message_of,
    password_of,
    send,
    sender_of,
)
from pointsman.tools.tool import ToolFailed
from pointsman.values import Instant, Json, JsonObject

MAIL: Final = "mail"
SECRET: Final = "MAIL_PASSWORD"
"""Beginning of the name of the secret with the password."""
VALUE_BYTES_MAX: Final = 200_000
LISTED: Final = "`pointsman settings` and GET /api/settings list the settings."
VARIABLE: Final = re.compile(r"[A-Z][A-Z0-9_]{0,99}")
LANGUAGE: Final = re.compile(r"[A-Za-z]{2,3}(-[A-Za-z0-9]{1,8}){0,3}")

LABEL_MAX: Final = 63
"""Characters of one part of a host name."""

MailSecurity: TypeAlias = Literal["starttls", "tls", "none"]


class SettingInvalid(FieldInvalid):
    """The value of a setting cannot be used."""

    code: ClassVar[str] = "setting-invalid"


class SettingFixed(CallerError):
    """A file, a variable or an option has the setting, or a change needs a restart."""

    code: ClassVar[str] = "setting-fixed"


class NoSuchSetting(CallerError):
    """There is no setting of this name, or no admin entered one."""

    code: ClassVar[str] = "no-such-setting"


class MailServerRequest(Struct, frozen=True, kw_only=True):
    """What an admin enters for the mail server."""

    host: str
    port: int | None = None
    """None: the usual one of the security."""
    security: MailSecurity = "starttls"
    username: str = ""
    password: str | None = None
    """None: the one that it has already."""
    sender: str
    recipients: tuple[str, ...] = ("*",)
    requires_approval: bool = False


class SettingView(TypedDict):
    """A setting in effect, and whether it can be changed here."""

    name: str
    value: Json
    """Secrets in it are masked."""
    source: str
    """A file, an environment variable, a flag, `app` if an admin entered it here, or `default`."""
    effect: Literal["now", "restart"]
    """`now`: a change takes effect at once. `restart`: it is changed in a file, and needs a restart."""
    fixedBy: str
    """The file, variable or option that has the setting and has precedence; empty: none has it."""
    entered: Json
    """What an admin entered here; null: nothing."""
    changedAt: float
    changedBy: str
    etag: str
    """ETag of what was entered, for `If-Match`; empty: nothing was entered."""


class SettingsView(TypedDict):
    """The version, the store and the effective settings of an installation."""

    version: str
    store: str
    """The address of the store, without its password."""
    settings: list[SettingView]


class TestedMail(TypedDict):
    """The outcome of a test message."""

    sent: bool
    error: str
    """Why the message was not sent; empty: it was."""


def may_have_entries(settings: Settings) -> bool:
    """Return whether the store may have entered settings, without opening it: that would create its file."""
    address = settings.store_url
    return address.partition(":")[0] != "memory" and (not address.startswith("sqlite:") or path_of(address).exists())


async def setting_views(app: AppContext) -> list[SettingView]:
    """Return the settings in effect, with secrets masked."""
    await app.settings.refresh(at_once=True)
    entries = {entry.key: entry for entry in await app.store.entries.list(KIND)}
    return [_view(app.settings, name, one, entries.get(name)) for name, one in shown(app.settings.current).items()]


def _view(settings: Settings, name: str, one: ShownSetting, entry: ConfigEntry | None) -> SettingView:
    record = None if entry is None else _read(entry)
    value = None if record is None else record.value
    if name == MAIL and isinstance(value, dict):
        value = {**value, "password": "***" if value.get("password") else ""}
    return {
        **one,
        "name": name,
        "effect": "now" if name in ENTERABLE else "restart",
        "fixedBy": settings.fixed_by(name),
        "entered": value,
        "changedAt": 0.0 if record is None else record.changed,
        "changedBy": "" if record is None else record.by,
        "etag": "" if entry is None else etag_of(content_etag(entry.value)),
    }


async def setting_view(app: AppContext, name: str) -> SettingView:
    return next(one for one in await setting_views(app) if one["name"] == name)


async def change_setting(app: AppContext, name: str, value: Json, *, by: str, match: str | None = None) -> None:
    """Enter a setting. It takes effect at once here, and within a second in other processes.

    `match`: see `etags.match_etag`. Raises `NoSuchSetting`, `SettingFixed`, `SettingInvalid`, `RevisionMoved`.
    """
    _must_be_changeable(app.settings, name)
    if name == MAIL:
        raise NoSuchSetting(
            "the mail server has a request of its own", hint="Use `pointsman settings mail` or PUT /api/settings/mail."
        )
    _check_value(name, value)
    before = await read_for_change(app, KIND, name, match, _what(name))
    await _write(app, name, value, before=before, by=by)


async def unset_setting(app: AppContext, name: str, *, match: str | None = None) -> None:
    """Delete what was entered for a setting, with its secret. Raises `NoSuchSetting`, `RevisionMoved`."""
    what = _what(name)
    if await app.store.entries.find(KIND, name) is None:
        raise NoSuchSetting(
            f"nothing was entered for {name[:60]!r}",
            hint=LISTED,
        )
    await delete_sealed(app, KIND, name, match=match, replaced=_secret_of, what=what)
    await app.settings.refresh(at_once=True)


async def save_mail_server(app: AppContext, request: MailServerRequest, *, by: str, match: str | None = None) -> None:
    """Enter the mail server, with its password sealed. It takes effect as `change_setting` does.

    Raises `SettingFixed`, `SettingInvalid`, `RevisionMoved`, and the errors of `Vault.set`.
    """
    before = await read_for_change(app, KIND, MAIL, match, _what(MAIL))
    password, entered = _password(request, before)
    _checked_mail(app, request, password)
    replaced = [one for one in _secret_of(before) if HANDLE + one != password]
    value = _mail_value(request, password)
    await _write(app, MAIL, value, before=before, by=by, entered=entered, replaced=replaced)


async def try_mail_server(app: AppContext, request: MailServerRequest, to: str) -> TestedMail:
    """Send one message through a mail server before it is saved. Raises `SettingFixed`, `SettingInvalid`."""
    need("tools", "Mail")
    before = await app.store.entries.find(KIND, MAIL)
    password, entered = _password(request, before)
    server = _checked_mail(app, request, password)
    try:
        recipient = address_of(to)
    except MailAddressInvalid as why:
        raise SettingInvalid(str(why), hint=why.hint, field="to") from None
    await app.settings.refresh(at_once=True)
    letter = MailMessage(
        to=[recipient], subject="Pointsman: test message", body="The mail server of Pointsman accepts messages."
    )
    at = datetime.fromtimestamp(app.clock.now(), UTC)
    message = message_of(letter, sender=sender_of(server.settings.sender), key=secrets.token_hex(16), at=at)
    redact = redactor_for(app.settings)
    try:
        with hiding(redact.redaction):
            typed = next(iter(entered.values()), None)
            known = password_of(server.settings, app.settings.resolved) if typed is None else typed
            await send(message, server, password=known, recipients=[recipient])
    except ToolFailed as why:
        return {"sent": False, "error": redact.text(sentences(why.failure.message, why.failure.hint))}
    except AddressRefused as why:
        return {"sent": False, "error": sentences(str(why), why.hint)}
    return {"sent": True, "error": ""}


def _what(name: str) -> str:
    return f"the setting {name[:60]!r}"


def _read(entry: ConfigEntry) -> EnteredSetting:
    return msgspec.convert(entry.value, EnteredSetting)


def _must_be_changeable(settings: Settings, name: str) -> None:
    """Raise `NoSuchSetting`, `SettingFixed`."""
    if name not in Settings.model_fields:
        raise NoSuchSetting(f"there is no setting {name[:60]!r}", hint=LISTED)
    if source := settings.fixed_by(name):
        hint = "Remove it there and restart the server; then change it here."
        raise SettingFixed(f"{source} has the setting {name!r}, and has precedence", hint=hint)
    if name not in ENTERABLE:
        hint = f"Change `{name}` in pointsman.toml and restart the server."
        raise SettingFixed(f"a change of the setting {name!r} needs a restart", hint=hint)


def _check_value(name: str, value: Json) -> None:
    """Raise `SettingInvalid` for a value that the settings file may not have either."""
    if len(msgspec.json.encode(value)) > VALUE_BYTES_MAX:
        raise SettingInvalid(
            f"the value of {name!r} is too large", hint=f"Use at most {VALUE_BYTES_MAX} bytes.", field="value"
        )
    try:
        Settings.model_validate({name: value})
    except ValidationError as why:
        raise _invalid(why) from None
    if name == "language" and LANGUAGE.fullmatch(str(value)) is None:
        raise SettingInvalid("this is not a language code", hint="For example: en, de, pt-BR.", field="value")
    if name == "variables":
        wrong = [one for one in cast("JsonObject", value) if VARIABLE.fullmatch(one) is None]
        if wrong:
            hint = "Use capital letters, digits and underscores, beginning with a letter: ${API_URL}."
            raise SettingInvalid(f"{wrong[0][:60]!r} is not a name of a variable", hint=hint, field="value")


def _invalid(why: ValidationError) -> SettingInvalid:
    first = min(why.errors(), key=lambda one: one["type"] != "extra_forbidden")
    place = [str(part) for part in first["loc"]]
    message, near = wrong_field(Settings, first, "setting")
    field = "value" if place[:1] != [MAIL] else place[1] if len(place) > 1 else MAIL
    return SettingInvalid(f"{'.'.join(place)}: {message}", hint=near or "See docs/reference/settings.md.", field=field)


def _mail_value(request: MailServerRequest, password: str) -> JsonObject:
    """Return the request as the settings file states it. `password`: the handle; empty: none."""
    return {
        "host": request.host,
        "port": request.port,
        "security": request.security,
        "username": request.username,
        "password": password,
        "sender": request.sender,
        "recipients": [*request.recipients],
        "requires_approval": request.requires_approval,
    }


def _checked_mail(app: AppContext, request: MailServerRequest, password: str) -> OutgoingMail:
    """Return the server of a request. Raises `SettingFixed`, `SettingInvalid`."""
    _must_be_changeable(app.settings, MAIL)
    if request.username and request.security == "none":
        hint = "Choose STARTTLS or TLS."
        raise SettingInvalid("a password is not sent unencrypted", hint=hint, field="security")
    if not _is_host(request.host):
        hint = "Write a host name, such as smtp.example.com, or an IP address."
        raise SettingInvalid("this is not the name of a server", hint=hint, field="host")
    if not request.recipients:
        raise SettingInvalid("no recipient is allowed", hint="Write * for any address.", field="recipients")
    try:
        settings = Settings.model_validate({MAIL: _mail_value(request, password)}).mail
    except ValidationError as why:
        wrong = _invalid(why)
        is_sender = wrong.field == MAIL  # The model as a whole: of its checks, only that of the sender remains.
        raise SettingInvalid(str(wrong), hint=wrong.hint, field="sender" if is_sender else wrong.field) from None
    assert settings is not None
    server = OutgoingMail(settings, app.settings.http.mail_policy())
    try:
        server.admit()
    except AddressRefused as why:
        is_open = request.security == "none" and not app.settings.http.plain
        raise SettingInvalid(str(why), hint=why.hint, field="security" if is_open else "port") from None
    return server


def _is_host(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return re.fullmatch(HOST_NAME, host) is not None and all(0 < len(part) <= LABEL_MAX for part in host.split("."))
    return True


def _password(request: MailServerRequest, before: ConfigEntry | None) -> tuple[str, dict[str, str]]:
    """Return the handle of the password, and the secret to store if one was entered. Raises `SettingInvalid`."""
    if not request.username:
        return "", {}
    if request.password:
        if not ANYWHERE_CHARS_MIN <= len(request.password) <= VALUE_CHARS_MAX:
            hint = f"It must have {ANYWHERE_CHARS_MIN} to {VALUE_CHARS_MAX} characters."
            message = f"the password has {len(request.password)} characters"
            raise SettingInvalid(message, hint=hint, field="password")
        name = sealed_name(SECRET)
        return HANDLE + name, {name: request.password}
    known = None if before is None else _stored_mail(before)
    if known is None or not known.password:
        raise SettingInvalid("the password is missing", hint="Enter the password of the user.", field="password")
    asked = MailSettings.model_construct(host=request.host, port=request.port, security=request.security)
    if (known.host, known.port_in_effect, known.username) != (request.host, asked.port_in_effect, request.username):
        message = "the server or the user changed, so the password must be entered again"
        raise SettingInvalid(message, hint="Enter the password.", field="password")
    return known.password, {}


def _stored_mail(entry: ConfigEntry) -> MailSettings | None:
    try:
        return MailSettings.model_validate(_read(entry).value)
    except ValidationError:
        return None


def _secret_of(entry: ConfigEntry | None) -> list[str]:
    """Return the secret that an entry names."""
    value = None if entry is None else _read(entry).value
    password = value.get("password") if isinstance(value, dict) else None
    return [password.removeprefix(HANDLE)] if isinstance(password, str) and password.startswith(HANDLE) else []


async def _write(
    app: AppContext,
    name: str,
    value: Json,
    *,
    before: ConfigEntry | None,
    by: str,
    entered: Mapping[str, str] = {},
    replaced: Collection[str] = (),
) -> None:
    record = msgspec.to_builtins(EnteredSetting(value=value, changed=Instant(app.clock.now()), by=by))
    await write_sealed(
        app, KIND, name, record, before=before, entered=entered, replaced=replaced, by=by, what=_what(name)
    )
    await app.settings.refresh(at_once=True)

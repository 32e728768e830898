"""The tool `send_email`: sends a message through the operator's mail server.

arguments ─▶ MailMessage ── message_of ──▶ EmailMessage ── send ──▶ server: a result or a `ToolFailed`
             addresses checked, Markdown as plain text
"""

from __future__ import annotations

import asyncio
import fnmatch
import re
import socket
import ssl
from collections.abc import Callable, Sequence
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from hashlib import sha256
from typing import TYPE_CHECKING, ClassVar, Final, Literal, NamedTuple, cast

import msgspec
from pydantic import BaseModel, ConfigDict, Field, model_validator

from pointsman.definition.model.base import Duration
from pointsman.engine.failures import Failure
from pointsman.errors import AuthorError
from pointsman.ports import ToolSpec
from pointsman.redaction import head
from pointsman.tools.egress.addresses import AddressRefused
from pointsman.tools.tool import ToolContext, ToolFailed, ToolLimits
from pointsman.values import Json, JsonObject, Seconds

if TYPE_CHECKING:
    from pointsman.tools.egress.http_calls import EgressPolicy

PORTS: Final = {"starttls": 587, "tls": 465, "none": 25}
MAIL_PORTS: Final = frozenset({25, 465, 587, 2525})
"""Ports of an entered mail server that need no permission."""


class MailSettings(BaseModel):
    """Where mail is handed in, as whom, and to whom it may go."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    host: str = Field(min_length=1)
    port: int | None = Field(default=None, ge=1, le=65_535)
    """Absent: the default port."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    """`starttls`: the mail is encrypted or not sent."""
    certificates: str = ""
    """A file with certificate authorities to trust instead of those of the system."""
    username: str = ""
    password: str = Field(default="", repr=False)
    """Preferably a handle: `secret.NAME`."""
    sender: str
    """`Name <address>`."""
    recipients: tuple[str, ...] = ("*",)
    """Patterns of allowed recipient addresses."""
    requires_approval: bool = False
    """A person must approve each mail."""
    timeout: Duration = Duration(Seconds(30.0))
    """Of everything."""

    @model_validator(mode="after")
    def _usable(self) -> MailSettings:
        if self.username and self.security == "none":
            raise ValueError("a password is not sent unencrypted: set `security` to starttls or tls")
        try:
            sender_of(self.sender)
        except MailAddressInvalid as why:
            raise ValueError(f"`sender`: {why}") from None
        return self

    @property
    def port_in_effect(self) -> int:
        return PORTS[self.security] if self.port is None else self.port

    def allows(self, address: str) -> bool:
        """Return whether mail may be sent to the address."""
        return any(fnmatch.fnmatchcase(address.lower(), pattern.lower()) for pattern in self.recipients)


class OutgoingMail(NamedTuple):
    """The mail server in effect."""

    settings: MailSettings
    rules: EgressPolicy | None
    """The addresses that it may have; None: any, because the operator chose it."""

    def admit(self) -> None:
        """Check the parts of the address that need no resolving. Raises `AddressRefused`."""
        rules, port, host = self.rules, self.settings.port_in_effect, self.settings.host
        if rules is None:
            return
        if self.settings.security == "none" and not rules.plain:
            raise AddressRefused(
                "mail without encryption is blocked",
                hint="Use starttls or tls, or allow it in pointsman.toml: `[http] plain = true`.",
            )
        if rules.ports is not None and port not in rules.ports:
            hint = f"Allow it in pointsman.toml: `[http] ports = [{port}]`."
            raise AddressRefused(f"calls to port {port} of {host!r} are blocked", hint=hint)


NAME: Final = "send_email"
ADDRESSES_MAX: Final = 20
LIMITS: Final = ToolLimits()

_ADDRESS: Final[JsonObject] = {"type": "string", "minLength": 3, "maxLength": 320}
_ADDRESSES: Final[JsonObject] = {
    "anyOf": [_ADDRESS, {"type": "array", "items": _ADDRESS, "minItems": 1, "maxItems": ADDRESSES_MAX}]
}
PARAMETERS: Final[JsonObject] = {
    "type": "object",
    "properties": {
        "to": _ADDRESSES,
        "cc": _ADDRESSES,
        "subject": {"type": "string", "minLength": 1, "maxLength": 500},
        "body": {"type": "string", "minLength": 1, "maxLength": 1_000_000},
        "format": {"enum": ["markdown", "text"], "description": "`markdown` (default) is sent as plain text."},
    },
    "required": ["to", "subject", "body"],
    "additionalProperties": False,
}


class SendEmailTool:
    """Sends one message per call. Not idempotent: a call repeated after a crash may resend it under the same id."""

    def __init__(
        self, server: OutgoingMail, *, resolved: Callable[[str], str | None], now: Callable[[], datetime]
    ) -> None:
        """`resolved` returns the secret of a handle."""
        self.name = NAME
        self.limits = LIMITS
        self._server = server
        self._resolved = resolved
        self._now = now
        self.spec = ToolSpec(
            name=NAME,
            description="Send an e-mail as plain text.",
            parameters=PARAMETERS,
            requires_approval=server.settings.requires_approval,
        )

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Send a message; return {"messageId", "accepted", "refused"?}. Raises `ToolFailed`."""

        settings = self._server.settings
        try:
            letter = self._letter(arguments)
        except MailAddressInvalid as why:
            raise ToolFailed(Failure(code="tool-arguments", message=str(why), hint=why.hint)) from why
        for address in letter.recipients:
            if not settings.allows(address):
                hint = "Allow it: `recipients` of the mail server, in pointsman.toml or on the page Settings."
                raise ToolFailed(
                    Failure(code="mail-not-allowed", message=f"mail to {address!r} is not allowed", hint=hint)
                )
        password = password_of(settings, self._resolved)
        message = message_of(letter, sender=sender_of(settings.sender), key=context.idempotency_key, at=self._now())
        return await send(message, self._server, password=password, recipients=letter.recipients)

    def _letter(self, arguments: JsonObject) -> MailMessage:
        body = str(arguments["body"])
        return MailMessage(
            to=_addresses(arguments["to"]),
            cc=_addresses(arguments.get("cc")),
            subject=line_of(str(arguments["subject"]), "the subject"),
            body=body if arguments.get("format") == "text" else plain_letter(body),
        )


def password_of(settings: MailSettings, resolved: Callable[[str], str | None]) -> str:
    """Return the password; empty: there is none. Raises `ToolFailed` if the secret that it names is not set."""
    password = resolved(settings.password) if settings.password else ""
    if password is None:
        hint = f"Set the secret {settings.password!r}, which `mail.password` names."
        raise ToolFailed(
            Failure(code="secret-missing", message="the password of the mail server is not set", hint=hint)
        )
    return password


def _addresses(value: Json) -> list[str]:
    listed = value if isinstance(value, list) else [] if value is None else [value]
    return [*dict.fromkeys(address_of(str(one)) for one in listed)]


class MailMessage(msgspec.Struct, frozen=True, kw_only=True):
    """An e-mail message with checked addresses and subject."""

    to: Sequence[str]
    cc: Sequence[str] = ()
    subject: str
    body: str

    @property
    def recipients(self) -> list[str]:
        """The recipients without duplicates."""
        return [*dict.fromkeys([*self.to, *self.cc])]


def message_of(letter: MailMessage, *, sender: Address, key: str, at: datetime) -> EmailMessage:
    """Return the message. `Message-ID` is derived from the key, so that recipients can detect a repeated message."""
    message = EmailMessage(policy=SMTP)
    message["From"] = sender
    message["To"] = [Address(addr_spec=address) for address in letter.to]
    if letter.cc:
        message["Cc"] = [Address(addr_spec=address) for address in letter.cc]
    message["Subject"] = letter.subject
    message["Date"] = format_datetime(at)
    message["Message-ID"] = f"<{sha256(key.encode()).hexdigest()[:40]}@{sender.domain}>"
    message["Auto-Submitted"] = "auto-generated"
    message.set_content(letter.body, charset="utf-8")
    return message


_LOCAL: Final = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_NAMED: Final = re.compile(r"\s*([^<>]*?)\s*<([^<>]*)>\s*")
LOCAL_MAX: Final = 64
DOMAIN_MAX: Final = 253


class MailAddressInvalid(AuthorError):
    """Raised for an invalid mail address, or for a header line with a line break."""

    code: ClassVar[str] = "mail-address-invalid"


def address_of(text: str) -> str:
    """Return the address with its domain in ASCII. Raises `MailAddressInvalid`."""
    local, _, domain = text.strip(" ").rpartition("@")
    try:
        host = domain.encode("idna").decode().lower()
    except UnicodeError:
        host = ""
    labels = host.split(".")
    plausible = len(labels) > 1 or host == "localhost"
    if not (0 < len(local) <= LOCAL_MAX and _LOCAL.fullmatch(local)) or not (
        plausible and len(host) <= DOMAIN_MAX and all(_LABEL.fullmatch(label) for label in labels)
    ):
        raise MailAddressInvalid(
            f"{head(text, 100)!r} is not a mail address", hint="Write name@example.org, and nothing else."
        )
    return f"{local}@{host}"


def sender_of(text: str) -> Address:
    """Parse `Name <address>` or an address alone. Raises `MailAddressInvalid`."""
    parts = _NAMED.fullmatch(text)
    name, address = (parts[1].strip('"'), parts[2]) if parts else ("", text)
    return Address(line_of(name, "the name"), addr_spec=address_of(address))


def line_of(text: str, what: str) -> str:
    """Return the text if it is valid in a header. Raises `MailAddressInvalid`."""
    if _CONTROL.search(text):
        raise MailAddressInvalid(f"{what} contains a line break or a control character", hint="Write it on one line.")
    return text


_HEADER: Final = re.compile(r"\**(subject|to|from|cc|bcc|date|reply-to)\**\s*:\**[^\n]*", re.IGNORECASE)
_FENCE: Final = re.compile(r"\s*(```|~~~)")
_RULE: Final = re.compile(r"\s*([-*_])\s*(\1\s*){2,}")
_TABLE_RULE: Final = re.compile(r"[\s|:-]*-[\s|:-]*")
_HEADING: Final = re.compile(r"\s{0,3}#{1,6}\s+(.*?)\s*#*\s*")
_BULLET: Final = re.compile(r"(\s*)[*+]\s+")
_IMAGE: Final = re.compile(r"!\[([^\]\n]{0,500})\]\([^()\n]{0,2000}\)")
_LINK: Final = re.compile(r"\[([^\[\]\n]{1,500})\]\((\S{1,2000}?)\)")
_PLACE: Final = re.compile(
    r"\[\s*(?:your|recipient|client|company|insert|name|date|address|phone|email|title|position|contact)[^\[\]\n]{0,80}\]"
    r"|\{\{[^{}\n]{0,80}\}\}|<\s*(?:your|insert|recipient|name)[^<>\n]{0,80}>",
    re.IGNORECASE,
)
_STRONG: Final = re.compile(r"(\*\*|__)(?=\S)([^\n]{1,2000}?)(?<=\S)\1")
_SOFT: Final = re.compile(r"(?<![\w*\\])([*_])(?=[^\s*_])([^\n*_]{1,500}?)(?<=\S)\1(?![\w*])")
_CODE: Final = re.compile(r"`([^`\n]{1,500})`")
_ESCAPED: Final = re.compile(r"\\([\\`*_{}\[\]()#+\-.!|>~])")
_BLANKS: Final = re.compile(r"\n{3,}")


def plain_letter(text: str) -> str:
    """Return the text as plain text, without Markdown and leading headers."""
    lines = text.replace("\r\n", "\n").replace("\r", "\n").strip("\n").split("\n")
    plain_lines: list[str] = []
    fenced = False
    for line in _without_headers(lines):
        if _FENCE.match(line):
            fenced = not fenced
        elif fenced:
            plain_lines.append(line)
        elif not (_RULE.fullmatch(line) or ("|" in line and _TABLE_RULE.fullmatch(line))):
            plain_lines.append(_line(line))
    return _BLANKS.sub("\n\n", "\n".join(line.rstrip() for line in plain_lines)).strip()


def _without_headers(lines: list[str]) -> list[str]:
    """Return the lines without leading headers."""
    begins = 0
    while begins < len(lines) and (not lines[begins].strip() or _HEADER.fullmatch(lines[begins].strip())):
        begins += 1
    return lines[begins:]


def _line(line: str) -> str:
    heading = _HEADING.fullmatch(line)
    content = heading[1] if heading else _BULLET.sub(r"\1- ", line, count=1) if _BULLET.match(line) else line
    content = content.removeprefix("> ") if content.startswith(">") else content
    content = _LINK.sub(_linked, _IMAGE.sub(r"\1", content))
    content = _CODE.sub(r"\1", _SOFT.sub(r"\2", _STRONG.sub(r"\2", content)))
    bare = _PLACE.sub("", content)
    if bare != content:
        bare = re.sub(r" +([,.;:!?])", r"\1", re.sub(r"(?<=\S) {2,}", " ", bare))
    return _ESCAPED.sub(r"\1", bare)


def _linked(link: re.Match[str]) -> str:
    return link[2] if link[1] in (link[2], link[2].removeprefix("mailto:")) else f"{link[1]} ({link[2]})"


LOGIN: Final = "Correct `username` and `password` of the mail server, in pointsman.toml or on the page Settings."
REPLY_CHARS_MAX: Final = 300
"""Characters of a server's message that a failure repeats."""


async def send(message: EmailMessage, server: OutgoingMail, *, password: str, recipients: list[str]) -> JsonObject:
    """Send a message; return {"messageId", "accepted", "refused"?}. Raises `ToolFailed`, `AddressRefused`."""
    import aiosmtplib  # Only with the extra `tools`, and most processes send no mail.

    server.admit()
    settings = server.settings
    where = f"{settings.host}:{settings.port_in_effect}"
    try:
        async with asyncio.timeout(settings.timeout.seconds):
            refused = await _handed_in(message, server, password=password, recipients=recipients)
    except TimeoutError as why:
        message_ = f"{where} did not accept the mail within {settings.timeout.seconds:g} s"
        raise _failed("mail-unreachable", message_, retryable=True) from why
    except aiosmtplib.SMTPAuthenticationError as why:
        raise _failed(
            "mail-login-refused", f"{where} refuses the login: {_shortened(why.message, why)}", hint=LOGIN
        ) from why
    except aiosmtplib.SMTPRecipientsRefused as why:
        first = why.recipients[0]
        raise _refused(where, first.code, f"{first.recipient}: {first.message}") from why
    except aiosmtplib.SMTPResponseException as why:
        raise _refused(where, why.code, _shortened(why.message, why)) from why
    except (aiosmtplib.SMTPException, OSError, ssl.SSLError, UnicodeError) as why:
        message_ = f"{where} cannot be reached, or closed the connection: {_shortened(str(why), why)}"
        raise _failed("mail-unreachable", message_, retryable=True) from why
    accepted = [address for address in recipients if address not in refused]
    result: JsonObject = {"messageId": str(message["Message-ID"]), "accepted": [*accepted]}
    return {**result, "refused": {**refused}} if refused else result


async def _handed_in(
    message: EmailMessage, server: OutgoingMail, *, password: str, recipients: list[str]
) -> dict[str, str]:
    """Send a message; return the recipients that the server refused, with the reasons."""
    import aiosmtplib

    settings = server.settings
    # With rules, the connection is opened here: resolving, checking and connecting are one operation.
    connected = None if server.rules is None else await _connected(settings, server.rules)
    refused, _ = await aiosmtplib.send(
        message,
        sender=str(message["From"].addresses[0].addr_spec),
        recipients=recipients,
        hostname=settings.host,
        port=settings.port_in_effect if connected is None else None,
        sock=connected,
        username=settings.username or None,
        password=password or None,
        use_tls=settings.security == "tls",
        start_tls=settings.security == "starttls",
        tls_context=_tls_context(settings) if settings.security != "none" else None,
        timeout=settings.timeout.seconds,
        local_hostname="localhost",
    )
    answers = cast("dict[str, tuple[int, str]]", refused)
    return {address: head(f"{code} {reply}", REPLY_CHARS_MAX) for address, (code, reply) in answers.items()}


async def _connected(settings: MailSettings, rules: EgressPolicy) -> socket.socket:
    """Return a connection to the server. Raises `AddressRefused`, `OSError`."""
    from pointsman.tools.egress.http_calls import check_addresses, resolve  # Deferred: they load an HTTP client.

    host, port = settings.host, settings.port_in_effect
    addresses = await resolve(host, port)
    check_addresses(host, addresses, rules)
    failure = OSError(f"the host {host!r} has no address")
    for address in dict.fromkeys(addresses):
        opened = socket.socket(socket.AF_INET if address.version == 4 else socket.AF_INET6, socket.SOCK_STREAM)
        opened.settimeout(0)  # The event loop waits, not the socket.
        try:
            await asyncio.get_running_loop().sock_connect(opened, (str(address), port))
        except OSError as why:
            opened.close()
            failure = why
        except BaseException:  # Cancelled, or out of time.
            opened.close()
            raise
        else:
            return opened
    raise failure


def _tls_context(settings: MailSettings) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=settings.certificates or None)
    except (OSError, ssl.SSLError) as why:
        message = f"the file {settings.certificates!r} contains no certificates: {why}"
        raise _failed("mail-unreachable", message, hint="See [mail] in the settings: `certificates`.") from why


def _refused(where: str, code: int, reply: str) -> ToolFailed:
    """Return the failure of an SMTP code: 4xx can be retried, 5xx cannot."""
    later = 400 <= code < 500
    return _failed(
        "mail-deferred" if later else "mail-refused",
        head(f"{where} answered {code}: {reply}", REPLY_CHARS_MAX * 2),
        retryable=later,
    )


def _shortened(text: str, why: Exception) -> str:
    return head(text or type(why).__name__, REPLY_CHARS_MAX)


def _failed(code: str, message: str, *, hint: str = "", retryable: bool = False) -> ToolFailed:
    return ToolFailed(Failure(code=code, message=message, hint=hint, retryable=retryable))

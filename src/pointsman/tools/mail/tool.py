"""`send_email`: sends a message through the operator's mail server."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from hashlib import sha256
from typing import TYPE_CHECKING, Final

import msgspec

from pointsman.engine.failures import Failure
from pointsman.ports import ToolSpec
from pointsman.tools.failures import ToolFailed
from pointsman.tools.mail.addresses import AddressWrong, address_of, line_of, sender_of
from pointsman.tools.mail.config import MailSettings
from pointsman.tools.tool import ToolContext, ToolLimits
from pointsman.values import Json, JsonObject

if TYPE_CHECKING:
    from datetime import datetime


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
    kept: list[str] = []
    fenced = False
    for line in _without_headers(lines):
        if _FENCE.match(line):
            fenced = not fenced
        elif fenced:
            kept.append(line)
        elif not (_RULE.fullmatch(line) or ("|" in line and _TABLE_RULE.fullmatch(line))):
            kept.append(_line(line))
    return _BLANKS.sub("\n\n", "\n".join(line.rstrip() for line in kept)).strip()


def _without_headers(lines: list[str]) -> list[str]:
    """Return the lines without leading headers."""
    begins = 0
    while begins < len(lines) and (not lines[begins].strip() or _HEADER.fullmatch(lines[begins].strip())):
        begins += 1
    return lines[begins:]


def _line(line: str) -> str:
    heading = _HEADING.fullmatch(line)
    said = heading[1] if heading else _BULLET.sub(r"\1- ", line, count=1) if _BULLET.match(line) else line
    said = said.removeprefix("> ") if said.startswith(">") else said
    said = _LINK.sub(_linked, _IMAGE.sub(r"\1", said))
    said = _CODE.sub(r"\1", _SOFT.sub(r"\2", _STRONG.sub(r"\2", said)))
    bare = _PLACE.sub("", said)
    if bare != said:
        bare = re.sub(r" +([,.;:!?])", r"\1", re.sub(r"(?<=\S) {2,}", " ", bare))
    return _ESCAPED.sub(r"\1", bare)


def _linked(link: re.Match[str]) -> str:
    return link[2] if link[1] in (link[2], link[2].removeprefix("mailto:")) else f"{link[1]} ({link[2]})"


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
        self, settings: MailSettings, *, resolved: Callable[[str], str | None], now: Callable[[], datetime]
    ) -> None:
        """`resolved` returns the secret of a handle."""
        self.name = NAME
        self.limits = LIMITS
        self._settings = settings
        self._resolved = resolved
        self._now = now
        self.spec = ToolSpec(
            name=NAME,
            description="Send an e-mail as plain text.",
            parameters=PARAMETERS,
            requires_approval=settings.requires_approval,
        )

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Send a message; return {"messageId", "accepted", "refused"?}. Raises `ToolFailed`."""
        from pointsman.tools.mail.sending import send  # Most processes send no mail.

        try:
            letter = self._letter(arguments)
        except AddressWrong as why:
            raise ToolFailed(Failure(code="tool-arguments", message=str(why), hint=why.hint)) from why
        for address in letter.recipients:
            if not self._settings.allows(address):
                hint = "The operator can add it: [mail] `recipients`."
                raise ToolFailed(Failure(code="mail-not-allowed", message=f"{address!r} is not written to", hint=hint))
        message = message_of(letter, sender=sender_of(self._settings.sender), key=context.key, at=self._now())
        return await send(message, self._settings, password=self._password(), recipients=letter.recipients)

    def _letter(self, arguments: JsonObject) -> MailMessage:
        body = str(arguments["body"])
        return MailMessage(
            to=_addresses(arguments["to"]),
            cc=_addresses(arguments.get("cc")),
            subject=line_of(str(arguments["subject"]), "the subject"),
            body=body if arguments.get("format") == "text" else plain_letter(body),
        )

    def _password(self) -> str:
        if not self._settings.password:
            return ""
        found = self._resolved(self._settings.password)
        if found is None:
            hint = f"`mail.password` names {self._settings.password!r}: set it."
            raise ToolFailed(
                Failure(code="secret-missing", message="there is no password of the mail server", hint=hint)
            )
        return found


def _addresses(said: Json) -> list[str]:
    listed = said if isinstance(said, list) else [] if said is None else [said]
    return [*dict.fromkeys(address_of(str(one)) for one in listed)]

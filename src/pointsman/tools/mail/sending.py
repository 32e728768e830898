"""Sending of mail: one connection and one deadline per message; the server's answer becomes a result or a failure."""

from __future__ import annotations

import asyncio
import ssl
from email.message import EmailMessage
from typing import cast

import aiosmtplib

from pointsman.engine.failures import Failure
from pointsman.redaction import head
from pointsman.tools.failures import ToolFailed
from pointsman.tools.mail.config import MailSettings
from pointsman.values import JsonObject

SAID_CHARS_MAX = 300


async def send(message: EmailMessage, settings: MailSettings, *, password: str, recipients: list[str]) -> JsonObject:
    """Send a message; return {"messageId", "accepted", "refused"?}. Raises `ToolFailed`."""
    where = f"{settings.host}:{settings.port_in_effect}"
    try:
        async with asyncio.timeout(settings.timeout.seconds):
            refused = await _handed_in(message, settings, password=password, recipients=recipients)
    except TimeoutError as why:
        message_ = f"{where} did not take the mail within {settings.timeout.seconds:g} s"
        raise _failed("mail-unreachable", message_, retryable=True) from why
    except aiosmtplib.SMTPAuthenticationError as why:
        raise _failed("mail-login-refused", f"{where} does not let us in: {_said(why)}", hint=LOGIN) from why
    except aiosmtplib.SMTPRecipientsRefused as why:
        first = why.recipients[0]
        raise _refused(where, first.code, f"{first.recipient}: {first.message}") from why
    except aiosmtplib.SMTPResponseException as why:
        raise _refused(where, why.code, _said(why)) from why
    except (aiosmtplib.SMTPException, OSError, ssl.SSLError) as why:
        message_ = f"{where} cannot be reached, or hung up: {_said(why)}"
        raise _failed("mail-unreachable", message_, retryable=True) from why
    accepted = [address for address in recipients if address not in refused]
    found: JsonObject = {"messageId": str(message["Message-ID"]), "accepted": [*accepted]}
    return {**found, "refused": {**refused}} if refused else found


LOGIN = "See [mail] in the settings: `username`, `password`."


async def _handed_in(
    message: EmailMessage, settings: MailSettings, *, password: str, recipients: list[str]
) -> dict[str, str]:
    """Send a message; return the recipients that the server refused, with the reasons."""
    refused, _ = await aiosmtplib.send(
        message,
        sender=str(message["From"].addresses[0].addr_spec),
        recipients=recipients,
        hostname=settings.host,
        port=settings.port_in_effect,
        username=settings.username or None,
        password=password or None,
        use_tls=settings.security == "tls",
        start_tls=settings.security == "starttls",
        tls_context=_believing(settings) if settings.security != "none" else None,
        timeout=settings.timeout.seconds,
        local_hostname="localhost",
    )
    answers = cast("dict[str, tuple[int, str]]", refused)
    return {address: head(f"{code} {said}", SAID_CHARS_MAX) for address, (code, said) in answers.items()}


def _believing(settings: MailSettings) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=settings.certificates or None)
    except (OSError, ssl.SSLError) as why:
        message = f"the file {settings.certificates!r} holds no certificates: {why}"
        raise _failed("mail-unreachable", message, hint="See [mail] in the settings: `certificates`.") from why


def _refused(where: str, code: int, said: str) -> ToolFailed:
    """Return the failure of an SMTP code: 4xx can be retried, 5xx cannot."""
    later = 400 <= code < 500
    return _failed(
        "mail-deferred" if later else "mail-refused",
        head(f"{where} answered {code}: {said}", SAID_CHARS_MAX * 2),
        retryable=later,
    )


def _said(why: Exception) -> str:
    text = why.message if isinstance(why, aiosmtplib.SMTPResponseException) else str(why)
    return head(text or type(why).__name__, SAID_CHARS_MAX)


def _failed(code: str, message: str, *, hint: str = "", retryable: bool = False) -> ToolFailed:
    return ToolFailed(Failure(code=code, message=message, hint=hint, retryable=retryable))

"""A mail server on loopback, a real one, that can also refuse, hang and hang up."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email import message_from_bytes
from email.message import EmailMessage
from email.policy import default
from pathlib import Path
from typing import Any

import trustme
from aiosmtpd.smtp import SMTP, AuthResult, Envelope, Session

PASSWORD = "pass-word-1"


@dataclass
class MailServer:
    """`refuses`: the answer to a step of the dialogue (`mail`, `rcpt ADDRESS`, `data`); there it may hang, drop."""

    folder: Path
    port: int = 0
    refuses: dict[str, str] = field(default_factory=dict[str, str])
    hangs: str = ""
    drops: str = ""
    taken: list[EmailMessage] = field(default_factory=list[EmailMessage])
    envelopes: list[tuple[str, list[str]]] = field(default_factory=list[tuple[str, list[str]]])

    @property
    def certificates(self) -> str:
        return str(self.folder / "authority.pem")

    async def _step(self, server: SMTP, name: str) -> str | None:
        if self.hangs == name:
            await asyncio.Event().wait()
        if self.drops == name:
            assert isinstance(server.transport, asyncio.Transport)
            server.transport.abort()
            return "421 gone"
        return self.refuses.get(name)

    async def handle_MAIL(  # noqa: N802 - the name is the server's
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        envelope.mail_from = address
        return await self._step(server, "mail") or "250 OK"

    async def handle_RCPT(  # noqa: N802 - the name is the server's
        self, server: SMTP, session: Session, envelope: Envelope, address: str, options: list[str]
    ) -> str:
        refusal = await self._step(server, f"rcpt {address}")
        if refusal is None:
            envelope.rcpt_tos.append(address)
        return refusal or "250 OK"

    async def handle_DATA(  # noqa: N802 - the name is the server's
        self, server: SMTP, session: Session, envelope: Envelope
    ) -> str:
        refusal = await self._step(server, "data")
        if refusal is None:
            content = envelope.original_content or b""
            message = message_from_bytes(content, policy=default)
            assert isinstance(message, EmailMessage)
            self.taken.append(message)
            self.envelopes.append((envelope.mail_from or "", list(envelope.rcpt_tos)))
        return refusal or "250 OK"


def _lets_in(server: SMTP, session: Session, envelope: Envelope, mechanism: str, data: Any) -> AuthResult:
    return AuthResult(success=(data.login, data.password) == (b"desk", PASSWORD.encode()), handled=False)


@asynccontextmanager
async def mail_server(folder: Path, *, tls: str = "none", login: bool = False) -> AsyncGenerator[MailServer]:
    """`tls`: `none`, `starttls` or `tls`; with `login`, clients must send the password."""
    found = MailServer(folder)
    authority = trustme.CA()
    authority.cert_pem.write_to_path(found.certificates)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    authority.issue_cert("127.0.0.1").configure_cert(context)  # pyright: ignore[reportUnknownMemberType] - theirs

    def serve() -> SMTP:
        return SMTP(
            found,
            hostname="mail.test",
            tls_context=context if tls == "starttls" else None,
            require_starttls=tls == "starttls",
            authenticator=_lets_in if login else None,
            auth_required=login,
            auth_require_tls=tls == "starttls",
        )

    loop = asyncio.get_running_loop()
    server = await loop.create_server(serve, "127.0.0.1", 0, ssl=context if tls == "tls" else None)
    found.port = server.sockets[0].getsockname()[1]
    try:
        yield found
    finally:
        server.close()

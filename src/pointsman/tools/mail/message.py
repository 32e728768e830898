"""A mail as it is sent."""

from __future__ import annotations

from collections.abc import Sequence
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime
from hashlib import sha256
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from datetime import datetime


class Letter(msgspec.Struct, frozen=True, kw_only=True):
    """What it says and to whom. Addresses and subject were looked at."""

    to: Sequence[str]
    cc: Sequence[str] = ()
    subject: str
    body: str

    @property
    def recipients(self) -> list[str]:
        """Each once."""
        return [*dict.fromkeys([*self.to, *self.cc])]


def message_of(letter: Letter, *, sender: Address, key: str, at: datetime) -> EmailMessage:
    """The same key gives the same `Message-ID`: whoever gets it twice can tell."""
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

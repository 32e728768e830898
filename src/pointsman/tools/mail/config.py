"""Settings of the mail server.

allow_email_sending = true
[mail]
host = "smtp.example.org"
sender = "Desk <desk@example.org>"
username = "desk"
password = "secret.MAIL"
"""

from __future__ import annotations

import fnmatch
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pointsman.definition.model.base import Duration
from pointsman.tools.mail.addresses import AddressWrong, sender_of
from pointsman.values import Seconds

PORTS: Final = {"starttls": 587, "tls": 465, "none": 25}


class MailSettings(BaseModel):
    """Where mail is handed in, as whom, and to whom it may go."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    host: str = Field(min_length=1)
    port: int | None = Field(default=None, ge=1, le=65_535)
    """Absent: the usual one."""
    security: Literal["starttls", "tls", "none"] = "starttls"
    """`starttls`: encrypted or not at all."""
    certificates: str = ""
    """A file with authorities to believe instead of those of the system."""
    username: str = ""
    password: str = Field(default="", repr=False)
    """Best a handle: `secret.NAME`."""
    sender: str
    """`Name <address>`."""
    recipients: tuple[str, ...] = ("*",)
    """Patterns of addresses that may be written to."""
    requires_approval: bool = False
    """A person must agree to each mail."""
    timeout: Duration = Duration(Seconds(30.0))
    """Of everything."""

    @model_validator(mode="after")
    def _usable(self) -> MailSettings:
        if self.username and self.security == "none":
            raise ValueError("a password is not sent in the clear: set `security` to starttls or tls")
        try:
            sender_of(self.sender)
        except AddressWrong as why:
            raise ValueError(f"`sender`: {why}") from None
        return self

    @property
    def port_in_effect(self) -> int:
        return PORTS[self.security] if self.port is None else self.port

    def allows(self, address: str) -> bool:
        """Return whether mail may be sent to the address."""
        return any(fnmatch.fnmatchcase(address.lower(), pattern.lower()) for pattern in self.recipients)

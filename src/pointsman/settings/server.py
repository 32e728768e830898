"""Settings of the server: where it listens, under which names, and how it ends."""

from __future__ import annotations

from ipaddress import IPv4Network, IPv6Network
from typing import Annotated, Final

from pydantic import BaseModel, ConfigDict, Field

from pointsman.definition.model.quantities import Duration
from pointsman.values import Seconds

NAME: Final = r"^[A-Za-z0-9]([A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$"


class ServerSettings(BaseModel):
    """Flags of `pointsman serve` win."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    host: str = Field(default="127.0.0.1", min_length=1, max_length=253)
    port: int = Field(default=8000, ge=0, le=65_535)
    names: tuple[Annotated[str, Field(pattern=NAME)], ...] = ()
    """What others call it: behind a proxy, for example. It answers to no other names, and asks everybody for a key."""
    proxies: tuple[IPv4Network | IPv6Network, ...] = ()
    """Whose `X-Forwarded-For` and `X-Forwarded-Proto` are believed."""
    drain: Duration = Duration(Seconds(1.0))
    """How long steps that are being performed may go on when it is stopped. What is not done then is done again."""
    body_bytes_max: int = Field(default=64_000_000, ge=1_000)
    """Of a request of a caller who may send files; other operations take less."""
    webhook_bytes_max: int = Field(default=1_000_000, ge=1_000, le=16_000_000)
    """Of a call of a webhook, which is read before its signature can be checked."""
    connections: int = Field(default=10_000, ge=1)
    """Connections at once; fewer where the process may not open so many files."""
    connections_per_address: int = Field(default=1_000, ge=1)
    """Connections at once from one address; this machine and `proxies` are exempt."""

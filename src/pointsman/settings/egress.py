"""Outgoing calls to addresses that are data, bounded as the settings allow."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pointsman.settings import Settings

if TYPE_CHECKING:
    from pointsman.tools.egress.http_calls import Outgoing
    from pointsman.tools.egress.transport import EgressPolicy


def outgoing_of(settings: Settings) -> Outgoing:
    """Return what sends calls whose address is data."""
    from pointsman.tools.egress.http_calls import Outgoing  # It loads an HTTP client.

    http = settings.http
    return Outgoing(rules_of(settings), timeout_s=http.timeout.seconds, body_bytes_max=http.body_bytes_max)


def rules_of(settings: Settings) -> EgressPolicy:
    """Return where calls may go whose address is data."""
    from pointsman.tools.egress.transport import WEB_PORTS, EgressPolicy  # It loads an HTTP client.

    http = settings.http
    return EgressPolicy(networks=http.networks, ports=WEB_PORTS | {*http.ports}, plain=http.plain)

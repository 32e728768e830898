"""Posting to an address of the operator, by the door through which everything else goes out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pointsman.tools.egress.addresses import EVERYWHERE
from pointsman.tools.egress.http_calls import HttpCall, Outgoing
from pointsman.tools.egress.transport import EgressPolicy

TIMEOUT_S: Final = 15.0
"""Of a whole call."""


async def post(url: str, body: bytes, headers: Mapping[str, str], *, private: bool) -> int:
    """The status of the answer. `private`: addresses inside this network, and plain http, are meant.

    Raises `AddressRefused`, `NotReached`.
    """
    rules = EgressPolicy(networks=EVERYWHERE if private else (), ports=None, plain=private)
    outgoing = Outgoing(rules, timeout_s=TIMEOUT_S)
    return await outgoing.status(HttpCall(method="POST", url=url, body=body, headers=headers))

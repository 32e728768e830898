"""Classification of IP addresses, public ("outside") or internal ("inside"), and the errors and the trace of outgoing
HTTP calls. Loads no HTTP client.

An internal address belongs to this machine, its network or its cloud. The lists are our own: the `is_global` of the
standard library differs between Python versions.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from contextvars import ContextVar
from typing import ClassVar, Final, TypeAlias

from pointsman.errors import OperatorError

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

TRACEPARENT: Final[ContextVar[str | None]] = ContextVar("traceparent", default=None)
"""W3C `traceparent` header for calls whose address comes from data; None: tracing is off."""

INSIDE_V4: Final = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",  # this host
            "10.0.0.0/8",
            "100.64.0.0/10",  # carrier-grade NAT; contains the metadata service of a cloud
            "127.0.0.0/8",
            "168.63.129.16/32",  # platform service of a cloud, on a public address
            "169.254.0.0/16",  # link-local; contains the metadata service of most clouds
            "172.16.0.0/12",
            "192.0.0.0/24",  # protocol assignments; contains the metadata service of a cloud
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # 6to4 relays
            "192.168.0.0/16",
            "198.18.0.0/15",  # benchmarks
            "198.51.100.0/24",
            "203.0.113.0/24",
            "224.0.0.0/4",  # multicast
            "240.0.0.0/4",  # reserved, and broadcast
        ),
    )
)
UNICAST_V6: Final = ipaddress.IPv6Network("2000::/3")
"""Allocated IPv6 unicast addresses; all others (loopback, link-local, unique local, multicast) are internal."""
INSIDE_V6: Final = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # protocol assignments, including Teredo
            "2001:db8::/32",  # documentation
            "3fff::/20",
        ),
    )
)
EVERYWHERE: Final = (ipaddress.IPv4Network("0.0.0.0/0"), ipaddress.IPv6Network("::/0"))
"""For addresses that the operator configured."""
NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


def unwrapped(address: Address) -> Address:
    """Return the IPv4 address embedded in an IPv6 address (mapped, NAT64, 6to4), or else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def is_outside(address: Address) -> bool:
    """Return whether an address is public; an embedded IPv4 address decides."""
    real = unwrapped(address)
    if isinstance(real, ipaddress.IPv4Address):
        return not any(real in network for network in INSIDE_V4)
    return real in UNICAST_V6 and not any(real in network for network in INSIDE_V6)


def is_in(address: Address, networks: Iterable[Network]) -> bool:
    """Return whether the address, or its embedded IPv4 address, is in one of the networks."""
    return any(one in network for network in networks for one in (address, unwrapped(address)))


class AddressRefused(OperatorError):
    """Raised for an address that is not a web address, or that is internal and not allowed. Nothing was sent."""

    code: ClassVar[str] = "address-refused"


class RedirectRefused(OperatorError):
    """Raised for a redirect that this call must not follow."""

    code: ClassVar[str] = "redirect-refused"


class NotReached(OperatorError):
    """Raised when no complete response arrives in time: unknown host, no connection, or timeout."""

    code: ClassVar[str] = "not-reached"


class AnswerTooLarge(OperatorError):
    """Raised when the response exceeds the size limit. The rest is not read."""

    code: ClassVar[str] = "answer-too-large"


class AnswerUnreadable(OperatorError):
    """Raised for a response in an unrequested encoding or an unexpected format."""

    code: ClassVar[str] = "answer-unreadable"

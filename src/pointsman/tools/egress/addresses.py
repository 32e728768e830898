"""Which addresses belong to the open internet. Everything else is inside: of this machine, its network, its cloud.

Our own lists, not those of the standard library: what counts as `is_global` there changes with the Python version.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import Final, TypeAlias

Address: TypeAlias = ipaddress.IPv4Address | ipaddress.IPv6Address
Network: TypeAlias = ipaddress.IPv4Network | ipaddress.IPv6Network

INSIDE_V4: Final = tuple(
    map(
        ipaddress.IPv4Network,
        (
            "0.0.0.0/8",  # this host
            "10.0.0.0/8",
            "100.64.0.0/10",  # behind a carrier's translator; a cloud keeps its metadata here
            "127.0.0.0/8",
            "168.63.129.16/32",  # a cloud's platform channel, on a public address
            "169.254.0.0/16",  # link-local; most clouds keep their metadata here
            "172.16.0.0/12",
            "192.0.0.0/24",  # protocol assignments; a cloud keeps its metadata here
            "192.0.2.0/24",  # documentation
            "192.88.99.0/24",  # relays of 6to4
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
"""All that is handed out of IPv6; whatever is not in it (loopback, link-local, local, multicast) is inside."""
INSIDE_V6: Final = tuple(
    map(
        ipaddress.IPv6Network,
        (
            "2001::/23",  # protocol assignments, Teredo among them
            "2001:db8::/32",  # documentation
            "3fff::/20",
        ),
    )
)
EVERYWHERE: Final = (ipaddress.IPv4Network("0.0.0.0/0"), ipaddress.IPv6Network("::/0"))
"""For addresses that are the operator's own words."""
NAT64: Final = ipaddress.IPv6Network("64:ff9b::/96")


def unwrapped(address: Address) -> Address:
    """The IPv4 address that an IPv6 address only carries (mapped, NAT64, 6to4); else the address itself."""
    if isinstance(address, ipaddress.IPv4Address):
        return address
    if address in NAT64:
        return ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
    return address.ipv4_mapped or address.sixtofour or address


def is_outside(address: Address) -> bool:
    """An address of the open internet, also where it is written as another kind of address."""
    real = unwrapped(address)
    if isinstance(real, ipaddress.IPv4Address):
        return not any(real in network for network in INSIDE_V4)
    return real in UNICAST_V6 and not any(real in network for network in INSIDE_V6)


def is_in(address: Address, networks: Iterable[Network]) -> bool:
    """Whether it is in one of these networks, as it is written or as what it carries."""
    return any(one in network for network in networks for one in (address, unwrapped(address)))

"""Destinations of outgoing HTTP calls: addresses that are public ("outside") or internal ("inside"), and hosts to which
a secret may be sent. Loads no HTTP client.

An internal address belongs to this machine, its network or its cloud. The lists are our own: the `is_global` of the
standard library differs between Python versions.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from contextvars import ContextVar
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple, TypeAlias
from urllib.parse import urlsplit

from msgspec import Struct

from pointsman.errors import OperatorError
from pointsman.redaction import redaction_of

if TYPE_CHECKING:
    import httpx2


ANYWHERE: Final = "*"
USUAL: Final = {"http": 80, "https": 443}
_ANY_PORT: Final = ":*"
_HOST: Final = re.compile(r"[a-z0-9_]([a-z0-9_.-]*[a-z0-9_])?|[0-9a-f:.]+")


class SecretRefused(OperatorError):
    """Raised when a document must not send this secret to an address. Nothing was sent."""

    code: ClassVar[str] = "secret-refused"


class HostPattern(NamedTuple):
    """A host pattern with one scheme and port."""

    scheme: str
    host: str
    """In lower case, IDNA-encoded, without a trailing dot."""
    below: bool
    """Whether it matches all subdomains of the host, and not the host itself."""
    port: int | None
    """None: any port."""

    def takes(self, scheme: str, host: str, port: int) -> bool:
        if self.scheme != scheme or self.port not in (None, port):
            return False
        return host.endswith("." + self.host) if self.below else host == self.host


class SecretHosts(Struct, frozen=True, kw_only=True):
    """A secret that a call carries, and the hosts it may be sent to."""

    name: str
    value: str
    hosts: tuple[str, ...]


@lru_cache(maxsize=1024)
def read_host(text: str) -> HostPattern | None:
    """Return a pattern; None: any host. Raises `ValueError` with the problem."""
    if text == ANYWHERE:
        return None
    scheme, separator, rest = text.partition("://")
    if not separator:
        scheme, rest = "https", text
    any_port = rest.endswith(_ANY_PORT)
    rest = rest.removesuffix(_ANY_PORT)
    below = rest.startswith("*.")
    try:
        parts = urlsplit(f"//{rest.removeprefix('*.')}")
        host, port = plain_host(parts.hostname or ""), parts.port
    except (ValueError, UnicodeError) as why:
        raise ValueError(f"{text!r} is not a host: {why}") from None
    if scheme not in USUAL or not _HOST.fullmatch(host) or parts.netloc != rest.removeprefix("*.") or "@" in rest:
        raise ValueError(f"{text!r} is not a host: write api.example.com, *.example.com or http://localhost:8080")
    if below and "." not in host:
        raise ValueError(f"{text!r} is every host of a top-level domain: name the domain too")
    return HostPattern(scheme, host, below, None if any_port else port or USUAL[scheme])


def plain_host(host: str) -> str:
    """Return a host for comparison: lower case, IDNA-encoded, without a trailing dot. Raises `UnicodeError`."""
    host = host.lower().rstrip(".")
    if host.isascii():
        return host
    import idna  # Imported here because most hosts are ASCII.

    return idna.encode(host, uts46=True).decode("ascii")


def host_allowed(url: httpx2.URL, hosts: Iterable[str]) -> bool:
    """Return whether a secret with these hosts may be sent to the address."""
    host = url.raw_host.decode("ascii").lower().rstrip(".").strip("[]")
    port = url.port or USUAL.get(url.scheme, 0)
    return any((one := read_host(text)) is None or one.takes(url.scheme, host, port) for text in hosts)


def check_secrets(request: httpx2.Request, guards: Sequence[SecretHosts], *, led_on: bool) -> None:
    """Check a request before it is sent. `led_on`: it follows a redirect and may no longer contain the secret; other
    requests are assumed to contain it. Raises `SecretRefused`."""
    for guard in guards:
        if host_allowed(request.url, guard.hosts) or (led_on and not _carries(request, guard.value)):
            continue
        raise refused(guard.name, f"to {_origin(request.url)}", f"--host {_origin(request.url)}")


def refused(name: str, where: str, option: str) -> SecretRefused:
    """Return the error, with a hint how an admin can allow it."""
    kind, _, value = option.removeprefix("--").partition(" ")
    return SecretRefused(
        f"the secret {name!r} must not be sent {where}",
        hint=f"An admin can allow it: `pointsman secrets allow {name} {option}`, or `{kind}s = [{value!r}]` "
        f"under [secrets.{name}] in pointsman.toml.",
    )


def _origin(url: httpx2.URL) -> str:
    host = url.raw_host.decode("ascii")
    shown = f"[{host}]" if ":" in host and not host.startswith("[") else host
    port = f":{url.port}" if url.port and url.port != USUAL.get(url.scheme) else ""
    return f"{shown}{port}" if url.scheme == "https" else f"{url.scheme}://{shown}{port}"


def _carries(request: httpx2.Request, secret: str) -> bool:
    redaction = redaction_of(frozenset({secret}))
    headers = b"\n".join(b"%b: %b" % pair for pair in request.headers.raw)
    return any(redaction.finds(part) for part in (str(request.url).encode(), headers, request.read()))


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


class AddressUnreachable(OperatorError):
    """Raised when no complete response arrives in time: unknown host, no connection, or timeout."""

    code: ClassVar[str] = "address-unreachable"


class AnswerTooLarge(OperatorError):
    """Raised when the response exceeds the size limit. The rest is not read."""

    code: ClassVar[str] = "answer-too-large"


class AnswerUnreadable(OperatorError):
    """Raised for a response in an unrequested encoding or an unexpected format."""

    code: ClassVar[str] = "answer-unreadable"

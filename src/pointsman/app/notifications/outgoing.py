"""Posting to an address of the operator: checked before it is connected to, bounded, and followed nowhere else.

The name is looked up once, every address it has is checked, and one of those is connected to: what a name server says
a moment later does not matter. The certificate is that of the name.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
from collections.abc import Mapping
from typing import ClassVar, Final
from urllib.parse import SplitResult, urlsplit

import httpx2

from pointsman.errors import OperatorError

TIMEOUT_S: Final = 15.0
"""Of a whole call."""
PORTS: Final = {"http": 80, "https": 443}
NAT64: Final = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class AddressRefused(OperatorError):
    """Nothing is sent to this address: it is no web address, or inside this network and not said to be meant."""

    code: ClassVar[str] = "address-refused"


class NotReached(OperatorError):
    """Nobody took the call: no such name, no connection, no answer in time."""

    code: ClassVar[str] = "not-reached"


async def post(url: str, body: bytes, headers: Mapping[str, str], *, private: bool) -> int:
    """The status of the answer, which is not read. `private`: addresses inside this network, and plain http, are meant.

    Raises `AddressRefused`, `NotReached`.
    """
    try:
        async with asyncio.timeout(TIMEOUT_S):
            return await _post(url, body, headers, private=private)
    except TimeoutError:
        raise NotReached(f"no answer in {TIMEOUT_S:g} seconds") from None
    except (OSError, httpx2.HTTPError) as why:
        raise NotReached(f"{type(why).__name__}: {why}") from None


async def _post(url: str, body: bytes, headers: Mapping[str, str], *, private: bool) -> int:
    parts = web_address(url, private=private)
    assert parts.hostname is not None
    port = parts.port or PORTS[parts.scheme]
    addresses = await addresses_of(parts.hostname, port)
    inside = [address for address in addresses if not is_outside(address)]
    if inside and not private:
        raise AddressRefused(
            f"{parts.hostname!r} is {inside[0]}, inside this network", hint="If it is meant, set `private = true`."
        )
    address = addresses[0]
    host = f"[{address}]" if isinstance(address, ipaddress.IPv6Address) else str(address)
    target = parts._replace(netloc=f"{host}:{port}", fragment="").geturl()
    named = {**headers, "host": parts.netloc}
    async with (
        httpx2.AsyncClient(trust_env=False, follow_redirects=False, timeout=TIMEOUT_S) as client,
        client.stream(
            "POST", target, content=body, headers=named, extensions={"sni_hostname": parts.hostname}
        ) as answer,
    ):
        return answer.status_code


async def addresses_of(host: str, port: int) -> list[Address]:
    """All that a name stands for; an address stands for itself."""
    try:
        return [ipaddress.ip_address(host)]
    except ValueError:
        found = await asyncio.get_running_loop().getaddrinfo(host, port, type=socket.SOCK_STREAM)
        return [ipaddress.ip_address(str(one[4][0]).partition("%")[0]) for one in found]


def web_address(url: str, *, private: bool) -> SplitResult:
    """Raises `AddressRefused`."""
    try:
        parts = urlsplit(url)
        known = parts.scheme in PORTS and bool(parts.hostname) and (parts.port or 1) > 0
    except ValueError:
        known, parts = False, urlsplit("")
    if not known or parts.username is not None or parts.password is not None:
        raise AddressRefused("the address is no web address", hint="https://host/path, without a user.")
    if parts.scheme == "http" and not private:
        raise AddressRefused("the address is not encrypted", hint="Use https, or set `private = true`.")
    return parts


def is_outside(address: Address) -> bool:
    """An address of the open internet, also where it is written as another kind of address."""
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if address in NAT64:
            inner = ipaddress.IPv4Address(int(address) & 0xFFFFFFFF)
        if inner is not None:
            return is_outside(inner)
    return address.is_global and not address.is_multicast

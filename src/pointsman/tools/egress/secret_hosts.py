"""Which hosts a secret may go to: checked against every request that leaves, redirects too, after it is built.

api.example.com        https, port 443           http://api.example.com    http, port 80
api.example.com:8443   https, port 8443          *.example.com             every host below, not example.com itself
http://localhost:*     any port                  *                         anywhere: the operator gives up the check
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple
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
    """A document may not send this secret there. Nothing was sent."""

    code: ClassVar[str] = "secret-refused"


class HostPattern(NamedTuple):
    """Hosts of one scheme and port."""

    scheme: str
    host: str
    """In lower case, IDNA-encoded, without a dot at its end."""
    below: bool
    """Every host below this one, and not the host itself."""
    port: int | None
    """None: any."""

    def takes(self, scheme: str, host: str, port: int) -> bool:
        if self.scheme != scheme or self.port not in (None, port):
            return False
        return host.endswith("." + self.host) if self.below else host == self.host


class SecretHosts(Struct, frozen=True, kw_only=True):
    """A secret that a call carries, and where it may go."""

    name: str
    value: str
    hosts: tuple[str, ...]


@lru_cache(maxsize=1024)
def read_host(text: str) -> HostPattern | None:
    """A pattern; None: anywhere. Raises `ValueError` with what is wrong with it."""
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
    """A host as it is compared: lower case, IDNA-encoded, without a dot at its end. Raises `UnicodeError`."""
    host = host.lower().rstrip(".")
    if host.isascii():
        return host
    import idna  # Most hosts do not need it.

    return idna.encode(host, uts46=True).decode("ascii")


def host_allowed(url: httpx2.URL, hosts: Iterable[str]) -> bool:
    """Whether a secret with these hosts may go to the address."""
    host = url.raw_host.decode("ascii").lower().rstrip(".").strip("[]")
    port = url.port or USUAL.get(url.scheme, 0)
    return any((one := read_host(text)) is None or one.takes(url.scheme, host, port) for text in hosts)


def check_secrets(request: httpx2.Request, guards: Sequence[SecretHosts], *, led_on: bool) -> None:
    """Check a request that is about to leave. `led_on`: a redirect made it, so it may have lost the secret on the way;
    else it carries it. Raises `SecretRefused`."""
    for guard in guards:
        if host_allowed(request.url, guard.hosts) or (led_on and not _carries(request, guard.value)):
            continue
        raise refused(guard.name, f"to {_origin(request.url)}", f"--host {_origin(request.url)}")


def refused(name: str, where: str, option: str) -> SecretRefused:
    """The refusal, with what an admin can do."""
    kind, _, value = option.removeprefix("--").partition(" ")
    return SecretRefused(
        f"the secret {name!r} may not go {where}",
        hint=f"An admin allows it: `pointsman secrets allow {name} {option}`,"
        f" or `{kind}s = [{value!r}]` under [secrets.{name}] in pointsman.toml.",
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

"""Validation of mail addresses. Refuses anything that could end a line or start another header."""

from __future__ import annotations

import re
from email.headerregistry import Address
from typing import ClassVar, Final

from pointsman.errors import AuthorError
from pointsman.redaction import head

_LOCAL: Final = re.compile(r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+(\.[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]+)*")
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_NAMED: Final = re.compile(r"\s*([^<>]*?)\s*<([^<>]*)>\s*")
LOCAL_MAX: Final = 64
DOMAIN_MAX: Final = 253


class AddressWrong(AuthorError):
    """Raised for an invalid mail address, or for a header line with a line break."""

    code: ClassVar[str] = "mail-address-wrong"


def address_of(text: str) -> str:
    """Return the address with its domain in ASCII. Raises `AddressWrong`."""
    local, _, domain = text.strip(" ").rpartition("@")
    try:
        host = domain.encode("idna").decode().lower()
    except UnicodeError:
        host = ""
    labels = host.split(".")
    plausible = len(labels) > 1 or host == "localhost"
    if not (0 < len(local) <= LOCAL_MAX and _LOCAL.fullmatch(local)) or not (
        plausible and len(host) <= DOMAIN_MAX and all(_LABEL.fullmatch(label) for label in labels)
    ):
        raise AddressWrong(f"{head(text, 100)!r} is no mail address", hint="Write name@example.org, and nothing else.")
    return f"{local}@{host}"


def sender_of(text: str) -> Address:
    """Parse `Name <address>` or an address alone. Raises `AddressWrong`."""
    named = _NAMED.fullmatch(text)
    name, address = (named[1].strip('"'), named[2]) if named else ("", text)
    return Address(line_of(name, "the name"), addr_spec=address_of(address))


def line_of(text: str, what: str) -> str:
    """Return the text if it is valid in a header. Raises `AddressWrong`."""
    if _CONTROL.search(text):
        raise AddressWrong(f"{what} has a line break or a control character in it", hint="Write it on one line.")
    return text

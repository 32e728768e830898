"""Signatures of incoming and outgoing webhooks: HMAC-SHA256 over the body as it was sent, byte for byte.

    standard    webhook-id, webhook-timestamp, webhook-signature: v1,<base64 of "id.timestamp.body">
    github      x-hub-signature-256: sha256=<hex of body>, x-github-delivery

A webhook has one scheme, because content signed in one scheme could be sent as the body of the other. Webhooks that
share a secret are distinguished too: an id is a plain name, bodies of GitHub begin with `{` or `payload=`, and a body
that begins with an id and a time is refused in the GitHub scheme. The standard scheme also covers the id and the time:
a copy is refused after five minutes, and recognised by its id before. GitHub's scheme covers the body alone, so a copy
of it under another id cannot be distinguished from a new call; but it cannot use up the id of a call with another body.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
import re
from collections.abc import Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from pointsman.errors import PointsmanError

Scheme: TypeAlias = Literal["standard", "github"]

WINDOW_S: Final = 300.0
"""Maximum difference between the time of a signature and the clock of this process."""
ENCODED: Final = "whsec_"
"""Prefix of a secret that is written in base 64."""
KEY_BYTES_MIN: Final = 16
TIMESTAMP: Final = re.compile(r"[1-9][0-9]{0,11}")
DELIVERY: Final = re.compile(r"[A-Za-z0-9_:+%/|~@-]{1,500}")
"""An id of a call. Without a full stop, so that the signed text can be split in only one way."""
OF_STANDARD: Final = re.compile(DELIVERY.pattern.encode() + rb"\." + TIMESTAMP.pattern.encode() + rb"\.")
"""The beginning of the text that the standard scheme signs."""
SIGNATURES_MAX: Final = 10
_UNKNOWN: Final = os.urandom(32)
"""Key for paths that do not exist, so that their check takes as long as that of others."""


class Signed(NamedTuple):
    """Whether a call is correctly signed, and its identity."""

    ok: bool
    delivery: str = ""
    """The id of the call; empty if the sender gave none."""
    key: str = ""
    """Repeated calls have the same key. Empty: this call repeats no other."""
    fault: PointsmanError | None = None
    """Why the secret cannot be used."""


def key_of(secret: str) -> bytes:
    """Return the bytes of the signing key."""
    if secret.startswith(ENCODED):
        try:
            return base64.b64decode(secret.removeprefix(ENCODED), validate=True)
        except binascii.Error:
            pass  # A plain text that happens to begin with the prefix.
    return secret.encode()


def sign(key: bytes, delivery: str, at: int, body: bytes) -> str:
    """Return the value of `webhook-signature`."""
    digest = hmac.digest(key, f"{delivery}.{at}.".encode() + body, hashlib.sha256)
    return "v1," + base64.b64encode(digest).decode()


def verify(key: bytes | None, scheme: Scheme, body: bytes, headers: Mapping[str, str], now: float) -> Signed:
    """Verify the signature of a call. `headers` have lower-case names. Without a key, or with one that is too short,
    the same work is done and the result is negative."""
    is_known = key is not None and len(key) >= KEY_BYTES_MIN
    used = key if key is not None and is_known else _UNKNOWN
    signed = _as_standard(used, body, headers, now) if scheme == "standard" else _as_github(used, body, headers)
    return signed._replace(ok=signed.ok and is_known)


def _as_standard(key: bytes, body: bytes, headers: Mapping[str, str], now: float) -> Signed:
    delivery, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    recent = TIMESTAMP.fullmatch(at) is not None and abs(int(at) - now) <= WINDOW_S
    expected = sign(key, delivery, int(at) if recent else 0, body)
    # Several signatures: the sender is rotating its secret.
    signatures = headers.get("webhook-signature", "").split(" ")[:SIGNATURES_MAX]
    same = [hmac.compare_digest(expected.encode(), signature.encode()) for signature in signatures]
    return Signed(any(same) and recent and DELIVERY.fullmatch(delivery) is not None, delivery, delivery)


def _as_github(key: bytes, body: bytes, headers: Mapping[str, str]) -> Signed:
    expected = "sha256=" + hmac.new(key, body, hashlib.sha256).hexdigest()
    same = hmac.compare_digest(expected.encode(), headers.get("x-hub-signature-256", "").encode())
    # Without a delivery id the hash of the body serves as one, so that a repeated body counts as the same call.
    delivery = headers.get("x-github-delivery") or hashlib.sha256(body).hexdigest()
    return Signed(same and OF_STANDARD.match(body) is None, delivery, key_of_unsigned(delivery, body))


def key_of_unsigned(delivery: str, body: bytes) -> str:
    """Return the key of a call whose id no signature covers: anybody could send another body under the same id."""
    return f"{delivery}.{hashlib.sha256(body).hexdigest()}" if delivery else ""


def signed_headers(key: bytes, scheme: Scheme, delivery: str, at: int, body: bytes) -> dict[str, str]:
    """Return the headers of an outgoing call."""
    if scheme == "github":
        digest = hmac.new(key, body, hashlib.sha256).hexdigest()
        return {"x-hub-signature-256": f"sha256={digest}", "x-github-delivery": delivery}
    signature = sign(key, delivery, at, body)
    return {"webhook-id": delivery, "webhook-timestamp": str(at), "webhook-signature": signature}

"""Signatures of webhooks, coming and going: HMAC-SHA256 over the body as it was sent, byte for byte.

    standard    webhook-id, webhook-timestamp, webhook-signature: v1,<base64 of "id.timestamp.body">
    github      x-hub-signature-256: sha256=<hex of body>, x-github-delivery

A webhook has one scheme: what is signed in the one could be sent as the body of the other. Webhooks that share a secret
are told apart, too: an id is a plain name, bodies of GitHub begin with `{` or `payload=`, and no body of GitHub begins
with an id and a time. The first scheme covers the id and the time as well: a copy is refused after five minutes, and
known before. GitHub's covers the body alone, so a copy of it under another id cannot be told from a new call.
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

Scheme: TypeAlias = Literal["standard", "github"]

WINDOW_S: Final = 300.0
"""How far the time of a signature may be from ours."""
ENCODED: Final = "whsec_"
"""How a secret begins that is written in base 64."""
KEY_BYTES_MIN: Final = 16
TIMESTAMP: Final = re.compile(r"[1-9][0-9]{0,11}")
DELIVERY: Final = re.compile(r"[A-Za-z0-9_:+%/|~@-]{1,500}")
"""An id of a call. With a full stop in it, what is signed could be divided in other ways."""
OF_STANDARD: Final = re.compile(DELIVERY.pattern.encode() + rb"\." + TIMESTAMP.pattern.encode() + rb"\.")
"""How begins what the standard scheme signs."""
SIGNATURES_MAX: Final = 10
_UNKNOWN: Final = os.urandom(32)
"""Signs in vain for paths that are not there, so that they take as long as others."""


class Signed(NamedTuple):
    """Whether a call is signed by who knows the secret, and what names it. No name: the sender gave none."""

    ok: bool
    delivery: str = ""


def key_of(secret: str) -> bytes:
    """The bytes that sign."""
    if secret.startswith(ENCODED):
        try:
            return base64.b64decode(secret.removeprefix(ENCODED), validate=True)
        except binascii.Error:
            pass  # It begins like that and is a text all the same.
    return secret.encode()


def sign(key: bytes, delivery: str, at: int, body: bytes) -> str:
    """The value of `webhook-signature`."""
    digest = hmac.digest(key, f"{delivery}.{at}.".encode() + body, hashlib.sha256)
    return "v1," + base64.b64encode(digest).decode()


def verify(key: bytes | None, scheme: Scheme, body: bytes, headers: Mapping[str, str], now: float) -> Signed:
    """`headers` have lower-case names. Without a key, or with one that is too short to be a secret, the same work is
    done in vain."""
    is_known = key is not None and len(key) >= KEY_BYTES_MIN
    used = key if key is not None and is_known else _UNKNOWN
    signed = _as_standard(used, body, headers, now) if scheme == "standard" else _as_github(used, body, headers)
    return Signed(signed.ok and is_known, signed.delivery)


def _as_standard(key: bytes, body: bytes, headers: Mapping[str, str], now: float) -> Signed:
    delivery, at = headers.get("webhook-id", ""), headers.get("webhook-timestamp", "")
    recent = TIMESTAMP.fullmatch(at) is not None and abs(int(at) - now) <= WINDOW_S
    expected = sign(key, delivery, int(at) if recent else 0, body)
    # Several signatures: the sender is changing its secret.
    given = headers.get("webhook-signature", "").split(" ")[:SIGNATURES_MAX]
    same = [hmac.compare_digest(expected.encode(), one.encode()) for one in given]
    return Signed(any(same) and recent and DELIVERY.fullmatch(delivery) is not None, delivery)


def _as_github(key: bytes, body: bytes, headers: Mapping[str, str]) -> Signed:
    expected = "sha256=" + hmac.new(key, body, hashlib.sha256).hexdigest()
    same = hmac.compare_digest(expected.encode(), headers.get("x-hub-signature-256", "").encode())
    # A sender that names no deliveries can still repeat one: the same body is the same call.
    return Signed(
        same and OF_STANDARD.match(body) is None, headers.get("x-github-delivery") or hashlib.sha256(body).hexdigest()
    )


def signed_headers(key: bytes, scheme: Scheme, delivery: str, at: int, body: bytes) -> dict[str, str]:
    """The headers of a call that we make."""
    if scheme == "github":
        digest = hmac.new(key, body, hashlib.sha256).hexdigest()
        return {"x-hub-signature-256": f"sha256={digest}", "x-github-delivery": delivery}
    signature = sign(key, delivery, at, body)
    return {"webhook-id": delivery, "webhook-timestamp": str(at), "webhook-signature": signature}

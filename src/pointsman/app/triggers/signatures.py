"""Signatures of webhooks, coming and going: HMAC-SHA256 over the body as it was sent, byte for byte.

    Standard Webhooks   webhook-id, webhook-timestamp, webhook-signature: v1,<base64 of "id.timestamp.body">
    GitHub's            x-hub-signature-256: sha256=<hex of body>, x-github-delivery

The first covers the id and the time too: a copy is refused after five minutes, and known before. GitHub's covers the
body alone, so a copy of it under another id cannot be told from a new call.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from collections.abc import Mapping
from typing import Final, NamedTuple

WINDOW_S: Final = 300.0
"""How far the time of a signature may be from ours."""
ENCODED: Final = "whsec_"
"""How a secret begins that is written in base 64."""
NOBODY: Final = b"the key of nobody, so that an unknown path takes as long as a known one"


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


def verify(key: bytes | None, body: bytes, headers: Mapping[str, str], now: float) -> Signed:
    """`headers` have lower-case names. Without a key the same work is done in vain."""
    delivery, given = headers.get("webhook-id", ""), headers.get("webhook-signature")
    if given is not None:
        at = headers.get("webhook-timestamp", "")
        recent = at.isdecimal() and len(at) < 12 and abs(int(at) - now) <= WINDOW_S
        expected = sign(key or NOBODY, delivery, int(at) if recent else 0, body)
        # Several signatures: the sender is changing its secret.
        same = [hmac.compare_digest(expected.encode(), one.encode()) for one in given.split(" ")[:10]]
        return Signed(any(same) and recent and bool(delivery) and key is not None, delivery)
    expected = "sha256=" + hmac.new(key or NOBODY, body, hashlib.sha256).hexdigest()
    same_one = hmac.compare_digest(expected.encode(), headers.get("x-hub-signature-256", "").encode())
    # A sender that names no deliveries can still repeat one: the same body is the same call.
    named = headers.get("x-github-delivery") or hashlib.sha256(body).hexdigest()
    return Signed(same_one and key is not None, named)

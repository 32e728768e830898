"""Keys do not travel on: what a provider answers may repeat the key it was given, and failures are kept for ever.

Redacted by value, wherever it stands: the keys of the settings, and those that the clients of well-known providers
take from the environment.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from pointsman.engine.failures import Failure
from pointsman.values import JsonObject

MASK: Final = "***"
FROM_ENVIRONMENT: Final = "_API_KEY"
CHARS_MIN: Final = 8
"""A shorter one is a placeholder (`none`, `x`), and would blacken ordinary words."""


def redacted(failure: Failure, keys: Iterable[str]) -> Failure:
    """The failure without any of the keys."""
    known = {*keys, *(value for name, value in os.environ.items() if name.endswith(FROM_ENVIRONMENT))}
    # Longest first: one key may begin with another.
    secrets = sorted((key for key in known if len(key) >= CHARS_MIN), key=len, reverse=True)
    shown = failure.message, failure.hint, "" if failure.details is None else json.dumps(failure.details)
    clean = tuple(_without(text, secrets) for text in shown)
    if clean == shown:
        return failure
    details: JsonObject | None = json.loads(clean[2]) if clean[2] else None
    return replace(failure, message=clean[0], hint=clean[1], details=details)


def _without(text: str, secrets: list[str]) -> str:
    for secret in secrets:
        # Inside JSON a key may stand escaped.
        text = text.replace(secret, MASK).replace(json.dumps(secret)[1:-1], MASK)
    return text

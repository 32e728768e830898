"""Keys do not travel on: what a provider answers may repeat the key it was given, and failures are kept for ever.

Redacted by value, wherever it stands: the keys of the settings, and those that the clients of well-known providers
take from the environment.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from pointsman.engine.failures import Failure

MASK: Final = "***"
FROM_ENVIRONMENT: Final = "_API_KEY"
CHARS_MIN: Final = 8
"""A shorter one is a placeholder (`none`, `x`), and would blacken ordinary words."""


def redacted(failure: Failure, keys: Iterable[str]) -> Failure:
    """The failure without any of the keys."""
    message, hint = failure.message, failure.hint
    known = {*keys, *(value for name, value in os.environ.items() if name.endswith(FROM_ENVIRONMENT))}
    # Longest first: one key may begin with another.
    for key in sorted((key for key in known if len(key) >= CHARS_MIN), key=len, reverse=True):
        message, hint = message.replace(key, MASK), hint.replace(key, MASK)
    if (message, hint) == (failure.message, failure.hint):
        return failure
    return replace(failure, message=message, hint=hint)

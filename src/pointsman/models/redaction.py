"""Redaction of provider keys in failures: a provider's response may repeat the key of the request."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final, cast

from msgspec.structs import replace

from pointsman.engine.failures import Failure
from pointsman.redaction import ANYWHERE_CHARS_MIN, Redaction, redaction_of
from pointsman.values import JsonObject

FROM_ENVIRONMENT: Final = "_API_KEY"
"""Suffix of the environment variables from which clients take their keys."""


def key_redaction(keys: Iterable[str]) -> Redaction:
    """Return a redaction that masks the given keys and those of the environment."""
    known = {*keys, *(value for name, value in os.environ.items() if name.endswith(FROM_ENVIRONMENT))}
    return redaction_of(frozenset(key for key in known if len(key) >= ANYWHERE_CHARS_MIN))


def redacted(failure: Failure, redaction: Redaction) -> Failure:
    """Return the failure with keys masked."""
    return replace(
        failure,
        message=redaction.text(failure.message),
        hint=redaction.text(failure.hint),
        details=cast("JsonObject | None", redaction.json(failure.details)),
    )

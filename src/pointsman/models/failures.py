"""Errors of models. `ModelFailed` carries the `Failure` that a step reports.

A provider's response may repeat the key of the request, so failures are redacted.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import ClassVar, Final, cast

from msgspec.structs import replace

from pointsman.engine.failures import Failure
from pointsman.errors import AuthorError, OperatorError
from pointsman.redaction import ANYWHERE_CHARS_MIN, Redaction, head, redaction_of
from pointsman.values import JsonObject

MESSAGE_CHARS_MAX: Final = 1_000
_SERVER_ERRORS: Final = 500
_WINDOW: Final = ("context size", "context length", "context window")
"""Phrases for an exceeded context window of servers without an error code for it: llama.cpp, LM Studio, TGI."""

HINTS: Final = {
    "model-rate-limited": "Add keys, pace the provider (`interval`), or name a `fallback`.",
    "model-quota-exceeded": "Raise the quota with the provider, add keys, or name a `fallback`.",
    "model-unavailable": "Try again later, or name a `fallback`.",
    "model-server-error": "Try again later, or name a `fallback`.",
    "model-timeout": "Try again, raise the node's timeout, or use a faster model.",
    "model-unauthorized": "Set a key that the provider accepts: `keys` in the settings, or its variable.",
    "model-not-found": "Correct the model's name; `pointsman models --ping` shows which models answer.",
    "model-context-too-long": "Shorten the inputs or the conversation, or use a model with a larger context.",
    "model-refused": "Change the prompt, or handle it with an edge on the error `model-refused`.",
    "model-answer-unreadable": "Try again; if it fails again, the service does not support this API: check `kind`.",
}
"""Code of a failure -> what to do next."""


class ModelFailed(OperatorError):
    """Raised when a model call fails. `failure` is the failure of the step and states whether a retry may succeed."""

    code: ClassVar[str] = "model-failed"

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, hint=failure.hint)
        self.failure = failure


class ModelUnusable(OperatorError):
    """Raised for a model that cannot be called: unknown provider, no key, or package not installed."""

    code: ClassVar[str] = "model-unusable"


class ModelUnnamed(AuthorError):
    """Raised when neither agent nor workflow nor settings name a model."""

    code: ClassVar[str] = "model-unnamed"


def status_failure(
    code: str,
    status: int,
    source: str,
    reason: str,
    *,
    body: str,
    retryable: bool,
    address: str = "",
    retry_after_s: float | None = None,
) -> Failure:
    """Return the failure for an HTTP error status. `source`: model and address; `reason`: the provider's message."""
    kind = "LLM service error: " if status >= _SERVER_ERRORS else ""
    code = precise_code(code, reason)
    return Failure(
        code=code,
        message=head(f"{kind}{status} from {source}: {reason}", MESSAGE_CHARS_MAX),
        retryable=retryable,
        hint=HINTS.get(code, ""),
        retry_after_s=retry_after_s,
        details={"status": status, "address": address, "body": body},
    )


def unreachable_failure(code: str, source: str, what: str, hint: str, *, address: str = "") -> Failure:
    """Return the failure for a broken or missing connection."""
    message = head(f"{source} cannot be reached: {what}", MESSAGE_CHARS_MAX)
    return Failure(code=code, message=message, retryable=True, hint=hint, details={"address": address})


def precise_code(code: str, reason: str) -> str:
    """Return the code, or `model-context-too-long` for a rejected request whose message names the context window."""
    exceeds = code == "model-rejected" and any(words in reason.lower() for words in _WINDOW)
    return "model-context-too-long" if exceeds else code


KEY_VARIABLE_SUFFIX: Final = "_API_KEY"
"""Suffix of the environment variables from which clients take their keys."""


def key_redaction(keys: Iterable[str]) -> Redaction:
    """Return a redaction that masks the given keys and those of the environment."""
    secrets = {*keys, *(value for name, value in os.environ.items() if name.endswith(KEY_VARIABLE_SUFFIX))}
    return redaction_of(frozenset(key for key in secrets if len(key) >= ANYWHERE_CHARS_MIN))


def redacted(failure: Failure, redaction: Redaction) -> Failure:
    """Return the failure with keys masked."""
    return replace(
        failure,
        message=redaction.text(failure.message),
        hint=redaction.text(failure.hint),
        details=cast("JsonObject | None", redaction.json(failure.details)),
    )

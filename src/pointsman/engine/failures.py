"""A failure of a step is data: it is journaled, displayed, retried and routed. It is never raised across a boundary."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from pointsman.errors import FORMER_CODES, PointsmanError
from pointsman.values import JsonObject


class Failure(Struct, frozen=True, kw_only=True, omit_defaults=True, gc=False):
    """The cause of a failed attempt. `code` is stable; `retryable`: whether the same attempt could succeed later."""

    code: str
    message: str
    retryable: bool = False
    hint: str = ""
    retry_after_s: float | None = None
    """The wait that the other side requested, in seconds."""
    details: JsonObject | None = None
    needs: str = ""
    """The part that this process lacks for the step, as `kind:name` (`tool:search`, `model:openai`, `secret:KEY`,
    `executor:kind`); empty: nothing. A worker that has it can perform the step."""


TIMEOUT: Final = "timeout"
TIMEOUTS: Final = frozenset({TIMEOUT, "tool-timeout", "model-timeout"})


def is_one_of(failure: Failure, codes: frozenset[str]) -> bool:
    """Return whether one of these codes, or a former name, covers the failure. `timeout` covers those of calls, too."""
    code = failure.code
    return code in codes or (TIMEOUT in codes and code in TIMEOUTS) or FORMER_CODES.get(code) in codes


def failure_by(why: PointsmanError) -> Failure:
    """Return an exception as a failure of its step."""
    return Failure(code=why.code, message=str(why), hint=why.hint, needs=why.needs)


_CHAIN_MAX: Final = 20
_CONNECTION_PROBLEMS: Final[tuple[tuple[tuple[str, ...], str, str], ...]] = (
    (
        ("gaierror", "Name or service not known", "nodename nor servname", "No address associated", "name resolution"),
        "its host name cannot be resolved",
        "Correct the host in the address, or the DNS of this machine.",
    ),
    (
        ("CERTIFICATE_VERIFY_FAILED", "certificate verify failed"),
        "its TLS certificate is not trusted",
        "Use the name that the certificate is for, or install the authority that signed it.",
    ),
    (
        ("SSLError", "SSLEOFError", "SSLZeroReturnError", "WRONG_VERSION_NUMBER", "[SSL"),
        "the TLS handshake failed",
        "Check that the service uses https at this port; if not, write http.",
    ),
    (
        ("ConnectionRefusedError", "Connection refused", "All connection attempts failed"),
        "the connection was refused",
        "Start the service, or correct host and port in the address.",
    ),
    (
        ("ConnectTimeout", "PoolTimeout", "ReadTimeout", "TimeoutError"),
        "it did not answer in time",
        "Check that the service runs, and that no firewall blocks this machine.",
    ),
    (
        ("ConnectionResetError", "RemoteProtocolError", "BrokenPipeError", "Server disconnected", "Connection reset"),
        "the connection broke",
        "Try again; if it fails again, read the log of the service, or of a proxy in between.",
    ),
    (
        ("Network is unreachable", "No route to host"),
        "this machine has no network route to it",
        "Check the network and the routes of this machine.",
    ),
)
"""Patterns in the type or message of an exception -> what happened, and what to check. Matching by text is necessary
because the clients of providers and tools wrap system errors in their own types.
"""


def connection_problem(why: BaseException) -> tuple[str, str]:
    """Return why a service could not be reached, and what to check, from an exception and its causes."""
    words: list[str] = []
    cause: BaseException | None = why
    for _ in range(_CHAIN_MAX):
        if cause is None:
            break
        words.append(f"{type(cause).__name__}: {cause}")
        cause = cause.__cause__ or cause.__context__
    text = "\n".join(words)
    for marks, what, hint in _CONNECTION_PROBLEMS:
        if any(mark in text for mark in marks):
            return what, hint
    return words[-1], "Check that the service at this address runs."

"""Audit entries for tool calls that change something, by MCP clients and by agents on behalf of people."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final, cast

from pointsman.auth.audit import Audit
from pointsman.auth.audit_outcomes import fresh_in, named_in
from pointsman.auth.callers import Caller
from pointsman.errors import OperatorError
from pointsman.values import JsonObject, JsonView

NAMES: Final = ("workflow", "id", "executionId", "sessionId", "gate", "revision")
"""Arguments of tools that name what is changed. Other arguments may be secret and are never recorded."""


@dataclass(slots=True)
class AuditedCall:
    """A tool call in progress. The caller of `audited` sets its answer."""

    answer: JsonView | None = None


@asynccontextmanager
async def audited(
    audit: Audit, caller: Caller, what: str, arguments: JsonObject, *, origin: str = ""
) -> AsyncGenerator[AuditedCall]:
    """Write an audit entry before a call, and afterwards its refusal or outcome."""
    target = target_of(arguments)
    entry = await audit.asked(caller, what, target=target, origin=origin)
    call = AuditedCall()
    yield call
    if call.answer is None:
        return
    if code := code_of(call.answer):
        with suppress(OperatorError):  # The store is unavailable: the answer to the client is what counts.
            await audit.refused(caller, what, entry, code)
    elif fresh := fresh_in(named_in(call.answer), target):
        audit.made(caller, what, entry, fresh)


async def note_refused(audit: Audit, caller: Caller, what: str, arguments: JsonObject, code: str, origin: str) -> None:
    """Write an audit entry for a call that was refused before it was made."""
    entry = await audit.asked(caller, what, target=target_of(arguments), origin=origin)
    await audit.refused(caller, what, entry, code)


def target_of(arguments: JsonObject) -> str:
    """Return the target of a call, from the arguments that name it."""
    return ", ".join(f"{name}={arguments[name]}" for name in NAMES if isinstance(arguments.get(name), str | int))


def code_of(answer: JsonView) -> str:
    """Return the error code of a tool's answer; empty if it is not an error."""
    error = answer.get("error")
    return str(cast("JsonObject", error).get("code", "")) if isinstance(error, dict) else ""

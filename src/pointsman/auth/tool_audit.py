"""Calls of tools that change something, in the audit log: of MCP clients, and of agents in the name of people."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Final

from pointsman.auth.audit import Audit
from pointsman.auth.audit_outcomes import fresh_in, named_in
from pointsman.auth.callers import Caller
from pointsman.errors import OperatorError
from pointsman.values import JsonObject

NAMES: Final = ("workflow", "id", "executionId", "sessionId", "gate", "revision")
"""Arguments of tools that name what is changed: never what is written, which may be secret."""


@dataclass(slots=True)
class AuditedCall:
    """A call that is being made. Its answer is put here when there is one."""

    answer: JsonObject | None = None


@asynccontextmanager
async def audited(
    audit: Audit, caller: Caller, what: str, arguments: JsonObject, *, origin: str = ""
) -> AsyncGenerator[AuditedCall]:
    """Write an audit entry before a call is made, and afterwards whether it was refused or what came of it."""
    target = target_of(arguments)
    entry = await audit.asked(caller, what, target=target, origin=origin)
    call = AuditedCall()
    yield call
    if call.answer is None:
        return
    if code := code_of(call.answer):
        with suppress(OperatorError):  # The store is away: the client is told that.
            await audit.refused(caller, what, entry, code)
    elif fresh := fresh_in(named_in(call.answer), target):
        audit.made(caller, what, entry, fresh)


async def note_refused(audit: Audit, caller: Caller, what: str, arguments: JsonObject, code: str, origin: str) -> None:
    """Write an audit entry for a call that was refused before it was made."""
    entry = await audit.asked(caller, what, target=target_of(arguments), origin=origin)
    await audit.refused(caller, what, entry, code)


def target_of(arguments: JsonObject) -> str:
    """Return what a call is made on, by the names among its arguments."""
    return ", ".join(f"{name}={arguments[name]}" for name in NAMES if isinstance(arguments.get(name), str | int))


def code_of(answer: JsonObject) -> str:
    """Return with which code a tool refused; empty: it did not."""
    error = answer.get("error")
    return str(error.get("code", "")) if isinstance(error, dict) else ""

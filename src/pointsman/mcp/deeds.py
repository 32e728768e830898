"""What tools are about to change is in the audit log first, and what came of it behind.

So it is whatever carries the messages: a client at a pipe is told of as one that comes over HTTP.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, cast

from mcp.server.context import ServerRequestContext
from mcp.types import CallToolResult

from pointsman.app.access.audit import Audit
from pointsman.app.access.callers import Caller
from pointsman.app.access.outcome import fresh_in, named_in
from pointsman.errors import OperatorError
from pointsman.values import JsonObject

Context: TypeAlias = ServerRequestContext[Any, Any]

NAMES: Final = ("workflow", "id", "executionId", "sessionId", "gate", "revision")
"""Arguments of tools that say what is changed: never what is written, which may be secret."""


@dataclass(slots=True)
class Deed:
    """One call, as it is made."""

    result: CallToolResult | None = None


@dataclass(frozen=True, slots=True)
class Deeds:
    """Those of one server."""

    audit: Audit
    origin: Callable[[Context], str] = lambda _: ""
    """From which address a call comes."""

    @asynccontextmanager
    async def told(
        self, context: Context, caller: Caller, tool: str, arguments: JsonObject
    ) -> AsyncGenerator[Deed, None]:
        """Around the call of a tool that may change something; its result is given to what this yields."""
        what, target = f"mcp {tool}", target_of(arguments)
        name = await self.audit.asked(caller, what, target=target, origin=self.origin(context))
        deed = Deed()
        yield deed
        if deed.result is None:
            return
        answer = cast("JsonObject", deed.result.structured_content or {})
        if deed.result.is_error:
            with suppress(OperatorError):  # The store is away: that is what the client is told.
                await self.audit.refused(caller, what, name, code_of(answer))
        elif fresh := fresh_in(named_in(answer), target):
            self.audit.made(caller, what, name, fresh)


def target_of(arguments: JsonObject) -> str:
    """What a call is made on, by the names among its arguments."""
    return ", ".join(f"{name}={arguments[name]}" for name in NAMES if isinstance(arguments.get(name), str | int))


def code_of(answer: JsonObject) -> str:
    """With which code a tool refused."""
    error = answer.get("error")
    return str(error.get("code", "")) if isinstance(error, dict) else ""

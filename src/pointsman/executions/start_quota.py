"""Start quota: limits how often a caller may start executions, and lets only one caller start a new session.

    claim the name (must be free) ─▶ who owns the session? ─▶ started ─▶ claim released

A session belongs to the caller who has an execution in it. Between the check of its owner and the first execution,
another caller could get the same answer; the claim is an entry of the store that only one of them can put. A crash
leaves a claim behind, which expires after a minute.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final, cast

from pointsman.auth.callers import Caller, NotAllowed
from pointsman.auth.policy import must_own_session
from pointsman.auth.rate_limiter import RateLimiter
from pointsman.context import AppContext, Part
from pointsman.store.errors import EntryMoved
from pointsman.store.records import ExecutionQuery
from pointsman.values import JsonObject

KIND: Final = "session-claim"
CLAIM_S: Final = 60.0
"""A start takes much less."""


def _pace(app: AppContext) -> RateLimiter:
    each = app.settings.access.starts_per_minute
    return RateLimiter(app.clock, per_s=each / 60, burst=each, says=f"begins more than {each} executions per minute")


PACE: Final = Part[RateLimiter]("start quota", _pace)


def take_start(app: AppContext, caller: Caller) -> None:
    """Count one more execution of a caller from outside. Raises `TooManyRequests`."""
    if caller.entrance in ("local", "shell"):
        return
    app[PACE].take(caller.name)


@asynccontextmanager
async def own_session(app: AppContext, caller: Caller, session: str) -> AsyncGenerator[None, None]:
    """Exclude other callers from starting a session of this name meanwhile. Raises `NotAllowed`, `InputInvalid`."""
    await must_own_session(app, caller, session)
    if await app.store.executions.list(ExecutionQuery(session=session, owner=caller.name, limit=1)):
        yield  # It belongs to the caller already, and stays so.
        return
    claimed = await _claim(app, caller, session)
    try:
        await must_own_session(app, caller, session)  # Check again: now no other caller can start it.
        yield
    finally:
        if claimed:
            await app.store.entries.delete(KIND, session, after=claimed)


async def _claim(app: AppContext, caller: Caller, session: str) -> int:
    """Return the version of the claim; 0: the same caller holds it already. Raises `NotAllowed`."""
    value: JsonObject = {"by": caller.name, "until": app.clock.now() + CLAIM_S}
    entries = app.store.entries
    while True:
        held = await entries.find(KIND, session)
        claim = cast("JsonObject", held.value) if held is not None else {}
        if held is not None and cast("float", claim["until"]) > app.clock.now():
            if claim["by"] == caller.name:
                return 0
            raise NotAllowed(
                f"the session {session!r} is being begun by somebody else", hint="Begin one under another name."
            )
        try:
            return await entries.put(KIND, session, value, after=0 if held is None else held.version)
        except EntryMoved:
            continue  # Another caller was faster, or has released it.

"""Operations with an `Idempotency-Key`: done once, answered the same each time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from fastapi import Request, Response

from pointsman.auth.callers import Caller
from pointsman.errors import OperatorError, PointsmanError
from pointsman.executions.idempotency import IdempotencyKeys, name_of
from pointsman.server.context import Desk
from pointsman.server.json_responses import JsonReply

REPEATED: Final = {"idempotent-replayed": "true"}
"""Says that nothing was done now."""


async def once(
    desk: Desk, caller: Caller, request: Request, key: str | None, work: Callable[[], Awaitable[Response]]
) -> Response:
    """The answer of the work, or what it answered the first time. Without a key it is simply done.

    Raises `KeyReused`, `KeyInUse`, and what the work does. What is refused leaves the key free.
    """
    if key is None:
        return await work()
    kept = IdempotencyKeys(desk.app.store.entries, desk.app.clock)
    name, asked = name_of(caller.name, f"{request.method} {request.url.path}", key), await request.body()
    known = await kept.begin(name, asked)
    if known is not None:
        return JsonReply(known.answer, status=known.status, headers={**known.headers, **REPEATED})
    try:
        reply = await work()
    except PointsmanError:
        with suppress(OperatorError):  # The store is away: the key stays taken, and what it stands for is looked at.
            await kept.undone(name)
        raise
    headers = {"location": reply.headers["location"]} if "location" in reply.headers else {}
    await kept.done(name, asked, reply.status_code, bytes(reply.body), headers)
    return reply

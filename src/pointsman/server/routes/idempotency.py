"""Idempotency keys: an operation with a known `Idempotency-Key` returns the first answer again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final

from fastapi import Request, Response

from pointsman.auth.verbs import Acting
from pointsman.errors import OperatorError, PointsmanError
from pointsman.executions.idempotency import IdempotencyKeys, name_of
from pointsman.server.json_responses import JsonReply

REPEATED: Final = {"idempotent-replayed": "true"}
"""Header of a repeated answer."""


async def once(acting: Acting, request: Request, key: str | None, work: Callable[[], Awaitable[Response]]) -> Response:
    """Run the work and store its answer under the key, or return the answer already stored. Without a key, run it.

    Raises `KeyReused`, `KeyInUse`, and what the work raises; a `PointsmanError` of the work releases the key.
    """
    if key is None:
        return await work()
    kept = IdempotencyKeys(acting.app.store.entries, acting.app.clock)
    name, asked = name_of(acting.caller.name, f"{request.method} {request.url.path}", key), await request.body()
    known = await kept.begin(name, asked)
    if known is not None:
        return JsonReply(known.answer, status=known.status, headers={**known.headers, **REPEATED})
    try:
        reply = await work()
    except PointsmanError:
        with suppress(OperatorError):  # The store is unavailable: the key stays taken.
            await kept.undone(name)
        raise
    headers = {"location": reply.headers["location"]} if "location" in reply.headers else {}
    await kept.done(name, asked, reply.status_code, bytes(reply.body), headers)
    return reply

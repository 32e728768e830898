"""Parameters shared by many operations, and idempotency keys."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Annotated, Final, Literal

from fastapi import Depends, Header, Path, Query, Request, Response

from pointsman.auth.callers import Role
from pointsman.auth.verbs import Acting
from pointsman.errors import OperatorError, PointsmanError
from pointsman.etags import ABSENT
from pointsman.executions.opening import IdempotencyKeys, name_of
from pointsman.server.problems import JsonReply

REPEATED: Final = {"idempotent-replayed": "true"}
"""Header of a repeated answer."""


async def reply_once(
    acting: Acting, request: Request, key: str | None, work: Callable[[], Awaitable[Response]]
) -> Response:
    """Run the work and store its answer under the key, or return the answer already stored. Without a key, run it.

    Raises `KeyReused`, `KeyInUse`, and what the work raises; a `PointsmanError` of the work releases the key.
    """
    if key is None:
        return await work()
    replies = IdempotencyKeys(acting.app.store.entries, acting.app.clock)
    name, content = name_of(acting.caller.name, f"{request.method} {request.url.path}", key), await request.body()
    stored = await replies.begin(name, content)
    if stored is not None:
        return JsonReply(stored.answer, status=stored.status, headers={**stored.headers, **REPEATED})
    try:
        reply = await work()
    except PointsmanError:
        with suppress(OperatorError):  # The store is unavailable: the key stays taken.
            await replies.undone(name)
        raise
    headers = {"location": reply.headers["location"]} if "location" in reply.headers else {}
    await replies.done(name, content, reply.status_code, bytes(reply.body), headers)
    return reply


Eid = Annotated[str, Path(min_length=1, max_length=100, description="The execution's id.")]
Id = Annotated[str, Path(min_length=1, max_length=300, description="`id`, `id@revision` or `id@version`.")]
PATH_CHARS_MAX: Final = 500
Folder = Annotated[str, Query(min_length=1, max_length=PATH_CHARS_MAX, description="Path of a folder: `sales/mail`.")]
Of = Annotated[str | None, Query(max_length=300, description="Only entries of this workflow.")]
After = Annotated[str | None, Query(max_length=1500, description="`next` of the previous page.")]
NAMES_MAX: Final = 50
Words = Annotated[str, Query(max_length=200, description="Only entries with all these words.")]
OfRole = Annotated[Role | None, Query(description="Only entries of this role.")]
Scope = Annotated[str, Path(max_length=20, description="`execution`, `session`, `user`, `workflow` or `shared`.")]
Order = Annotated[Literal["asc", "desc"], Query(description="`desc`: newest first, or by name in descending order.")]
Limit = Annotated[int, Query(ge=1, le=200, description="Maximum number of entries.")]
Key = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=200,
        description="Idempotency key: a repeated request with the same key has no further effect.",
    ),
]
IfMatch = Annotated[
    str | None,
    Header(
        max_length=200,
        description="ETag of the version that was read. If it has changed since, the request is refused.",
    ),
]
IfNew = Annotated[
    Literal["*"] | None,
    Header(alias="if-none-match", description="`*`: refuse the request if the object already exists."),
]


def match_of(if_match: IfMatch = None, if_new: IfNew = None) -> str | None:
    """Return the version that a change replaces. See `etags.match_etag`."""
    return if_match if if_new is None else ABSENT


Match = Annotated[str | None, Depends(match_of)]
"""The headers `If-Match` and `If-None-Match` of a change that creates an object or replaces it."""
Dialect = Annotated[str | None, Query(max_length=20, description="The dialect of the document; absent: detected.")]
Draft = Annotated[bool, Query(description="Save it although it has errors; it cannot be run.")]

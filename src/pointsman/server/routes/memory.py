"""Operations on memory: list owners; read, search, change and delete values; their history with its writers."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Query, Response
from pydantic import Field
from typing_extensions import TypedDict

from pointsman.chat.memories import ChangeView, HistoryPage, OwnerPage, OwnerView, ValuePage, ValueView
from pointsman.chat.verbs import MemoryVerbs
from pointsman.server.context import CallerSession
from pointsman.server.operation import Operations
from pointsman.server.problems import JsonReply
from pointsman.server.routes.parameters import After, Limit, Scope
from pointsman.server.schemas.answers import answers, example, refusals
from pointsman.server.schemas.requests import Body, JsonValue, sample
from pointsman.values import Json

router = Operations(prefix="/api/memory", tags=["memory"])


Owner = Annotated[str, Query(min_length=1, max_length=500, description="The owner: a name or an id.")]
Namespace = Annotated[str, Query(max_length=500, description="Only keys in this namespace.")]
KeyOf = Annotated[str, Query(min_length=1, max_length=500, description="The key of the value.")]
OWNER: Final[OwnerView] = {
    "scope": "user",
    "owner": "ada",
    "id": "user/ada",
    "keys": 3,
    "bytes": 120,
    "changedAt": 1_763_700_000.0,
}
VALUE: Final[ValueView] = {
    "namespace": "",
    "key": "likes",
    "value": ["tides"],
    "changedAt": 1_763_700_000.0,
    "expiresAt": None,
}
CHANGE: Final[ChangeView] = {
    "number": 2,
    "value": ["tides"],
    "changedAt": 1_763_700_000.0,
    "expiresAt": None,
    "by": {"execution": "exec-0196f3c2-7a41", "workflow": "desk", "node": "note"},
}


example(OwnerPage, {"owners": [OWNER], "next": None})
example(ValueView, VALUE)
example(ValuePage, {"values": [VALUE], "next": None})
example(ChangeView, CHANGE)
example(HistoryPage, {"changes": [CHANGE], "next": None})


class ValueBody(Body):
    """A value to store."""

    model_config = sample(value=["tides"], ttl=3600)
    value: JsonValue
    ttl: float | None = Field(default=None, gt=0, le=1e10, description="Seconds until it expires; absent: never.")


class PutBackBody(Body):
    """The earlier value to restore."""

    model_config = sample(number=1)
    number: int = Field(ge=1, description="The number of the change that wrote the value.")


class ForgottenView(TypedDict):
    """How many values were deleted."""

    forgotten: int


example(ForgottenView, {"forgotten": 3})


@router.get("", verb=MemoryVerbs.owners, responses=answers(OwnerPage), summary="List owners of memory")
async def owners(*, session: CallerSession, after: After = None, limit: Limit = 50) -> Response:
    """Owners by scope and name, if the caller may see their memory."""
    return JsonReply(await session.memory.owners(after=after, limit=limit))


@router.get(
    "/{scope}",
    verb=MemoryVerbs.page,
    responses=answers(ValuePage, "unknown-memory", "memory-key-invalid", "position-invalid"),
    summary="List values",
)
async def values(
    *,
    session: CallerSession,
    scope: Scope,
    owner: Owner,
    namespace: Namespace = "",
    q: Annotated[
        str | None,
        Query(
            max_length=1000,
            description="Only values that share words with this text, or have a similar meaning.",
        ),
    ] = None,
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """Values by namespace and key; for a search the best matches first, on one page."""
    page = await session.memory.page(scope, owner, namespace=namespace, search=q, after=after, limit=limit)
    return JsonReply(page)


@router.delete(
    "/{scope}",
    verb=MemoryVerbs.clear,
    responses=answers(ForgottenView, "unknown-memory", "memory-key-invalid"),
    summary="Delete all values",
)
async def clear(*, session: CallerSession, scope: Scope, owner: Owner, namespace: Namespace = "") -> Response:
    """Delete all values, or all values of a namespace, with their history."""
    forgotten: ForgottenView = {"forgotten": await session.memory.clear(scope, owner, namespace=namespace)}
    return JsonReply(forgotten)


@router.get(
    "/{scope}/value",
    verb=MemoryVerbs.get,
    responses=answers(ValueView, "unknown-memory", "memory-key-invalid", "no-such-memory"),
    summary="Read a value",
)
async def read(
    *, session: CallerSession, scope: Scope, owner: Owner, key: KeyOf, namespace: Namespace = ""
) -> Response:
    """The value of one key."""
    return _reply(namespace, key, await session.memory.get(scope, owner, key, namespace=namespace))


@router.put(
    "/{scope}/value",
    verb=MemoryVerbs.set,
    responses=answers(ValueView, "unknown-memory", "memory-key-invalid", "memory-full", body=True),
    summary="Write a value",
)
async def write(
    *, session: CallerSession, scope: Scope, owner: Owner, key: KeyOf, body: ValueBody, namespace: Namespace = ""
) -> Response:
    """The limits for values that workflows write apply."""
    await session.memory.set(scope, owner, key, body.value, ttl=body.ttl, namespace=namespace)
    return _reply(namespace, key, body.value)


@router.delete(
    "/{scope}/value",
    verb=MemoryVerbs.delete,
    status_code=204,
    responses=refusals("unknown-memory", "memory-key-invalid", "no-such-memory"),
    summary="Delete a value",
)
async def delete(
    *, session: CallerSession, scope: Scope, owner: Owner, key: KeyOf, namespace: Namespace = ""
) -> Response:
    """Delete the value of one key, with its history."""
    await session.memory.delete(scope, owner, key, namespace=namespace)
    return Response(status_code=204)


@router.get(
    "/{scope}/history",
    verb=MemoryVerbs.history,
    responses=answers(HistoryPage, "unknown-memory", "memory-key-invalid", "no-such-memory", "position-invalid"),
    summary="List earlier values",
)
async def history(
    *,
    session: CallerSession,
    scope: Scope,
    owner: Owner,
    key: KeyOf,
    namespace: Namespace = "",
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """The value of a key, its author and time; then its earlier values, newest first."""
    return JsonReply(await session.memory.history(scope, owner, key, namespace=namespace, after=after, limit=limit))


@router.post(
    "/{scope}/history",
    verb=MemoryVerbs.restore,
    responses=answers(ValueView, "unknown-memory", "memory-key-invalid", "memory-full", "no-such-memory", body=True),
    summary="Restore an earlier value",
)
async def restore(
    *,
    session: CallerSession,
    scope: Scope,
    owner: Owner,
    key: KeyOf,
    body: PutBackBody,
    namespace: Namespace = "",
) -> Response:
    """Write the value again, with its original time to live; the present value becomes an earlier one."""
    return _reply(namespace, key, await session.memory.restore(scope, owner, key, body.number, namespace=namespace))


def _reply(namespace: str, key: str, value: Json) -> Response:
    view: ValueView = {"namespace": namespace, "key": key, "value": value}
    return JsonReply(view)

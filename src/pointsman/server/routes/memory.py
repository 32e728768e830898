"""Operations on memory: list owners; read, search, change and delete values; their history with its writers."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Query, Response
from pydantic import Field
from typing_extensions import TypedDict

from pointsman.chat.memories import ChangeView, HistoryPage, OwnerPage, OwnerView, ValuePage, ValueView
from pointsman.chat.verbs import MemoryVerbs
from pointsman.server.context import CallerSession
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import After, Limit, Scope
from pointsman.server.schemas.answers import answers, refusals
from pointsman.server.schemas.requests import Body, JsonValue, sample
from pointsman.server.schemas.views import example
from pointsman.values import Json

router = Operations(prefix="/api/memory", tags=["memory"])


Owner = Annotated[str, Query(min_length=1, max_length=500, description="Whose it is: a name, or an id.")]
Namespace = Annotated[str, Query(max_length=500, description="Only what is under it.")]
KeyOf = Annotated[str, Query(min_length=1, max_length=500, description="What the value is remembered as.")]
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
    """What is to be remembered."""

    model_config = sample(value=["tides"], ttl=3600)
    value: JsonValue
    ttl: float | None = Field(default=None, gt=0, le=1e10, description="Seconds until it expires; absent: never.")


class PutBackBody(Body):
    """Which of the earlier values is to be restored."""

    model_config = sample(number=1)
    number: int = Field(ge=1, description="Of the change that wrote it.")


class ForgottenView(TypedDict):
    """How many values were deleted."""

    forgotten: int


example(ForgottenView, {"forgotten": 3})


@router.get("", verb=MemoryVerbs.owners, responses=answers(OwnerPage), summary="List owners of memory")
async def owners(*, session: CallerSession, after: After = None, limit: Limit = 50) -> Response:
    """By scope and name: the memories that the caller may see."""
    return JsonReply(await session.memory.owners(after=after, limit=limit))


@router.get(
    "/{scope}",
    verb=MemoryVerbs.page,
    responses=answers(ValuePage, "unknown-memory", "memory-key-invalid", "place-invalid"),
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
            description="Only what shares words with it, or means the like.",
        ),
    ] = None,
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """By namespace and key; of a search the best first, on one page."""
    page = await session.memory.page(scope, owner, namespace=namespace, search=q, after=after, limit=limit)
    return JsonReply(page)


@router.delete(
    "/{scope}",
    verb=MemoryVerbs.clear,
    responses=answers(ForgottenView, "unknown-memory", "memory-key-invalid"),
    summary="Delete all values",
)
async def clear(*, session: CallerSession, scope: Scope, owner: Owner, namespace: Namespace = "") -> Response:
    """All of it, or all that is under a namespace, and what it was before."""
    forgotten: ForgottenView = {"forgotten": await session.memory.clear(scope, owner, namespace=namespace)}
    return JsonReply(forgotten)


@router.get(
    "/{scope}/value",
    verb=MemoryVerbs.get,
    responses=answers(ValueView, "unknown-memory", "memory-key-invalid", "nothing-remembered"),
    summary="Read a value",
)
async def read(
    *, session: CallerSession, scope: Scope, owner: Owner, key: KeyOf, namespace: Namespace = ""
) -> Response:
    """One remembered value."""
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
    """Under the same bounds as what workflows write."""
    await session.memory.set(scope, owner, key, body.value, ttl=body.ttl, namespace=namespace)
    return _reply(namespace, key, body.value)


@router.delete(
    "/{scope}/value",
    verb=MemoryVerbs.delete,
    status_code=204,
    responses=refusals("unknown-memory", "memory-key-invalid", "nothing-remembered"),
    summary="Delete a value",
)
async def forget(
    *, session: CallerSession, scope: Scope, owner: Owner, key: KeyOf, namespace: Namespace = ""
) -> Response:
    """One remembered value, and what it was before."""
    await session.memory.delete(scope, owner, key, namespace=namespace)
    return Response(status_code=204)


@router.get(
    "/{scope}/history",
    verb=MemoryVerbs.history,
    responses=answers(HistoryPage, "unknown-memory", "memory-key-invalid", "nothing-remembered", "place-invalid"),
    summary="List former values",
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
    """What a key remembers, who wrote it and when; then what it remembered before, the latest first."""
    return JsonReply(await session.memory.history(scope, owner, key, namespace=namespace, after=after, limit=limit))


@router.post(
    "/{scope}/history",
    verb=MemoryVerbs.restore,
    responses=answers(
        ValueView, "unknown-memory", "memory-key-invalid", "memory-full", "nothing-remembered", body=True
    ),
    summary="Restore a former value",
)
async def put_back(
    *,
    session: CallerSession,
    scope: Scope,
    owner: Owner,
    key: KeyOf,
    body: PutBackBody,
    namespace: Namespace = "",
) -> Response:
    """It is written anew, for as long as it was to last; what is there now becomes an earlier value."""
    return _reply(namespace, key, await session.memory.restore(scope, owner, key, body.number, namespace=namespace))


def _reply(namespace: str, key: str, value: Json) -> Response:
    view: ValueView = {"namespace": namespace, "key": key, "value": value}
    return JsonReply(view)

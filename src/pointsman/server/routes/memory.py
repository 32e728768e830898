"""Operations on memory: list owners; read, search, change and delete values; their history with its writers."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Response
from pydantic import Field

from pointsman.auth.callers import Caller
from pointsman.auth.policy import must_see_memory, sees_execution, sees_memory
from pointsman.chat.memories import OneMemory, memory_page, nothing_remembered, owner_view
from pointsman.chat.memory_history import history_page, writer_for
from pointsman.paging import page_by
from pointsman.server.context import CurrentCaller, CurrentServer, ServerContext
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import After, Limit, Operator, Scope
from pointsman.server.routes.response_docs import answers, refusals
from pointsman.server.schemas.requests import Answer, Body, JsonValue, sample
from pointsman.values import JsonObject

router = Operations(prefix="/api/memory", tags=["memory"])

Owner = Annotated[str, Query(min_length=1, max_length=500, description="Whose it is: a name, or an id.")]
Namespace = Annotated[str, Query(max_length=500, description="Only what is under it.")]
KeyOf = Annotated[str, Query(min_length=1, max_length=500, description="What the value is remembered as.")]
OWNER: JsonObject = {
    "scope": "user",
    "owner": "ada",
    "id": "user/ada",
    "keys": 3,
    "bytes": 120,
    "changedAt": 1_763_700_000.0,
}
VALUE: JsonObject = {
    "namespace": "",
    "key": "likes",
    "value": ["tides"],
    "changedAt": 1_763_700_000.0,
    "expiresAt": None,
}
CHANGE: JsonObject = {
    "number": 2,
    "value": ["tides"],
    "changedAt": 1_763_700_000.0,
    "expiresAt": None,
    "by": {"execution": "exec-0196f3c2-7a41", "workflow": "desk", "node": "note"},
}


class OwnerAnswer(Answer):
    """Who remembers how much."""

    scope: str
    owner: str
    keys: int
    bytes: int
    changed_at: float


class OwnerPage(Answer):
    """Who remembers anything, by scope and name."""

    model_config = sample(owners=[OWNER], next=None)
    owners: list[OwnerAnswer]
    next: str | None = Field(description="The `after` of the next page; null: this was the last.")


class ValueAnswer(Answer):
    """A remembered value."""

    model_config = sample(**VALUE)
    namespace: str
    key: str
    value: JsonValue
    changed_at: float | None = None
    expires_at: float | None = None


class ValuePage(Answer):
    """What is remembered, by namespace and key; of a search the best first."""

    model_config = sample(values=[VALUE], next=None)
    values: list[ValueAnswer]
    next: str | None = Field(description="The `after` of the next page; null: this was the last.")
    warnings: list[str] | None = Field(default=None, description="What to know of how it was searched.")


class ValueBody(Body):
    """What is to be remembered."""

    model_config = sample(value=["tides"], ttl=3600)
    value: JsonValue
    ttl: float | None = Field(default=None, gt=0, le=1e10, description="Seconds until it is forgotten; absent: never.")


class WriterAnswer(Answer):
    """Who wrote a value: a step of an execution, or somebody."""

    execution: str | None = Field(default=None, description="That of the step that wrote it.")
    workflow: str | None = None
    node: str | None = None
    agent: str | None = Field(default=None, description="The agent that the node names.")
    tool: str | None = Field(default=None, description="The memory tool that an agent called.")
    person: str | None = Field(default=None, description="Whoever wrote it, where no execution did.")
    entrance: str | None = Field(default=None, description="How they were let in: `key`, `login`, `shell` …")


class ChangeAnswer(Answer):
    """A value that a key has or had."""

    model_config = sample(**CHANGE)
    number: int = Field(description="Of the change, from 1 for each key; some may be missing.")
    value: JsonValue
    changed_at: float | None
    expires_at: float | None
    by: WriterAnswer | None = Field(description="null: nobody knows, or the caller may not see that execution.")


class HistoryPage(Answer):
    """What a key remembers, then what it remembered before, the latest first."""

    model_config = sample(changes=[CHANGE], next=None)
    changes: list[ChangeAnswer]
    next: str | None = Field(description="The `after` of the next page; null: this was the last.")


class PutBackBody(Body):
    """Which of the earlier values is to be remembered again."""

    model_config = sample(number=1)
    number: int = Field(ge=1, description="Of the change that wrote it.")


class ForgottenAnswer(Answer):
    """How many values are forgotten."""

    model_config = sample(forgotten=3)
    forgotten: int


@router.get("", responses=answers(OwnerPage), summary="List who remembers")
async def owners(*, desk: CurrentServer, caller: CurrentCaller, after: After = None, limit: Limit = 50) -> Response:
    """By scope and name: the memories that the caller may look into."""

    async def seen(one: JsonObject) -> bool:
        return await sees_memory(desk.app.context, caller, str(one["scope"]), str(one["owner"]))

    found = [owner_view(one) for one in await desk.app.memory.owners()]
    page = await page_by("id", found, after=after, limit=limit, sees=seen)
    return JsonReply({"owners": [*page.entries], "next": page.next})


@router.get(
    "/{scope}",
    responses=answers(ValuePage, "unknown-memory", "memory-key-invalid", "place-invalid"),
    summary="List what is remembered",
)
async def values(
    *,
    desk: CurrentServer,
    caller: CurrentCaller,
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
    memory = await _memory(desk, caller, scope, owner, namespace)
    return JsonReply(await memory_page(memory, search=q, after=after, limit=limit))


@router.delete(
    "/{scope}", responses=answers(ForgottenAnswer, "unknown-memory", "memory-key-invalid"), summary="Forget everything"
)
async def clear(
    *, desk: CurrentServer, caller: Operator, scope: Scope, owner: Owner, namespace: Namespace = ""
) -> Response:
    """All of it, or all that is under a namespace, and what it was before."""
    memory = await _memory(desk, caller, scope, owner, namespace)
    return JsonReply({"forgotten": await memory.clear()})


@router.get(
    "/{scope}/value",
    responses=answers(ValueAnswer, "unknown-memory", "memory-key-invalid", "nothing-remembered"),
    summary="Look up",
)
async def read(
    *, desk: CurrentServer, caller: CurrentCaller, scope: Scope, owner: Owner, key: KeyOf, namespace: Namespace = ""
) -> Response:
    """One remembered value."""
    memory = await _memory(desk, caller, scope, owner, namespace)
    value = await memory.get(key)
    if value is None:
        raise nothing_remembered(key)
    return JsonReply({"namespace": namespace, "key": key, "value": value})


@router.put(
    "/{scope}/value",
    responses=answers(ValueAnswer, "unknown-memory", "memory-key-invalid", "memory-full", body=True),
    summary="Remember",
)
async def write(
    *,
    desk: CurrentServer,
    caller: Operator,
    scope: Scope,
    owner: Owner,
    key: KeyOf,
    body: ValueBody,
    namespace: Namespace = "",
) -> Response:
    """Under the same bounds as what workflows write."""
    memory = await _memory(desk, caller, scope, owner, namespace)
    await memory.set(key, body.value, ttl=body.ttl, by=writer_for(caller))
    return JsonReply({"namespace": namespace, "key": key, "value": body.value})


@router.delete(
    "/{scope}/value",
    status_code=204,
    responses=refusals("unknown-memory", "memory-key-invalid", "nothing-remembered"),
    summary="Forget",
)
async def forget(
    *, desk: CurrentServer, caller: Operator, scope: Scope, owner: Owner, key: KeyOf, namespace: Namespace = ""
) -> Response:
    """One remembered value, and what it was before."""
    memory = await _memory(desk, caller, scope, owner, namespace)
    if not await memory.delete(key):
        raise nothing_remembered(key)
    return Response(status_code=204)


@router.get(
    "/{scope}/history",
    responses=answers(HistoryPage, "unknown-memory", "memory-key-invalid", "nothing-remembered", "place-invalid"),
    summary="Tell what it was before",
)
async def history(
    *,
    desk: CurrentServer,
    caller: CurrentCaller,
    scope: Scope,
    owner: Owner,
    key: KeyOf,
    namespace: Namespace = "",
    after: After = None,
    limit: Limit = 50,
) -> Response:
    """What a key remembers, who wrote it and when; then what it remembered before, the latest first."""

    async def sees(execution: str) -> bool:
        return await sees_execution(desk.app.context, caller, execution)

    memory = await _memory(desk, caller, scope, owner, namespace)
    return JsonReply(await history_page(memory, key, sees=sees, after=after, limit=limit))


@router.post(
    "/{scope}/history",
    responses=answers(
        ValueAnswer, "unknown-memory", "memory-key-invalid", "memory-full", "nothing-remembered", body=True
    ),
    summary="Put an earlier value back",
)
async def put_back(
    *,
    desk: CurrentServer,
    caller: Operator,
    scope: Scope,
    owner: Owner,
    key: KeyOf,
    body: PutBackBody,
    namespace: Namespace = "",
) -> Response:
    """It is written anew, for as long as it was to last; what is there now becomes an earlier value."""
    memory = await _memory(desk, caller, scope, owner, namespace)
    value = await memory.put_back(key, body.number, by=writer_for(caller))
    return JsonReply({"namespace": namespace, "key": key, "value": value})


async def _memory(desk: ServerContext, caller: Caller, scope: str, owner: str, namespace: str) -> OneMemory:
    memory = desk.app.memory.of(scope, owner, namespace=namespace)
    await must_see_memory(desk.app.context, caller, scope, owner)
    return memory

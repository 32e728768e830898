"""Records of a session, derived from the journals: nothing is stored twice, and no record can be missing.

{"session_id": "ses_0badcafe",
 "sessions": [{"session_id", "execution_id", "workflow_id", "status", "created_at", …the input}],
 "plans": [{"session_id", "execution_id", "node", "created_at", "value"}], "research": […], …}

A workflow names its collections in `config.settings.records` (field of the state -> collection); by default every field
is a collection of its own name. A record is one write of such a field; an object with a `type` is an entry of a log,
whose members are placed beside the members of the record.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final

from pointsman.auth.subjects import DefinitionGone, check_session, unknown_session
from pointsman.context import AppContext
from pointsman.engine.events.lifecycle import ExecutionStarted
from pointsman.engine.events.steps import InstantStepCompleted, StepSucceeded
from pointsman.engine.instants import instant_text
from pointsman.executions.ids import new_session
from pointsman.store.records import ExecutionQuery, Summary
from pointsman.values import ExecutionId, Json, JsonObject
from pointsman.workflows.library import LIBRARY

if TYPE_CHECKING:
    from pointsman.ports import Row

SETTING: Final = "records"
SESSIONS: Final = "sessions"
PAGE: Final = 200


async def records_of(
    app: AppContext, session: str, *, sees: Callable[[Summary], Awaitable[bool]] | None = None
) -> JsonObject:
    """Return all records of a session, oldest first. `sees` returns whether the caller may see an execution.

    Raises `UnknownSession`, and `InputInvalid` for an invalid session name.
    """
    check_session(session)
    kept: dict[str, list[Json]] = {SESSIONS: []}
    async for one in _executions(app, session):
        if sees is None or await sees(one):
            rows = [row async for row in app.store.journal.read(one.execution)]
            kept[SESSIONS].append(_session_record(one, rows))
            for collection, record in await _made(app, one, rows):
                kept.setdefault(collection, []).append(record)
    if not kept[SESSIONS]:
        raise unknown_session(session)
    return {"session_id": session, **kept}


async def free_session(app: AppContext) -> str:
    """Return the name of a session that this store does not contain yet."""
    while True:
        name = new_session()
        if not await app.store.executions.list(ExecutionQuery(session=name, limit=1)):
            return name


async def _executions(app: AppContext, session: str) -> AsyncIterator[Summary]:
    """Yield the executions of a session, oldest first."""
    found: list[Summary] = []
    before: tuple[float, ExecutionId] | None = None
    while True:
        page = await app.store.executions.list(ExecutionQuery(session=session, before=before, limit=PAGE))
        found.extend(page)
        if len(page) < PAGE:
            break
        before = (page[-1].started, page[-1].execution)
    for one in reversed(found):
        yield one


def _beginning(rows: list[Row]) -> ExecutionStarted | None:
    return next((event for row in rows for event in row.events if isinstance(event, ExecutionStarted)), None)


def _session_record(one: Summary, rows: list[Row]) -> JsonObject:
    began = _beginning(rows)
    return {
        **({} if began is None else began.input),
        "session_id": one.session,
        "execution_id": one.execution,
        "workflow_id": one.workflow,
        "status": one.status,
        "created_at": instant_text(one.started),
    }


async def _made(app: AppContext, one: Summary, rows: list[Row]) -> list[tuple[str, JsonObject]]:
    """Return the records of an execution with their collections, in the order of the journal."""
    names = await _collections(app, rows)
    found: list[tuple[str, JsonObject]] = []
    for row in rows:
        for event in row.events:
            if not isinstance(event, StepSucceeded | InstantStepCompleted):
                continue
            for write in event.writes:
                field = str(write.path[0])
                value = event.result if write.whole else write.value
                collection = field if names is None else names.get(field)
                if collection is not None and value is not None:
                    found.append((collection, _head(one, event.step.node, row.at) | _body(value)))
    return found


def _head(one: Summary, node: str, at: float) -> JsonObject:
    return {
        "session_id": one.session,
        "execution_id": one.execution,
        "node": node,
        "created_at": instant_text(at),
    }


def _body(value: Json) -> JsonObject:
    if isinstance(value, dict) and isinstance(value.get("type"), str):
        return value
    return {"value": value}


async def _collections(app: AppContext, rows: list[Row]) -> Mapping[str, str] | None:
    """Return the collection of each field, from the definition that the execution started with; None: each field is its
    own."""
    began = _beginning(rows)
    try:
        workflow = await app[LIBRARY].kept(began.definition if began is not None else "")
    except DefinitionGone:
        return None
    said = ((workflow.config.settings if workflow.config is not None else None) or {}).get(SETTING)
    return {name: str(collection) for name, collection in said.items()} if isinstance(said, dict) else None

"""Conversations: lists with title, time of the last turn and status, views, and the records of a session.

A conversation is known by its executions, so conversations started anywhere are listed: on the command line, over HTTP,
in a chat. Its title is its first message, until a user sets another one. Records are derived from the journals: nothing
is stored twice, and no record can be missing.

    {"session_id": "ses_0badcafe",
     "sessions": [{"session_id", "execution_id", "workflow_id", "status", "created_at", …the input}],
     "plans": [{"session_id", "execution_id", "node", "created_at", "value"}], "research": […], …}

A workflow names its collections in `config.settings.records` (field of the state -> collection); by default every field
is a collection of its own name. A record is one write of such a field; an object with a `type` is an entry of a log,
whose members are placed beside the members of the record.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Final, cast

from msgspec.structs import replace
from typing_extensions import TypedDict

from pointsman.auth.policy import must_see_session, sees
from pointsman.auth.redaction import redactor_for
from pointsman.auth.subjects import DefinitionMissing, InputInvalid, check_session, unknown_session
from pointsman.context import AppContext
from pointsman.engine.events.lifecycle import ExecutionStarted
from pointsman.engine.events.steps import InstantStepCompleted, StepSucceeded
from pointsman.engine.instants import instant_text
from pointsman.etags import (
    NOTHING,
    content_etag,
    delete_after,
    entry_etag,
    etag_of,
    match_etag,
    put_after,
    revision_moved,
)
from pointsman.executions.deletion import TITLE
from pointsman.executions.lists import ExecutionEntry, entries_of
from pointsman.executions.opening import finish_last_turn, new_session, open_turn
from pointsman.executions.pages import list_position, parse_list_position
from pointsman.executions.usage_rollup import UsageRollup
from pointsman.executions.views import ExecutionStatus, observability_of
from pointsman.store.records import ExecutionQuery, Summary
from pointsman.values import ExecutionId, Json, JsonObject, WorkflowId
from pointsman.workflows.library import LIBRARY

if TYPE_CHECKING:
    from pointsman.auth.callers import Caller
    from pointsman.ports import Row


TITLE_CHARS_MAX: Final = 200
SHOWN_CHARS: Final = 100
FOUND_MAX: Final = 200
"""Maximum number of executions that a search reads."""


class ConversationEntry(TypedDict):
    """A conversation in a list."""

    sessionId: str
    workflowId: str
    """The workflow of its first turn."""
    title: str
    """The title that a user set, else the beginning of the first message; may be empty."""
    named: bool
    """Whether a user set the title."""
    status: ExecutionStatus
    """Status of the last turn."""
    executionId: str
    """The last turn."""
    startedAt: float
    """When the last turn started."""
    updatedAt: float
    owner: str | None
    """The person who started it."""
    etag: str
    """ETag of the title, for `If-Match`."""


class ConversationList(TypedDict):
    """Conversations, the most recently used first."""

    sessions: list[ConversationEntry]
    next: str | None
    """The `before` of the next page; null: this was the last."""


async def conversations_page(
    app: AppContext,
    caller: Caller,
    *,
    everyone: bool = False,
    workflow: str | None = None,
    before: str | None = None,
    limit: int = 50,
) -> ConversationList:
    """Return a page of the caller's conversations, or everyone's; `workflow`: only those whose last turn ran it. Raises
    `PositionInvalid`."""
    query = ExecutionQuery(
        last_of_session=True,
        trials=False,
        owner=None if everyone else caller.name,
        workflow=None if workflow is None else WorkflowId(workflow),
        before=None if before is None else parse_list_position(before),
        limit=limit,
    )
    entries: list[ConversationEntry] = []
    while True:
        page = await app.store.executions.list(query)
        for entry in page:
            if await sees(app, caller, entry):
                entries.append(await _view(app, entry))
            if len(entries) == limit:
                return {"sessions": entries, "next": list_position(entry)}
        if len(page) < query.limit:
            return {"sessions": entries, "next": None}
        query = replace(query, before=(page[-1].started, page[-1].execution))


async def found_conversations(
    app: AppContext, caller: Caller, words: str, *, everyone: bool = False, limit: int = 50
) -> list[ConversationEntry]:
    """Return the conversations with all these words in a turn or in the title. Turns are found once they have ended."""

    async def fits(summary: Summary) -> bool:
        return (
            summary.session is not None
            and (everyone or summary.owner == caller.name)
            and await sees(app, caller, summary)
        )

    turns = await UsageRollup(app).search(words, sees=fits, limit=FOUND_MAX)
    wanted = words.casefold().split()
    titled = [one.key for one in await app.store.entries.list(TITLE) if _holds(one.value, wanted)]
    last: list[Summary] = []
    for session in dict.fromkeys([*titled, *(str(turn.session) for turn in turns)]):
        query = ExecutionQuery(session=session, last_of_session=True, trials=False, limit=1)
        last += [one for one in await app.store.executions.list(query) if await fits(one)]
    last.sort(key=lambda one: (one.started, one.execution), reverse=True)
    return [await _view(app, one) for one in last[:limit]]


async def set_title(
    app: AppContext, caller: Caller, session: str, title: str, *, match: str | None = None
) -> ConversationEntry:
    """Set the title of a conversation; an empty title removes it. `match`: see `etags.match_etag`.

    Raises `NotAllowed`, `UnknownSession`, `InputInvalid`, `RevisionMoved`.
    """
    await must_see_session(app, caller, session)
    what = f"the title of {session!r}"
    mark = await entry_etag(app.store.entries, TITLE, session)
    after = match_etag(match, etag_of(mark), mark, revision_moved(what))
    turns = await app.store.executions.list(ExecutionQuery(session=session, last_of_session=True, limit=1))
    if not turns:
        raise unknown_session(session)
    normalized = " ".join(title.split())
    if len(normalized) > TITLE_CHARS_MAX or not (normalized.isprintable() or not normalized):
        raise InputInvalid(
            "the title contains characters that cannot be displayed, or is too long",
            hint=f"Use at most {TITLE_CHARS_MAX} printable characters.",
        )
    entries = app.store.entries
    if normalized:
        await put_after(entries, TITLE, session, {"title": normalized}, after=after, what=what)
    else:
        await delete_after(entries, TITLE, session, after=after, what=what)
    return await _view(app, turns[0])


def _holds(value: Json, names: list[str]) -> bool:
    title = str(value.get("title", "")).casefold() if isinstance(value, dict) else ""
    return bool(names) and all(word in title for word in names)


async def _view(app: AppContext, last: Summary) -> ConversationEntry:
    session = str(last.session)
    entry = await app.store.entries.find(TITLE, session)
    title = str(entry.value["title"]) if entry is not None and isinstance(entry.value, dict) else ""
    first = next(
        iter(await app.store.executions.list(ExecutionQuery(session=session, oldest_first=True, limit=1))), last
    )
    return {
        "sessionId": session,
        "workflowId": first.workflow,
        "title": title or await _begins(app, first),
        "named": bool(title),
        "status": cast("ExecutionStatus", last.status),
        "executionId": last.execution,
        "startedAt": last.started,
        "updatedAt": last.updated,
        "owner": last.owner or None,
        "etag": etag_of(NOTHING if entry is None else content_etag(entry.value)),
    }


async def _begins(app: AppContext, first: Summary) -> str:
    """Return the beginning of the first message. Empty if the redaction level hides it or if it is not a text."""
    async for row in app.store.journal.read(first.execution):
        began = next((event for event in row.events if isinstance(event, ExecutionStarted)), None)
        if began is None or observability_of(began.options) == "minimal":
            return ""
        shown = redactor_for(app.settings)({"text": _text_in(began.input)})
        return " ".join(str(shown["text"]).split())[:SHOWN_CHARS]
    return ""


def _text_in(input: JsonObject) -> str:
    """Return the text of an input: its `message`, else its first text."""
    texts = (value for value in (input.get("message"), *input.values()) if isinstance(value, str) and value)
    return next(texts, "")


TURNS_MAX: Final = 200


class ConversationView(TypedDict):
    """A conversation: its messages and its turns."""

    sessionId: str
    closed: bool
    messages: list[Json]
    """Oldest first."""
    executions: list[ExecutionEntry]
    """Its turns, newest first; at most 200."""
    openTurn: str | None
    """The turn that is running or waiting."""


async def conversation_view(app: AppContext, session: str) -> ConversationView:
    """Return the messages and turns of a session. Raises `UnknownSession`, and `InputInvalid` for an invalid session
    name."""
    check_session(session)
    turns = await app.store.executions.list(ExecutionQuery(session=session, limit=TURNS_MAX))
    if not turns:
        raise unknown_session(session)
    await finish_last_turn(app.runtime, session)
    transcript = await app.store.sessions.load(session)
    return {
        "sessionId": session,
        "closed": transcript.closed,
        "messages": [*transcript.messages],
        "executions": await entries_of(app, turns),
        "openTurn": await open_turn(app.runtime, session),
    }


SETTING: Final = "records"
SESSIONS: Final = "sessions"
PAGE: Final = 200


class SessionRecords(TypedDict):
    """The executions of a session, and their records: one more list for each collection that the workflow names."""

    session_id: str
    sessions: list[Json]


async def records_of(
    app: AppContext, session: str, *, sees: Callable[[Summary], Awaitable[bool]] | None = None
) -> SessionRecords:
    """Return all records of a session, oldest first. `sees` returns whether the caller may see an execution.

    Raises `UnknownSession`, and `InputInvalid` for an invalid session name.
    """
    check_session(session)
    sessions: list[Json] = []
    collections: dict[str, list[Json]] = {SESSIONS: sessions}
    async for execution in _executions(app, session):
        if sees is None or await sees(execution):
            rows = [row async for row in app.store.journal.read(execution.execution)]
            sessions.append(_session_record(execution, rows))
            for collection, record in await _made(app, execution, rows):
                collections.setdefault(collection, []).append(record)
    if not sessions:
        raise unknown_session(session)
    records: SessionRecords = {"session_id": session, "sessions": sessions}
    return cast("SessionRecords", {**records, **collections})  # A `TypedDict` cannot have further keys.


async def free_session(app: AppContext) -> str:
    """Return the name of a session that this store does not contain yet."""
    while True:
        name = new_session()
        if not await app.store.executions.list(ExecutionQuery(session=name, limit=1)):
            return name


async def _executions(app: AppContext, session: str) -> AsyncIterator[Summary]:
    """Yield the executions of a session, oldest first."""
    summaries: list[Summary] = []
    before: tuple[float, ExecutionId] | None = None
    while True:
        page = await app.store.executions.list(ExecutionQuery(session=session, before=before, limit=PAGE))
        summaries.extend(page)
        if len(page) < PAGE:
            break
        before = (page[-1].started, page[-1].execution)
    for summary in reversed(summaries):
        yield summary


def _beginning(rows: list[Row]) -> ExecutionStarted | None:
    return next((event for row in rows for event in row.events if isinstance(event, ExecutionStarted)), None)


def _session_record(summary: Summary, rows: list[Row]) -> JsonObject:
    began = _beginning(rows)
    return {
        **({} if began is None else began.input),
        "session_id": summary.session,
        "execution_id": summary.execution,
        "workflow_id": summary.workflow,
        "status": summary.status,
        "created_at": instant_text(summary.started),
    }


async def _made(app: AppContext, summary: Summary, rows: list[Row]) -> list[tuple[str, JsonObject]]:
    """Return the records of an execution with their collections, in the order of the journal."""
    names = await _collections(app, rows)
    result: list[tuple[str, JsonObject]] = []
    for row in rows:
        for event in row.events:
            if not isinstance(event, StepSucceeded | InstantStepCompleted):
                continue
            for write in event.writes:
                field = str(write.path[0])
                value = event.result if write.whole else write.value
                collection = field if names is None else names.get(field)
                if collection is not None and value is not None:
                    result.append((collection, _head(summary, event.step.node, row.at) | _body(value)))
    return result


def _head(summary: Summary, node: str, at: float) -> JsonObject:
    return {
        "session_id": summary.session,
        "execution_id": summary.execution,
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
    except DefinitionMissing:
        return None
    collections = ((workflow.config.settings if workflow.config is not None else None) or {}).get(SETTING)
    return (
        {name: str(collection) for name, collection in collections.items()} if isinstance(collections, dict) else None
    )

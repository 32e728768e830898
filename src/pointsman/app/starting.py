"""Starting: from a definition and an input to an execution whose first row is durable, once for each key."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import ClassVar, Final, TypeAlias

from msgspec.structs import replace

from pointsman.app.executions import Execution
from pointsman.app.identity import id_for_key, new_id
from pointsman.app.inputs import conversation_for, input_for, is_conversational
from pointsman.app.library import Library
from pointsman.app.places import OPTION as PLACE_OPTION
from pointsman.app.places import Places
from pointsman.app.turns import save_turn
from pointsman.definition.workflow import Workflow
from pointsman.engine.reports import Start
from pointsman.errors import CallerError
from pointsman.journal.faults import JournalMoved, SessionClosed, SessionMoved
from pointsman.journal.records import ExecutionQuery
from pointsman.runtime.driver import Driver
from pointsman.runtime.local import LocalRuntime
from pointsman.values import ExecutionId, Json, JsonObject

TURNS_LOOKED_AT: Final = 50
"""Sub-workflows are of the session too; the last turn is among so many executions."""

Open: TypeAlias = Callable[[ExecutionId], Awaitable[Driver]]


class KeyReused(CallerError):
    """Something else was started under this key. Nothing was started now."""

    code: ClassVar[str] = "key-reused"


@dataclass(frozen=True, slots=True)
class Wish:
    """What is asked of one start, beside its input."""

    options: JsonObject
    session: str | None
    config: Mapping[str, Json]
    execution: ExecutionId | None
    """The id it shall have; raises `JournalMoved` where there is one of that id."""
    key: str | None
    """Whatever was started under it is the execution that is meant."""


class Starts:
    """Begins executions."""

    def __init__(self, runtime: LocalRuntime, library: Library, places: Places, open_: Open) -> None:
        self._runtime = runtime
        self._library = library
        self._places = places
        self._open = open_

    async def start(self, definition: Workflow, input: Json, wish: Wish) -> Execution:
        """Begin, or find what was begun under the key. Raises `InputInvalid`, `KeyReused`, `PlaceTaken`."""
        given = input_for(definition, input)
        name = wish.execution or (new_id() if wish.key is None else id_for_key(definition.id, wish.key))
        if wish.key is not None and await self._runtime.journal.last(name):
            return await self._same(name, given, wish.key)
        place = await self._places.before(definition, given, name)
        report = await self._report(definition, given, wish)
        if place is not None:
            options: JsonObject = {**report.options, PLACE_OPTION: place.said}
            report = replace(report, options=options, queued=place.policy != "skip")
        plan = await self._library.pinned(report.definition, report.options)
        try:
            driver = await self._runtime.start(name, plan, report)
        except JournalMoved:
            if wish.key is None:
                raise
            return await self._same(name, given, wish.key)  # somebody else was faster
        if place is not None and report.queued:
            await self._places.enter(place.group, driver, replace=place.policy == "replace")
        return Execution(self._runtime, driver)

    async def _report(self, definition: Workflow, given: JsonObject, wish: Wish) -> Start:
        history: tuple[Json, ...] = ()
        options = dict(wish.options)
        if wish.session is not None:
            await self._finish_last_turn(wish.session)
            history = (await self._runtime.store.sessions.load(wish.session)).messages
        if is_conversational(definition):
            options["history"] = len(history)
        digest = await self._library.keep(definition)
        plan = await self._library.pinned(digest, options)
        return Start(
            input=given,
            config=dict(wish.config),
            session=wish.session,
            messages=conversation_for(definition, given, history) if plan.messages else [],
            definition=digest,
            options=options,
            seed=int.from_bytes(os.urandom(4), "big"),
        )

    async def _finish_last_turn(self, session: str) -> None:
        """Its process may have died between its end and what was said in it joining the session."""
        ended = ExecutionQuery(session=session, statuses=frozenset({"completed"}), limit=TURNS_LOOKED_AT)
        turns = [one for one in await self._runtime.store.executions.list(ended) if one.parent is None]
        if not turns:
            return
        state = await self._runtime.load(turns[0].execution)
        said, before = await self._runtime.store.sessions.load(session), state.options.get("history")
        if isinstance(before, int) and len(said.messages) <= before:
            with suppress(SessionMoved, SessionClosed):  # another turn was faster
                await save_turn(self._runtime.store, state)

    async def _same(self, name: ExecutionId, given: JsonObject, key: str) -> Execution:
        """The execution that was started under a key, if it was given the same."""
        driver = await self._open(name)
        if driver.state.input != given:
            raise KeyReused(
                f"{name!r} was started under the key {key!r} with another input", hint="Use a new key for a new input."
            )
        return Execution(self._runtime, driver)

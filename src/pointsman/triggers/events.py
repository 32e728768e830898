"""Events: delivered to every execution that waits for them, and to the workflows that they start. Idempotent by key.

    publish(name, data, key) ─┬─▶ executions that wait for the name, including passivated ones: found by index, resumed
                              │   if they accept the event (their `match`), and notified
                              └─▶ triggers of saved workflows: started under an id derived from trigger and key

A published event reaches executions that wait at that time; an execution that starts to wait later has missed it. An
event that must not be missed is sent to one execution (`Execution.signal`), which stores it. A publisher that does not
know whether an event arrived publishes it again under the same key, which recipients recognise.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Mapping
from typing import Final, NamedTuple

import msgspec

from pointsman.arguments import checks_arguments
from pointsman.auth.callers import LOCAL, Caller, combined_caller
from pointsman.auth.policy import sees
from pointsman.context import AppContext
from pointsman.engine.reports import EventReceived
from pointsman.errors import AuthorError, CallerError, OperatorError, Outage, PointsmanError
from pointsman.executions.authority import may_execute
from pointsman.executions.inputs import check_event, event_key
from pointsman.executions.opening import open_execution
from pointsman.runtime.commits import DriverLost
from pointsman.runtime.summary import without_nul
from pointsman.store.errors import JournalMoved
from pointsman.store.records import ExecutionQuery, Summary
from pointsman.triggers.starts import EVENT, CausedStarts, Declared, author_for, read_declared
from pointsman.values import ExecutionId, Json

LOG: Final = logging.getLogger("pointsman.triggers")
AT_ONCE: Final = 64
"""Executions notified concurrently: their rows share commits."""
TRIES_MAX: Final = 5
PAGE: Final = 1000
NO_HEADERS: Final[Mapping[str, str]] = {}


class UndeliveredEvent(NamedTuple):
    """An execution that could not be notified or a trigger that could not start, and why."""

    who: str
    code: str
    message: str
    hint: str


class Published(NamedTuple):
    """Outcome of a published event."""

    key: str
    """Publishing again under this key does not notify the same recipients twice."""
    delivered: tuple[ExecutionId, ...] = ()
    """The executions that accepted it. An execution that waits for the name, but whose `match` rejects the data,
    records nothing."""
    started: tuple[ExecutionId, ...] = ()
    undelivered: tuple[UndeliveredEvent, ...] = ()


@checks_arguments
class Events:
    """Publisher of events."""

    def __init__(self, app: AppContext, starts: CausedStarts) -> None:
        self._app = app
        self._starts = starts

    async def publish(
        self,
        name: str,
        data: Json = None,
        *,
        key: str = "",
        by: str = "",
        headers: Mapping[str, str] = NO_HEADERS,
        caller: Caller = LOCAL,
    ) -> Published:
        """Deliver an event to the waiting executions that `caller` sees, and start the workflows that `caller` may
        execute.

        Returns when all of that is durable. Raises `EventTooLarge`.
        """
        check_event(name, data)
        key = key or os.urandom(16).hex()
        report = EventReceived(name=name, data=data, by=by, key=key)
        waiting = [one for one in await self._waiting(name) if one.execution != by and await self._sees(caller, one)]
        outcomes: list[UndeliveredEvent | bool] = []
        for begin in range(0, len(waiting), AT_ONCE):
            outcomes += await asyncio.gather(
                *(self._offer(one.execution, report) for one in waiting[begin : begin + AT_ONCE])
            )
        started, failed = await self.start(name, data, key, headers, caller=caller)
        return Published(
            key,
            tuple(one.execution for one, taken in zip(waiting, outcomes, strict=True) if taken is True),
            tuple(started),
            (*(outcome for outcome in outcomes if isinstance(outcome, UndeliveredEvent)), *failed),
        )

    async def publish_for(
        self, caller: Caller, name: str, data: Json = None, *, key: str = "", by: str | None = None
    ) -> Published:
        """Publish an event of a person. Publishers cannot disturb one another by equal keys: a key is that of the
        publisher, `by`, who is the caller by default."""
        by, event_id = caller.name if by is None else by, key or os.urandom(16).hex()
        published = await self.publish(name, data, key=event_key("caller", by, event_id), by=by, caller=caller)
        return published._replace(key=event_id)

    async def _sees(self, caller: Caller, summary: Summary) -> bool:
        return await sees(self._app, caller, summary)

    async def _waiting(self, name: str) -> list[Summary]:
        summaries: list[Summary] = []
        query = ExecutionQuery(awaits=without_nul(name), limit=PAGE)
        while page := await self._app.store.executions.list(query):
            summaries += page
            query = msgspec.structs.replace(query, before=(page[-1].started, page[-1].execution))
        return summaries

    async def _offer(self, execution: ExecutionId, report: EventReceived) -> UndeliveredEvent | bool:
        """Resume an execution that accepts the event and notify it. Return whether it accepted the event. Retries if
        another process takes the execution over meanwhile."""
        for attempt in range(1, TRIES_MAX + 1):
            try:
                if not await self._app.runtime.concerns(execution, report):
                    return False
                await open_execution(self._app, execution)
                driver = await self._app.runtime.open(execution)
                return bool(await driver.deliver(report))
            except (JournalMoved, DriverLost) as why:
                if attempt == TRIES_MAX:
                    return UndeliveredEvent(execution, why.code, str(why), why.hint)
            except Outage:
                raise
            except (AuthorError, CallerError, OperatorError) as why:
                return UndeliveredEvent(execution, why.code, str(why), why.hint)
        return False

    async def start(
        self, name: str, data: Json, key: str, headers: Mapping[str, str] = NO_HEADERS, *, caller: Caller
    ) -> tuple[list[ExecutionId], list[UndeliveredEvent]]:
        """Start the workflows that this event triggers and that `caller` may execute. Other triggers are skipped
        without an error."""
        started: list[ExecutionId] = []
        failed: list[UndeliveredEvent] = []
        for entry in await self._app.store.entries.list(EVENT):
            declared = read_declared(entry.value)
            if declared.event != name:
                continue
            if not await may_execute(self._app, caller, declared.workflow):
                LOG.info("trigger %s is not for %s, who published %r", declared.id, caller.name, name)
                continue
            try:
                if declared.accepts(data, headers):
                    started.append(await self.begin(declared, data, key, headers, caller=caller))
            except PointsmanError as why:
                failed.append(UndeliveredEvent(declared.id, why.code, str(why), why.hint))
        return started, failed

    async def emitted(self, name: str, data: Json, key: str, *, caller: Caller) -> None:
        """Start the workflows triggered by an event that an execution emitted for a caller. A trigger that cannot start
        must not fail the emitter."""
        _, failed = await self.start(name, data, key, caller=caller)
        for one in failed:
            LOG.warning("trigger %s could not start: [%s] %s", one.who, one.code, one.message)

    async def begin(
        self, declared: Declared, data: Json, key: str, headers: Mapping[str, str], *, caller: Caller | None = None
    ) -> ExecutionId:
        """Start the workflow of a trigger, once per key: for its owner, and the caller who published the event.

        Raises `TriggerStopped`.
        """
        owner = await author_for(self._app, declared.workflow)
        by = owner if caller is None or caller.is_machine else combined_caller(caller, owner)
        start_input = declared.input_from(data, headers)
        return (
            await self._starts.start(declared.workflow, start_input, "trigger", declared.id, key, caller=by)
        ).execution

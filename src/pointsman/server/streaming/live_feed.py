"""Live feed of all executions as lists show them: one stream behind lists, inboxes and dashboards.

    rows of this process ─▶ look soon ─┐
    rows of other ones ───▶ look often ─┴▶ the list of what changed ─▶ a ring that all subscribers read

A change carries the present state of an execution, not what happened, so receiving it twice does no harm. A subscriber
that reconnects gets the changes since a moment before it left; one that was away too long is asked to read the list.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

from pointsman.background import retried
from pointsman.context import AppContext
from pointsman.executions.children import with_shown_status
from pointsman.executions.lists import Sees, summary_view
from pointsman.executions.pages import DIGITS_MAX, PositionInvalid
from pointsman.executions.public_events import HEARTBEAT_S
from pointsman.runtime.dependencies import Committed, Delta
from pointsman.store.records import ExecutionQuery, Summary
from pointsman.values import ExecutionId, Instant, json_of

if TYPE_CHECKING:
    from pointsman.server.streaming.sse import StreamEncoder

CHANGED: Final = "workflow.execution.changed"
RESET: Final = "workflow.executions.reset"
KEPT: Final = 2048
"""Number of latest changes that are kept for subscribers."""
CATCH_UP_MAX: Final = 500
"""A subscriber that missed more changes than this has to read the list again."""
SOON_S: Final = 0.1
"""For this many seconds, commits of this process are collected before the list is read."""
OFTEN_S: Final = 1.0
LATE_S: Final = 10.0
"""Margin in seconds for changes of other processes that become visible late, and for clocks that differ."""


class LiveChange(NamedTuple):
    """A change as subscribers receive it; without a summary it goes to all subscribers."""

    summary: Summary | None
    data: bytes


class LiveFeed:
    """All executions of one installation, for the subscribers of one server."""

    def __init__(self, app: AppContext, wire: StreamEncoder) -> None:
        self._app = app
        self._wire = wire
        self._changes: list[LiveChange] = []
        self._begin = 0
        """The position of the first kept change."""
        self._known: dict[ExecutionId, tuple[float, str]] = {}
        """Time and status last sent for executions that changed recently."""
        self._mark = 0.0
        """The latest update time that was read from the list."""
        self._news = asyncio.Event()
        self._woken = asyncio.Event()
        self._disconnected = False
        self._reading: asyncio.Task[None] | None = None
        self._leave: Callable[[], None] = lambda: None
        self.subscribers = 0

    async def changes(self, sees: Sees, *, after: float | None = None) -> AsyncGenerator[bytes, None]:
        """Yield changes from now on to executions that `sees` admits, after those since `after` (the id of a
        change)."""
        await self._enter()
        try:
            position = self._begin + len(self._changes)
            yield f"id: {self._mark:.6f}\n\n".encode()
            for change in await self._since(after):
                if change.summary is None or await sees(change.summary):
                    yield change.data
            while not self._disconnected:
                if position < self._begin:  # It fell behind.
                    position = self._begin + len(self._changes)
                    yield self._reset().data
                fresh = self._changes[position - self._begin :]
                position += len(fresh)
                visible = [change.data for change in fresh if change.summary is None or await sees(change.summary)]
                if visible:
                    yield b"".join(visible)
                elif not fresh:
                    await self._news.wait()
            yield self._wire.closing_event()
        finally:
            self._part()

    async def _since(self, after: float | None) -> list[LiveChange]:
        if after is None:
            return []
        query = ExecutionQuery(since=Instant(after - LATE_S), limit=CATCH_UP_MAX + 1)
        summaries = await self._app.store.executions.list(query)
        if len(summaries) > CATCH_UP_MAX:
            return [self._reset()]
        return await self._changes_of(summaries)

    async def _changes_of(self, summaries: Iterable[Summary]) -> list[LiveChange]:
        """Return the changes of executions, oldest first. Each is followed by the executions that it is a sub-workflow
        of, because their status depends on it."""
        changes: list[LiveChange] = []
        for changed in sorted(summaries, key=lambda entry: entry.updated):
            summary: Summary | None = changed
            while summary is not None:
                view = json_of(summary_view(await with_shown_status(self._app.runtime, summary)))
                changes.append(LiveChange(summary, self._wire.encode(CHANGED, view, f"{changed.updated:.6f}")))
                summary = None if summary.parent is None else await self._app.store.executions.find(summary.parent)
        return changes

    def _reset(self) -> LiveChange:
        frame = self._wire.encode(
            RESET,
            {"reason": "more executions changed than the server buffers: read the list again"},
            f"{self._mark:.6f}",
        )
        return LiveChange(None, frame)

    async def _enter(self) -> None:
        self.subscribers += 1
        if self._reading is None and not self._disconnected:
            self._mark = self._app.clock.now()
            self._leave = self._app.feed.watch(self._see)
            self._reading = asyncio.create_task(self._read())

    def _part(self) -> None:
        self.subscribers -= 1
        if self.subscribers == 0:
            self._stop()

    def _stop(self) -> None:
        self._leave()
        if self._reading is not None:
            self._reading.cancel()
            self._reading = None

    def _see(self, update: Committed | Delta) -> None:
        if isinstance(update, Committed):
            self._woken.set()

    async def _read(self) -> None:
        """Read the list and send changes and heartbeats while there are subscribers."""
        silent_s = 0.0
        while True:
            before, late_s = self._begin + len(self._changes), LATE_S
            try:
                async with asyncio.timeout(OFTEN_S if self._app.store.shared else HEARTBEAT_S):
                    await self._woken.wait()
            except TimeoutError:
                silent_s += OFTEN_S if self._app.store.shared else HEARTBEAT_S
            else:
                await asyncio.sleep(SOON_S)
                self._woken.clear()
                late_s = SOON_S
            with retried("to read the list of executions"):
                await self._take_in(late_s=late_s)
            if self._begin + len(self._changes) > before:
                silent_s = 0.0
            elif silent_s >= HEARTBEAT_S:
                silent_s = 0.0
                self._put([LiveChange(None, self._wire.sign)])

    async def _take_in(self, *, late_s: float) -> None:
        since = self._mark - late_s
        query = ExecutionQuery(since=Instant(since), limit=KEPT)
        summaries = await self._app.store.executions.list(query)
        fresh = [
            summary for summary in summaries if self._known.get(summary.execution) != (summary.updated, summary.status)
        ]
        if len(summaries) == KEPT:
            self._put([self._reset()])
        self._known = {name: entry for name, entry in self._known.items() if entry[0] >= self._mark - 2 * LATE_S} | {
            summary.execution: (summary.updated, summary.status) for summary in fresh
        }
        self._mark = max([self._mark, *(summary.updated for summary in summaries)])
        self._put(await self._changes_of(fresh))

    def _put(self, changes: list[LiveChange]) -> None:
        if not changes:
            return
        self._changes += changes
        excess = len(self._changes) - KEPT
        if excess > KEPT:
            del self._changes[:excess]
            self._begin += excess
        self._wake_subscribers()

    def _wake_subscribers(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    def disconnect(self) -> None:
        """Disconnect all subscribers."""
        self._disconnected = True
        self._wake_subscribers()

    async def close(self) -> None:
        self.disconnect()
        reading = self._reading
        self._stop()
        if reading is not None:
            await asyncio.gather(reading, return_exceptions=True)


def moment_of(place: str | None) -> float | None:
    """Parse the id of a change. Raises `PositionInvalid`."""
    if not place:
        return None
    seconds, _, fraction = place.partition(".")
    digits = seconds + fraction
    if not (digits.isascii() and digits.isdigit() and seconds and max(len(seconds), len(fraction)) <= DIGITS_MAX):
        raise PositionInvalid(
            f"{place[:40]!r} is not an id of this stream", hint="Reconnect with the last id received, or without an id."
        )
    return float(place)

"""SSE broker: encodes the events of an execution once for all its subscribers.

    journal ──▶ frames with an id, as rows are committed ─┐
    steps ────▶ live frames without an id                 ├─▶ a ring that all subscribers read at their own pace
    silence ──▶ heartbeat                                 ┘

A subscriber begins in the ring if the ring still holds the frames after the last one it received, else in the
journal. A subscriber that falls behind the ring goes back to the journal. So no frame is lost or repeated, a slow
reader costs only a position in a list, and of many subscribers that reconnect at once only one reads the journal.

    reconnect with an id ─▶ events after that id
    start                ─▶ all events
    snapshot             ─▶ the present view of the execution, then new events
    now                  ─▶ new events

Text deltas are not stored, so a new subscriber has missed them: `PartialOutput` keeps the text of open steps until
their result is in the journal. A reopened page then shows what it had shown.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from typing import Final, Literal, NamedTuple, TypeAlias

from pointsman.auth.redaction import redactor_for
from pointsman.background import retried
from pointsman.context import AppContext
from pointsman.engine.events.lifecycle import ExecutionCancelled, ExecutionCompleted, ExecutionFailed, ExecutionRetried
from pointsman.engine.events.steps import StepCancelled, StepFailed, StepSucceeded
from pointsman.engine.state import ENDED, ExecutionState
from pointsman.engine.steps import Step
from pointsman.executions.children import rows_and_view
from pointsman.executions.pages import PositionInvalid, parse_event_position
from pointsman.executions.public_events import HEARTBEAT_S, Observability, public_delta, public_events
from pointsman.executions.views import ExecutionView, observability_of
from pointsman.ports import Row
from pointsman.runtime.dependencies import Committed, Delta
from pointsman.server.streaming.live_feed import LiveFeed
from pointsman.server.streaming.sse import (
    CHUNK_BYTES,
    ROW_END,
    START,
    RingBuffer,
    StreamEncoder,
    StreamFrame,
    StreamPosition,
)
from pointsman.values import ExecutionId, JsonObject

ROWS_AT_HAND: Final = 64
"""Number of latest rows that are in the ring for the first subscriber."""
LIVE: Final = "workflow.node.delta"
SO_FAR: Final = "so_far"
"""Kind of delta that carries all text of a step since it began; it replaces what the subscriber received before."""


class ExecutionStream:
    """Stream of one execution that has subscribers."""

    def __init__(
        self, app: AppContext, wire: StreamEncoder, execution: ExecutionId, level: Observability, *, seq: int
    ) -> None:
        """`seq`: the execution's last row. The ring begins `ROWS_AT_HAND` rows before it."""
        self.execution = execution
        self.listeners = 0
        self.seq = max(0, seq - ROWS_AT_HAND)
        """The last row whose frames are in the ring or before it."""
        self.ring = RingBuffer((self.seq, ROW_END) if self.seq else START)
        self.ended = False
        """The execution has ended and its last frame is in the ring: nothing more will be sent."""
        self.behind = False
        """There may be rows that the channel has not read."""
        self.disconnected = False
        """All subscribers must disconnect, even if the execution continues."""
        self._app = app
        self._wire = wire
        self._level: Observability = level
        self._redact = redactor_for(app.settings)
        self._sent_end = -1
        """Where the ring ended at the last heartbeat check."""
        self._news = asyncio.Event()
        self._reading = asyncio.Lock()
        self.leave: Callable[[], None] = lambda: None

    async def news(self, position: int) -> None:
        """Wait until there is a frame after the position, or all subscribers must disconnect."""
        while self.ring.end == position and not self.ended and not self.disconnected:
            await self._news.wait()

    def committed(self, update: Committed) -> None:
        """Add a row that this process committed. A row that does not directly follow is left to `catch_up`."""
        if update.row.seq == self.seq + 1:
            self._put_row(update.row)
            self.ended = update.state.status in ENDED
            self._wake_subscribers()

    def live(self, update: Delta) -> None:
        delta = public_delta(update.delta, self._level, self._redact)
        if delta is None:
            return
        event: JsonObject = {**self._about(update.step), "delta": delta}
        self.ring.put([StreamFrame(None, self._wire.encode(LIVE, event, ""))])
        self._wake_subscribers()

    def so_far(self, texts: Mapping[Step, str]) -> bytes:
        """Encode the partial output of running steps, for a subscriber that has not received it."""
        frames: list[bytes] = []
        for step, text in texts.items():
            delta = public_delta({"kind": SO_FAR, "soFar": text}, self._level, self._redact)
            if delta is not None:
                frames.append(self._wire.encode(LIVE, {**self._about(step), "delta": delta}, ""))
        return b"".join(frames)

    def _about(self, step: Step) -> JsonObject:
        return {"executionId": self.execution, "nodeId": step.node, "step": str(step)}

    def beat(self) -> None:
        """Send a heartbeat if nothing was sent since the last call."""
        if self._sent_end == self.ring.end:
            self.ring.put([StreamFrame(None, self._wire.sign)])
            self._wake_subscribers()
        self._sent_end = self.ring.end

    async def catch_up(self, state: ExecutionState | None = None) -> None:
        """Read the rows that other processes wrote. `state`: the current state, or one from a moment ago."""
        async with self._reading:
            if state is None and await self._app.store.journal.last(self.execution) <= self.seq:
                return
            turned = state is not None
            async for row in self._app.store.journal.read(self.execution, after=self.seq):
                if row.seq == self.seq + 1:
                    self._put_row(row)
                    turned = turned or _changes_status(row)
            if turned:
                if state is None or state.seq < self.seq:
                    state = await self._app.runtime.load(self.execution)
                self.ended = state.status in ENDED and state.seq <= self.seq
            self._wake_subscribers()

    def frames_of(self, row: Row) -> list[StreamFrame]:
        """Return the frames of a row."""
        return [self._frame(event) for event in public_events(self.execution, row, self._level, self._redact)]

    def _frame(self, event: JsonObject) -> StreamFrame:
        place = str(event["id"])
        seq, _, number = place.partition(".")
        return StreamFrame((int(seq), int(number)), self._wire.encode(str(event["event"]), event, place))

    def close(self) -> None:
        self.disconnected = True
        self._wake_subscribers()

    def _put_row(self, row: Row) -> None:
        self.ring.put(self.frames_of(row))
        self.seq = row.seq

    def _wake_subscribers(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


class SseBroker:
    """All channels of one server."""

    def __init__(self, app: AppContext, wire: StreamEncoder, *, heartbeat_s: float = HEARTBEAT_S) -> None:
        self._app = app
        self._wire = wire
        self._heartbeat_s = heartbeat_s
        self._beating: asyncio.Task[None] | None = None
        self._open: dict[ExecutionId, ExecutionStream] = {}
        self._opening = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._leave = app.feed.watch(self._see)
        self._closed = False
        self._partial_output = PartialOutput()
        self.live_feed = LiveFeed(app, wire)
        """The live feed of all executions."""

    async def frames(self, execution: str, *, after: StreamPosition = START) -> AsyncGenerator[bytes, None]:
        """Yield the frames after a place and then those that arrive, until the execution ends; each item joins all
        frames available. Raises `UnknownExecution` at the first step."""
        channel = await self._join(ExecutionId(execution), after)
        try:
            ring = channel.ring
            live = ring.end
            """From this position on, live frames are sent too."""
            position = ring.begin if after >= ring.behind else -1
            texts = self._partial_output.so_far(channel.execution)
            if position >= 0 and texts:
                yield channel.so_far(texts)
            while not channel.disconnected:
                if position < ring.begin:  # It begins before the ring, or fell behind it.
                    live = position = ring.end
                    texts = self._partial_output.so_far(channel.execution)
                    async for frames in self._journal_frames(channel, after):
                        after = frames[-1].place or after
                        yield b"".join(frame.data for frame in frames)
                    if texts:
                        yield channel.so_far(texts)
                    continue
                frames = ring.since(position)
                if not frames and channel.ended:
                    return
                frames_ready: list[bytes] = []
                for number, (place, data) in enumerate(frames, position):
                    if (number >= live) if place is None else place > after:
                        frames_ready.append(data)
                        after = place or after
                position += len(frames)
                if frames_ready:
                    yield b"".join(frames_ready)
                else:
                    await channel.news(position)
            yield self._wire.closing_event()
        finally:
            self._part(channel)

    async def is_over(self, execution: str, place: StreamPosition) -> bool:
        """Return whether the execution has ended and the place is its last frame. Raises `UnknownExecution`."""
        name = ExecutionId(execution)
        state = await self._app.runtime.load(name)
        if state.status not in ENDED or place[0] < state.seq:
            return False
        channel = ExecutionStream(self._app, self._wire, name, observability_of(state.setup.options), seq=state.seq)
        return not [frames async for frames in self._journal_frames(channel, place)]

    def listeners(self, execution: str) -> int:
        """Return the number of current subscribers of an execution."""
        channel = self._open.get(ExecutionId(execution))
        return 0 if channel is None else channel.listeners

    @property
    def subscribers(self) -> int:
        """The number of current subscribers of all streams."""
        return self.live_feed.subscribers + sum(channel.listeners for channel in self._open.values())

    async def _journal_frames(
        self, channel: ExecutionStream, after: StreamPosition
    ) -> AsyncIterator[list[StreamFrame]]:
        """Yield frames of the journal after a place, in chunks, including the rest of the row that the place is in."""
        frames: list[StreamFrame] = []
        size = 0
        async for row in self._app.store.journal.read(channel.execution, after=max(after[0] - 1, 0)):
            for frame in channel.frames_of(row):
                if frame.place is not None and frame.place > after:
                    frames.append(frame)
                    size += len(frame.data)
            if channel.disconnected:
                return
            if size > CHUNK_BYTES:
                yield frames
                frames, size = [], 0
        if frames:
            yield frames

    async def _join(self, execution: ExecutionId, after: StreamPosition) -> ExecutionStream:
        async with self._opening:
            channel = self._open.get(execution) or await self._opened(execution)
            channel.listeners += 1
        try:
            if channel.seq < after[0]:  # Another server sent more of it.
                await channel.catch_up()
        except BaseException:
            self._part(channel)
            raise
        return channel

    async def _opened(self, execution: ExecutionId) -> ExecutionStream:
        state = await self._app.runtime.load(execution)
        channel = ExecutionStream(
            self._app, self._wire, execution, observability_of(state.setup.options), seq=state.seq
        )
        if self._closed:
            channel.close()
        channel.leave = self._app.store.follow(execution, lambda: self._look(channel))
        self._open[execution] = channel  # Commits from here on reach the channel.
        try:
            await channel.catch_up(state)
        except BaseException:
            self._forget(channel)
            raise
        if self._beating is None and not self._closed:
            self._beating = asyncio.create_task(self._beat())
        return channel

    def _part(self, channel: ExecutionStream) -> None:
        channel.listeners -= 1
        if channel.listeners == 0 and self._open.get(channel.execution) is channel:
            self._forget(channel)

    def _forget(self, channel: ExecutionStream) -> None:
        channel.leave()
        del self._open[channel.execution]

    def _see(self, update: Committed | Delta) -> None:
        self._partial_output.update(update)
        channel = self._open.get(update.execution)
        if channel is None:
            return
        if isinstance(update, Delta):
            channel.live(update)
        elif update.row.seq > channel.seq + 1:
            self._look(channel)
        else:
            channel.committed(update)

    def _look(self, channel: ExecutionStream) -> None:
        task = asyncio.ensure_future(self._catch_up(channel))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _catch_up(self, channel: ExecutionStream) -> None:
        channel.behind = True
        with retried(f"to follow {channel.execution!r}"):
            await channel.catch_up()
            channel.behind = False

    async def _beat(self) -> None:
        """Send heartbeats for all channels from one task, so that a heartbeat costs only its bytes."""
        while True:
            await asyncio.sleep(self._heartbeat_s)
            for channel in [*self._open.values()]:
                channel.beat()
                if channel.behind:
                    self._look(channel)

    def disconnect(self) -> None:
        """Disconnect all subscribers; they reconnect with the id of their last frame."""
        self._closed = True
        self.live_feed.disconnect()
        for channel in self._open.values():
            channel.close()

    async def close(self) -> None:
        """Disconnect all subscribers and wait until every task has ended."""
        self.disconnect()
        await self.live_feed.close()
        self._leave()
        for channel in self._open.values():
            channel.leave()
        if self._beating is not None:
            self._beating.cancel()
            self._tasks.add(self._beating)
        await asyncio.gather(*self._tasks, return_exceptions=True)


def _changes_status(row: Row) -> bool:
    """Return whether the execution may have ended by this row, or have been retried."""
    kinds = ExecutionCompleted | ExecutionFailed | ExecutionCancelled | ExecutionRetried
    return any(isinstance(event, kinds) for event in row.events)


Beginning: TypeAlias = Literal["start", "now", "snapshot"]


class SubscriptionStart(NamedTuple):
    """The position where a subscription begins."""

    after: StreamPosition
    snapshot: ExecutionView | None = None
    """The execution view as of that position."""

    @property
    def id(self) -> str:
        return f"{self.after[0]}.{self.after[1]}"


async def join(
    app: AppContext, broker: SseBroker, execution: str, *, begin: Beginning, last: str | None
) -> SubscriptionStart | None:
    """Return where a subscription begins. `last`: the id of the last received event. None: the execution has ended and
    no event is left.

    Raises `PositionInvalid` if the journal has no event `last`: continuing after it would skip the events before it.
    """
    name = ExecutionId(execution)
    if last:
        place = parse_event_position(last)
        await _require_position(app, name, place)
        return None if await broker.is_over(name, place) else SubscriptionStart(place)
    if begin == "start":
        return SubscriptionStart(START)
    if begin == "snapshot":
        rows, view = await rows_and_view(app.runtime, app.settings, name)
        return SubscriptionStart(_end_of(name, rows[-1]), view)
    state = await app.runtime.load(name)
    if state.status in ENDED:
        return None
    row = await _row(app, name, state.seq)
    return SubscriptionStart(START if row is None else _end_of(name, row))


async def _require_position(app: AppContext, execution: ExecutionId, place: StreamPosition) -> None:
    row = await _row(app, execution, place[0])
    if place[0] and (row is None or place > _end_of(execution, row)):
        raise PositionInvalid(
            f"{execution!r} has no event {place[0]}.{max(place[1], 0)}",
            hint="Reconnect without an id: this one is of another execution, or the store was restored from a backup.",
        )


async def _row(app: AppContext, execution: ExecutionId, seq: int) -> Row | None:
    async for row in app.store.journal.read(execution, after=max(seq - 1, 0)):
        return row if row.seq == seq else None
    return None


def _end_of(execution: ExecutionId, row: Row) -> StreamPosition:
    """Return the position after all public events of the row."""
    *_, last = public_events(execution, row)
    return row.seq, int(str(last["id"]).partition(".")[2])


EXECUTIONS_MAX: Final = 1000
"""Limit of executions; those with the most recent text are kept."""
CHARS_MAX: Final = 100_000
"""Limit per step; of a longer text nothing is kept, since its beginning would be missing."""


class PartialOutput:
    """Partial output by execution and step."""

    def __init__(self) -> None:
        self._texts: dict[ExecutionId, dict[Step, list[str]]] = {}
        self._chars: dict[tuple[ExecutionId, Step], int] = {}

    def update(self, update: Committed | Delta) -> None:
        if isinstance(update, Delta):
            self._on_delta(update)
        elif (steps := self._texts.get(update.execution)) is not None:
            for event in update.row.events:
                if isinstance(event, StepSucceeded | StepFailed | StepCancelled):
                    self._forget(update.execution, steps, event.step)

    def so_far(self, execution: ExecutionId) -> dict[Step, str]:
        """Return the partial output of an execution's steps."""
        return {step: "".join(parts) for step, parts in self._texts.get(execution, {}).items() if parts}

    def _on_delta(self, update: Delta) -> None:
        kind = update.delta.get("kind")
        if kind == "text":
            steps = self._texts.pop(update.execution, {})
            self._texts[update.execution] = steps  # Keep the most recent one last.
            self._add(update, steps.setdefault(update.step, []), str(update.delta["text"]))
            if len(self._texts) > EXECUTIONS_MAX:
                oldest = next(iter(self._texts))
                for step in [*self._texts[oldest]]:
                    self._forget(oldest, self._texts[oldest], step)
        elif kind == "discarded" and (steps := self._texts.get(update.execution)) is not None:
            self._forget(update.execution, steps, update.step)

    def _add(self, update: Delta, parts: list[str], text: str) -> None:
        name = update.execution, update.step
        chars = self._chars[name] = self._chars.get(name, 0) + len(text)
        if chars > CHARS_MAX:
            parts.clear()
        else:
            parts.append(text)

    def _forget(self, execution: ExecutionId, steps: dict[Step, list[str]], step: Step) -> None:
        steps.pop(step, None)
        self._chars.pop((execution, step), None)
        if not steps:
            self._texts.pop(execution, None)

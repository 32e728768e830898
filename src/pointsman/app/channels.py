"""Channels: what subscribers of an execution hear, written once for all of them.

    journal ──▶ frames with an id, as rows are committed ─┐
    steps ────▶ live frames without one                   ├─▶ a ring that all subscribers read at their own pace

A subscriber begins in the journal, behind the last frame it has seen, and goes on in the ring; one that falls behind
the ring goes back to the journal. So nothing is lost or told twice, and a slow reader costs a position in a list.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from pointsman.app.bulletins import Observability, bulletins, observability_of
from pointsman.ports import Row
from pointsman.runtime.feed import Committed, Delta
from pointsman.values import ExecutionId, JsonObject

if TYPE_CHECKING:
    from pointsman.app.installation import Pointsman

RING: Final = 512
"""Frames at hand for each execution that anyone listens to."""
ENDED: Final = frozenset({"completed", "failed", "cancelled"})


LIVE: Final = "workflow.node.delta"
START: Final = (0, -1)
"""Before everything."""


class Encode(Protocol):
    """Writes what a subscriber is sent."""

    def __call__(self, event: str, told: JsonObject, place: str, /) -> bytes: ...


class Frame(NamedTuple):
    """What is sent at once. `place` is (seq, n), or None for what is live only."""

    place: tuple[int, int] | None
    data: bytes


class Channel:
    """One execution that somebody listens to."""

    def __init__(
        self,
        app: Pointsman,
        execution: ExecutionId,
        encode: Encode,
        level: Observability,
        *,
        seq: int,
        ended: bool,
    ) -> None:
        self.execution = execution
        self.listeners = 0
        self.seq = seq
        """The last row whose frames are in the ring or before it."""
        self._ended = ended
        self._let_go = False
        self._app = app
        self._encode = encode
        self._level: Observability = level
        self._ring: deque[Frame] = deque(maxlen=RING)
        self._put = 0
        """Frames ever put into the ring."""
        self._news = asyncio.Event()
        self._reading = asyncio.Lock()
        self.leave: Callable[[], None] = lambda: None

    @property
    def ended(self) -> bool:
        """Nothing more is told."""
        return self._ended or self._let_go

    @property
    def position(self) -> int:
        """Behind the newest frame."""
        return self._put

    def since(self, position: int) -> list[Frame] | None:
        """The frames from a position on; None: some of them are gone."""
        missing = self._put - position
        if missing > len(self._ring):
            return None
        return [*islice(self._ring, len(self._ring) - missing, None)]

    async def news(self, position: int) -> None:
        """Until there is a frame behind the position, or the execution has ended."""
        while self._put == position and not self.ended:
            await self._news.wait()

    def committed(self, seen: Committed) -> None:
        """A row of this process. One that does not follow is left to `catch_up`."""
        if seen.row.seq == self.seq + 1:
            self._put_frames(self.frames_of(seen.row))
            self.seq = seen.row.seq
            self._ended = seen.state.status in ENDED
            self._tell()

    def live(self, seen: Delta) -> None:
        told: JsonObject = {
            "executionId": self.execution,
            "nodeId": seen.step.node,
            "step": str(seen.step),
            "delta": seen.delta,
        }
        self._put_frames([Frame(None, self._encode(LIVE, told, ""))])
        self._tell()

    async def catch_up(self) -> None:
        """Take in the rows that other processes wrote."""
        async with self._reading:
            if await self._app.store.journal.last(self.execution) <= self.seq:
                return
            async for row in self._app.store.journal.read(self.execution, after=self.seq):
                if row.seq == self.seq + 1:
                    self._put_frames(self.frames_of(row))
                    self.seq = row.seq
            state = await self._app.runtime.load(self.execution)
            self._ended = state.status in ENDED and state.seq <= self.seq
            self._tell()

    def frames_of(self, row: Row) -> list[Frame]:
        """What a row is told as."""
        return [self._frame(told) for told in bulletins(self.execution, row, self._level)]

    def _frame(self, told: JsonObject) -> Frame:
        place = str(told["id"])
        seq, _, number = place.partition(".")
        return Frame((int(seq), int(number)), self._encode(str(told["event"]), told, place))

    def close(self) -> None:
        """Everybody goes, whatever still happens."""
        self._let_go = True
        self._tell()

    def _put_frames(self, frames: list[Frame]) -> None:
        self._ring.extend(frames)
        self._put += len(frames)

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()


class Channels:
    """The channels of one server."""

    def __init__(self, app: Pointsman, encode: Encode) -> None:
        self._app = app
        self._encode = encode
        self._open: dict[ExecutionId, Channel] = {}
        self._opening = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self._leave = app.feed.watch(self._see)
        self._closed = False

    async def frames(self, execution: str, *, after: tuple[int, int] = START) -> AsyncIterator[bytes]:
        """Its frames behind a place, then those that come, until it ends. Raises `UnknownExecution` at once."""
        channel = await self._join(ExecutionId(execution))
        try:
            while True:
                position = channel.position
                async for frame in self._kept(channel, after):
                    after = frame.place or after
                    yield frame.data
                while (frames := channel.since(position)) is not None:
                    position += len(frames)
                    for frame in frames:
                        if frame.place is None:
                            yield frame.data
                        elif frame.place > after:
                            after = frame.place
                            yield frame.data
                    if channel.ended and channel.position == position:
                        return
                    await channel.news(position)
        finally:
            self._part(channel)

    async def is_over(self, execution: str, place: tuple[int, int]) -> bool:
        """Whether it has ended, and all was told up to a place. Raises `UnknownExecution`."""
        name = ExecutionId(execution)
        state = await self._app.runtime.load(name)
        if state.status not in ENDED or place[0] < state.seq:
            return False
        channel = Channel(self._app, name, self._encode, observability_of(state.options), seq=state.seq, ended=True)
        return not [frame async for frame in self._kept(channel, place)]

    def listeners(self, execution: str) -> int:
        """How many listen to it now."""
        channel = self._open.get(ExecutionId(execution))
        return 0 if channel is None else channel.listeners

    async def _kept(self, channel: Channel, after: tuple[int, int]) -> AsyncIterator[Frame]:
        """What the journal has behind a place. The rest of the row it is in comes too."""
        async for row in self._app.store.journal.read(channel.execution, after=max(after[0] - 1, 0)):
            for frame in channel.frames_of(row):
                if frame.place is not None and frame.place > after:
                    yield frame

    async def _join(self, execution: ExecutionId) -> Channel:
        async with self._opening:
            channel = self._open.get(execution)
            if channel is None:
                state = await self._app.runtime.load(execution)
                channel = Channel(
                    self._app,
                    execution,
                    self._encode,
                    observability_of(state.options),
                    seq=state.seq,
                    ended=state.status in ENDED,
                )
                if self._closed:
                    channel.close()
                channel.leave = self._app.store.follow(execution, lambda: self._look(channel))
                self._open[execution] = channel
            channel.listeners += 1
        await channel.catch_up()
        return channel

    def _part(self, channel: Channel) -> None:
        channel.listeners -= 1
        if channel.listeners == 0 and self._open.get(channel.execution) is channel:
            channel.leave()
            del self._open[channel.execution]

    def _see(self, seen: Committed | Delta) -> None:
        channel = self._open.get(seen.execution)
        if channel is None:
            return
        if isinstance(seen, Delta):
            channel.live(seen)
        elif seen.row.seq > channel.seq + 1:
            self._look(channel)
        else:
            channel.committed(seen)

    def _look(self, channel: Channel) -> None:
        task = asyncio.ensure_future(channel.catch_up())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def let_go(self) -> None:
        """Let all subscribers go: they come back with the id of their last frame."""
        self._closed = True
        for channel in self._open.values():
            channel.close()

    async def close(self) -> None:
        """As `let_go`; nothing goes on behind it."""
        self.let_go()
        self._leave()
        for channel in self._open.values():
            channel.leave()
        await asyncio.gather(*self._tasks, return_exceptions=True)

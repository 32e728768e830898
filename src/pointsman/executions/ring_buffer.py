"""The ring of a channel: the latest frames, for all who read them at their own pace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypeAlias

from pointsman.values import JsonObject

Place: TypeAlias = tuple[int, int]
"""`(seq, n)`: event `n` of what row `seq` is told as."""

START: Final[Place] = (0, -1)
"""Before everything."""
ROW_END: Final = 1 << 62
"""As `n`: behind everything that its row is told as."""
FRAMES: Final = 512
"""Frames that are at least at hand, once there are so many; never more than twice as many."""
CHUNK_BYTES: Final = 16_384
"""Frames are sent together up to about so many."""


class StreamFrame(NamedTuple):
    """What is sent at once. `place` is None for what is live only."""

    place: Place | None
    data: bytes


class Ring:
    """Frames by position. Positions count all frames that were ever put."""

    def __init__(self, behind: Place) -> None:
        self.behind = behind
        """Every frame with a place behind this one is in the ring."""
        self.begin = 0
        self._frames: list[StreamFrame] = []

    @property
    def end(self) -> int:
        """Behind the newest frame."""
        return self.begin + len(self._frames)

    def put(self, frames: list[StreamFrame]) -> None:
        self._frames += frames
        if len(self._frames) > 2 * FRAMES:
            gone, self._frames = self._frames[:-FRAMES], self._frames[-FRAMES:]
            self.begin += len(gone)
            self.behind = max((frame.place for frame in gone if frame.place is not None), default=self.behind)

    def since(self, position: int) -> list[StreamFrame]:
        """The frames from a position on: some of them, where they are large."""
        found: list[StreamFrame] = []
        size = 0
        for frame in self._frames[position - self.begin :]:
            found.append(frame)
            size += len(frame.data)
            if size > CHUNK_BYTES:
                break
        return found


class Encode(Protocol):
    """Writes what a subscriber is sent."""

    def __call__(self, event: str, told: JsonObject, place: str, /) -> bytes: ...


class Wire(NamedTuple):
    """How a channel is heard."""

    encode: Encode
    sign: bytes
    """That a silent stream lives."""
    farewell: Callable[[], bytes]
    """What is said last to those who are let go although there may be more to tell."""

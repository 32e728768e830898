"""Ring buffer of a channel: the latest frames, which all subscribers read at their own pace."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, Protocol, TypeAlias

from pointsman.values import JsonObject

StreamPosition: TypeAlias = tuple[int, int]
"""`(seq, n)`: public event `n` of row `seq`."""

START: Final[StreamPosition] = (0, -1)
"""Before the first event."""
ROW_END: Final = 1 << 62
"""As `n`: after all public events of the row."""
FRAMES: Final = 512
"""The ring keeps at least this many frames, once there are so many, and at most twice as many."""
CHUNK_BYTES: Final = 16_384
"""Frames are sent together up to about this many bytes."""


class StreamFrame(NamedTuple):
    """What is sent at once. `place` is None for live frames."""

    place: StreamPosition | None
    data: bytes


class RingBuffer:
    """Frames by position. Positions count all frames that were ever put."""

    def __init__(self, behind: StreamPosition) -> None:
        self.behind = behind
        """Every frame with a place after this one is in the ring."""
        self.begin = 0
        self._frames: list[StreamFrame] = []

    @property
    def end(self) -> int:
        """The position after the newest frame."""
        return self.begin + len(self._frames)

    def put(self, frames: list[StreamFrame]) -> None:
        self._frames += frames
        if len(self._frames) > 2 * FRAMES:
            gone, self._frames = self._frames[:-FRAMES], self._frames[-FRAMES:]
            self.begin += len(gone)
            self.behind = max((frame.place for frame in gone if frame.place is not None), default=self.behind)

    def since(self, position: int) -> list[StreamFrame]:
        """Return the frames from a position on, up to about `CHUNK_BYTES`."""
        found: list[StreamFrame] = []
        size = 0
        for frame in self._frames[position - self.begin :]:
            found.append(frame)
            size += len(frame.data)
            if size > CHUNK_BYTES:
                break
        return found


class Encode(Protocol):
    """Encodes an event for subscribers."""

    def __call__(self, event: str, told: JsonObject, place: str, /) -> bytes: ...


class StreamEncoder(NamedTuple):
    """The wire format of a channel."""

    encode: Encode
    sign: bytes
    """The heartbeat of a silent stream."""
    farewell: Callable[[], bytes]
    """The last bytes for a subscriber that is disconnected although more events may follow."""

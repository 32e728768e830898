"""Server-sent events of workflow design: one event for each round, then the result.

    round … round … done       the data is the answer of the operation without a stream
                  … problem    the work failed after a round; the data is the problem document

A failure before the first chunk gets an ordinary error response. A client that disconnects ends the work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from pointsman.auth.rate_limiter import OpenStream
from pointsman.errors import PointsmanError
from pointsman.executions.public_events import HEARTBEAT_S
from pointsman.server.problems import refusal
from pointsman.server.streaming.sse import BEAT, EventStream, begun, server_sent
from pointsman.values import JsonView

if TYPE_CHECKING:
    from pointsman.authoring.conversation_history import Round

Designing: TypeAlias = Callable[["Callable[[Round], None]"], Awaitable[JsonView]]
"""Design work; its argument is called with each round."""


async def streamed(work: Designing, seat: OpenStream) -> EventStream:
    """Start the stream with the first round or heartbeat; leave the seat when the stream ends.

    Raises what the work raises before that.
    """
    chunks = _chunks(work)
    try:
        return EventStream(begun(await anext(chunks), chunks), seat)
    except BaseException:
        seat.leave()
        raise


async def _chunks(work: Designing) -> AsyncGenerator[bytes, None]:
    rounds: asyncio.Queue[JsonView | None] = asyncio.Queue()
    task = asyncio.ensure_future(work(lambda one: rounds.put_nowait(one.to_json())))
    task.add_done_callback(lambda _: rounds.put_nowait(None))
    silent, ended = True, False
    try:
        while not ended:
            try:
                async with asyncio.timeout(HEARTBEAT_S):
                    told = await rounds.get()
            except TimeoutError:
                yield BEAT
            else:
                ended = told is None
                if told is not None:
                    yield server_sent("round", told, "")
            silent = silent and ended
        try:
            answer = task.result()
        except PointsmanError as why:
            if silent:
                raise
            yield server_sent("problem", msgspec.json.decode(refusal(why).body), "")
        else:
            yield server_sent("done", answer, "")
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError, PointsmanError):
            await task

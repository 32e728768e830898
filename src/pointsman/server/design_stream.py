"""Designing as server-sent events: each round as it happens, then what came of it.

    round … round … done       its data is the answer without a stream
                  … problem    it failed meanwhile; the data is the problem document

What fails before anything was told is no stream: it is answered as any error. Who goes away ends the work.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, TypeAlias

import msgspec

from pointsman.auth.presence import Seat
from pointsman.errors import PointsmanError
from pointsman.executions.broker import HEARTBEAT_S
from pointsman.server.problems import refusal
from pointsman.server.sse import BEAT, EventStream, begun, server_sent
from pointsman.values import JsonObject

if TYPE_CHECKING:
    from pointsman.authoring.design import Round

Designing: TypeAlias = Callable[["Callable[[Round], None]"], Awaitable[JsonObject]]
"""The work, given who hears its rounds."""


async def streamed(work: Designing, seat: Seat) -> EventStream:
    """Answered with the first round, or the first sign of life. Raises what the work raises before. The seat is left
    when it has ended."""
    chunks = _chunks(work)
    try:
        return EventStream(begun(await anext(chunks), chunks), seat)
    except BaseException:
        seat.leave()
        raise


async def _chunks(work: Designing) -> AsyncGenerator[bytes, None]:
    rounds: asyncio.Queue[JsonObject | None] = asyncio.Queue()
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

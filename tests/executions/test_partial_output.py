"""Partial output for subscribers that connect in the middle of a text."""

from __future__ import annotations

import asyncio

from pointsman.app import Pointsman, Workflow
from pointsman.engine.steps import Step
from pointsman.runtime.dependencies import Delta
from pointsman.server.streaming.broker import CHARS_MAX, PartialOutput, SseBroker
from pointsman.server.streaming.sse import StreamEncoder
from pointsman.settings import Settings
from pointsman.values import ExecutionId, JsonObject, NodeId
from tests.server.flows import CHAIN

ONE = ExecutionId("exec-1")
STEP = Step(NodeId("write"))


def delta(kind: str, text: str = "", *, execution: ExecutionId = ONE) -> Delta:
    return Delta(execution, STEP, {"kind": kind, "text": text})


def test_partial_output_is_kept_until_withdrawn_or_over_the_limit() -> None:
    spoken = PartialOutput()
    for text in ("Dear ", "harbour"):
        spoken.update(delta("text", text))
    spoken.update(delta("thought", "Hm."))
    assert spoken.so_far(ONE) == {STEP: "Dear harbour"}
    assert spoken.so_far(ExecutionId("exec-2")) == {}
    spoken.update(delta("discarded"))
    assert spoken.so_far(ONE) == {}
    spoken.update(delta("text", "x" * CHARS_MAX))
    spoken.update(delta("text", "y"))
    assert spoken.so_far(ONE) == {}, "its beginning would be missing"


async def test_a_late_subscriber_receives_open_partial_output_once() -> None:
    def encode(event: str, told: JsonObject, place: str, /) -> bytes:
        return f"{event} {told.get('delta')}\n".encode()

    async with Pointsman("memory:", settings=Settings(delays=False), model="scripted") as app:
        broker = SseBroker(app.context, StreamEncoder(encode, b"", lambda: b""))
        execution = await app.start(Workflow.parse(CHAIN))
        await execution.settled()
        app.feed.show(delta("text", "Dear ", execution=execution.id))
        told = b"".join([chunk async for chunk in broker.frames(execution.id)])
        assert told.count(b"so_far") == 1
        assert b"'soFar': 'Dear '" in told
        again = await app.start(Workflow.parse(CHAIN))
        await again.settled()
        await asyncio.sleep(0)
        assert b"so_far" not in b"".join([chunk async for chunk in broker.frames(again.id)])
        await broker.close()

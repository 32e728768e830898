"""python -m tests.reliability.modified_server DEFECT …: `pointsman …` with short time-outs and a planted defect.

It disconnects a client that reads nothing after one second, and buffers little for each client, so that an experiment
is fast.
"""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Callable
from typing import Final, TypeVar

from pointsman.cli import main
from pointsman.server import connections
from pointsman.server.streaming import broker as channels
from pointsman.server.streaming.sse import START, StreamPosition
from pointsman.workflows.document_work import DocumentWork

STUCK_S: Final = 1.0
SEND_BYTES: Final = 32_768

T = TypeVar("T")


async def on_the_loop(self: DocumentWork, job: Callable[..., T], *arguments: object, **_: object) -> T:
    return job(*arguments)


def plant(defect: str) -> None:
    match defect:
        case "repeats":
            frames = channels.SseBroker.frames

            def from_the_start(
                self: channels.SseBroker, execution: str, *, after: StreamPosition = START
            ) -> AsyncGenerator[bytes, None]:
                return frames(self, execution, after=START if after < (3, 0) else (after[0] - 1, 0))

            channels.SseBroker.frames = from_the_start
        case "deaf":
            channels.SseBroker.disconnect = lambda self: None
        case "workless":
            DocumentWork.run = on_the_loop
        case "patient":
            connections.STUCK_S = 1000.0
        case "unlimited":
            connections.HEAD_BYTES_MAX = connections.HEADERS_MAX = 10**9
        case _:
            assert defect == "none"


if __name__ == "__main__":
    connections.STUCK_S, connections.SEND_BYTES = STUCK_S, SEND_BYTES
    plant(sys.argv.pop(1))
    main()

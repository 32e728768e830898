"""python -m tests.reliability.loop_monitor …: `pointsman …` with a monitor of its event loop.

On SIGUSR1 the process appends one line of JSON to the file `POINTSMAN_TEST_STALLS`: the longest pause of the event loop
since the last signal, and what ran during that pause.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
import time
import traceback
from collections import Counter
from typing import Final

from pointsman import Pointsman
from pointsman.cli import main

BEAT_S: Final = 0.001
LATE_S: Final = 0.03
"""After this delay the monitor samples the stack of the event loop."""
LOOK_S: Final = 0.005
FRAMES: Final = 3
FILE: Final = "POINTSMAN_TEST_STALLS"


class Watch:
    """Measures the pauses of one event loop, and samples the stack of its thread during long ones."""

    def __init__(self) -> None:
        self._thread = threading.get_ident()
        self._beat_at = time.monotonic()
        self._longest_s = self._busy_s = 0.0
        self._where = Counter[str]()
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, self._write)
        self._beating = loop.create_task(self._beat())
        threading.Thread(target=self._look, daemon=True).start()

    async def _beat(self) -> None:
        while True:
            self._beat_at, busy = time.monotonic(), time.thread_time()
            await asyncio.sleep(BEAT_S)
            self._longest_s = max(self._longest_s, time.monotonic() - self._beat_at)
            self._busy_s = max(self._busy_s, time.thread_time() - busy)

    def _look(self) -> None:
        while True:
            time.sleep(LOOK_S)
            if time.monotonic() - self._beat_at > LATE_S:
                frame = sys._current_frames()[self._thread]  # pyright: ignore[reportPrivateUsage] - documented
                frames = traceback.extract_stack(frame)
                own = [f"{one.filename.rpartition('/')[2]}:{one.lineno} {one.name}" for one in frames]
                self._where[" < ".join(reversed(own[-FRAMES:]))] += 1

    def _write(self) -> None:
        found = {
            "longest_ms": round(1000 * self._longest_s),
            "busy_ms": round(1000 * self._busy_s),
            "where": [f"{count}x {where}" for where, count in self._where.most_common(4)],
        }
        with open(os.environ[FILE], "a", encoding="utf-8") as file:
            file.write(json.dumps(found) + "\n")
        self._longest_s = self._busy_s = 0.0
        self._where.clear()


def watch() -> None:
    """Monitor the event loop of each app that this process opens."""
    enter = Pointsman.__aenter__

    async def watched(self: Pointsman) -> Pointsman:
        self.watch = Watch()  # pyright: ignore[reportAttributeAccessIssue] - it lives as long
        return await enter(self)

    Pointsman.__aenter__ = watched


if __name__ == "__main__":
    watch()
    main()

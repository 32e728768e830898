"""What a piece of work has cost."""

from __future__ import annotations

import time


class Spent:
    """CPU and wall time since it was made, in µs."""

    def __init__(self) -> None:
        self._cpu, self._wall = time.process_time(), time.perf_counter()

    def cpu(self) -> float:
        return (time.process_time() - self._cpu) * 1e6

    def wall(self) -> float:
        return (time.perf_counter() - self._wall) * 1e6

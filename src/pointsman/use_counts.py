"""Counts of limited uses, such as those of a scripted answer with `times`, for calls outside executions.

Calls inside an execution are counted by the execution itself (`ExecutionPort.use`), across processes and forks.
"""

from __future__ import annotations

from typing import Final

COUNTS_MAX: Final = 10_000
"""Maximum number of counts; the least recently used are dropped first."""


class UseCounts:
    """Counts in this process."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def use(self, what: str, *, most: int | None = None) -> int | None:
        """Count a use, and return the number of uses before it. None: there were `most` already, nothing is counted."""
        before = self._counts.pop(what, 0)
        is_spent = most is not None and before >= most
        self._counts[what] = before if is_spent else before + 1
        while len(self._counts) > COUNTS_MAX:
            del self._counts[next(iter(self._counts))]
        return None if is_spent else before

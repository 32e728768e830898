"""What work took and paid for, inside the process: takings in a dict, added up by looking at each."""

from __future__ import annotations

from pointsman.store.usage import About, UsageAmounts, UsageQuery, UsageRecord, added_up


class MemoryUsage:
    """Takings by day and execution."""

    def __init__(self) -> None:
        self._takings: dict[tuple[str, str], UsageRecord] = {}

    async def put(self, taking: UsageRecord) -> None:
        whose = taking.day, taking.execution
        self._takings.pop(whose, None)
        if taking.entries:
            self._takings[whose] = taking

    async def sums(self, query: UsageQuery) -> list[tuple[About, UsageAmounts]]:
        return added_up(self._takings.values(), query)

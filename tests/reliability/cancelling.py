"""Cancel each kind of execution after every row: it ends at once, and no effect happens afterwards.

Virtual time advances by an hour after each cancellation, so that work that still runs, sleeps or waits becomes visible.
"""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Final

from pointsman import Pointsman, Workflow
from pointsman.engine.events.waits import OutboxDelivered
from pointsman.errors import CallerError
from pointsman.runtime.dependencies import Committed, Delta
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.tools.functions import tool
from pointsman.values import Json, JsonObject
from tests.reliability.findings import Finding
from tests.reliability.workload import INPUT, KINDS, script

LATER_S: Final = 3600.0
EFFECT_S: Final = 5.0
ROWS_MAX: Final = 60


def _timed() -> JsonObject:
    """Return a workflow with timers, retries, a loop and delays."""
    nodes: list[Json] = [
        {"id": "rounds", "type": "loop", "config": {"maxIterations": 2}},
        {"id": "nap", "type": "wait", "config": {"duration": "30s"}},
        {
            "id": "try",
            "type": "tool",
            "config": {"tool": "charge", "parameters": {"what": "fails"}},
            "execution": {"retries": 2, "retryDelay": "10s", "errorHandler": "continue"},
        },
        {
            "id": "late",
            "type": "tool",
            "config": {"tool": "charge", "parameters": {"what": "late"}},
            "execution": {"delay": "20s"},
        },
    ]
    edges: list[Json] = [
        {"source": one, "target": other} for one, other in pairwise(["rounds", "nap", "try", "rounds"])
    ]
    return {
        "id": "timed",
        "entry": "rounds",
        "nodes": nodes,
        "edges": [*edges, {"source": "rounds", "target": "late", "mark": "exit"}],
    }


SHAPES: Final[dict[str, JsonObject]] = {"timed": _timed(), **{name: kind.document for name, kind in KINDS.items()}}


class CancelExperiment:
    """One app whose executions are cancelled."""

    def __init__(self) -> None:
        self.happened: list[str] = []
        """Completed effects."""

        @tool
        async def charge(what: str) -> str:
            """Charge an account."""
            await asyncio.sleep(EFFECT_S)
            self.happened.append(what)
            if what == "fails":
                raise ValueError("meant to")
            return what

        self.tools = [charge]

    async def cancel_behind(self, shape: str, row: int) -> tuple[list[str], bool]:
        """Cancel an execution as soon as its row of that number is durable. Return the violations, and whether that row
        was reached.
        """
        self.happened.clear()
        async with Pointsman(
            "memory:", tools=self.tools, script=script(), model="scripted", clock=VirtualClock()
        ) as pointsman:
            reached = asyncio.Event()

            def see(seen: Committed | Delta) -> None:
                if isinstance(seen, Committed) and seen.row.seq == row:
                    reached.set()

            pointsman.feed.watch(see)
            execution = await pointsman.start(Workflow.of(SHAPES[shape]), INPUT)
            settled = asyncio.ensure_future(execution.settled())
            came = asyncio.ensure_future(reached.wait())
            await asyncio.wait({settled, came}, return_when=asyncio.FIRST_COMPLETED)
            came.cancel()
            if not reached.is_set():
                return [], False
            wrong = await self._cancelled(pointsman, execution.id)
            settled.cancel()
            return [f"{shape}, cancelled behind row {row}: {line}" for line in wrong], True

    async def _cancelled(self, pointsman: Pointsman, name: str) -> list[str]:
        execution = await pointsman.reach(name)
        try:
            await execution.cancel()
        except CallerError:
            if not execution.state.ended:
                raise
        began, rows, effects = pointsman.clock.now(), await execution.rows(), len(self.happened)
        ended = execution.state.ended
        await asyncio.sleep(LATER_S)
        later = (await execution.rows())[len(rows) :]
        wrong: list[str] = []
        if not ended:
            wrong.append(f"it was {execution.status} when the cancellation was acknowledged")
        if any(not isinstance(event, OutboxDelivered) for row in later for event in row.events):
            wrong.append(f"{len(later)} rows afterwards")
        if len(self.happened) > effects:
            wrong.append(f"{len(self.happened) - effects} effects afterwards")
        if pointsman.clock.now() < began + LATER_S:
            wrong.append("the clock stood still: nothing was looked at")
        return wrong


async def cancel_everywhere() -> tuple[list[str], int]:
    ward, violations, cancelled = CancelExperiment(), list[str](), 0
    for shape in SHAPES:
        for row in range(1, ROWS_MAX):
            wrong, reached = await ward.cancel_behind(shape, row)
            if not reached:
                break
            violations += wrong
            cancelled += 1
    return violations, cancelled


def examine(size: int, seed: int) -> Finding:
    """Test all rows of all shapes; size and seed have no effect."""
    violations, cancelled = run_virtually(cancel_everywhere())
    return Finding(f"{cancelled} boundaries of {len(SHAPES)} shapes, {len(violations)} violations", tuple(violations))

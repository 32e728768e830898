"""Virtual time: waiting costs nothing, order is kept, threads are waited for."""

from __future__ import annotations

import asyncio
import threading

import pytest

from pointsman.engine.reports import ToolCall
from pointsman.testing import clock as clocks
from pointsman.testing.clock import BEGIN, VirtualClock, VirtualTimeDeadlock, run_virtually
from pointsman.tools.registry import ToolRegistry
from pointsman.values import Json


def test_a_year_passes_in_no_time_and_in_order() -> None:
    told: list[tuple[str, float]] = []

    async def nap(name: str, seconds: float) -> None:
        clock = VirtualClock()
        await clock.sleep_until(clock.now() + seconds)
        told.append((name, clock.now() - BEGIN))

    async def both() -> None:
        await asyncio.gather(nap("year", 31_536_000.0), nap("minute", 60.0))

    run_virtually(both())
    assert [(name, round(at)) for name, at in told] == [("minute", 60), ("year", 31_536_000)]


def test_virtual_time_stops_while_a_thread_works() -> None:
    async def work() -> float:
        clock = VirtualClock()
        alarm = asyncio.create_task(asyncio.sleep(3600))
        await asyncio.to_thread(sum, range(100_000))
        alarm.cancel()
        return clock.now() - BEGIN

    assert run_virtually(work()) == 0.0


def test_virtual_time_stops_while_a_tool_works_in_a_thread() -> None:
    def slow() -> str:
        """Work for a moment, in which the loop has nothing to do."""
        threading.Event().wait(0.05)
        return "done"

    async def story() -> tuple[Json, float]:
        leap = asyncio.create_task(asyncio.sleep(3600))
        call = asyncio.create_task(ToolRegistry([slow]).call(ToolCall(id="1", name="slow", arguments={}), key="k"))
        result, now = await call, asyncio.get_running_loop().time()
        leap.cancel()
        return result, now

    result, now = run_virtually(story())
    assert (result, now < 3600) == ("done", True)


def test_timeouts_are_virtual_too() -> None:
    async def wait() -> None:
        async with asyncio.timeout(86_400):
            await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        run_virtually(wait())


def test_waiting_for_an_impossible_event_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clocks, "STUCK_S", 0.01)
    with pytest.raises(VirtualTimeDeadlock):
        run_virtually(asyncio.Event().wait())

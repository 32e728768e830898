"""Drain: let running attempts finish and start no further ones, before a process ends.

    drain starts ─▶ running attempts finish, their results are committed ─┐
                    new attempts are held, no executor performs them ─────┴─▶ drained ─▶ the runtime closes

A held attempt is requested and unanswered: the next owner of the execution performs it.
"""

from __future__ import annotations

import asyncio
from typing import Final, NoReturn

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.steps import Step
from pointsman.ports import ExecutionPort, Executor
from pointsman.runtime.local import LocalRuntime
from pointsman.values import ExecutionId, Json, Seconds

LOOKS_S: Final = 0.02
AttemptKey = tuple[ExecutionId, Step]


class HoldingExecutor:
    """Executor that performs nothing: each command waits until the process ends."""

    def __init__(self, runtime: LocalRuntime) -> None:
        self._runtime = runtime
        self.places: set[AttemptKey] = set()

    def basis(self, command: Execute, spec: WorkSpec) -> Json:
        """Nothing is performed, and nothing remembered."""
        return None

    async def has(self, need: str) -> bool:
        """Nothing more is taken up."""
        return False

    def executor_for(self, command: Execute) -> Executor:
        return self

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> NoReturn:
        place = run.execution, command.step
        self.places.add(place)
        task = asyncio.current_task()
        if task is not None:
            self._runtime.deadlines.drop(task)  # It has not begun: its time must not run out.
        try:
            await asyncio.Event().wait()
            raise asyncio.CancelledError
        finally:
            self.places.discard(place)


async def drain(runtime: LocalRuntime, *, patience: Seconds, hurry: asyncio.Event) -> int:
    """Wait until nothing is performed any more, for so long at most, or until `hurry`; how much was not waited for."""
    held = HoldingExecutor(runtime)
    runtime.executors = held
    until = runtime.clock.now() + patience
    while (left := len(performed(runtime) - held.places)) and not hurry.is_set():
        if runtime.clock.now() >= until:
            break
        await runtime.clock.sleep_until(runtime.clock.now() + LOOKS_S)
    return left


def performed(runtime: LocalRuntime) -> set[AttemptKey]:
    """Every attempt that is under way here."""
    return {
        (driver.execution, step)
        for driver in runtime.drivers.values()
        for step, task in driver.worker_tasks.items()
        if isinstance(task, asyncio.Task)
    }

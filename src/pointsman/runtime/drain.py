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
        """Return null: nothing is performed and nothing cached."""
        return None

    async def has(self, need: str) -> bool:
        """Return False: no further step is offered."""
        return False

    def executor_for(self, command: Execute) -> Executor:
        return self

    async def execute(self, command: Execute, spec: WorkSpec, run: ExecutionPort) -> NoReturn:
        place = run.execution, command.step
        self.places.add(place)
        task = asyncio.current_task()
        if task is not None:
            self._runtime.deadlines.drop(task)  # It has not started: its deadline must not pass.
        try:
            await asyncio.Event().wait()
            raise asyncio.CancelledError
        finally:
            self.places.discard(place)


async def drain(runtime: LocalRuntime, *, patience: Seconds, hurry: asyncio.Event) -> int:
    """Wait until no attempt runs, for at most `patience` seconds or until `hurry`. Return the number of attempts
    left.
    """
    held = HoldingExecutor(runtime)
    runtime.executors = held
    until = runtime.clock.now() + patience
    while (left := len(performed(runtime) - held.places)) and not hurry.is_set():
        if runtime.clock.now() >= until:
            break
        await runtime.clock.sleep_until(runtime.clock.now() + LOOKS_S)
    return left


def performed(runtime: LocalRuntime) -> set[AttemptKey]:
    """Return every attempt that runs here."""
    return {
        (driver.execution, step)
        for driver in runtime.drivers.values()
        for step, task in driver.worker_tasks.items()
        if isinstance(task, asyncio.Task)
    }

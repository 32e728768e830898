"""Leadership: one process of a store executes for it in the background, as long as it runs.

async with Pointsman("sqlite:///flows.db") as app, app.leading():
    …                                   resumes executions of former leaders, fires timers and schedules,
                                        notifies people
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import ClassVar, Final

from pointsman.context import AppContext
from pointsman.errors import OperatorError, PointsmanError
from pointsman.executions.opening import SCRIPTS, open_execution
from pointsman.executions.usage_rollup import UsageRollupJob
from pointsman.operations.readiness import LeaderRole
from pointsman.runtime.dispatched import DispatchedOwnership
from pointsman.runtime.leader import Leader, ReportFailure, ignore
from pointsman.runtime.local import drain
from pointsman.runtime.queue_worker import QueueWorker
from pointsman.settings import Settings
from pointsman.store.coordination import Leadership, RuntimeFacts, superseded
from pointsman.store.errors import LeaderSuperseded, masked_address
from pointsman.triggers.notifications import Notifier
from pointsman.triggers.triggers import TRIGGERS
from pointsman.values import ExecutionId, Seconds

DRAIN_S: Final = Seconds(1.0)
"""How long running steps have to end, unless the settings allow more."""


@asynccontextmanager
async def working(
    app: AppContext, *, executions: int, patience: Seconds = DRAIN_S, hurry: asyncio.Event | None = None
) -> AsyncGenerator[None, None]:
    """Drive what the engine of this app dispatches, at most `executions` at a time, until the block ends.

    Then running steps have `patience` seconds to end, or until `hurry`; executions continue with other workers. Raises
    `NoEngine`.
    """
    runtime, engine = app.runtime, app.engine
    ownership = runtime.ownership
    if engine is None or not isinstance(ownership, DispatchedOwnership):
        raise NoEngine(
            "no engine dispatches executions to this worker",
            hint="Name it: --runtime temporal://HOST:PORT or restate://HOST:PORT, or `runtime` in the settings.",
        )

    async def take_up(execution: ExecutionId) -> object:
        return await open_execution(app, execution)

    async def drive(execution: ExecutionId) -> float | None:
        return await ownership.drive(execution, take_up)

    stopping, runtime.stands_by = asyncio.Event(), True
    await ownership.announce(RuntimeFacts(role="worker", capacity=executions, engine=engine_name(app.settings)))
    async with asyncio.TaskGroup() as group:
        work = group.create_task(engine.work(drive, executions=executions, stopping=stopping))
        try:
            yield
        finally:
            stopping.set()
            await drain(runtime, patience=patience, hurry=hurry or asyncio.Event())
            await runtime.hand_over()
            await asyncio.wait({work})  # The engine receives when to drive the released executions again.


@asynccontextmanager
async def serving_queues(
    app: AppContext,
    queues: Sequence[str],
    *,
    steps: int,
    patience: Seconds = DRAIN_S,
    hurry: asyncio.Event | None = None,
) -> AsyncGenerator[None, None]:
    """Perform the steps that are placed on these queues, at most `steps` at a time, until the block ends.

    Then running steps have `patience` seconds to end, or until `hurry`; other workers of the queue perform the rest.
    Raises `StoreWithoutQueues`.
    """
    claims = app.store.claims
    if claims is None:
        raise StoreWithoutQueues(
            f"the store {masked_address(app.settings.store_url)} has one process, which performs every step itself",
            hint="Use a store on PostgreSQL (--store, `store` in the settings), or omit --queue.",
        )
    worker = QueueWorker(app.runtime, claims, queues, capacity=steps, take_up=app[SCRIPTS].take_up)
    stopping = asyncio.Event()
    async with asyncio.TaskGroup() as group:
        group.create_task(worker.run(stopping))
        try:
            yield
        finally:
            stopping.set()
            await worker.drain(patience=patience, hurry=hurry or asyncio.Event())
            claims.stop_waiting()


class StoreWithoutQueues(OperatorError):
    """A worker of a queue was started for a store that has one process."""

    code: ClassVar[str] = "store-without-queues"


class NoEngine(OperatorError):
    """A worker was started whose settings name no engine."""

    code: ClassVar[str] = "no-engine"


@asynccontextmanager
async def leading(app: AppContext, *, wait: bool = False, tell: ReportFailure = ignore) -> AsyncGenerator[Leader, None]:
    """Lead the store until the block ends: resume running executions, wake what is due, evict what only waits.

    Raises `LeaderExists` if another process leads it; with `wait` it stands by and takes over. `tell` is called with
    executions that cannot be resumed, with due work that fails, and with outages of the store; all of them are retried.
    When the leadership or the store is lost for good, the block is cancelled and an exception group contains the
    reason.
    """
    leadership = await app.store.lead(f"{socket.gethostname()}, process {os.getpid()}", wait=wait)

    async def take_up(execution: ExecutionId) -> object:
        return await open_execution(app, execution)

    notifier = Notifier(app)
    usage_job = UsageRollupJob(app)
    leader = Leader(app.runtime, take_up, chores=[app[TRIGGERS].scheduler, notifier, usage_job], tell=tell)
    # Objects that live as long as the process are excluded from garbage collection.
    gc.collect(1)  # Only young objects: to examine all modules takes 60 ms of the start of a server.
    gc.freeze()
    try:
        await app[TRIGGERS].put_all()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(leader.run()), group.create_task(_guard(leadership))]
            try:
                yield leader
            finally:
                for task in tasks:
                    task.cancel()
    finally:
        gc.unfreeze()
        await notifier.close()
        await usage_job.close()
        await leadership.release()


async def keep_leading(
    app: AppContext, *, wait: bool, tell: ReportFailure, changed: Callable[[LeaderRole], None], role: str = ""
) -> None:
    """Lead the store until cancelled. `changed` is called when this process has become the leader, and when it stands
    by again. `role`: what this process states of itself to the others; empty: it has stated that before.

    In a store with claims a superseded leader stands by: what it owns continues, and another process does the work of
    the leader. In another store it raises `LeaderSuperseded`. Raises exception groups, as `leading` does.
    """
    if role:
        await app.runtime.ownership.announce(RuntimeFacts(role=role, engine=engine_name(app.settings)))
    while True:
        app.runtime.stands_by = wait
        try:
            async with leading(app, wait=wait, tell=tell):
                app.runtime.stands_by = False
                changed("here")
                await asyncio.Event().wait()
        except* LeaderSuperseded as why:
            if app.store.claims is None:
                raise
            wait = True
            changed("standby")
            tell(None, first_of(why))


def engine_name(settings: Settings) -> str:
    """Return the address of the engine as other processes may see it: without options and passwords."""
    return masked_address(settings.runtime or "").partition("?")[0]


def first_of(several: BaseExceptionGroup[BaseException]) -> BaseException:
    """Return one exception that ended the leadership: one of several is enough to decide what to do."""
    expected, _ = several.split(PointsmanError)
    while isinstance(expected, BaseExceptionGroup):
        expected = expected.exceptions[0]
    return expected if expected is not None else several


async def _guard(leadership: Leadership) -> None:
    await leadership.lost.wait()
    raise superseded(leadership.epoch)


__all__ = ["ReportFailure", "drain", "first_of", "keep_leading", "leading", "serving_queues", "working"]

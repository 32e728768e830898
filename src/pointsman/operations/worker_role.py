"""Keeping: one process of a store goes on with executions by itself, as long as it lives.

async with Pointsman("sqlite:///flows.db") as app, app.keeping():
    …                                   executions left by others go on, timers ring, schedules start,
                                        people are notified
"""

from __future__ import annotations

import asyncio
import gc
import os
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pointsman.context import AppContext
from pointsman.errors import PointsmanError
from pointsman.executions.opening import open_execution
from pointsman.executions.usage_rollup import Chronicler
from pointsman.runtime.drain import drain
from pointsman.runtime.leader import Leader, ReportFailure, ignore
from pointsman.store.leader import Leadership, superseded
from pointsman.triggers.notifications.notifier import Notifier
from pointsman.triggers.triggers import TRIGGERS
from pointsman.values import ExecutionId


@asynccontextmanager
async def keeping(app: AppContext, *, wait: bool = False, tell: ReportFailure = ignore) -> AsyncGenerator[Leader, None]:
    """Keep the store until the block is left: take up what ran, wake what is due, let go of what only waits.

    Raises `StoreKept` where another process keeps it; with `wait` it stands by and takes over. `tell` hears of
    executions that cannot be taken up, of what is due and cannot be done, and of a store that cannot be used for a
    while; they are tried again. When the role or the store is lost for good the block is cancelled and an exception
    group tells why.
    """
    keep = await app.store.keep(f"{socket.gethostname()}, process {os.getpid()}", wait=wait)

    async def take_up(execution: ExecutionId) -> object:
        return await open_execution(app, execution)

    notifier = Notifier(app)
    chronicler = Chronicler(app)
    keeper = Leader(app.runtime, take_up, chores=[app[TRIGGERS].scheduler, notifier, chronicler], tell=tell)
    # What lives as long as the process need not be walked by the garbage collector again and again.
    gc.collect()
    gc.freeze()
    try:
        await app[TRIGGERS].put_all()
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(keeper.run()), group.create_task(_guard(keep))]
            try:
                yield keeper
            finally:
                for task in tasks:
                    task.cancel()
    finally:
        gc.unfreeze()
        await notifier.close()
        await chronicler.close()
        await keep.release()


def first_of(several: BaseExceptionGroup[BaseException]) -> BaseException:
    """What ended a block that kept the store: one of several is enough to tell what to do."""
    known, _ = several.split(PointsmanError)
    while isinstance(known, BaseExceptionGroup):
        known = known.exceptions[0]
    return known if known is not None else several


async def _guard(keep: Leadership) -> None:
    await keep.lost.wait()
    raise superseded(keep.epoch)


__all__ = ["ReportFailure", "drain", "first_of", "keeping"]

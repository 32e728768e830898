"""Opening executions of this store in this process, with the script that they were started with.

open_execution    steps that were running when its process ended run again
reach_execution   for cancel and pause: only what the execution does in response runs here
"""

from __future__ import annotations

from functools import partial
from typing import Final, Protocol

from pointsman.context import AppContext, Part
from pointsman.engine.plan import Plan
from pointsman.engine.state import ExecutionState
from pointsman.executions.concurrency_limits import Places, group_in
from pointsman.executions.execution import Execution
from pointsman.executions.session_turns import save_turn
from pointsman.executions.starting import uses_to_come
from pointsman.runtime.driver import Driver
from pointsman.values import ExecutionId
from pointsman.workflows.library import LIBRARY
from pointsman.workflows.models import refuse_unreachable


class Scripts(Protocol):
    """Applies the scripts that executions were started with. Wiring implements it: a script replaces the services."""

    async def take_up(self, execution: ExecutionId) -> None:
        """Answer from the script of an execution from here on. Raises `ScriptDiffers`, `ScriptGone`."""
        ...


SCRIPTS: Final = Part[Scripts]("scripts")


async def open_execution(app: AppContext, execution: str) -> Execution:
    """Open an execution: steps that were running when its process ended run again. Raises `UnknownExecution`.

    An execution that started with a script continues with it, unless this application was given another one.
    """
    return Execution(app.runtime, await driver_for(app, ExecutionId(execution)))


async def reach_execution(app: AppContext, execution: str) -> Execution:
    """Return an execution without opening it: only what it does in response to a report (compensation) runs here."""
    await app[SCRIPTS].take_up(ExecutionId(execution))
    return Execution(app.runtime, await app.runtime.open(ExecutionId(execution), recover=False))


async def driver_for(app: AppContext, execution: ExecutionId) -> Driver:
    """Return the driver of an execution; a pending one is queued for admission in this process from here on."""
    await app[SCRIPTS].take_up(execution)
    driver = await app.runtime.open(execution)
    group = group_in(driver.state.setup.options)
    if group is not None and driver.state.status == "pending":
        app[PLACES].look(group)
    return driver


PLACES: Final = Part[Places](
    "places", lambda app: Places(app.store, app.clock, partial(driver_for, app)), close=Places.close
)
"""The concurrency limits of the executions of this store."""


async def turn_ended(app: AppContext, state: ExecutionState) -> None:
    """Store the messages of a turn that ended, and start the next queued execution."""
    await save_turn(app.store, state)
    group = group_in(state.setup.options)
    if group is not None:
        app[PLACES].look(group)


async def must_reach_models(app: AppContext, plan: Plan, state: ExecutionState) -> None:
    """Raise `ModelUnusable` or `ModelUnnamed` if a model that the rest of an execution calls cannot be called."""
    if (models := app.services.models_to_check) is None:
        return
    model = state.setup.options.get("model")
    uses = await uses_to_come(app.runtime, app[LIBRARY], plan, state)
    refuse_unreachable(models, uses, model if isinstance(model, str) else None)

"""Opening: an execution of this store taken up in this process, with the script that it was started with.

open_execution    what was running when its process ended runs again
reach_execution   it is told something (cancel, pause); only what it does in answer runs here
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
from pointsman.workflows.model_uses import refuse_unreachable


class Scripts(Protocol):
    """Takes up the scripts that executions were started with. Wiring implements it: a script replaces the services."""

    async def take_up(self, execution: ExecutionId) -> None:
        """Answer from the script of an execution from here on. Raises `ScriptDiffers`, `ScriptGone`."""
        ...


SCRIPTS: Final = Part[Scripts]("scripts")


async def open_execution(app: AppContext, execution: str) -> Execution:
    """Take up an execution: what was running when its process ended runs again. Raises `UnknownExecution`.

    An execution that began with a script goes on with it, unless another one was given to this application.
    """
    return Execution(app.runtime, await driver_for(app, ExecutionId(execution)))


async def reach_execution(app: AppContext, execution: str) -> Execution:
    """Return an execution without taking it up: only what it does in answer (undoing) runs here."""
    await app[SCRIPTS].take_up(ExecutionId(execution))
    return Execution(app.runtime, await app.runtime.open(ExecutionId(execution), recover=False))


async def driver_for(app: AppContext, execution: ExecutionId) -> Driver:
    """Return the driver of an execution; a pending one waits for its place from here on."""
    await app[SCRIPTS].take_up(execution)
    driver = await app.runtime.open(execution)
    group = group_in(driver.state.options)
    if group is not None and driver.state.status == "pending":
        app[PLACES].look(group)
    return driver


PLACES: Final = Part[Places](
    "places", lambda app: Places(app.store, app.clock, partial(driver_for, app)), close=Places.close
)
"""The places of the executions of this store."""


async def turn_ended(app: AppContext, state: ExecutionState) -> None:
    """Store what was said in a turn that ended, and start the next execution that waits for its place."""
    await save_turn(app.store, state)
    group = group_in(state.options)
    if group is not None:
        app[PLACES].look(group)


async def must_reach_models(app: AppContext, plan: Plan, state: ExecutionState) -> None:
    """Raise `ModelUnusable` or `ModelUnnamed` where a model that the rest of an execution calls cannot be called."""
    if (models := app.services.models_to_check) is None:
        return
    model = state.options.get("model")
    uses = await uses_to_come(app.runtime, app[LIBRARY], plan, state)
    refuse_unreachable(models, uses, model if isinstance(model, str) else None)

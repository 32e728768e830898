"""Partial runs: perform a part of a workflow with given results for the rest (`PartialRun` of the plan).

A partial run is an execution like any other: journalled, streamed, recovered after a crash, and billed. Its id begins
with `try-`, and lists of executions omit it unless asked for trials.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from pointsman.auth.callers import Caller
from pointsman.context import AppContext
from pointsman.engine.compile.partial_run import TrialUnfit
from pointsman.executions.ids import new_id
from pointsman.executions.start import start
from pointsman.store.records import TRIAL
from pointsman.values import ExecutionId, Json, JsonObject

if TYPE_CHECKING:
    from pointsman.executions.execution import Execution
    from pointsman.workflows.authors import Party
    from pointsman.workflows.sources import Workflow

__all__ = ["KIND", "TrialUnfit", "trial_id", "trial_of", "try_out"]

KIND: Final = "trial"
"""The kind of its trigger."""


def trial_of(
    *,
    pinned: Mapping[str, Json] | None = None,
    until: Sequence[str] = (),
    breakpoints: Sequence[str] = (),
    node: str | None = None,
    given: Json = None,
) -> JsonObject:
    """Return the options of a partial run without the empty ones. `pinned`: node -> its result, without performing it.
    `until`: only nodes that lead to these are performed. `breakpoints`: it pauses before these nodes. `node`: only this
    node runs, reached by the value `given`; the input is then the data."""
    said: JsonObject = {
        "pinned": dict(pinned or {}),
        "until": [*until],
        "breakpoints": [*breakpoints],
        "node": node,
        "given": given,
    }
    return {name: value for name, value in said.items() if value not in (None, [], {})}


async def try_out(
    app: AppContext,
    workflow: Workflow | str,
    input: Json,
    trial: JsonObject,
    *,
    caller: Caller,
    written_by: Iterable[Party] = (),
    model: str | None = None,
) -> Execution:
    """Start a partial run of a document or of a saved workflow for a caller. `written_by`: as for `Pointsman.start`.

    Raises `TrialUnfit` before anything is written.
    """
    trigger: JsonObject = {"kind": KIND, "by": caller.name}
    return await start(
        app,
        workflow,
        input,
        execution=trial_id(),
        trial=trial,
        by=caller.name,
        caller=caller,
        written_by=written_by,
        trigger=trigger,
        model=model,
    )


def trial_id() -> ExecutionId:
    """Return a new id for a partial run."""
    return new_id(TRIAL)

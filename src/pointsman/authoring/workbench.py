"""Workbench of one caller: the verbs that tools of agents and MCP clients call, and how a run is reported to them."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Final, Literal

from pointsman.auth.callers import Caller
from pointsman.auth.verbs import Acting
from pointsman.authoring.verbs import AuthoringVerbs
from pointsman.context import AppContext
from pointsman.executions.execution import Execution, TakenOver
from pointsman.executions.verbs import ExecutionVerbs
from pointsman.runtime.children import NestedTooDeep
from pointsman.values import Json, JsonObject, json_of
from pointsman.workflows.verbs import WorkflowVerbs

Hear = Callable[[JsonObject], None]
"""Receives events while a verb waits."""
Dialect = Literal["native", "rows", "graph", "steps", "plan"]

KEY: Final = "authoring"


DEPTH_MAX: Final = 3
"""Depth to which agents may run workflows whose agents run workflows."""


class Workbench:
    """The verbs of one caller."""

    def __init__(
        self, app: AppContext, caller: Caller, *, depth: int = 0, via: str = "", target: str = "", origin: str = ""
    ) -> None:
        """`depth`: length of the chain of executions, each started by an agent of the one before, that led here. `via`,
        `target`, `origin`: see `Acting`."""
        self.app = app
        self.caller = caller
        self.depth = depth
        self.acting = Acting(app, caller, via=via, target=target, origin=origin)

    @property
    def executions(self) -> ExecutionVerbs:
        return ExecutionVerbs(self.acting)

    @property
    def workflows(self) -> WorkflowVerbs:
        return WorkflowVerbs(self.acting)

    @property
    def authoring(self) -> AuthoringVerbs:
        return AuthoringVerbs(self.acting)

    async def start(self, workflow: str, input: Json, *, session: str | None = None, key: str = "") -> Execution:
        """Start an execution as the caller; repeated calls with one `key` return the same execution."""
        if self.depth > DEPTH_MAX:
            raise NestedTooDeep(
                f"{workflow!r} is not run: agents have run workflows of agents {DEPTH_MAX} deep",
                hint="Answer with what you have.",
            )
        trigger: JsonObject = {"kind": KEY, "by": self.caller.name, **({"depth": self.depth} if self.depth else {})}
        under = f"{KEY}|{key}" if key else None
        return await self.executions.start(workflow, input, session=session, key=under, trigger=trigger)

    async def watched(self, execution: Execution, hear: Hear) -> JsonObject:
        """Wait until the execution ends, pauses or waits for a person, and return its state. `hear` receives all its
        events. If another process takes the execution over, return its state at that time."""
        with suppress(TakenOver):
            async for event in execution.events():
                hear(event)
            await execution.settled()
        return _outcome_of(json_of(await self.executions.view(execution)))

    async def execution(self, execution: str) -> JsonObject:
        """Return the state of an execution."""
        return _outcome_of(json_of(await self.executions.read(execution)))

    async def cancel(self, execution: str, reason: str = "") -> JsonObject:
        """Cancel an execution permanently."""
        found = await self.executions.cancel(execution, reason=reason)
        return _outcome_of(json_of(await self.executions.view(found)))


def _outcome_of(view: JsonObject) -> JsonObject:
    """Return the part of an execution view that a designer needs."""
    keys = ("executionId", "workflowId", "status", "output", "scripted", "waiting", "errors", "path", "usage")
    return {key: view[key] for key in keys if key in view}

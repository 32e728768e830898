"""The verbs as tools of agents: an assistant in a chat designs workflows, saves them and runs them.

They are there where the operator's settings give agents a role (`authoring`). An agent acts under the name of whoever
started its execution, with that role, and asks a person before it destroys anything.
"""

from __future__ import annotations

from typing import Any, Final, get_args

from pointsman.app import Pointsman
from pointsman.app.access.callers import Caller, Role
from pointsman.authoring.tools import VERBS, Call, Verb
from pointsman.authoring.workbench import KEY, Workbench
from pointsman.ports import ToolSpec
from pointsman.tools.tool import Limits, ToolContext
from pointsman.values import ExecutionId, Json, JsonObject

ROLES: Final[tuple[Role, ...]] = get_args(Role)
UNKNOWN: Final = "agent"
"""Whose name it is where nobody said who started the execution."""


class VerbTool:
    """One verb, as models see it."""

    def __init__(self, app: Pointsman, verb: Verb[Any], role: Role) -> None:
        self._app = app
        self._verb = verb
        self._role: Role = role
        self.name = verb.name
        self.limits = Limits()

    @property
    def spec(self) -> ToolSpec:
        verb = self._verb
        return ToolSpec(
            name=verb.name,
            description=verb.says,
            parameters=verb.schema,
            idempotent=verb.effect == "reads" or verb.name == "run_workflow",
            requires_approval=verb.effect == "destroys",
            bytes_max=self.limits.output_bytes_max,
        )

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Called again after a crash, a run is the one that was begun before."""
        bench = await self._bench(context.execution)
        return await self._verb.call(Call(bench=bench, hear=lambda _: None, key=context.key), arguments)

    async def _bench(self, execution: str) -> Workbench:
        if not execution:
            return Workbench(self._app, Caller(name=UNKNOWN, role=self._role))
        options = (await self._app.runtime.load(ExecutionId(execution))).options
        trigger, by = options.get("trigger"), options.get("by")
        depth = trigger.get("depth") if isinstance(trigger, dict) and trigger.get("kind") == KEY else None
        caller = Caller(name=by if isinstance(by, str) and by else UNKNOWN, role=self._role)
        return Workbench(self._app, caller, depth=(depth if isinstance(depth, int) else 0) + 1)


def offer_verbs(app: Pointsman, role: Role) -> None:
    """Let agents of this installation use the verbs that `role` allows."""
    for verb in VERBS:
        if ROLES.index(role) >= ROLES.index(verb.role):
            app.tools.add_builtin(VerbTool(app, verb, role))

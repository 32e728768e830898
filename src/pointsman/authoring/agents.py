"""Verbs as tools of agents, with which an assistant in a chat designs, saves and runs workflows.

They exist if the operator's settings give agents a role (`authoring`). An agent acts in the name of the person who
started its execution. Its permissions are the intersection of those of this person, of the authors of its workflow and
of its description, and of the setting, as they are at the moment of the call. Each change is in the audit log. Verbs
that destroy something require a person's approval.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, get_args

from pointsman.auth.callers import NotAllowed, Role
from pointsman.auth.verbs import tool_target
from pointsman.authoring.tools import VERBS, Verb, VerbCall
from pointsman.authoring.workbench import KEY, Workbench
from pointsman.context import AppContext
from pointsman.executions.ephemeral import acting_for, state_of
from pointsman.executions.step_rights import attempt_at_work
from pointsman.ports import ToolSpec
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.tool import ToolContext, ToolLimits
from pointsman.values import Json, JsonObject, json_of

ROLES: Final[tuple[Role, ...]] = get_args(Role)


class AgentVerb:
    """A verb as a tool."""

    def __init__(self, context: Callable[[], AppContext], verb: Verb[Any], role: Role) -> None:
        self._context = context
        self._verb = verb
        self._role: Role = role
        self.name = verb.name
        self.limits = ToolLimits()

    @property
    def spec(self) -> ToolSpec:
        verb = self._verb
        return ToolSpec(
            name=verb.name,
            description=verb.says,
            parameters=verb.schema,
            idempotent=verb.effect == "reads" or verb.name == "run_workflow",
            requires_approval=verb.effect == "destroys",
            keeps=True,
            bytes_max=self.limits.output_bytes_max,
        )

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Perform the verb for the people of the execution. A call repeated after a crash returns the run already
        started."""
        bench = await self._bench(context.execution, f"agent {self.name}", tool_target(arguments))
        call = VerbCall(bench=bench, hear=lambda _: None, key=context.key)
        return json_of(await self._verb.call(call, arguments))

    async def _bench(self, execution: str, via: str, target: str) -> Workbench:
        """Return the workbench of the people for whom the execution acts, with their present permissions, limited to
        the role that the settings give agents."""
        if not execution:
            message = f"{self.name!r} acts for the person who started an execution, and there is none"
            raise NotAllowed(message, hint="Call it in a workflow.")
        app = self._context()
        state = await state_of(app, execution)
        attempt = attempt_at_work()
        node = attempt.node if attempt is not None and attempt.execution == execution else ""
        caller = await acting_for(app, execution, node=node, cap=self._role)
        trigger = state.setup.options.get("trigger")
        depth = trigger.get("depth") if isinstance(trigger, dict) and trigger.get("kind") == KEY else None
        deeper = (depth if isinstance(depth, int) else 0) + 1
        return Workbench(app, caller, depth=deeper, via=via, target=target, origin=execution)


def offer_verbs(tools: ToolRegistry, context: Callable[[], AppContext], role: Role) -> None:
    """Register the verbs that `role` allows as tools. `context` returns the open application."""
    for verb in VERBS:
        if ROLES.index(role) >= ROLES.index(verb.role):
            tools.add_builtin(AgentVerb(context, verb, role))

"""Agents: a model with a role, its tools and its ways out."""

from __future__ import annotations

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.reports import ApprovalAsked, WorkDone, WorkFailed
from pointsman.errors import PointsmanError
from pointsman.executors.agent_loop import AgentLoop
from pointsman.executors.agent_settings import agent_settings
from pointsman.executors.approvals import CallsNeedApproval
from pointsman.executors.attachments import Sources
from pointsman.executors.decision import DecisionExecutor
from pointsman.executors.effect_ledger import Ledger, World
from pointsman.executors.failures import failure_of, work_failed
from pointsman.ports import Run


class AgentExecutor:
    """Input: {"system": text | null, "prompt": text | null, "inputs": {…}, "messages"?: […], "correction"?: text}.

    An agent with `choices` decides: see `decision`.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._decision = DecisionExecutor(world)

    async def execute(self, command: Execute, spec: WorkSpec, run: Run) -> WorkDone | WorkFailed | ApprovalAsked:
        """One attempt: as many questions and tool calls as it takes, within bounds."""
        if "choices" in spec.config:
            return await self._decision.execute(command, spec, run)
        ledger = Ledger(self._world, command, spec, run)
        try:
            settings = agent_settings(spec)
            await self._world.tools.prepare(settings.tools or ())
            files = Sources(self._world.fetch, self._world.keep, run.execution)
            loop = AgentLoop(command, spec, run, settings=settings, tools=self._world.tools, ledger=ledger, files=files)
            return await loop.perform()
        except CallsNeedApproval as why:
            return why.report(command)
        except PointsmanError as why:
            return work_failed(command, failure_of(why), ledger.usage)

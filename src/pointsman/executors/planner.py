"""Planners: a model breaks a goal into tasks; each task may be performed, and the results written up.

    goal ─▶ tasks ─▶ task 1 ─▶ task 2 ─▶ …    in sequence: each receives the results of those before
                                         └─▶ one text from all results     (`synthesize`)

Every call is an effect of the same step: after a crash it continues with the task it was at.
"""

from __future__ import annotations

from typing import Final, Literal, cast

import msgspec
from msgspec.structs import replace

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.reports import ToolCallsProposed, WorkDone, WorkFailed
from pointsman.executors.agent_loop import AgentLoop
from pointsman.executors.conversation import AgentSettings, agent_settings
from pointsman.executors.effect_ledger import EffectLedger, ExecutorDeps, attempt
from pointsman.expressions.environment import Environment, Names
from pointsman.expressions.templates import compile_template
from pointsman.models.transcript import as_text, text_of
from pointsman.ports import ExecutionPort
from pointsman.values import Json, JsonObject


class PlannerTexts(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The task templates of the plan, and the data that they read."""

    system: str | None = None
    prompt: str | None = None
    spelling: Literal["single", "double"] = "double"
    as_names: tuple[str, ...] = ()
    declared: tuple[str, ...] = ()
    state: JsonObject = {}
    nodes: JsonObject = {}
    names: JsonObject = {}
    config: JsonObject = {}


class TaskTexts:
    """The prompts of a task's agent. Without a template: the goal, the task, and the results of the tasks before."""

    def __init__(self, texts: Json, goal: str) -> None:
        self._given = PlannerTexts() if texts is None else msgspec.convert(texts, PlannerTexts)
        self._goal = goal

    def of(self, task: JsonObject, before: list[JsonObject]) -> tuple[str, str]:
        """Return the system text and prompt. Raises `ExpressionError` for a `{x}` that does not exist."""
        prompt = (
            self._task_text(task, before)
            if self._given.prompt is None
            else self._filled(self._given.prompt, task, before)
        )
        return "" if self._given.system is None else self._filled(self._given.system, task, before), prompt

    def _filled(self, text: str, task: JsonObject, before: list[JsonObject]) -> str:
        texts = self._given
        names: JsonObject = {**texts.names, "task": task, "goal": self._goal, "results": cast("list[Json]", before)}
        env = Environment(texts.state, texts.nodes, names, texts.config)
        template_names = Names(frozenset(texts.as_names), declared=frozenset(texts.declared))
        template = compile_template(text, names=template_names, spelling=texts.spelling)
        return template.render(env).text

    def _task_text(self, task: JsonObject, before: list[JsonObject]) -> str:
        parts = [f"Goal:\n{self._goal}", f"Your task: {text_of(task['title'])}\n{text_of(task['description'])}"]
        if before:
            done = "\n\n".join(f"{text_of(one['title'])}:\n{as_text(one['result'])}" for one in before)
            parts.append(f"What came of the tasks before:\n\n{done}")
        return "\n\n".join(parts)


TASKS_MAX: Final = 10
"""Most tasks if the node sets no limit."""

_SYSTEM: Final = (
    "You plan work. Break the goal into the fewest tasks that reach it, in the order in which they are to be done. "
    "Each must be clear to who sees nothing but its description and the results of the tasks before."
)
_WRITER: Final = "You write up work that others have done. Use their results alone; leave nothing important out."


class PlannerSettings(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """The settings of a planner that agents do not have."""

    max_tasks: int = TASKS_MAX
    synthesize: bool = False
    task_template: AgentSettings | None = None


class PlannerExecutor:
    """Input: {"goal", "system"?, "agents"?: {name: about}, "task"?: see `TaskTexts`}.

    Result: {"tasks": [{"id", "title", "description", "assigned_agent"?, "result"?}], "text"?}.
    """

    def __init__(self, deps: ExecutorDeps) -> None:
        self._deps = deps

    async def execute(
        self, command: Execute, spec: WorkSpec, run: ExecutionPort
    ) -> WorkDone | WorkFailed | ToolCallsProposed:
        async def plan(ledger: EffectLedger) -> WorkDone:
            return ledger.done(await _Planning(self._deps, command, spec, run, ledger).perform())

        return await attempt(self._deps, command, spec, run, plan)


class _Planning:
    """One attempt."""

    def __init__(
        self, deps: ExecutorDeps, command: Execute, spec: WorkSpec, run: ExecutionPort, ledger: EffectLedger
    ) -> None:
        self._deps = deps
        self._command = command
        self._spec = spec
        self._run = run
        self._ledger = ledger
        self._settings = agent_settings(spec)
        self._options = msgspec.convert(spec.config, PlannerSettings)
        self._goal = text_of(command.input.get("goal"))
        agents = command.input.get("agents")
        self._agents: JsonObject = agents if isinstance(agents, dict) else {}

    async def perform(self) -> JsonObject:
        """Raises the errors of the agent loop."""
        tasks = await self._plan()
        if self._options.task_template is None and not self._options.synthesize:
            return {"tasks": [*tasks]}
        await self._do(tasks)
        result: JsonObject = {"tasks": [*tasks]}
        return {**result, "text": await self._write_up(tasks)} if self._options.synthesize else result

    async def _plan(self) -> list[JsonObject]:
        settings = replace(
            self._settings, tools=(), output_schema=_schema(self._options.max_tasks, self._agents), purpose="planning"
        )
        about = "\n".join(f"- {name}: {text_of(description)}" for name, description in self._agents.items())
        prompt = f"Goal:\n{self._goal}" + (f"\n\nAssign each task to one of:\n{about}" if about else "")
        answer = await self._ask(settings, text_of(self._command.input.get("system")) or _SYSTEM, prompt)
        assert isinstance(answer, dict)  # guaranteed by the schema
        listed = answer["tasks"]
        assert isinstance(listed, list)
        tasks_with_ids: list[JsonObject] = []
        for number, task in enumerate(listed, start=1):
            assert isinstance(task, dict)
            tasks_with_ids.append({"id": f"task-{number}", **{key: task[key] for key in _FIELDS if key in task}})
        return tasks_with_ids

    async def _do(self, tasks: list[JsonObject]) -> None:
        """Perform the tasks in order and store each outcome as its `result`."""
        template = self._options.task_template or AgentSettings()
        settings = replace(
            template,
            model=template.model or self._settings.model,
            fallback=template.fallback or self._settings.fallback,
            max_tokens=template.max_tokens or self._settings.max_tokens,
            thinking=self._settings.thinking,
            result="text",
            purpose="task",
        )
        await self._deps.tools.prepare(settings.tools or ())
        texts = TaskTexts(self._command.input.get("task"), self._goal)
        for number, task in enumerate(tasks):
            self._run.delta({"kind": "task", "number": number + 1, "of": len(tasks), **task})
            own = text_of(self._agents.get(text_of(task.get("assigned_agent"))))
            system, prompt = texts.of(task, tasks[:number])
            task["result"] = await self._ask(settings, system or own, prompt)

    async def _write_up(self, tasks: list[JsonObject]) -> str:
        settings = replace(self._settings, tools=(), output_schema=None, result="text", purpose="synthesis")
        results = "\n\n".join(f"## {text_of(task['title'])}\n{as_text(task['result'])}" for task in tasks)
        return as_text(await self._ask(settings, _WRITER, f"Goal:\n{self._goal}\n\nResults:\n\n{results}"))

    async def _ask(self, settings: AgentSettings, system: str, prompt: str) -> Json:
        planning = replace(self._command, input={"system": system, "prompt": prompt}, messages=())
        loop = AgentLoop(
            planning, self._spec, self._run, settings=settings, tools=self._deps.tools, ledger=self._ledger
        )
        return (await loop.perform()).result


_FIELDS: Final = ("title", "description", "assigned_agent")


def _schema(most: int, agents: JsonObject) -> JsonObject:
    fields: JsonObject = {"title": {"type": "string"}, "description": {"type": "string"}}
    if agents:
        names: list[Json] = [*agents]
        fields["assigned_agent"] = {"type": "string", "enum": names}
    task: JsonObject = {"type": "object", "required": [*fields], "properties": fields}
    tasks: JsonObject = {"type": "array", "minItems": 1, "maxItems": most, "items": task}
    return {"type": "object", "required": ["tasks"], "properties": {"tasks": tasks}}

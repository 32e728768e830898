"""The tools shown to a caller: the verbs that the role allows, and the saved workflows that it may see and run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from mcp.types import Tool, ToolAnnotations

from pointsman.auth.verbs import rule_of
from pointsman.authoring.tools import Effect, Verb, VerbCall, error_of, verbs
from pointsman.authoring.workbench import Workbench
from pointsman.errors import PointsmanError
from pointsman.executions.verbs import ExecutionVerbs
from pointsman.ports import ToolSpec
from pointsman.values import Json, JsonObject, JsonView
from pointsman.workflows.workflow_tools import PREFIX, WorkflowTools


@dataclass(frozen=True, slots=True)
class McpVerb:
    """A verb of the library as a tool."""

    verb: Verb[Any]

    @property
    def shown(self) -> Tool:
        verb = self.verb
        return Tool(
            name=verb.name,
            description=verb.says,
            input_schema=verb.schema,
            annotations=hints(verb.effect),
        )

    @property
    def changes_library(self) -> bool:
        return self.verb.role == "editor"

    async def call(self, call: VerbCall, arguments: JsonObject) -> JsonView:
        return await self.verb.call(call, arguments)


@dataclass(frozen=True, slots=True)
class McpWorkflow:
    """A saved workflow as a tool; a call runs it."""

    spec: ToolSpec
    changes_library: bool = False

    @property
    def shown(self) -> Tool:
        return Tool(
            name=self.spec.name,
            description=self.spec.description,
            input_schema=self._schema,
            annotations=hints("changes"),
        )

    @property
    def _schema(self) -> JsonObject:
        """Return the schema of the arguments, which is an object: another input becomes its only member."""
        schema = self.spec.parameters
        if schema.get("type", "object") == "object":
            return {"type": "object", **schema}
        return {"type": "object", "properties": {"input": schema}, "required": ["input"], "additionalProperties": False}

    def _input(self, arguments: JsonObject) -> Json:
        return arguments if self.spec.parameters.get("type", "object") == "object" else arguments.get("input")

    async def call(self, call: VerbCall, arguments: JsonObject) -> JsonView:
        """Run the workflow. Errors of the start, such as an invalid input, are in the answer."""
        try:
            execution = await call.bench.start(self.spec.workflow, self._input(arguments), key=call.key)
            call.began(execution.id)
            return await call.bench.watched(execution, call.hear)
        except PointsmanError as why:
            await call.bench.acting.record_refusal(rule_of(ExecutionVerbs.start), why.code)
            return error_of(why)


def hints(effect: Effect) -> ToolAnnotations:
    """Return annotations that clients may show people before a call."""
    return ToolAnnotations(
        read_only_hint=effect == "reads", destructive_hint=effect == "destroys", open_world_hint=effect != "reads"
    )


def verbs_of(bench: Workbench) -> list[McpVerb]:
    """Return the verbs that the caller's role allows."""
    return [McpVerb(verb) for verb in verbs().values() if bench.caller.has(verb.role)]


async def workflows_of(bench: Workbench, saved: WorkflowTools) -> list[McpWorkflow]:
    """Return the saved workflows that the caller may run. `saved` caches those read before."""
    return [McpWorkflow(spec) for spec in await bench.workflows.tools(saved)]


async def tool_named(bench: Workbench, saved: WorkflowTools, name: str) -> McpVerb | McpWorkflow | None:
    """Return a tool by name; None if this caller has no such tool."""
    offered = await workflows_of(bench, saved) if name.startswith(PREFIX) else verbs_of(bench)
    return next((tool for tool in offered if tool.shown.name == name), None)

"""Workflows as tools of agents: saved ones as `workflow__<id>`, and the built-in ones that are made for agents.

Models receive the workflow's description and the schema of its input. A call is performed by a child execution with its
own journal (see `engine/calling`), not by this module.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Final

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.failures import Failure
from pointsman.errors import EngineBug
from pointsman.ports import ToolSpec
from pointsman.store.api import Workflows
from pointsman.store.records import WorkflowEntry
from pointsman.tools.tool import OUTPUT_BYTES_MAX, Origin, Tool, ToolContext, ToolFailed, ToolLimits
from pointsman.values import Json, JsonObject, WorkflowId
from pointsman.workflows.builtin import BUILT_IN, TOOLS, shipped

PREFIX: Final = "workflow__"
NAME_CHARS_MAX: Final = 64
"""Model providers accept no longer names of tools, and only letters, digits, `_` and `-`."""
ANYTHING: Final[JsonObject] = {"type": "object"}

_OTHER: Final = re.compile(r"[^A-Za-z0-9_-]")


def tool_name(workflow: str) -> str:
    """Return the tool name of a workflow."""
    return (PREFIX + _OTHER.sub("_", workflow))[:NAME_CHARS_MAX]


def workflows_named(tools: Iterable[str], entries: Iterable[WorkflowEntry]) -> list[WorkflowId]:
    """Return the saved workflows behind tools of these names; other tools are omitted."""
    ids = by_tool_name(entries)
    return [ids[name] for name in tools if name in ids]


def by_tool_name(entries: Iterable[WorkflowEntry]) -> Mapping[str, WorkflowId]:
    """Return tool name -> workflow. If two workflows have the same tool name, the first by id gets it."""
    found: dict[str, WorkflowId] = {}
    for one in sorted(entry.id for entry in entries):
        found.setdefault(tool_name(one), one)
    return found


class WorkflowTools:
    """Source of the registry's tools for saved workflows. Disabled and unreadable workflows are omitted."""

    def __init__(self, workflows: Workflows) -> None:
        self._workflows = workflows
        self._known: dict[tuple[str, int], Tool | None] = {}
        self.prefix = PREFIX
        self.origin: Origin = "workflow"
        self.lasts = False

    async def listed(self) -> list[Tool]:
        """Return the tool of the latest revision of each workflow."""
        entries = await self._workflows.list()
        revisions = {entry.id: entry.revision for entry in entries}
        known: dict[tuple[str, int], Tool | None] = {}
        for name, workflow in by_tool_name(entries).items():
            at = (workflow, revisions[workflow])
            known[at] = self._known[at] if at in self._known else await self._tool(name, workflow)
        self._known = known
        return [tool for tool in known.values() if tool is not None]

    async def _tool(self, name: str, workflow: WorkflowId) -> Tool | None:
        found = await self._workflows.find(workflow)
        read = None if found is None else WorkflowDefinition.from_document(found.draft.native)[0]
        return None if read is None or read.enabled is False else WorkflowTool(name, read)

    def stand_in(self, name: str) -> Tool | None:
        """Return None: only the store knows the saved workflows."""
        return None

    async def close(self) -> None:
        """Nothing to close."""


class WorkflowTool:
    """The specification of a workflow as a tool."""

    def __init__(self, name: str, workflow: WorkflowDefinition) -> None:
        self.name = name
        self.limits = ToolLimits()
        called = str(workflow.name or workflow.id)
        self.spec = ToolSpec(
            name=name,
            description=str(workflow.description or f"Run the workflow {str(called)!r}."),
            parameters=workflow.input_schema or ANYTHING,
            idempotent=True,
            workflow=workflow.id,
            bytes_max=OUTPUT_BYTES_MAX,
        )

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Raise `ToolFailed`: only an execution can run a workflow."""
        message = f"{self.name!r} is a workflow; only an execution or a caller can run it"
        raise ToolFailed(Failure(code=ToolFailed.code, message=message))


class ShippedTool:
    """A built-in workflow as a tool. Its document is read when the tool's specification is first needed."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.limits = ToolLimits()

    @property
    def spec(self) -> ToolSpec:
        return self._tool.spec

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Raise `ToolFailed`: only an execution can run a workflow."""
        return await self._tool.run(arguments, context)

    @cached_property
    def _tool(self) -> WorkflowTool:
        source = shipped(BUILT_IN + self.name)
        if source is None:
            raise EngineBug(f"the tool {self.name!r} is not a built-in workflow")
        return WorkflowTool(self.name, source.definition)


def shipped_among(tools: Iterable[str]) -> list[str]:
    """Return the ids of the built-in workflows among the tools of these names."""
    return [BUILT_IN + name for name in dict.fromkeys(tools) if name in TOOLS]

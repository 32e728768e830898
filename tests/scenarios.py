"""Small workflows in virtual time: input, result, and journal."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping
from typing import NamedTuple, cast

from pointsman.app import Pointsman, Workflow
from pointsman.engine.state import ExecutionState
from pointsman.executions.opening import GivenAnswer, drive
from pointsman.settings import Settings
from pointsman.testing.clock import VirtualClock, run_virtually
from pointsman.tools.tool import Tool
from pointsman.values import Json, JsonObject
from pointsman.workflows.scripts import parse_script

SILENT = "rules: []"


class RunResult(NamedTuple):
    """The results of an execution."""

    view: JsonObject
    events: list[JsonObject]
    state: ExecutionState

    @property
    def status(self) -> Json:
        return self.view["status"]

    @property
    def path(self) -> list[Json]:
        return cast("list[Json]", self.view["path"])

    @property
    def data(self) -> JsonObject:
        return cast(JsonObject, self.view["state"])

    @property
    def errors(self) -> list[JsonObject]:
        return cast("list[JsonObject]", self.view["errors"])

    @property
    def warnings(self) -> list[JsonObject]:
        """All warnings without that of scripted executions."""
        warnings = cast("list[JsonObject]", self.view["warnings"])
        return [warning for warning in warnings if warning["code"] != "scripted-answers"]

    def told(self, kind: str) -> list[JsonObject]:
        """The events of one kind."""
        return [event for event in self.events if event["kind"] == kind]


def written(document: str | JsonObject) -> Workflow:
    """Return a workflow from YAML text or from an object."""
    if isinstance(document, str):
        return Workflow.parse(textwrap.dedent(document), name="staged.yaml")
    return Workflow.of(document)


def installation(
    script: str = SILENT,
    *,
    tools: tuple[Tool, ...] = (),
    store: str = "memory:",
    settings: Mapping[str, object] | None = None,
) -> Pointsman:
    """Open an app on virtual time whose models are all scripted."""
    return Pointsman(
        settings=Settings.model_validate({**(settings or {}), "store": store}),
        model="scripted",
        tools=tools,
        script=parse_script(textwrap.dedent(script)),
        clock=VirtualClock(),
    )


def play(
    document: str | JsonObject,
    given: Json = None,
    *,
    script: str = SILENT,
    tools: tuple[Tool, ...] = (),
    answers: tuple[GivenAnswer, ...] = (),
    settings: Mapping[str, object] | None = None,
    lenient: bool = False,
) -> RunResult:
    """Run it as far as the given answers allow."""

    async def run() -> RunResult:
        async with installation(script, tools=tools, settings=settings) as app:
            execution = await app.start(
                written(document), {"message": "Begin."} if given is None else given, lenient=lenient
            )
            await drive(execution, answers)
            state, events = await app.state_and_events(execution.id)
            return RunResult(cast("JsonObject", await execution.view()), events, state)

    return run_virtually(run())


# Rows ----------------------------------------------------------------------------------------------------------------


def agent_row(name: str) -> JsonObject:
    return {"id": name.lower(), "nodeType": "AGENT", "nodeName": name, "agentId": f"agent-{name.lower()}"}


def tools_row() -> JsonObject:
    return {"id": "tools", "nodeType": "TOOL_EXECUTOR", "nodeName": "tools", "agentId": None}


def edge_row(source: str, target: str | None, on: str | None = None) -> JsonObject:
    """`on`: the label of a conditional edge; None: an edge that is always taken."""
    return {
        "id": f"{source}-{on or 'always'}-{target}",
        "sourceNodeId": source,
        "targetNodeId": target,
        "conditionType": "ALWAYS" if on is None else "CONDITIONAL",
        "conditionValue": on,
    }


def rows(nodes: list[JsonObject], edges: list[JsonObject], **head: Json) -> JsonObject:
    """Return a table set: the first node is the entry; agents are those that the nodes name, their tools under
    `tools`."""
    given = cast("dict[str, list[Json]]", head.pop("tools", {}))
    agents: list[Json] = []
    for row in nodes:
        if row["agentId"] is not None:
            name = str(row["nodeName"])
            agent: JsonObject = {"id": row["agentId"], "name": name, "system_prompt": f"You are {name}."}
            agents.append({**agent, "tools": given[str(row["id"])]} if str(row["id"]) in given else agent)
    return {
        "id": "rows",
        "name": "Rows",
        "description": "",
        "isConversational": False,
        "entrypointNodeId": nodes[0]["id"],
        "nodes": [*nodes],
        "edges": [*edges],
        "agents": agents,
        **head,
    }

"""Agents and their tools: reserved names, tool executors that are missing or not led to, choices without words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pointsman.definition.agents import AgentConfig
from pointsman.definition.check.subject import Subject, listed
from pointsman.definition.control import DecisionConfig
from pointsman.definition.problems import Problem, error, warning

INJECTED: Final = ("router", "end")
"""Tools the engine gives agents itself."""


def check_agents(subject: Subject) -> Iterator[Problem]:
    yield from _reserved(subject)
    yield from _executors(subject)
    for position, node in enumerate(subject.nodes):
        if isinstance(node.config, DecisionConfig):
            yield from _decision(subject, position, node.config)


def _reserved(subject: Subject) -> Iterator[Problem]:
    for site in subject.sites:
        if site.kind == "tool" and site.text in INJECTED:
            message = f"a tool cannot be called {site.text!r}: the engine gives agents one of that name"
            yield error("reserved-tool-name", site.pointer, message, hint="Rename the tool.")


def _executors(subject: Subject) -> Iterator[Problem]:
    executors = {position for position, node in enumerate(subject.nodes) if node.type == "tool_executor"}
    for position, node in enumerate(subject.nodes):
        if not isinstance(node.config, AgentConfig):
            continue
        tools = subject.server_tools(node.config)
        if not tools:
            continue
        if not executors and subject.workflow.dialect == "rows":
            message = f"{subject.node(position)} has tools ({listed(tools)}), and there is no tool executor to run them"
            hint = "Add a node of type TOOL_EXECUTOR and an edge to it."
            yield error("no-tool-executor", subject.at_node(position), message, hint=hint)
        elif executors and not executors & set(subject.graph.links.targets(position)):
            message = f"{subject.node(position)} has tools ({listed(tools)}) and no edge to the tool executor"
            hint = f"Lead an edge from it to {subject.listed(executors)}."
            yield error("agent-without-tool-edge", subject.at_node(position), message, hint=hint)


def _decision(subject: Subject, position: int, config: DecisionConfig) -> Iterator[Problem]:
    if config.llm_prompt is not None and not config.choices and config.expression is None and not config.cases:
        labels = subject.labels_after(position)
        if not labels:
            message = f"{subject.node(position)} asks a model to choose, and there is nothing to choose from"
            hint = "List `choices`, or give its edges labels."
            yield warning("no-choices", subject.at_node(position), message, hint=hint)
    ways = [way for way in (config.expression, config.cases, config.llm_prompt) if way]
    if len(ways) > 1:
        message = f"{subject.node(position)} decides in more than one way"
        hint = "Keep one of `expression`, `cases` and `llmPrompt`."
        yield error("several-deciders", subject.at_node(position, "config"), message, hint=hint)

"""Checks of agents and their tools: reserved names, missing or unconnected tool executors, choices without labels."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pointsman.definition.checks.repairs import remove
from pointsman.definition.checks.subject import Subject, listed
from pointsman.definition.graph.links import agents_at
from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.control import DecisionConfig
from pointsman.definition.problems import Problem, error, pointer_to, warning

INJECTED: Final = ("router", "end")
"""Tools that the engine itself gives to agents."""


def check_agents(subject: Subject) -> Iterator[Problem]:
    yield from _reserved(subject)
    yield from _handoffs(subject)
    yield from _executors(subject)
    for position, node in enumerate(subject.nodes):
        if isinstance(node.config, DecisionConfig):
            yield from _decision(subject, position, node.config)
        if isinstance(node.config, AgentConfig):
            yield from _without_prompt(subject, position, node.config)


def _reserved(subject: Subject) -> Iterator[Problem]:
    for site in subject.sites:
        if site.kind == "tool" and site.text in INJECTED:
            message = f"a tool cannot be called {site.text!r}: the engine gives agents one of that name"
            yield error("reserved-tool-name", site.pointer, message, hint="Rename the tool.")


def _handoffs(subject: Subject) -> Iterator[Problem]:
    """Report hand-offs to unknown names, and hand-offs in places where they have no effect."""
    known = agents_at(subject.nodes)
    for position, node in enumerate(subject.nodes):
        if not isinstance(node.config, AgentConfig):
            continue
        for number, name in enumerate(node.config.handoffs or ()):
            if name not in subject.graph.index and name not in known:
                message = (
                    f"{subject.node(position)} hands over to {name!r}, and neither a node nor its agent has that name"
                )
                at = subject.at_node(position, "config", "handoffs", number)
                yield error("unknown-node", at, message, hint="Name a node of this workflow, or the agent of one.")
    for name, agent in (subject.workflow.agents or {}).items():
        if agent.handoffs:
            at = pointer_to("agents", name, "handoffs")
            message = f"`handoffs` changes nothing at the agent {name!r}: the way is a node's"
            yield warning("setting-without-effect", at, message, hint="Say it at the nodes.", fix=remove(at))


def _executors(subject: Subject) -> Iterator[Problem]:
    executors = frozenset(position for position, node in enumerate(subject.nodes) if node.type == "tool_executor")
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
        elif executors and executors.isdisjoint(subject.graph.links.targets(position)):
            message = f"{subject.node(position)} has tools ({listed(tools)}) and no edge to the tool executor"
            hint = f"Lead an edge from it to {subject.listed(executors)}."
            yield error("agent-without-tool-edge", subject.at_node(position), message, hint=hint)


def _without_prompt(subject: Subject, position: int, config: AgentConfig) -> Iterator[Problem]:
    """Report agents whose prompt defaults to the workflow's input, in a workflow that takes none."""
    workflow = subject.workflow
    named = (workflow.agents or {}).get(config.agent or "")
    if config.agent is not None and named is None:
        return  # an agent of the installation: its prompt is not known here
    said = [agent for agent in (config, named) if agent is not None]
    prompt = next((agent.prompt for agent in said if agent.prompt is not None), None)
    if prompt is not None:
        empty = not any(text.strip() for text in prompt.languages().values())
    else:
        asked = subject.nodes[position].inputs or any(one.messages or one.input_files for one in said)
        talks = subject.conversational or workflow.dialect in ("rows", "graph")
        empty = not (asked or talks or subject.takes_input)
    if empty:
        at = subject.at_node(position, "config", *(() if prompt is None else ("prompt",)))
        message = f"{subject.node(position)} has no prompt, and the workflow declares no input that it could be asked"
        if prompt is not None:
            message = f"the prompt of {subject.node(position)} is empty"
        hint = 'Give it a `prompt`, such as "Write about {topic}", or declare the input.'
        yield warning("agent-without-prompt", at, message, hint=hint)


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

"""Agents defined inside nodes, for dialects whose nodes only name agents: they move to the `agents` section."""

from __future__ import annotations

from collections.abc import Collection

from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.base import read_as
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.dialects.losses import document_of
from pointsman.values import JsonObject


class InlineAgents:
    """The agents of a workflow, including those that its nodes define."""

    def __init__(self, workflow: WorkflowDefinition) -> None:
        self.named: dict[str, AgentConfig] = dict(workflow.agents or {})

    def name_for(self, config: AgentConfig, node_id: str, *, beside: Collection[str] = ()) -> str:
        """Return the agent's name. A node that extends a named agent defines `<name>.<node>`. Fields in `beside` stay
        in the node."""
        own = {key: value for key, value in document_of(config).items() if key not in beside}
        named = own.pop("agent", None)
        if isinstance(named, str) and not own:
            return named
        name = f"{named}.{node_id}" if isinstance(named, str) else node_id
        inherited = document_of(self.named.get(named)) if isinstance(named, str) else {}
        made = read_as(AgentConfig, {**inherited, **own})
        assert isinstance(made, AgentConfig)
        self.named[name] = made
        return name

    def documents(self) -> JsonObject:
        return {name: document_of(agent) for name, agent in self.named.items()}

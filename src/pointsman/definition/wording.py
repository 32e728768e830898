"""How the formulas of a workflow are to be read: which names are taken, and which template spelling its dialect has."""

from __future__ import annotations

from typing import Final

from pointsman.definition.agents import AgentConfig
from pointsman.definition.control import JoinConfig, LoopConfig, ParallelConfig, WaitConfig
from pointsman.definition.graph import Graph
from pointsman.definition.nodes import Node
from pointsman.definition.work import PlannerConfig, TemplateRenderConfig
from pointsman.definition.workflow import Workflow
from pointsman.expressions.names import Names
from pointsman.expressions.template_pieces import Spelling

FIELDS_FIRST: Final = frozenset({"steps", "graph"})
"""Dialects whose declared fields win over reserved names."""

SINGLE_BRACES: Final = frozenset({"steps", "graph", "plan"})
"""Dialects whose templates know `{x}` alone."""


COMPENSATED: Final = "compensated"
"""What a compensation calls the step it undoes."""


def compensations_of(workflow: Workflow) -> frozenset[str]:
    """The nodes that undo others."""
    return frozenset(node.compensate for node in workflow.nodes if node.compensate is not None)


def is_imported(workflow: Workflow) -> bool:
    """Read from another dialect: its author could not know our stricter rules."""
    return workflow.dialect not in (None, "native")


def spelling_of(workflow: Workflow) -> Spelling:
    return "single" if workflow.dialect in SINGLE_BRACES else "double"


def fields_of(workflow: Workflow) -> frozenset[str]:
    """The state fields a document names: declared, given as input, or written by a node."""
    properties = (workflow.input_schema or {}).get("properties")
    found = set(properties) if isinstance(properties, dict) else set[str]()
    found |= {pattern.split(".")[0] for pattern in workflow.state or {}}
    for node in workflow.nodes:
        found |= {target.split(".")[0].split("[")[0] for target in node.outputs or {}}
    return frozenset(found - {"state", "data", "$"})


def names_of(workflow: Workflow, graph: Graph) -> tuple[Names, ...]:
    """For each node the names that win over others there: `as` names around it, and fields where they go first."""
    first = fields_of(workflow) if workflow.dialect in FIELDS_FIRST else frozenset[str]()
    plain = Names(fields_first=first)
    alias = {
        position: node.config.as_
        for position, node in enumerate(graph.links.nodes)
        if isinstance(node.config, ParallelConfig | LoopConfig) and node.config.as_ is not None
    }
    undoing = compensations_of(workflow)
    if not alias and not undoing:
        return (plain,) * len(graph.ids)
    around: list[set[str]] = [{alias[one] for one in scope or () if one in alias} for scope in graph.scopes]
    for position, node in enumerate(graph.ids):
        if node in undoing:
            around[position] |= {COMPENSATED, *alias.values()}
    for loop, shape in graph.loops.items():
        for node in shape.body if loop in alias else ():
            around[node].add(alias[loop])
    return tuple(Names(frozenset(some), first) if some else plain for some in around)


def names_within(node: Node, key: str) -> frozenset[str]:
    """Names that only this field of a node's configuration has: the node's inputs, and what the field is about."""
    own = frozenset(node.inputs or ())
    match node.config:
        case JoinConfig() if key in ("wait", "aggregate"):
            return own | {"results", "items", "branches", "arrived", "total"}
        case JoinConfig() if key == "template":
            return own | {"branches"}
        case WaitConfig() if key == "match":
            return own | {"event"}
        case TemplateRenderConfig(bind=bound) if key == "template":
            return own | frozenset(bound or ())
        case AgentConfig() if key == "guardrails":
            return own | {"text"}
        case PlannerConfig() if key == "taskTemplate":
            return own | {"task", "goal", "results"}
        case _:
            return own

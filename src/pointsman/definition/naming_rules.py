"""Rules for reading the formulas of a workflow: its reserved names, and the template syntax of its dialect."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from pointsman.definition.graph.analysis import Graph
from pointsman.definition.model.agents import AgentConfig
from pointsman.definition.model.control import JoinConfig, LoopConfig, ParallelConfig, StartConfig, WaitConfig
from pointsman.definition.model.nodes import Node
from pointsman.definition.model.work import PlannerConfig, TemplateRenderConfig, TransformConfig
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.expressions.environment import Names
from pointsman.expressions.template_parser import Spelling

FIELDS_FIRST: Final = frozenset({"steps", "graph"})
"""Dialects in which declared fields win over reserved names."""

SINGLE_BRACES: Final = frozenset({"steps", "graph", "plan"})
"""Dialects whose templates have only the form `{x}`."""


GRAPH_FIELDS: Final = frozenset(
    {"goal", "triage", "selected_search", "database_id", "targets", "latest", "drafts", "final", "verdicts", "logs"}
    | {"execution_trace", "fanout_items"}
)
"""Fields of every state in the graph dialect."""

COMPENSATED: Final = "compensated"
"""Name under which a compensation refers to the step that it undoes."""


def compensations_of(workflow: WorkflowDefinition) -> frozenset[str]:
    """Return the nodes that undo other nodes."""
    return frozenset(node.compensate for node in workflow.nodes if node.compensate is not None)


def is_imported(workflow: WorkflowDefinition) -> bool:
    """Return whether the workflow is in another dialect, whose authors could not know our stricter rules."""
    return workflow.dialect not in (None, "native")


def spelling_of(workflow: WorkflowDefinition) -> Spelling:
    return "single" if workflow.dialect in SINGLE_BRACES else "double"


def fields_of(workflow: WorkflowDefinition) -> frozenset[str]:
    """Return the state fields that a document names: declared, given as input, or written by a node."""
    properties = (workflow.input_schema or {}).get("properties")
    fields = set(properties) if isinstance(properties, dict) else set[str]()
    fields |= {pattern.split(".")[0] for pattern in workflow.state or {}}
    for node in workflow.nodes:
        fields |= {target.split(".")[0].split("[")[0] for target in node.outputs or {}}
    return frozenset(fields - {"state", "data", "$"})


def declared_in(workflow: WorkflowDefinition) -> frozenset[str]:
    """Return all names that a document gives to data anywhere: `{ x }` in its templates refers only to these."""
    declared = set(fields_of(workflow)) | (GRAPH_FIELDS if workflow.dialect == "graph" else frozenset[str]())
    if workflow.sources:
        declared.add("sources")
    for node in workflow.nodes:
        declared.update(node.inputs or ())  # not `|=`: with the keys of a dict it copies the whole set
        match node.config:
            case StartConfig(inputs=inputs, set=written, defaults=defaults):
                properties = (inputs or {}).get("properties")
                declared.update(properties if isinstance(properties, dict) else (), defaults or ())
                declared.update(target.split(".")[0] for target in written or ())
            case TransformConfig(set=written):
                declared.update(target.split(".")[0] for target in written or ())
            case ParallelConfig(as_=name) | LoopConfig(as_=name) if name is not None:
                declared.add(name)
            case _:
                pass
    return frozenset(declared)


def names_at_large(workflow: WorkflowDefinition) -> Names:
    """Return the names of a workflow that apply outside of all nodes."""
    first = fields_of(workflow) if workflow.dialect in FIELDS_FIRST else frozenset[str]()
    return Names(fields_first=first, declared=declared_in(workflow))


def names_of(workflow: WorkflowDefinition, graph: Graph, plain: Names) -> tuple[Names, ...]:
    """Return for each node the names that win over others there: `as` names of enclosing nodes, and
    declared fields in dialects where those come first. `plain` are the names outside of all nodes."""
    alias = {
        position: node.config.as_
        for position, node in enumerate(graph.links.nodes)
        if isinstance(node.config, ParallelConfig | LoopConfig) and node.config.as_ is not None
    }
    undoing = compensations_of(workflow)
    if not alias and not undoing:
        return (plain,) * len(graph.ids)
    around: list[set[str]] = [{alias[level] for level in scope or () if level in alias} for scope in graph.scopes]
    for loop, shape in graph.loops.items():
        for node in shape.body if loop in alias else ():
            around[node].add(alias[loop])
    every = replace(plain, as_names=frozenset({COMPENSATED, *alias.values()}))
    return tuple(
        every if node in undoing else replace(plain, as_names=frozenset(some)) if some else plain
        for node, some in zip(graph.ids, around, strict=True)
    )


def names_within(node: Node, key: str) -> frozenset[str]:
    """Return the names that exist only in this field of a node's
    configuration: the node's inputs and the field's own."""
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

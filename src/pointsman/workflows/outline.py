"""Outline of a workflow: the facts of a document that an installation needs before it checks or saves it.

Its size hardly depends on the size of the document, so that a worker process can read the document and send only the
outline.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from pointsman.definition.model.work import WorkflowCallConfig
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem, limited, sort_problems
from pointsman.definition.text_locations import Kind, sites_of
from pointsman.dialects.detect import ReadDocument
from pointsman.values import Json
from pointsman.workflows.model_uses import model_uses
from pointsman.workflows.variables import variables_in


@dataclass(frozen=True, slots=True)
class Outline:
    """Facts about a document, without its nodes."""

    head: WorkflowDefinition | None
    """The workflow without nodes, edges and agents; None: the document cannot be read."""
    problems: tuple[Problem, ...]
    """Problems found on reading, up to the limit of the list."""
    dialect: str | None
    given_id: Json = None
    """The id in the document, even if its structure has errors."""
    is_workflow: bool = False
    """Whether the document reads as a workflow, possibly with structural errors."""
    node_count: int = 0
    calls: bool = False
    """Whether nodes call sub-workflows."""
    names: dict[Kind, tuple[str, ...]] | None = None
    """Kind -> the different names in the document."""
    variables: frozenset[str] = frozenset()
    """Variables that the document names."""
    own_agents: frozenset[str] = frozenset()
    """Names of agents that the document describes itself."""

    def named(self, kind: Kind) -> tuple[str, ...]:
        return () if self.names is None else self.names.get(kind, ())


_NAMED: Final[tuple[Kind, ...]] = ("agent", "tool", "workflow", "model")


def outline_of(read: ReadDocument) -> Outline:
    """Return the outline of a document."""
    problems = sort_problems(limited(read.problems))
    workflow = read.workflow
    imported = read.imported
    given = None if imported is None else imported.document.get("id")
    if workflow is None:
        return Outline(None, problems, read.dialect, given, imported is not None)
    names: dict[Kind, dict[str, None]] = {kind: {} for kind in _NAMED}
    for site in sites_of(workflow):
        if site.kind in names:
            names[site.kind].setdefault(site.text)
    for use in model_uses(workflow, {}):
        names["model"].update(dict.fromkeys((use.model, *use.fallback)))
    return Outline(
        head=workflow.model_copy(update={"nodes": (), "edges": (), "agents": None}),
        problems=problems,
        dialect=read.dialect,
        given_id=given,
        is_workflow=True,
        node_count=len(workflow.nodes),
        calls=any(isinstance(node.config, WorkflowCallConfig) for node in workflow.nodes),
        names={kind: tuple(found) for kind, found in names.items()},
        variables=frozenset(name for _, name in variables_in(workflow.to_document())),
        own_agents=frozenset(workflow.agents or ()),
    )

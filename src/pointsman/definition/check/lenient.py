"""Going on without the edges that lead nowhere, for those who ask for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from pointsman.definition.problems import Problem
from pointsman.definition.workflow import Workflow
from pointsman.values import END


@dataclass(frozen=True, slots=True)
class Lenient:
    """The workflow without its dangling edges; each of them is now a warning."""

    workflow: Workflow
    problems: tuple[Problem, ...]


def lenient(workflow: Workflow, problems: Iterable[Problem]) -> Lenient:
    """Drop every edge one end of which does not exist. All other problems stay what they are."""
    known = {node.id for node in workflow.nodes}
    edges = tuple(
        edge for edge in workflow.edges if edge.source in known and (edge.target in known or edge.target == END)
    )
    return Lenient(
        workflow if len(edges) == len(workflow.edges) else workflow.model_copy(update={"edges": edges}),
        tuple(map(_dropped, problems)),
    )


def _dropped(problem: Problem) -> Problem:
    if problem.code != "dangling-edge":
        return problem
    return replace(problem, code="dropped-edge", severity="warning", message=f"{problem.message}: the edge is left out")

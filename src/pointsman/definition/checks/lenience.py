"""Going on without the edges that lead nowhere, for those who ask for it.

Such an edge is switched off, not removed: all others keep their places, so problems still point at the right ones.
"""

from __future__ import annotations

from pointsman.definition.checks.references import dropped_edges, ends_missing
from pointsman.definition.model.edges import Never
from pointsman.definition.model.workflow import Workflow
from pointsman.definition.problems import Problem


def lenient(workflow: Workflow) -> tuple[Workflow, tuple[Problem, ...]]:
    """Switch off every edge one end of which does not exist. Each is a warning; without any it is the same workflow."""
    dangling = {edge for edge, _, _ in ends_missing(workflow)}
    if not dangling:
        return workflow, ()
    edges = tuple(
        edge.model_copy(update={"condition": Never()}) if position in dangling else edge
        for position, edge in enumerate(workflow.edges)
    )
    without = workflow.model_copy(update={"edges": edges})
    return without, tuple(dropped_edges(without))

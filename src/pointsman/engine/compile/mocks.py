"""Check before the start of a partial run that a mocked value is possible as a result of its node."""

from __future__ import annotations

from typing import Literal, TypeAlias

from pointsman.definition.json_schema import JsonSchema
from pointsman.engine.actions import DecisionAction, HumanTaskAction, WorkAction
from pointsman.engine.decide.exit_step import match
from pointsman.engine.decide.partial_run import branch_of, labels_of
from pointsman.engine.plan import PlanNode
from pointsman.errors import CallerError
from pointsman.values import Json

Unfit: TypeAlias = Literal[
    "no-such-node", "leads-nowhere", "schema-forbids", "only-leads", "not-alone", "never-reached", "never-over"
]
"""Reason why a mock or an option of a partial run is invalid, for clients that translate it."""


class TrialUnfit(CallerError):
    """A partial run names something that its workflow lacks or cannot run in this way. Nothing was started.

    `node` is the node concerned, `why` the reason.
    """

    code = "trial-unfit"

    def __init__(self, message: str, *, node: str, why: Unfit, hint: str) -> None:
        super().__init__(message, hint=hint)
        self.node = node
        self.why = why


def must_fit(node: PlanNode, value: Json) -> None:
    """Check a mocked value against its node.

    Raises `TrialUnfit` for a branch or an answer that no edge takes, and for a value that an agent's output schema
    forbids.
    """
    match node.action:
        case DecisionAction():
            if not _leads_on(node, (branch := branch_of(value),)):
                raise _leads_nowhere(node, f"the branch {branch!r}")
        case HumanTaskAction():
            labels = labels_of(value)
            if not _leads_on(node, labels) and "reject" not in labels:
                raise _leads_nowhere(node, f"the answer {labels[0]!r}" if labels else "no answer")
        case WorkAction():
            schema = node.action.spec.config.get("outputSchema")
            if isinstance(schema, dict):
                _must_match(node, schema, value)
        case _:
            pass


def _leads_on(node: PlanNode, labels: tuple[str, ...]) -> bool:
    """Return whether an edge takes one of these labels, or may take it: conditions are evaluated only at run time.

    A node without edges accepts every label.
    """
    if not node.exits.edges or any(edge.kind in ("plain", "test", "default") for edge in node.exits.edges):
        return True
    if node.exits.mode == "label":
        return any(match(node, label) is not None for label in labels)
    return any(edge.label in labels for edge in node.exits.edges)


def _leads_nowhere(node: PlanNode, said: str) -> TrialUnfit:
    known = [edge.label for edge in node.exits.edges if edge.label is not None]
    return TrialUnfit(
        f"{node.id!r} is pinned to {said}, and no edge takes that",
        node=node.id,
        why="leads-nowhere",
        hint=f"Edges that lead on: {', '.join(dict.fromkeys(known)) or 'none'}.",
    )


def _must_match(node: PlanNode, schema: dict[str, Json], value: Json) -> None:
    # `next` selects the agent's edge and is not part of the output schema.
    said = {key: part for key, part in value.items() if key != "next"} if isinstance(value, dict) else value
    wrong = next(iter(JsonSchema(schema).misfits(said, most=1)), None)
    if wrong is not None:
        place = "/".join(str(part) for part in wrong.path)
        raise TrialUnfit(
            f"{node.id!r} is pinned to what its output schema forbids: {f'{place}: ' if place else ''}{wrong.message}",
            node=node.id,
            why="schema-forbids",
            hint="Correct the pinned value, or unpin the node.",
        )

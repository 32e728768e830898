"""Compensations: nodes that undo others. They stand apart from the graph: the engine alone sends control there."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pointsman.definition.checks.repairs import remove
from pointsman.definition.checks.subject import Subject
from pointsman.definition.naming_rules import compensations_of
from pointsman.definition.problems import Problem, error

UNDOES_NOTHING: Final = frozenset({"start", "end", "parallel", "join", "loop", "decision", "tool_executor", "note"})
"""Types that only mean something with edges around them."""


def check_compensation(subject: Subject) -> Iterator[Problem]:
    graph, workflow = subject.graph, subject.workflow
    config = workflow.config
    named = (workflow.entry, workflow.on_error, config.on_limit if config is not None else None)
    for name in sorted(compensations_of(workflow) & graph.index.keys()):
        position = graph.index[name]
        node, at = subject.nodes[position], subject.at_node(position)
        if node.type in UNDOES_NOTHING:
            message = (
                f"{subject.node(position)} is to undo a step, and nodes of type {node.type!r} cannot undo anything"
            )
            hint = "Name a node that does work: a tool, an agent, a sub-workflow, a person."
            yield error("compensation-impossible", at, message, hint=hint)
        if graph.out[position] or graph.into[position] or name in named:
            message = f"{subject.node(position)} undoes a step, and control comes there on other ways too"
            hint = "A compensation has no edges, and is neither `entry`, `onLimit` nor `onError`. Make it a node apart."
            yield error("compensation-on-path", at, message, hint=hint)
        if node.compensate is not None:
            where = subject.at_node(position, "compensate")
            message = f"{subject.node(position)} undoes a step, and is to be undone itself"
            hint = "What was undone is not done again. Remove it."
            yield error("compensation-undone", where, message, hint=hint, fix=remove(where))

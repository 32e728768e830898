"""Joins that look into the state: keys that must be there before they start, and who is to write them."""

from __future__ import annotations

from collections.abc import Iterator

from pointsman.definition.checks.conflicts import overlap
from pointsman.definition.checks.formulas import Formulas
from pointsman.definition.checks.order import Order
from pointsman.definition.checks.subject import Subject
from pointsman.definition.model.control import JoinConfig
from pointsman.definition.problems import Problem, warning
from pointsman.expressions.failures import ExpressionError
from pointsman.expressions.paths import ItemKey, compile_path


def check_joining(subject: Subject, formulas: Formulas) -> Iterator[Problem]:
    order = Order(subject)
    for position, node in enumerate(subject.nodes):
        config = node.config
        if not isinstance(config, JoinConfig) or config.merge_key is None or not subject.reached(position):
            continue
        try:
            segments = compile_path(config.merge_key).segments
        except ExpressionError:
            continue  # reported with all other paths
        keys = tuple(None if isinstance(key, ItemKey) else key for key in segments)
        writers = frozenset(one.node for one in formulas.writings if overlap(one.keys, keys))
        if writers and order.may_precede(writers, position, own=False):
            continue
        at = subject.at_node(position, "config", "mergeKey")
        message = f"{subject.node(position)} joins {config.merge_key!r}, which nothing before it writes"
        hint = "Name the field the branches write, or remove `mergeKey` to join their results."
        yield warning("merge-key-unwritten", at, message, hint=hint)

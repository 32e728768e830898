"""Aggregates: the named functions by which a join combines the results of its branches."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import msgspec

from pointsman.definition.model.control import JoinConfig
from pointsman.engine.actions import BranchResult, Value
from pointsman.engine.compile.formulas import FormulaCompiler
from pointsman.expressions.environment import Environment
from pointsman.values import Json, JsonObject

Aggregate = Callable[[list[BranchResult]], Json]

SEPARATOR: Final = "\n\n"


def aggregate_of(config: JoinConfig) -> Aggregate | None:
    """Return the function of a named aggregate; None for the plain list, and for expressions and templates."""
    name = config.aggregate
    order = tuple(config.order or ())
    separator = SEPARATOR if config.separator is None else config.separator
    if name in ("concat", "stitch"):
        return lambda seen: separator.join(text_of(one.value) for one in ordered(seen, order))
    simple: dict[str, Aggregate] = {
        "object": lambda seen: {one.key: one.value for one in ordered(seen, order)},
        "merge": lambda seen: merged(ordered(seen, order)),
        "first": lambda seen: ordered(seen, order)[0].value if seen else None,
        "last": lambda seen: ordered(seen, order)[-1].value if seen else None,
        "vote": lambda seen: vote(ordered(seen, order)),
    }
    if name in simple:
        return simple[name]
    listed = order or (name == "list" and config.merge_key is not None)  # otherwise the value at the path is the result
    return (lambda seen: [one.value for one in ordered(seen, order)]) if listed else None


def aggregate_value(config: JoinConfig, formulas: FormulaCompiler) -> Value | None:
    """Return a computed aggregate: an expression, or the template of `stitch`."""
    known = ("list", "object", "merge", "concat", "first", "last", "vote", "stitch")
    if config.template is not None:
        return _stitched(config, formulas)
    if config.aggregate is not None and config.aggregate not in known:
        return formulas.inside("results", "branches", "items", "arrived", "total").value(config.aggregate)
    return None


def _stitched(config: JoinConfig, formulas: FormulaCompiler) -> Value:
    assert config.template is not None
    page = formulas.inside("branches").rendered(config.template)
    separator = SEPARATOR if config.separator is None else config.separator
    order = tuple(config.order or ())

    def stitch(env: Environment) -> Json:
        branches = env.names.get("branches")
        texts: list[str] = []
        for number, branch in enumerate(_in_order(branches if isinstance(branches, list) else [], order)):
            names = {**env.names, "item": branch.get("key"), "key": branch.get("key"), "index": number}
            inner = Environment(
                env.state, env.nodes, {**names, "result": branch.get("result")}, env.config, env.item_key, env.strict
            )
            texts.append(str(page(inner)))
        return separator.join(texts)

    return stitch


def _in_order(branches: Sequence[Json], order: tuple[str, ...]) -> list[JsonObject]:
    found = [branch for branch in branches if isinstance(branch, dict)]
    return sorted(found, key=lambda b: order.index(str(b.get("key"))) if str(b.get("key")) in order else len(order))


def ordered(seen: list[BranchResult], order: tuple[str, ...]) -> list[BranchResult]:
    """Return results in branch order, with the named keys first."""
    if not order:
        return seen
    return sorted(seen, key=lambda one: order.index(one.key) if one.key in order else len(order))


def text_of(value: Json) -> str:
    """Return a value as part of a text: strings unchanged, null as an empty string, other values as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else msgspec.json.encode(value).decode()


def merged(seen: list[BranchResult]) -> JsonObject:
    """Merge objects in order; later keys win. A value that is not an object is stored under its branch key."""
    found: JsonObject = {}
    for one in seen:
        found |= one.value if isinstance(one.value, dict) else {one.key: one.value}
    return found


def vote(seen: list[BranchResult]) -> Json:
    """Return the value that most branches returned; in a tie, the value that arrived first."""
    counts: dict[bytes, int] = {}
    values: dict[bytes, Json] = {}
    for one in seen:
        mark = msgspec.json.encode(one.value, order="deterministic")
        counts[mark] = counts.get(mark, 0) + 1
        values.setdefault(mark, one.value)
    return values[max(counts, key=lambda mark: counts[mark])] if counts else None

"""Output of a workflow of steps, as far as its shape determines it: the field that every path to the end writes last.

A checkpoint may change that field, so the output is the field and not the last step's result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

Ways = Iterable[tuple[str, str, bool]]
"""(source, target, whether the edge is unconditional)."""


def predecessors(ways: Ways) -> dict[str, list[str]]:
    before: dict[str, list[str]] = {}
    for source, target, _ in ways:
        before.setdefault(target, []).append(source)
    return before


def fields_before(node: str, fields: Mapping[str, str | None], before: Mapping[str, list[str]]) -> Iterator[str]:
    """Yield the fields written just before a gate, looking through gates in between. Fields may be repeated.

    `fields` has the output field of each step; None for gates. `before` has the direct predecessors of each node.
    """
    seen, waiting = {node}, [*before.get(node, ())]
    while waiting:
        here = waiting.pop(0)
        if here in seen or here not in fields:
            continue
        seen.add(here)
        field = fields[here]
        if field is not None:
            yield field
        else:
            waiting.extend(before.get(here, ()))


def output_field(fields: Mapping[str, str | None], ways: Ways) -> str | None:
    """Return the only field of all steps and gates at which the execution may end; None: several fields, or none."""
    ways = list(ways)
    before = predecessors(ways)
    going_on = {source for source, _, always in ways if always}
    found: set[str] = set()
    for node, field in fields.items():
        if node not in going_on:
            found.update([field] if field is not None else fields_before(node, fields, before))
    return found.pop() if len(found) == 1 else None

"""What a workflow of steps gives back, where its shape alone says it: the field that every way to the end leaves last.

A checkpoint may change that field, so the field is the output and not the last step's result.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

Ways = Iterable[tuple[str, str, bool]]
"""(source, target, whether it is taken in any case)."""


def predecessors(ways: Ways) -> dict[str, list[str]]:
    before: dict[str, list[str]] = {}
    for source, target, _ in ways:
        before.setdefault(target, []).append(source)
    return before


def fields_before(node: str, fields: Mapping[str, str | None], before: Mapping[str, list[str]]) -> Iterator[str]:
    """The fields written just before a gate; gates in between are looked through. Fields may come twice.

    `fields` has the output field of each step; None for gates. `before` has the nodes just before each node.
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
    """The one field of all steps (or gates) at which control may end; None where there are several, or none."""
    ways = list(ways)
    before = predecessors(ways)
    going_on = {source for source, _, always in ways if always}
    found: set[str] = set()
    for node, field in fields.items():
        if node not in going_on:
            found.update([field] if field is not None else fields_before(node, fields, before))
    return found.pop() if len(found) == 1 else None

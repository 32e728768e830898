"""Keywords of the steps dialect in its three spellings, its templates, and the output that the shape implies."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Final

from pointsman.dialects.readers import FieldWords
from pointsman.values import Json

WORDS: Final = FieldWords(
    {
        "type": ("type", "node_type"),
        "step": ("step", "step_definition"),
        "checkpoint": ("checkpoint", "checkpoint_config"),
        "from": ("from", "from_node"),
        "to": ("to", "to_node"),
        "condition": ("condition", "condition_expr"),
    }
)
"""The first spelling is written unless the author used another one."""

NODE_TYPES: Final = ("execute", "checkpoint")
STEP_TYPES: Final = ("tool_call", "llm_transform", "llm_decision")
ACTIONS: Final = ("approve", "edit", "reject", "skip")
DEFAULT_ACTIONS: Final[tuple[Json, ...]] = ("approve", "edit", "reject")
"""Default actions of a checkpoint."""

_FIELD: Final = re.compile(r"(?<!\\)\{\{?\s*([A-Za-z_]\w*)(?:[.\[][^{}\n]*?)?\??(?:\|\w+)?\s*\}")
_BRACES: Final = re.compile(r"\{\{\s*([A-Za-z_][\w.]*)\s*\}\}|\{\{|\}\}")
_ACTION: Final = re.compile(r"""\s*(?:action\s*={2,3}\s*)?['"]?(approve|edit|reject|skip)['"]?\s*""", re.IGNORECASE)


def fields_in(value: Json) -> Iterator[str]:
    """Yield the fields that templates anywhere in a value name, in order."""
    match value:
        case str():
            yield from (match[1] for match in _FIELD.finditer(value))
        case list():
            for inner in value:
                yield from fields_in(inner)
        case dict():
            for inner in value.values():
                yield from fields_in(inner)
        case _:
            pass


def native_template(template: str, fields: Collection[str]) -> str:
    """Convert a template in the style of `str.format`: a doubled brace is a literal brace, unless it encloses a field's
    name.

    Closing braces count as doubled only if the template has doubled opening ones: a JSON example may end in `}}`.
    """
    doubled = any(match[0] == "{{" for match in _BRACES.finditer(template) if match[1] is None)

    def rewrite(match: re.Match[str]) -> str:
        name = match[1]
        if name is not None:
            return f"{{{name}}}" if name.split(".")[0] in fields else f"\\{{{name}}}"
        if not doubled:
            return match[0]
        return "\\{" if match[0] == "{{" else "}"

    return _BRACES.sub(rewrite, template)


def action_of(label: Json, condition: Json, actions: Collection[Json]) -> str | None:
    """Return the action that an edge of a checkpoint waits for: its label, or a condition that consists of an action
    only."""
    for text in (label, condition):
        match = _ACTION.fullmatch(text) if isinstance(text, str) else None
        if match is not None and (match[1].lower() in actions or text is condition):
            return match[1].lower()
    return None


AGENT_WORDS: Final[Mapping[str, str]] = {
    "agent": "agent",
    "model": "model",
    "tools": "tools",
    "outputSchema": "output_schema",
}
"""Native field of an agent -> its name in a step."""


Transitions = Iterable[tuple[str, str, bool]]
"""(source, target, whether the edge is unconditional)."""


def predecessors(transitions: Transitions) -> dict[str, list[str]]:
    before: dict[str, list[str]] = {}
    for source, target, _ in transitions:
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


def output_field(fields: Mapping[str, str | None], transitions: Transitions) -> str | None:
    """Return the only field of all steps and gates at which the execution may end; None: several fields, or none."""
    transitions = list(transitions)
    before = predecessors(transitions)
    going_on = {source for source, _, always in transitions if always}
    names: set[str] = set()
    for node, field in fields.items():
        if node not in going_on:
            names.update([field] if field is not None else fields_before(node, fields, before))
    return names.pop() if len(names) == 1 else None

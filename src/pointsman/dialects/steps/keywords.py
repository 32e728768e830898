"""Keywords of the steps dialect in its three spellings, and its templates."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from pointsman.dialects.foreign_fields import FieldWords
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
            yield from (found[1] for found in _FIELD.finditer(value))
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
    doubled = any(found[0] == "{{" for found in _BRACES.finditer(template) if found[1] is None)

    def rewrite(found: re.Match[str]) -> str:
        name = found[1]
        if name is not None:
            return f"{{{name}}}" if name.split(".")[0] in fields else f"\\{{{name}}}"
        if not doubled:
            return found[0]
        return "\\{" if found[0] == "{{" else "}"

    return _BRACES.sub(rewrite, template)


def action_of(label: Json, condition: Json, actions: Collection[Json]) -> str | None:
    """Return the action that an edge of a checkpoint waits for: its label, or a condition that consists of an action
    only."""
    for said in (label, condition):
        found = _ACTION.fullmatch(said) if isinstance(said, str) else None
        if found is not None and (found[1].lower() in actions or said is condition):
            return found[1].lower()
    return None


AGENT_WORDS: Final[Mapping[str, str]] = {
    "agent": "agent",
    "model": "model",
    "tools": "tools",
    "outputSchema": "output_schema",
}
"""Native field of an agent -> its name in a step."""

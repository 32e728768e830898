"""Resolution order of a bare name: variable, `as` name, reserved name, state field, engine name, setting."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

ROOTS: Final[dict[str, str]] = {
    "input": "input",
    "state": "state",
    "data": "state",
    "result": "result",
    "nodes": "nodes",
    "nodeOutputs": "nodes",
    "outputs": "nodes",
    "item": "item",
    "current_fanout_item": "item",
    "index": "index",
    "key": "key",
    "loop": "loop",
    "config": "config",
    "settings": "config",
    "execution": "execution",
    "session": "session",
    "next": "next",
    "secret": "secret",
}
"""Reserved names and the root that each one means."""

ITEM_SEGMENT: Final = "current_fanout_item"
"""Path segment which, after a dot, stands for the key of this branch's item."""


@dataclass(frozen=True, slots=True)
class Names:
    """Names that a workflow, or one position in it, declares."""

    as_names: frozenset[str] = frozenset()
    """Names that an enclosing parallel or loop gives to its items."""
    fields_first: frozenset[str] = frozenset()
    """Declared state fields that win over reserved names (dialects `steps` and `graph`)."""
    declared: frozenset[str] = frozenset()
    """All names that the workflow receives or writes: in a template, `{ x }` with blanks refers only to these."""

    def root(self, name: str) -> str:
        """Return the root that `name` means; "" for a state field, engine name or setting."""
        if name in self.as_names:
            return name
        if name in self.fields_first:
            return ""
        return ROOTS.get(name, "")


NATIVE: Final = Names()

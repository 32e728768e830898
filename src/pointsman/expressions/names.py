"""What a bare name means: variable, `as` name, reserved name, state field, engine name, setting; in this order."""

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
"""Reserved names and the root each one means."""

ITEM_SEGMENT: Final = "current_fanout_item"
"""As a path segment after a dot: the key of this branch's item."""


@dataclass(frozen=True, slots=True)
class Names:
    """The names that one workflow, or one place in it, declares."""

    as_names: frozenset[str] = frozenset()
    """Names that a parallel or loop around this place gives its items."""
    fields_first: frozenset[str] = frozenset()
    """Declared state fields that win over reserved names (dialects `steps` and `graph`)."""
    declared: frozenset[str] = frozenset()
    """All names that the workflow gives or writes: only these are meant by `{ x }` with blanks in a template."""

    def root(self, name: str) -> str:
        """The root that `name` means; "" when it is a state field, engine name or setting."""
        if name in self.as_names:
            return name
        if name in self.fields_first:
            return ""
        return ROOTS.get(name, "")


NATIVE: Final = Names()

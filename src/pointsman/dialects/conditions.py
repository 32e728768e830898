"""Edge conditions as expressions, for dialects that have no other conditions."""

from __future__ import annotations

import json

from pointsman.definition.model.edges import (
    Always,
    AnyCondition,
    Contains,
    Equals,
    Exists,
    OnLabel,
    When,
)
from pointsman.dialects.foreign_fields import member
from pointsman.dialects.losses import as_json


def condition_text(condition: AnyCondition | None, source: str) -> str | None:
    """Return an expression equivalent to the condition; "" for always; None if no expression is equivalent."""
    match condition:
        case None | Always():
            return ""
        case When(expression=expression):
            return expression
        case Equals(field=field, value=value):
            return f"{field} == {_literal(value)}"
        case Contains(field=field, value=value):
            return f"{_literal(value)} in {field}"
        case Exists(field=field):
            return f"exists({field})"
        case OnLabel(label=label):
            return f"{member('nodes', source)}.branch == {_literal(label)}"
        case _:
            return None


def _literal(value: object) -> str:
    return json.dumps(as_json(value), ensure_ascii=False)

"""What an operator should know, one thing at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pointsman.values import JsonObject

Severity: TypeAlias = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """Something an operator should know, and what to do about it."""

    severity: Severity
    code: str
    message: str
    hint: str = ""
    mendable: bool = False
    """`doctor --fix` can do what the hint says, without any risk."""

    def to_json(self) -> JsonObject:
        return {
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "mendable": self.mendable,
        }

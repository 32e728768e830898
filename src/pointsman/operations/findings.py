"""Health findings: the entries in the output of `doctor` and `/ready`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pointsman.values import JsonObject

Severity: TypeAlias = Literal["error", "warning", "note"]


@dataclass(frozen=True, slots=True)
class HealthFinding:
    """A condition the operator should know about, and what to do about it."""

    severity: Severity
    code: str
    message: str
    hint: str = ""
    mendable: bool = False
    """Whether `doctor --fix` can apply the hint without risk."""

    def to_json(self) -> JsonObject:
        return {
            "severity": self.severity,
            "code": self.code,
            "message": self.message,
            "hint": self.hint,
            "mendable": self.mendable,
        }

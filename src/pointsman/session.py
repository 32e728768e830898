"""Session: the verbs of all domains for one caller. Faces hold nothing else of the app.

session = app.acting_as(caller, via="PUT /api/workflows/{id}", origin="10.0.0.7")
await session.executions.cancel("exec-1")
"""

from __future__ import annotations

from dataclasses import dataclass

from pointsman.auth.callers import Caller
from pointsman.auth.verbs import Acting
from pointsman.executions.verbs import ExecutionVerbs


@dataclass(frozen=True, slots=True)
class Session:
    """The verbs of all domains for one caller and one operation of a face. Cheap to create."""

    acting: Acting

    @property
    def caller(self) -> Caller:
        return self.acting.caller

    @property
    def executions(self) -> ExecutionVerbs:
        return ExecutionVerbs(self.acting)

"""Response models of errors and limits that stop executions."""

from __future__ import annotations

from pydantic import Field

from pointsman.server.schemas.requests import Answer


class Trouble(Answer):
    """What went wrong in an execution."""

    code: str
    message: str
    node_id: str | None = None
    hint: str | None = None


class StoppingLimit(Answer):
    """The limit that stopped an execution, and what would be enough to go on."""

    name: str = Field(description="Under which it is raised.")
    now: float
    used: float
    next: float | None = Field(description="As much once more; null: the operator allows no more.")
    most: float | None = Field(description="What the operator allows; null: any number.")

"""People in documents: approvers, deadlines, escalation."""

from __future__ import annotations

from typing import Annotated, Literal

from pointsman.definition.model.base import Count, Many, Model, Name, Spelled
from pointsman.definition.model.quantities import Duration
from pointsman.definition.model.text import Text


class Approvers(Model):
    """Who may answer, and how many must. Without groups and users: anyone."""

    groups: Many[Name] | None = None
    users: Many[Name] | None = None
    quorum: Count | None = None
    """Votes for one action that close the gate (1). Each person has one."""
    reject_quorum: Count | None = None
    """The same for `reject` (1: one rejection is enough)."""
    delegable: bool | None = None
    """Whether an approver may pass the right on to another person (true)."""


class Escalation(Model):
    """Whom a gate is put to next, instead of those who did not answer in time."""

    approvers: Approvers
    timeout: Duration | None = None
    """How long they have; left out: as long as the first ones."""


class Approval(Model):
    """On which terms people are asked before work starts (`requiresApproval`), and about tools that need approval."""

    message: Annotated[Text | None, Spelled("template")] = None
    """The question asked before the node starts."""
    approvers: Approvers | None = None
    timeout: Duration | None = None
    escalation: Many[Escalation] | None = None
    on_timeout: Literal["fail", "approve", "reject"] | None = None

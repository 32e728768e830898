"""People who are asked: whether they can answer at all, whether enough of them can, and whom it is put to then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pointsman.definition.checks.subject import Subject
from pointsman.definition.model.control import ControlConfig, HumanConfig, ToolExecutorConfig
from pointsman.definition.model.people import Approval, Approvers
from pointsman.definition.model.policies import Config
from pointsman.definition.problems import Problem, error, pointer_to, warning

UNASKABLE: Final = ("transform", "template-render", "progress")
"""Types that are no control and take no time all the same."""


def check_approvers(subject: Subject) -> Iterator[Problem]:
    config = subject.workflow.config or Config()
    if config.approval is not None:
        yield from _terms(config.approval, "/config/approval", "`config.approval`")
    for position, node in enumerate(subject.nodes):
        if isinstance(node.config, HumanConfig):
            yield from _terms(node.config, subject.at_node(position, "config"), subject.node(position))
        if node.approval is not None:
            yield from _terms(node.approval, subject.at_node(position, "approval"), subject.node(position))
        passes = isinstance(node.config, ControlConfig) and not isinstance(node.config, ToolExecutorConfig)
        if node.requires_approval and (passes or node.type in UNASKABLE):
            message = f"{subject.node(position)} does no work: nobody can be asked before it starts"
            hint = "Put a `human` node before it."
            yield error("approval-unsupported", subject.at_node(position, "requiresApproval"), message, hint=hint)


def _terms(said: HumanConfig | Approval, at: str, who: str) -> Iterator[Problem]:
    if said.approvers is not None:
        yield from _approvers(said.approvers, f"{at}/approvers", who)
    before = said.approvers
    for number, level in enumerate(said.escalation or ()):
        where = f"{at}{pointer_to('escalation', number)}"
        yield from _approvers(level.approvers, f"{where}/approvers", who)
        if level.approvers == before:
            message = f"{who} is put to the same people again"
            yield warning("escalation-idle", where, message, hint="Name others, or give the first ones more time.")
        before = level.approvers
    if said.escalation and said.timeout is None:
        message = f"{who} is never put to others: the first ones have all the time there is"
        yield warning("escalation-idle", f"{at}/escalation", message, hint="Set `timeout`.")


def _approvers(approvers: Approvers, at: str, who: str) -> Iterator[Problem]:
    users, groups = approvers.users, approvers.groups
    if (users is not None or groups is not None) and not users and not groups:
        message = f"{who} asks nobody: no user and no group may answer"
        yield error("approvers-nobody", at, message, hint="Name a user or a group, or leave `approvers` out.")
    elif users and not groups:
        for key, needed in (("quorum", approvers.quorum), ("rejectQuorum", approvers.reject_quorum)):
            if needed is not None and needed > len(set(users)):
                message = f"{needed} answers are needed, and only {len(set(users))} may answer"
                yield error("quorum-unmet", f"{at}/{key}", message, hint="Lower the quorum, or add people.")

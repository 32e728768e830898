"""Session: the verbs of all domains for one caller. Faces hold nothing else of the app.

session = app.acting_as(caller, via="PUT /api/workflows/{id}", origin="10.0.0.7")
await session.executions.cancel("exec-1")
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from pointsman.auth.callers import Caller
from pointsman.auth.verbs import Acting
from pointsman.executions.verbs import ExecutionVerbs
from pointsman.workflows.verbs import WorkflowVerbs

if TYPE_CHECKING:  # Deferred: most commands need one or two of these.
    from pointsman.auth.administration import AccessVerbs
    from pointsman.authoring.templates import TemplateVerbs
    from pointsman.authoring.verbs import AuthoringVerbs
    from pointsman.chat.verbs import ConversationVerbs, MemoryVerbs
    from pointsman.comments.verbs import CommentVerbs
    from pointsman.evaluations.verbs import EvaluationVerbs
    from pointsman.operations.verbs import OperationVerbs
    from pointsman.triggers.verbs import (
        AnswerLinkVerbs,
        NotificationVerbs,
        PublicationVerbs,
        ScheduleVerbs,
        TriggerVerbs,
    )
    from pointsman.workflows.access_verbs import SecretVerbs, SharingVerbs
    from pointsman.workflows.agent_verbs import AgentVerbs
    from pointsman.workflows.folders import FolderVerbs
    from pointsman.workflows.tool_verbs import ToolVerbs


@dataclass(frozen=True, slots=True)
class Session:
    """The verbs of all domains for one caller and one operation of a face. Cheap to create."""

    acting: Acting

    @property
    def caller(self) -> Caller:
        return self.acting.caller

    @property
    def agents(self) -> AgentVerbs:
        from pointsman.workflows.agent_verbs import AgentVerbs  # Deferred as below.

        return AgentVerbs(self.acting)

    @property
    def authoring(self) -> AuthoringVerbs:
        from pointsman.authoring.verbs import AuthoringVerbs  # Deferred: most commands write no workflows.

        return AuthoringVerbs(self.acting)

    @property
    def comments(self) -> CommentVerbs:
        from pointsman.comments.verbs import CommentVerbs  # Deferred: few commands need comments.

        return CommentVerbs(self.acting)

    @property
    def evaluations(self) -> EvaluationVerbs:
        from pointsman.evaluations.verbs import EvaluationVerbs  # Deferred: most commands evaluate nothing.

        return EvaluationVerbs(self.acting)

    @property
    def executions(self) -> ExecutionVerbs:
        return ExecutionVerbs(self.acting)

    @property
    def schedules(self) -> ScheduleVerbs:
        from pointsman.triggers.verbs import ScheduleVerbs  # Deferred: time zones take long to load.

        return ScheduleVerbs(self.acting)

    @property
    def triggers(self) -> TriggerVerbs:
        from pointsman.triggers.verbs import TriggerVerbs  # Deferred as above.

        return TriggerVerbs(self.acting)

    @property
    def notifications(self) -> NotificationVerbs:
        from pointsman.triggers.verbs import NotificationVerbs  # Deferred as above.

        return NotificationVerbs(self.acting)

    @property
    def answer_links(self) -> AnswerLinkVerbs:
        from pointsman.triggers.verbs import AnswerLinkVerbs  # Deferred as above.

        return AnswerLinkVerbs(self.acting)

    @property
    def publications(self) -> PublicationVerbs:
        from pointsman.triggers.verbs import PublicationVerbs  # Deferred as above.

        return PublicationVerbs(self.acting)

    @property
    def conversations(self) -> ConversationVerbs:
        from pointsman.chat.verbs import ConversationVerbs  # Deferred: most commands need no chat.

        return ConversationVerbs(self.acting)

    @property
    def memory(self) -> MemoryVerbs:
        from pointsman.chat.verbs import MemoryVerbs  # Deferred as above.

        return MemoryVerbs(self.acting)

    @property
    def operations(self) -> OperationVerbs:
        from pointsman.operations.verbs import OperationVerbs  # Deferred: metrics take long to load.

        return OperationVerbs(self.acting)

    @property
    def access(self) -> AccessVerbs:
        from pointsman.auth.administration import AccessVerbs  # Deferred: most commands manage no keys.

        return AccessVerbs(self.acting)

    @property
    def secrets(self) -> SecretVerbs:
        from pointsman.workflows.access_verbs import SecretVerbs  # Deferred: most commands manage no secrets.

        return SecretVerbs(self.acting)

    @property
    def folders(self) -> FolderVerbs:
        from pointsman.workflows.folders import FolderVerbs  # Deferred as above.

        return FolderVerbs(self.acting)

    @property
    def sharing(self) -> SharingVerbs:
        from pointsman.workflows.access_verbs import SharingVerbs  # Deferred as above.

        return SharingVerbs(self.acting)

    @property
    def tools(self) -> ToolVerbs:
        from pointsman.workflows.tool_verbs import ToolVerbs  # Deferred as above.

        return ToolVerbs(self.acting)

    @property
    def templates(self) -> TemplateVerbs:
        from pointsman.authoring.templates import TemplateVerbs  # Deferred: most commands use no templates.

        return TemplateVerbs(self.acting)

    @property
    def workflows(self) -> WorkflowVerbs:
        return WorkflowVerbs(self.acting)

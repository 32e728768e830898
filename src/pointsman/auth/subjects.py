"""Subjects of authorization: workflows, executions and sessions, and the errors for those a caller may not see.

A caller who may not see a thing gets the same answer as for one that does not exist.
"""

from __future__ import annotations

from typing import ClassVar, Final, Protocol

from pointsman.context import Part
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.errors import CallerError, OperatorError
from pointsman.store.records import SavedWorkflow

SESSION_NAME_MAX: Final = 500


class DefinitionMissing(OperatorError):
    """The store does not contain the definition that an execution runs on."""

    code: ClassVar[str] = "definition-missing"


class UnknownWorkflow(CallerError):
    """No saved workflow has that name."""

    code: ClassVar[str] = "unknown-workflow"


class UnknownSession(CallerError):
    """A conversation of that id has no messages and no executions."""

    code: ClassVar[str] = "unknown-session"


class InputInvalid(CallerError):
    """The input does not fit the workflow's schema."""

    code: ClassVar[str] = "input-invalid"


class Definitions(Protocol):
    """Lookup of the definitions that authorization depends on. The library implements it."""

    async def found(self, reference: str) -> SavedWorkflow:
        """Return a workflow by `id`, `id@revision` or `id@semver`. Raises `UnknownWorkflow`."""
        ...

    async def saved(self, reference: str) -> tuple[WorkflowDefinition, int]:
        """Return the definition of a workflow and its revision. Raises as `found`, and `AuthorError`."""
        ...

    async def published(self, workflow: str) -> int:
        """Return the revision of a workflow that was published and runs by id; 0: none."""
        ...

    async def kept(self, definition: str) -> WorkflowDefinition:
        """Return the definition of this digest, which executions run on. Raises `DefinitionMissing`."""
        ...

    def unknown(self, reference: str) -> UnknownWorkflow:
        """Return the refusal for a workflow that does not exist, or that the caller may not see."""
        ...


DEFINITIONS: Final = Part[Definitions]("definitions")


def unknown_session(session: str) -> UnknownSession:
    """Return the refusal for a session that does not exist, or that the caller may not see."""
    return UnknownSession(
        f"there is no session {session!r}", hint="`sessionId` in an execution view is the id of its session."
    )


def check_session(name: str) -> None:
    """Raise `InputInvalid` for a text that cannot be the name of a conversation."""
    if not 0 < len(name) <= SESSION_NAME_MAX or not name.isprintable():
        raise InputInvalid(
            f"{name[:60]!r} cannot be the name of a conversation",
            hint=f"It must have 1 to {SESSION_NAME_MAX} printable characters.",
        )


def is_conversational(workflow: WorkflowDefinition) -> bool:
    """Return whether the executions of a workflow are turns of a conversation."""
    return workflow.config is not None and bool(workflow.config.conversational)

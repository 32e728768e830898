"""Pipeline API: run a command and return the record of the run; read the records of a session."""

from __future__ import annotations

from typing import Annotated, Final

from fastapi import Path, Response
from pydantic import Field, model_validator

from pointsman.chat.conversations import SessionRecords
from pointsman.chat.verbs import CHARS_MAX, Command, ConversationVerbs, command_of, parse_command
from pointsman.server.context import CallerSession
from pointsman.server.operation import Operations
from pointsman.server.problems import JsonReply, run_reply
from pointsman.server.schemas.answers import answers, example, json_answer, refusals
from pointsman.server.schemas.requests import Body, requires_fields, sample, with_schema_rule
from pointsman.session import Session

router = Operations(tags=["pipeline"])


SessionName = Annotated[str, Path(min_length=1, max_length=200, description="The session's id.")]
RAN: Final = ("command-invalid", "unknown-workflow", "wrong-status", "model-rate-limited", "tool-timeout", 503)
EXAMPLE: Final = "Write a proposal for optimizing warehouse operations, send to john@example.com"


class RunRequest(Body):
    """The task: a command in words, or a goal and an address."""

    model_config = with_schema_rule(
        sample(command=EXAMPLE),
        oneOf=[{**requires_fields("command"), "not": requires_fields("email")}, requires_fields("goal")],
    )
    command: str | None = Field(default=None, min_length=1, max_length=CHARS_MAX, description="In words.")
    goal: str | None = Field(default=None, max_length=CHARS_MAX, json_schema_extra={"minLength": 1})
    email: str | None = Field(default=None, max_length=320, description="The address to which the document is sent.")

    @model_validator(mode="after")
    def _one_of_both(self) -> RunRequest:
        if (self.command is None) == (self.goal is None):
            raise ValueError("give either `command` or `goal`")
        if self.command is not None and self.email is not None:
            raise ValueError("an address belongs to a `goal`; in a `command`, write the address into the text")
        return self

    def asked(self) -> Command:
        """Raises `CommandInvalid`."""
        return command_of(self.goal or "", self.email) if self.command is None else parse_command(self.command)


class LegacyRequest(Body):
    """The task: a goal and an address."""

    model_config = sample(goal="Write a proposal", email="john@example.com")
    goal: str = Field(max_length=CHARS_MAX, json_schema_extra={"minLength": 1})
    email: str | None = Field(default=None, max_length=320)


OUTPUT: Final = json_answer({"document": "…"}, "The output of the workflow.")
example(
    SessionRecords,
    {
        "session_id": "ses_0badcafe",
        "sessions": [{"session_id": "ses_0badcafe", "workflow_id": "agentforge", "status": "completed"}],
    },
)


@router.post(
    "/run",
    verb=ConversationVerbs.run_pipeline,
    responses=OUTPUT | refusals(*RAN, body=True),
    summary="Run the pipeline with a command",
)
async def run(session: CallerSession, body: RunRequest) -> Response:
    """Run the workflow that the setting `pipeline` names, in a session of its own, and return its output. If no
    workflow of that name is saved, the built-in one of that name runs.

    429: the models accepted no more calls; 502: the execution failed. Both answers name the session; `retry` of its
    execution continues it.
    """
    return await _run(session, body.asked())


@router.post(
    "/run/legacy",
    verb=ConversationVerbs.run_pipeline,
    responses=OUTPUT | refusals(*RAN, body=True),
    summary="Run the pipeline with a goal",
)
async def run_legacy(session: CallerSession, body: LegacyRequest) -> Response:
    """Does the same as `/run` with a goal."""
    return await _run(session, command_of(body.goal, body.email))


async def _run(session: Session, command: Command) -> Response:
    execution = await session.conversations.run_pipeline(command)
    await execution.settled()
    return run_reply(await execution.view())


@router.get(
    "/session/{id}",
    verb=ConversationVerbs.records,
    responses=answers(SessionRecords, "unknown-session"),
    summary="Read the records of a session",
)
async def session(session: CallerSession, id: SessionName) -> Response:
    """Return the executions of a session and their records, oldest first: those of workflows that the caller may see.

    A session is visible to the person who started it, and to admins.
    """
    return JsonReply(await session.conversations.records(id))

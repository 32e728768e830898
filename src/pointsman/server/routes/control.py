"""Control operations on executions: answer, delegate, pause, resume, cancel, retry, fork, steer, say, signal."""

from __future__ import annotations

from typing import Annotated, ClassVar

from fastapi import Query, Request, Response

from pointsman.app import Execution
from pointsman.auth.callers import Caller
from pointsman.auth.policy import must_control, must_run, must_see, sees_gate
from pointsman.errors import CallerError
from pointsman.executions.authority import join
from pointsman.executions.fork_migrate_replay import ForkOptions
from pointsman.executions.inbox import inbox
from pointsman.executions.pages import conversation_of
from pointsman.executions.start import start_as
from pointsman.executions.verbs import ExecutionVerbs
from pointsman.server.context import CallerSession, CurrentCaller, CurrentServer, ServerContext
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.executions import seen, started
from pointsman.server.routes.idempotency import once
from pointsman.server.routes.parameters import Eid, Key, Limit, Of, Operator
from pointsman.server.routes.response_docs import Described, answers
from pointsman.server.schemas.requests import (
    Answer,
    CancelBody,
    DelegateBody,
    ForkBody,
    LimitsBody,
    MessageBody,
    RespondBody,
    ResumeBody,
    SignalBody,
    SteerBody,
)
from pointsman.server.schemas.responses import ExecutionAnswer, InboxPage, SignalledAnswer, Started

router = Operations(prefix="/api/workflows/executions/{eid}", tags=["executions"])
people = Operations(tags=["people"])


def changed(*errors: str, shape: type[Answer] = ExecutionAnswer) -> Described:
    """Return the documented responses of an operation that changes an execution."""
    return answers(shape, "unknown-execution", "wrong-status", 503, *errors, body=True)


class NoConversation(CallerError):
    """The execution that received a message does not belong to a session."""

    code: ClassVar[str] = "no-conversation"


@router.post(
    "/respond",
    responses=changed(
        "no-such-step",
        "gate-closed",
        "gate-changed",
        "gate-unclear",
        "answer-differs",
        "action-not-offered",
        "answer-invalid",
        "not-an-approver",
    ),
    summary="Answer a gate",
)
async def respond(desk: CurrentServer, caller: Operator, eid: Eid, body: RespondBody, key: Key = None) -> Response:
    """As the caller. It is durable when it is answered; who comes second is told how the first one did."""
    execution = await _asked(desk, caller, eid)
    await execution.answer(
        body.gate_id,
        body.action,
        body.data,
        comment=body.comment,
        by=caller.name,
        groups=caller.groups,
        key=body.key or key or "",
        digest=body.digest or "",
    )
    return seen(desk, await execution.view())


@router.post(
    "/delegate",
    responses=changed("no-such-step", "gate-closed", "gate-unclear", "not-an-approver", "not-delegable"),
    summary="Pass a gate on",
)
async def delegate(desk: CurrentServer, caller: Operator, eid: Eid, body: DelegateBody) -> Response:
    """The caller's right to answer an open gate becomes another person's."""
    execution = await _asked(desk, caller, eid)
    await execution.delegate(body.gate_id, body.to, by=caller.name, groups=caller.groups, comment=body.comment)
    return seen(desk, await execution.view())


@router.post("/pause", responses=changed(), summary="Pause")
async def pause(desk: CurrentServer, caller: Operator, eid: Eid) -> Response:
    """No further step starts, here and in its sub-workflows."""
    execution = await _open(desk, caller, eid)
    await execution.pause(by=caller.name)
    return seen(desk, await execution.view())


@router.post("/resume", responses=changed(), summary="Resume")
async def resume(desk: CurrentServer, caller: Operator, eid: Eid, body: ResumeBody | None = None) -> Response:
    """Go on after a pause, or after a limit that is raised; or only as far as the next step."""
    execution = await _open(desk, caller, eid)
    said = body or ResumeBody()
    await execution.resume(limits=said.limits, by=caller.name, step=said.step)
    return seen(desk, await execution.view())


@router.post("/cancel", verb=ExecutionVerbs.cancel, responses=changed(), summary="Cancel")
async def cancel(desk: CurrentServer, session: CallerSession, eid: Eid, body: CancelBody | None = None) -> Response:
    """Stop it for good. What its workflow knows to undo is undone first, unless `now`."""
    said = body or CancelBody()
    execution = await session.executions.cancel(eid, reason=said.reason, now=said.now)
    return seen(desk, await execution.view())


@router.post("/retry", responses=changed("key-reused", "key-in-use"), summary="Retry")
async def retry(
    desk: CurrentServer, caller: Operator, request: Request, eid: Eid, body: LimitsBody | None = None, key: Key = None
) -> Response:
    """Try the step again that failed it."""

    async def work() -> Response:
        execution = await _taken_up(desk, caller, eid)
        await execution.retry(limits=(body or LimitsBody()).limits, by=caller.name)
        return seen(desk, await execution.view())

    return await once(desk, caller, request, key, work)


@router.post(
    "/fork",
    responses=answers(
        Started,
        "unknown-execution",
        "no-such-row",
        "edit-refused",
        "wrong-status",
        "key-reused",
        "key-in-use",
        503,
        status=202,
        body=True,
    ),
    status_code=202,
    summary="Fork",
)
async def fork(
    desk: CurrentServer, caller: Operator, request: Request, eid: Eid, body: ForkBody, key: Key = None
) -> Response:
    """A new execution that begins as a copy of this one, up to a row or before a step."""
    await must_run(desk.app.context, caller, eid)
    how = ForkOptions(at=body.at, before=body.step, set=body.set, by=caller.name, caller=caller)

    async def work() -> Response:
        return await started(desk, await desk.app.fork(eid, **how), wait=False)

    return await once(desk, caller, request, key, work)


@router.post("/steer", responses=changed("not-steerable", "edit-refused", "key-reused", "key-in-use"), summary="Steer")
async def steer(
    desk: CurrentServer, caller: Operator, request: Request, eid: Eid, body: SteerBody, key: Key = None
) -> Response:
    """Between two steps: say something, change data, send control elsewhere."""

    async def work() -> Response:
        execution = await _taken_up(desk, caller, eid)
        await execution.steer(body.messages, set=body.set, goto=body.goto, reason=body.reason, by=caller.name)
        return seen(desk, await execution.view())

    return await once(desk, caller, request, key, work)


@router.post(
    "/messages",
    responses=answers(ExecutionAnswer)
    | answers(
        Started, "unknown-execution", "no-conversation", "wrong-status", "key-reused", 503, status=202, body=True
    ),
    status_code=202,
    summary="Say something",
)
async def say(desk: CurrentServer, caller: Operator, eid: Eid, body: MessageBody, key: Key = None) -> Response:
    """The next turn of the conversation that this execution is a turn of: an execution of its own."""
    await must_see(desk.app.context, caller, eid)
    workflow, session = await conversation_of(desk.app.context, eid)
    if session is None:
        raise NoConversation(f"{eid!r} is no turn of a conversation", hint="Start it with a `sessionId`.")
    turn = await start_as(desk.app.context, caller, workflow, body.message, session=session, key=key)
    return await started(desk, turn, wait=body.wait)


@router.post("/signals", responses=changed("input-invalid", shape=SignalledAnswer), summary="Signal")
async def signal(desk: CurrentServer, caller: Operator, eid: Eid, body: SignalBody, key: Key = None) -> Response:
    """Send it an event: to the steps that wait for it, else to the first that will."""
    execution = await _open(desk, caller, eid)
    became = await execution.signal(body.name, body.data, key=body.key or key or "", by=caller.name)
    return seen(desk, await execution.view(), became=became)


@people.get("/api/inbox", responses=answers(InboxPage, "cursor-invalid"), summary="What waits for the caller")
async def open_gates(
    *,
    desk: CurrentServer,
    caller: CurrentCaller,
    everyone: Annotated[bool, Query(description="All open gates, not only the caller's. For admins.")] = False,
    workflow: Of = None,
    after: Annotated[str | None, Query(max_length=500, description="`cursor` of the last one before.")] = None,
    limit: Limit = 50,
) -> Response:
    """Open gates that the caller may answer, oldest first."""
    if everyone:
        caller.must_have("admin", "see the inboxes of others")
    who = None if everyone else caller.name
    groups = () if everyone else caller.groups
    found = await inbox(
        desk.app.context,
        who,
        groups,
        workflow=workflow,
        after=after,
        limit=limit,
        sees=lambda one, gate: sees_gate(desk.app.context, caller, one, gate),
    )
    return JsonReply({"gates": [*found]})


async def _asked(desk: ServerContext, caller: Caller, eid: str) -> Execution:
    """Open an execution for an answer, which is allowed to callers who see only one of its gates."""
    await must_see(desk.app.context, caller, eid)
    return await desk.app.open(eid)


async def _open(desk: ServerContext, caller: Caller, eid: str) -> Execution:
    await must_control(desk.app.context, caller, eid)
    return await desk.app.open(eid)


async def _taken_up(desk: ServerContext, caller: Caller, eid: str) -> Execution:
    """Open an execution for a retry or for steering: from now on it acts on behalf of the caller too."""
    await must_run(desk.app.context, caller, eid)
    await join(desk.app.context, caller, eid)
    return await desk.app.open(eid)

"""Control operations on executions: answer, delegate, pause, resume, cancel, retry, fork, steer, say, signal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated

from fastapi import Query, Request, Response

from pointsman.executions.lists import AnsweredPage, InboxPage, inbox_page
from pointsman.executions.verbs import ExecutionVerbs
from pointsman.executions.views import SIGNAL_OUTCOMES, ExecutionView, SignalledExecution, StartedExecution
from pointsman.server.context import CallerSession
from pointsman.server.operation import Operations
from pointsman.server.problems import JsonReply
from pointsman.server.routes.executions import started, view_reply
from pointsman.server.routes.parameters import Eid, Key, Limit, Of, reply_once
from pointsman.server.schemas.answers import Described, answers, example
from pointsman.server.schemas.requests import (
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

router = Operations(prefix="/api/workflows/executions/{eid}", tags=["executions"])
people = Operations(tags=["people"])

example(
    AnsweredPage,
    {
        "answers": [
            {
                "executionId": "exec-06gq8r4v2c8m6c6r5a2j6h1t10",
                "inside": None,
                "workflowId": "letter",
                "gateId": "gate-review",
                "nodeId": "review",
                "nodeName": None,
                "message": "Send it?",
                "messages": None,
                "about": "node",
                "item": None,
                "round": None,
                "by": "ada",
                "action": "approve",
                "comment": "Fine.",
                "closed": True,
                "answeredAt": 1_763_700_000.0,
                "visible": True,
            }
        ],
        "next": None,
    },
)


def changed(*errors: str, view: type[Mapping[str, object]] = ExecutionView) -> Described:
    """Return the documented responses of an operation that changes an execution."""
    return answers(view, "unknown-execution", "wrong-status", 503, *errors, body=True)


@router.post(
    "/respond",
    verb=ExecutionVerbs.answer,
    responses=changed(
        "no-such-gate",
        "gate-closed",
        "gate-changed",
        "gate-ambiguous",
        "answer-differs",
        "action-not-offered",
        "answer-invalid",
        "not-an-approver",
    ),
    summary="Answer a gate",
)
async def respond(session: CallerSession, eid: Eid, body: RespondBody, key: Key = None) -> Response:
    """Answer an open gate as the caller.

    The answer is stored durably before this operation returns. A second answer is refused; the error contains the first
    one.
    """
    execution = await session.executions.answer(
        eid,
        body.gate_id,
        body.action,
        body.data,
        comment=body.comment,
        key=body.key or key or "",
        digest=body.digest or "",
    )
    return await view_reply(session, execution)


@router.post(
    "/delegate",
    verb=ExecutionVerbs.delegate,
    responses=changed("no-such-gate", "gate-closed", "gate-ambiguous", "not-an-approver", "not-delegable"),
    summary="Delegate a gate",
)
async def delegate(session: CallerSession, eid: Eid, body: DelegateBody) -> Response:
    """Pass the caller's right to answer an open gate on to another person."""
    return await view_reply(
        session, await session.executions.delegate(eid, body.gate_id, body.to, comment=body.comment)
    )


@router.post("/pause", verb=ExecutionVerbs.pause, responses=changed(), summary="Pause")
async def pause(session: CallerSession, eid: Eid) -> Response:
    """Start no further step of the execution and its sub-workflows."""
    return await view_reply(session, await session.executions.pause(eid))


@router.post("/resume", verb=ExecutionVerbs.resume, responses=changed(), summary="Resume")
async def resume(session: CallerSession, eid: Eid, body: ResumeBody | None = None) -> Response:
    """Continue after a pause, or after a limit that is raised here; optionally only until the next step."""
    options = body or ResumeBody()
    return await view_reply(session, await session.executions.resume(eid, limits=options.limits, step=options.step))


@router.post("/cancel", verb=ExecutionVerbs.cancel, responses=changed(), summary="Cancel")
async def cancel(session: CallerSession, eid: Eid, body: CancelBody | None = None) -> Response:
    """Cancel the execution permanently. Its compensation steps run first, unless `now` is true."""
    options = body or CancelBody()
    return await view_reply(session, await session.executions.cancel(eid, reason=options.reason, now=options.now))


@router.post("/retry", verb=ExecutionVerbs.retry, responses=changed("key-reused", "key-in-use"), summary="Retry")
async def retry(
    session: CallerSession, request: Request, eid: Eid, body: LimitsBody | None = None, key: Key = None
) -> Response:
    """Run the failed step again, and continue from there."""

    async def work() -> Response:
        return await view_reply(session, await session.executions.retry(eid, limits=(body or LimitsBody()).limits))

    return await reply_once(session.acting, request, key, work)


@router.post(
    "/fork",
    verb=ExecutionVerbs.fork,
    responses=answers(
        StartedExecution,
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
async def fork(session: CallerSession, request: Request, eid: Eid, body: ForkBody, key: Key = None) -> Response:
    """Start a new execution as a copy of this one, up to a row or before a step."""

    async def work() -> Response:
        forked = await session.executions.fork(eid, at=body.at, before=body.step, set=body.set)
        return await started(session, forked, wait=False)

    return await reply_once(session.acting, request, key, work)


@router.post(
    "/steer",
    verb=ExecutionVerbs.steer,
    responses=changed("not-steerable", "edit-refused", "key-reused", "key-in-use"),
    summary="Steer",
)
async def steer(session: CallerSession, request: Request, eid: Eid, body: SteerBody, key: Key = None) -> Response:
    """Between two steps: add messages, change data, or jump to another node."""

    async def work() -> Response:
        steered = await session.executions.steer(eid, body.messages, set=body.set, goto=body.goto, reason=body.reason)
        return await view_reply(session, steered)

    return await reply_once(session.acting, request, key, work)


@router.post(
    "/messages",
    verb=ExecutionVerbs.say,
    responses=answers(ExecutionView)
    | answers(
        StartedExecution,
        "unknown-execution",
        "no-conversation",
        "wrong-status",
        "key-reused",
        503,
        status=202,
        body=True,
    ),
    status_code=202,
    summary="Send a message",
)
async def send_message(session: CallerSession, eid: Eid, body: MessageBody, key: Key = None) -> Response:
    """Start the next turn of this execution's conversation, as a new execution."""
    return await started(session, await session.executions.say(eid, body.message, key=key), wait=body.wait)


@router.post(
    "/signals",
    verb=ExecutionVerbs.signal,
    responses=changed("input-invalid", view=SignalledExecution),
    summary="Signal",
)
async def signal(session: CallerSession, eid: Eid, body: SignalBody, key: Key = None) -> Response:
    """Send an event to the execution: to the steps that wait for it, else to the first step that will wait for it."""
    execution, became = await session.executions.signal(eid, body.name, body.data, key=body.key or key or "")
    return JsonReply({**await session.executions.view(execution), "outcome": SIGNAL_OUTCOMES[became], "became": became})


@people.get(
    "/api/inbox",
    verb=ExecutionVerbs.inbox,
    responses=answers(InboxPage, "cursor-invalid"),
    summary="List gates that wait for the caller",
)
async def open_gates(
    *,
    session: CallerSession,
    everyone: Annotated[bool, Query(description="Include the gates of all people. Requires the role admin.")] = False,
    workflow: Of = None,
    after: Annotated[str | None, Query(max_length=500, description="`next` of the previous page.")] = None,
    limit: Limit = 50,
) -> Response:
    """Open gates that the caller may answer, oldest first."""
    page = await session.executions.inbox(everyone=everyone, workflow=workflow, after=after, limit=limit)
    return JsonReply(inbox_page(page, limit))


@people.get(
    "/api/inbox/answered",
    verb=ExecutionVerbs.answered,
    responses=answers(AnsweredPage, "cursor-invalid"),
    summary="List answers to gates",
)
async def answered_gates(
    *,
    session: CallerSession,
    everyone: Annotated[
        bool, Query(description="The answers of all people, in executions that the caller may see.")
    ] = False,
    workflow: Of = None,
    after: Annotated[str | None, Query(max_length=500, description="`next` of the previous page.")] = None,
    limit: Limit = 50,
) -> Response:
    """Answers that the caller gave to gates, newest first, whichever way they were given.

    Answers are listed until their execution is deleted.
    """
    return JsonReply(await session.executions.answered(everyone=everyone, workflow=workflow, after=after, limit=limit))

"""Examples of views that several operations return, for the OpenAPI document."""

from __future__ import annotations

from pointsman.executions.dry_run import DryRunView
from pointsman.executions.lists import ExecutionEntry, InboxPage
from pointsman.executions.pages import EventPage, ExecutionPage
from pointsman.executions.views import ExecutionView, GateView, SignalledExecution, StartedExecution, UsageView
from pointsman.server.schemas.answers import EXECUTION_ID, example
from pointsman.values import JsonObject, json_of
from pointsman.workflows.revisions import WorkflowEntryView

USAGE: UsageView = {
    "inputTokens": 812,
    "outputTokens": 240,
    "cacheReadTokens": 0,
    "cacheWriteTokens": 0,
    "costUsd": 0.0021,
    "modelCalls": 2,
    "toolCalls": 0,
}
GATE: GateView = {
    "gateId": "review",
    "nodeId": "review",
    "message": "Send it?",
    "options": [{"value": "approve"}, {"value": "again"}],
    "form": None,
    "shown": None,
    "editable": [],
    "values": {},
    "digest": "0f2a9c3b7d1e4a5f6b8c9d0e1f2a3b4c",
    "openedAt": 1_763_700_000.0,
    "deadline": None,
    "nodeName": None,
    "messages": None,
    "approvers": None,
    "about": "",
    "step": "review",
    "item": None,
    "round": None,
    "visit": 1,
    "level": 0,
    "votes": [],
    "delegated": {},
}
WORKFLOW: WorkflowEntryView = {
    "id": "letter",
    "revision": 2,
    "name": "Letter",
    "version": "1.1.0",
    "dialect": "native",
    "builtIn": False,
    "createdAt": 1_763_700_000.0,
    "author": "ada",
    "digest": "9f86d081884c7d65",
    "enabled": True,
    "description": "Writes a letter, and asks for approval before it is sent.",
    "names": None,
    "tags": ["mail"],
}
SHOWN_ENTRY: ExecutionEntry = {
    "executionId": EXECUTION_ID,
    "workflowId": "letter",
    "revision": 2,
    "status": "waiting",
    "waitingFor": [],
    "startedAt": 1_763_700_000.0,
    "updatedAt": 1_763_700_004.0,
    "parent": None,
    "sessionId": None,
    "scripted": False,
}
ENTRY: JsonObject = json_of(SHOWN_ENTRY)


example(ExecutionPage, {"executions": [SHOWN_ENTRY], "next": None})


example(
    EventPage,
    {
        "events": [{"seq": 3, "n": 0, "at": 1_763_700_003.0, "kind": "step_succeeded"}],
        "last": "3.0",
        "status": "waiting",
    },
)
EXECUTION: ExecutionView = {
    "executionId": EXECUTION_ID,
    "workflowId": "letter",
    "version": "1.1.0",
    "status": "waiting",
    "trial": None,
    "pausedBefore": None,
    "phase": None,
    "compensation": None,
    "model": None,
    "observability": "standard",
    "seq": 4,
    "input": {"goal": "tides"},
    "output": None,
    "scripted": False,
    "currentNodes": ["review"],
    "state": {"goal": "tides", "text": "Dear all, …"},
    "path": ["write"],
    "steps": 2,
    "waiting": [GATE],
    "awaiting": [],
    "waitingFor": [],
    "timers": [],
    "errors": [],
    "answers": [],
    "progress": [],
    "warnings": [],
    "usage": USAGE,
    "sessionId": None,
    "trigger": None,
    "startedAt": 1_763_700_000.0,
    "durationMs": 4012,
}
example(ExecutionView, EXECUTION)
example(
    InboxPage,
    {
        "gates": [
            {
                "executionId": EXECUTION_ID,
                "inside": None,
                "workflowId": "letter",
                "gateId": "review",
                "nodeId": "review",
                "nodeName": None,
                "message": "Send it?",
                "messages": None,
                "about": "",
                "digest": "0f2a9c3b7d1e4a5f6b8c9d0e1f2a3b4c",
                "scripted": False,
                "item": None,
                "round": None,
                "openedAt": 1_763_700_004.0,
                "deadline": None,
                "users": [],
                "groups": ["desk"],
                "cursor": f'[1763700004.0,"{EXECUTION_ID}","review"]',
            }
        ],
        "next": None,
    },
)
example(
    DryRunView,
    {
        "dryRun": True,
        "workflowId": "letter",
        "status": "completed",
        "output": {"letter": "…"},
        "path": ["write", "review", "send"],
        "steps": 3,
        "waits": [],
        "calls": [
            {
                "nodeId": "write",
                "kind": "model",
                "name": "scripted",
                "calls": 1,
                "callsMax": 1,
                "inputTokens": 812,
                "outputTokens": 240,
                "costUsd": 0.0,
                "costMaxUsd": 0.0,
                "tools": [],
            }
        ],
        "cost": {"lowUsd": 0.0, "highUsd": 0.0, "unpriced": []},
        "assumptions": {"charsPerToken": 4, "outputTokensPerAnswer": 500},
        "errors": [],
        "warnings": [],
    },
)
example(SignalledExecution, {**EXECUTION, "became": "taken"})
example(StartedExecution, {"executionId": EXECUTION_ID, "status": "running", "scripted": False, "warnings": []})

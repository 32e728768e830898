"""A test reaches every code that has an HTTP status, or this module states the reason."""

from __future__ import annotations

import ast
import json
from pathlib import Path
from typing import Final

import pytest

from pointsman.server.problems import STATUS_OF
from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN, LETTER

HERE: Final = Path(__file__)
UNREACHED: Final = {
    "entry-moved": "a race of two writers of one entry; the verbs retry or raise their own code",
    "journal-moved": "a race of two processes; the loser decides again",
    "memory-not-a-list": "no operation appends to a memory value",
    "step-not-repeatable": "only rows of a journal of another release cause it",
    "session-moved": "a race of two turns; the loser receives it at its end",
    "ownership-lost": "another process must write to an execution that this one drives; tests/reliability has them",
}
POLL: Final = """\
pointsman: 1
id: poll
entry: ask
nodes:
  - id: ask
    type: human
    config:
      message: "Send it?"
      approvers: {users: [ada]}
      options: [{value: approve}, {value: again}]
  - {id: done, type: end}
edges:
  - {source: ask, target: done}
"""


def said_in(path: Path) -> set[str]:
    """Return the strings in a test file."""
    tree = ast.parse(path.read_text())
    return {one.value for one in ast.walk(tree) if isinstance(one, ast.Constant) and isinstance(one.value, str)}


def test_every_error_code_has_a_test_or_a_reason() -> None:
    files = [path for path in HERE.parent.glob("test_*.py") if path != HERE]
    own = ast.parse(HERE.read_text())
    here = {
        one.value
        for function in own.body
        if isinstance(function, ast.AsyncFunctionDef)
        for part in (*function.decorator_list, *function.body)
        for one in ast.walk(part)
        if isinstance(one, ast.Constant) and isinstance(one.value, str)
    }
    answered = here.union(*map(said_in, files))
    assert sorted(STATUS_OF.keys() - answered - UNREACHED.keys()) == []
    assert sorted(UNREACHED.keys() & answered) == [], "it is answered, so there is no reason"
    assert sorted(UNREACHED.keys() - STATUS_OF.keys()) == []


@pytest.mark.parametrize(
    ("method", "path", "body", "code"),
    [
        ("GET", "/api/workflows/executions/{waiting}/artifacts/none.txt", None, "no-such-artifact"),
        ("DELETE", "/api/settings/keys/nobody", None, "no-such-key"),
        ("POST", "/api/settings/keys", {"name": "a/b", "role": "viewer"}, "name-invalid"),
        ("DELETE", "/api/workflows/executions/{waiting}", None, "execution-unfinished"),
        ("POST", "/api/workflows/executions/{waiting}/respond", {"gateId": "no", "action": "x"}, "no-such-gate"),
        ("POST", "/api/workflows/executions/{waiting}/steer", {"messages": ["go"]}, "not-steerable"),
        ("POST", "/api/workflows/executions/{waiting}/signals", {"name": "n", "data": "{big}"}, "event-too-large"),
        (
            "POST",
            "/api/workflows/executions/{waiting}/signals",
            {"name": "n", "data": float("nan")},
            "unstorable-value",
        ),
        ("GET", "/api/workflows/executions/exec-none", None, "unknown-execution"),
        ("GET", "/api/templates/none", None, "unknown-template"),
        ("GET", "/api/datasets/none", None, "unknown-dataset"),
        ("GET", "/api/published/none", None, "not-published"),
        ("DELETE", "/api/models/providers/nobody", None, "no-such-provider"),
        ("PUT", "/api/models/providers/gw", {"kind": "openai-compatible"}, "provider-invalid"),
        ("DELETE", "/api/settings/language", None, "no-such-setting"),
        ("PUT", "/api/settings/server", {"value": {}}, "setting-fixed"),
        ("PUT", "/api/settings/language", {"value": 3}, "setting-invalid"),
        ("DELETE", "/api/notifications/addresses/nobody", None, "no-such-notification"),
        ("PUT", "/api/notifications/addresses/desk", {"format": "slack"}, "notification-invalid"),
        ("DELETE", "/api/tool-connections/nobody", None, "no-such-tool-connection"),
        ("PUT", "/api/tool-connections/desk", {"kind": "mcp"}, "tool-connection-invalid"),
        (
            "PUT",
            "/api/tool-connections/desk",
            {"kind": "openapi", "document": "{}", "tools": ["*"]},
            "openapi-unreadable",
        ),
        ("PUT", "/api/models/default", {"model": "openai:gpt-5"}, "provider-in-settings"),
        ("PUT", "/api/secrets/SHOP/credential", {"type": "oauth2-client"}, "credential-invalid"),
        ("PUT", "/api/secrets/SHOP/authorization", {"code": "c", "state": "s"}, "authorization-refused"),
        (
            "PUT",
            "/api/secrets/SHOP/credential",
            {"type": "oauth2-client", "tokenUrl": "http://127.0.0.1:9/token", "clientId": "a", "clientSecret": "b"},
            "credential-not-connected",
        ),
        ("PUT", "/api/workflows/chain/published", {"name": " "}, "version-invalid"),
        ("POST", "/api/comments", {"kind": "workflow", "subject": "chain", "text": " "}, "comment-invalid"),
        ("POST", "/api/folders", {"path": "a//b"}, "folder-invalid"),
        ("POST", "/api/folders", {"path": "sales/mail"}, "folder-exists"),
        ("DELETE", "/api/folders?path=sales", None, "folder-not-empty"),
        ("PUT", "/api/workflows/chain/folder", {"folder": "none"}, "unknown-folder"),
        ("PUT", "/api/workflows/letter/published", {"name": "First", "revision": 1}, "version-name-taken"),
        ("PUT", "/api/workflows/chain/sharing", {"audience": "groups"}, "sharing-invalid"),
        ("POST", "/api/workflows/executions/{waiting}/fork", {"set": {"a.b[": 1}}, "edit-refused"),
        ("POST", "/api/workflows/executions/{waiting}/fork", {"step": "nowhere"}, "no-such-step"),
    ],
    ids=lambda value: value if isinstance(value, str) and "/" not in value else "",
)
async def test_error_codes_have_their_status(
    served: Served, method: str, path: str, body: dict[str, object] | None, code: str
) -> None:
    await served.save(CHAIN)
    await served.save(LETTER)
    waiting = await served.execute("letter", "a day")
    if code in ("folder-exists", "folder-not-empty"):
        await served.client.post("/api/folders", json={"path": "sales/mail"})
    if code == "version-name-taken":
        await served.client.post("/api/workflows", content=f"{LETTER}# again\n")
        await served.client.put("/api/workflows/letter/published", json={"name": "First", "revision": 2})
    if body is not None and body.get("data") == "{big}":
        body = {**body, "data": "x" * 1_500_000}
    sent = None if body is None else json.dumps(body)
    headers = {"content-type": "application/json"}
    reply = await served.client.request(method, path.format(waiting=waiting), content=sent, headers=headers)
    assert (reply.status_code, reply.json().get("code")) == (STATUS_OF[code], code), reply.text[:300]


async def test_only_approvers_of_a_gate_may_answer_it() -> None:
    async with serving(is_local=False) as served:
        ada, eve = await served.key("ada", "editor"), await served.key("eve", "operator")
        assert (await served.client.post("/api/workflows", content=POLL, headers=ada)).status_code == 201
        started = await served.client.post("/api/workflows/poll/execute", json={"wait": True}, headers=ada)
        address = f"/api/workflows/executions/{started.json()['executionId']}/respond"
        first = {"gateId": "ask", "action": "approve", "key": "one"}
        reply = await served.client.post(address, json=first, headers=eve)
        assert (reply.status_code, reply.json()["code"]) == (403, "not-an-approver")
        assert (await served.client.post(address, json=first, headers=ada)).status_code == 200
        reply = await served.client.post(address, json={**first, "action": "again"}, headers=ada)
        assert (reply.status_code, reply.json()["code"]) == (409, "answer-differs")


async def test_a_start_over_the_size_limit_is_refused(served: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    await served.save(CHAIN + "config: {limits: {stateSize: 1KB}}\n")
    reply = await served.client.post("/api/workflows/chain/execute", json={"input": {"text": "x" * 5_000}})
    assert (reply.status_code, reply.json()["code"]) == (413, "state-too-large"), reply.text
    monkeypatch.setattr("pointsman.executions.inputs.FILE_BYTES_MAX", 10)
    files = {"file": ("a.txt", b"a" * 11, "text/plain")}
    reply = await served.client.post("/api/workflows/chain/execute/files", files=files)
    assert (reply.status_code, reply.json()["code"]) == (413, "files-too-large"), reply.text
    assert (await served.client.get("/api/workflows/executions")).json()["executions"] == []


async def test_an_execution_buffers_at_most_a_hundred_events(served: Served) -> None:
    await served.save(LETTER)
    address = f"/api/workflows/executions/{await served.execute('letter', 'a day')}/signals"
    for number in range(100):
        reply = await served.client.post(address, json={"name": "n", "data": number})
        assert reply.status_code == 200, reply.text
    reply = await served.client.post(address, json={"name": "n"})
    assert (reply.status_code, reply.json()["code"]) == (409, "too-many-buffered-events")


async def test_a_webhook_path_belongs_to_one_workflow(served: Served) -> None:
    hooked = (
        CHAIN + "triggers: [{id: hook, type: webhook, path: orders, secret: whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw}]\n"
    )
    await served.save(hooked)
    reply = await served.client.post("/api/workflows", content=hooked.replace("id: chain", "id: other"))
    assert (reply.status_code, reply.json()["code"]) == (409, "webhook-taken"), reply.text

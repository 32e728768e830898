"""Every operation sends what the OpenAPI document describes; `conftest` also checks the answers of all other tests."""

from __future__ import annotations

import json
from typing import Any, Final

from pointsman.triggers.signatures import key_of, sign
from tests.server.conformance import faults, operation_of
from tests.server.conftest import serving
from tests.server.documented_operations import OPERATIONS
from tests.server.flows import CHAIN, SHOWN
from tests.server.test_conflicts import KEYED, SECRET, world

X: Final = "/api/workflows/executions"
DOCUMENT: Final = {"pointsman": 1, "id": "hello", "nodes": [{"id": "say", "type": "agent", "config": {"prompt": "Hi"}}]}
ANYONE: Final = {"audience": "everyone"}
LIKES: Final = "owner=ada&key=likes"
GATEWAY: Final = {"kind": "openai-compatible", "key": "sk-0badcafe0badcafe", "baseUrl": "https://llm.example.com/v1"}
FOLLOW: Final = {
    "openapi": "3.1.0",
    "servers": [{"url": "https://links.example.invalid"}],
    "paths": {"/links": {"get": {"operationId": "follow", "summary": "Follow a link."}}},
}
HOOK: Final = {"format": "slack", "url": "https://hooks.example.invalid/1"}
LINKS: Final = {"kind": "openapi", "document": json.dumps(FOLLOW), "tools": ["follow"]}
LOGIN: Final = {
    "type": "oauth2-code",
    "authorizeUrl": "https://id.example.com/authorize",
    "tokenUrl": "https://id.example.com/token",
    "clientId": "app",
}
CALLS: Final[tuple[tuple[str, Any], ...]] = (
    ("POST /api/workflows", CHAIN.replace("id: chain", "id: links")),
    ("PUT /api/workflows/links", CHAIN.replace("id: chain", "id: links").replace("two", "three")),
    ("PATCH /api/workflows/links", {"name": "Links"}),
    ("POST /api/workflows/check", {"document": DOCUMENT}),
    ("POST /api/workflows/convert", {"document": DOCUMENT, "to": "rows"}),
    ("POST /api/workflows/links/clone", {"id": "copy"}),
    ("POST /api/workflows/links/edit", {"operations": []}),
    ("POST /api/workflows/links/rollback", {"revision": 1}),
    ("POST /api/workflows/links/dry-run", {"input": {}}),
    ("POST /api/workflows/links/try", {"input": {}}),
    ("POST /api/workflows/links/execute", {"input": {}}),
    ("PUT /api/workflows/links/sharing", ANYONE),
    *((f"GET /api/workflows{rest}", None) for rest in ("", "/links", "/operations", "/schema")),
    *((f"GET /api/workflows/links/{rest}", None) for rest in ("versions", "changes", "sharing")),
    ("GET /api/expressions/functions", None),
    ("POST /api/expressions/check", {"text": "1 + 1"}),
    ("POST /api/expressions/evaluate", {"text": "1 + 1"}),
    (f"GET {X}", None),
    *((f"GET {X}/{{done}}{rest}", None) for rest in ("", "/events", "/state?at=1", "/workflow", "/artifacts")),
    *((f"GET {X}/{{done}}/{rest}", None) for rest in ("family", "calls?step=first", "timeline")),
    (f"POST {X}/bulk", {"verb": "cancel", "workflow": "letter", "dryRun": True}),
    (f"POST {X}/{{done}}/replay", None),
    (f"POST {X}/{{done}}/fork", {"at": 1}),
    (f"POST {X}/{{turn}}/messages", {"message": "And shorter?", "wait": True}),
    ("GET /api/inbox", None),
    ("GET /api/inbox/answered", None),
    ("POST /api/comments", {"kind": "workflow", "subject": "links", "text": "Too long?"}),
    ("GET /api/comments?kind=workflow&subject=links", None),
    ("GET /api/mentions", None),
    ("POST /api/presence", {"kind": "workflow", "subject": "links", "place": "review"}),
    (f"POST {X}/{{asked}}/delegate", {"gateId": "review", "to": "ben"}),
    (f"POST {X}/{{waiting}}/pause", None),
    (f"POST {X}/{{waiting}}/move", {"to": "letter", "checkOnly": True}),
    (f"POST {X}/{{asked}}/steer", {"set": {"letter": "Dear Ada"}}),
    (f"POST {X}/{{waiting}}/resume", {}),
    (f"POST {X}/{{only}}/signals", {"name": "knock"}),
    ("POST /api/events", {"name": "paid"}),
    (f"POST {X}/{{waiting}}/respond", {"gateId": "review", "action": "approve"}),
    ("POST /api/agents", {"name": "chief", "agent": {"system": "Short."}}),
    ("PUT /api/agents/chief", {"agent": {"system": "Shorter."}}),
    ("PUT /api/agents/chief/sharing", ANYONE),
    ("POST /api/agents/chief/try", {"message": "Hi"}),
    *((f"GET /api/agents{rest}", None) for rest in ("", "/chief", "/chief/versions", "/chief/uses", "/chief/sharing")),
    *((f"GET /api/tools{rest}", None) for rest in ("", "/calculator")),
    ("POST /api/tools/calculator/try", {"arguments": {"expression": "6 * 7"}}),
    *((f"GET /api/templates{rest}", None) for rest in ("", "/triage-support")),
    ("POST /api/templates/triage-support/try", {}),
    ("POST /api/templates/triage-support/use", {"id": "support"}),
    (
        "PUT /api/datasets/names",
        {"workflow": "links", "scorers": [{"name": "same", "kind": "match"}], "text": '{"a": 1}'},
    ),
    *((f"GET /api/{rest}", None) for rest in ("datasets", "datasets/names", "evaluations")),
    ("POST /api/datasets/names/evaluate", {}),
    ("GET /api/models", None),
    ("GET /api/models/keys", None),
    ("POST /api/models/ping", None),
    ("GET /api/models/kinds", None),
    ("PUT /api/models/providers/gw", {**GATEWAY, "test": False}),
    ("DELETE /api/models/providers/gw", None),
    ("PUT /api/settings/mail", {"host": "smtp.example.com", "sender": "desk@example.com"}),
    ("DELETE /api/settings/mail", None),
    ("PUT /api/settings/language", {"value": "de"}),
    ("DELETE /api/settings/language", None),
    ("PUT /api/notifications/addresses/desk", HOOK),
    ("DELETE /api/notifications/addresses/desk", None),
    ("PUT /api/tool-connections/links", LINKS),
    ("GET /api/tool-connections", None),
    ("POST /api/tool-connections/links/test", {**LINKS, "call": {"tool": "follow"}}),
    ("DELETE /api/tool-connections/links", None),
    ("POST /api/folders", {"path": "drafts"}),
    ("PUT /api/folders/sharing?path=drafts", ANYONE),
    ("GET /api/folders/sharing?path=drafts", None),
    ("PUT /api/workflows/links/folder", {"folder": "drafts"}),
    ("PATCH /api/folders?path=drafts", {"path": "ready"}),
    ("GET /api/folders", None),
    ("PUT /api/workflows/links/published", {"name": "First"}),
    ("PUT /api/workflows/links/publication", {"title": "Links"}),
    ("GET /api/workflows/links/publication", None),
    ("PUT /api/secrets/SHOP/credential", LOGIN),
    ("POST /api/secrets/SHOP/authorization", None),
    (f"PUT /api/memory/user/value?{LIKES}", {"value": "tea"}),
    (f"PUT /api/memory/user/value?{LIKES}", {"value": "mate"}),
    (f"GET /api/memory/user/value?{LIKES}", None),
    (f"GET /api/memory/user/history?{LIKES}", None),
    ("GET /api/memory", None),
    ("GET /api/memory/user?owner=ada", None),
    ("DELETE /api/memory/user?owner=ada", None),
    ("GET /api/chat/workflows", None),
    ("GET /api/sessions", None),
    ("GET /api/sessions/s2", None),
    ("PATCH /api/sessions/s2", {"title": "Tides"}),
    ("DELETE /api/sessions/s2", None),
    ("POST /api/webhooks/orders", "{}"),
    (f"POST {X}/bulk", {"verb": "cancel", "workflow": "hooked"}),
    ("POST /api/workflows/hooked/triggers/hook/try", {}),
    ("GET /api/workflows/hooked/triggers/hook/deliveries", None),
    ("GET /api/webhooks", None),
    ("POST /api/schedules", {"id": "daily", "workflow": "chain", "every": 86400}),
    ("POST /api/schedules/times", {"every": 60}),
    ("PUT /api/schedules/daily", {"workflow": "chain", "every": 3600}),
    *((f"GET /api/schedules{rest}", None) for rest in ("", "/daily", "/daily/times")),
    *((f"POST /api/schedules/daily/{rest}", None) for rest in ("pause", "resume", "run")),
    ("GET /api/notifications", None),
    ("POST /run", {"goal": "tides"}),
    ("POST /run/legacy", {"goal": "tides"}),
    ("GET /v1/models", None),
    ("GET /v1/models/talk", None),
    ("POST /v1/chat/completions", {"model": "talk", "messages": [{"role": "user", "content": "Hi"}]}),
    ("POST /v1/responses", {"model": "talk", "input": "Hi"}),
    *((f"GET /api/{rest}", None) for rest in ("me", "settings/keys", "audit", "audit/state", "secrets", "people")),
    *((f"GET /api/{rest}", None) for rest in ("secrets/WEATHER/uses", "rights", "login", "logins", "settings")),
    *((f"GET /{rest}", None) for rest in ("health", "ready", "api/usage", "api/budgets", "api/workers")),
    (f"POST {X}/{{asked}}/cancel", {}),
    ("DELETE /api/logins", None),
)
"""Requests in the order in which they succeed, with their bodies; `{done}` and similar names are executions of
`world`."""
ELSEWHERE: Final = {
    "GET /api/evaluations/{eid}": "test_evaluations",
    "GET /session/{id}": "test_pipeline",
    "POST /api/answer-links/read": "test_answer_links",
    "POST /api/answer-links/answer": "test_answer_links",
    "GET /api/published/{token}": "test_publications",
    "GET /api/published/{token}/chat": "test_publications",
    "GET /api/published/{token}/chat/{conversation}": "test_publications",
    "GET /api/published/{token}/runs/{run}": "test_publications",
    "POST /api/published/{token}/runs": "test_publications",
    "POST /api/datasets/{name}/cases": "test_evaluations",
    "PATCH /api/comments/{cid}": "test_comments",
    "POST /api/login": "test_logins",
    "POST /api/memory/{scope}/history": "test_memory_history",
    "POST /api/notifications/addresses/{name}/test": "test_notifications",
    "POST /api/notifications/{id}/retry": "test_notifications",
    "POST /api/settings/keys": "test_access",
    "POST /api/settings/mail/test": "test_settings_changes",
    "POST /api/workflows/executions/import": "test_registry",
    "POST /api/workflows/executions/{eid}/retry": "test_fork_migrate_replay",
    "POST /api/workflows/generate": "test_designing",
    "POST /api/workflows/{id}/execute/files": "test_documents",
}
"""Operations whose success needs more: tests in these modules reach them, and `conftest` checks the answers."""


def answering_json() -> set[str]:
    """Return the operations with a JSON answer in the document."""
    return {
        one.name
        for one in OPERATIONS
        for status, described in one.said["responses"].items()
        if status.startswith("2") and "application/json" in described.get("content", {})
    }


async def test_answers_of_all_operations_are_as_the_document_describes_them() -> None:
    settings = KEYED.model_copy(update={"pipeline": "talk"})
    async with serving(settings=settings) as served:
        await served.save(SHOWN.replace("actions:", "approvers: {users: [local], delegable: true}, actions:"))
        known = await world(served)
        known["asked"] = await served.execute("shown", {"letter": "Dear all"})
        reached: set[str] = set()
        failed: list[str] = []
        for request, body in CALLS:
            method, address = request.split(" ", 1)
            for name, execution in known.items():
                address = address.replace(f"{{{name}}}", execution)
            sent: dict[str, Any] = (
                {"content": body} if isinstance(body, str) else {} if body is None else {"json": body}
            )
            headers = signature(int(served.app.clock.now())) if "webhooks/" in address else {}
            reply = await served.client.request(method, address, headers=headers, **sent)
            operation = operation_of(method, address.partition("?")[0])
            assert operation is not None, request
            if reply.is_success:
                reached.add(operation.name)
            else:
                failed.append(f"{request}: {reply.status_code} {reply.text[:200]}")
        assert not failed, "\n".join(failed)
    missing = answering_json() - reached - ELSEWHERE.keys()
    assert missing == set(), "call it in CALLS, where it succeeds, or name the module that tests it in ELSEWHERE"
    assert ELSEWHERE.keys() - answering_json() == set(), "no such operation exists"
    assert ELSEWHERE.keys() & reached == set(), "CALLS reaches it"


def signature(at: int) -> dict[str, str]:
    """Return the signature headers of a webhook call with an empty object."""
    return {
        "content-type": "application/json",
        "webhook-id": "msg-1",
        "webhook-timestamp": str(at),
        "webhook-signature": sign(key_of(SECRET), "msg-1", at, b"{}"),
    }


def test_an_answer_with_an_undescribed_or_missing_member_is_found() -> None:
    whole = (
        b'{"executionId": "e", "same": true, "rows": 1, "status": "failed",'
        b' "differences": [], "withoutReport": [], "untold": []}'
    )
    replay = ("POST", f"{X}/e/replay", 200, "application/json")
    assert faults(*replay, whole) == []
    assert "'rows' is a required property" in str(faults(*replay, whole.replace(b'"rows": 1, ', b"")))
    assert "'extra'" in str(faults(*replay, whole.replace(b"{", b'{"extra": 1, ', 1)))

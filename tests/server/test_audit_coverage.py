"""Every operation, and every verb of agents and MCP clients, that may change something has an audit entry."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, Final

import pytest
from fastapi.routing import APIRoute

from mcp import MCPError
from pointsman.app import Workflow
from pointsman.authoring.tools import VERBS, AgentVerb
from pointsman.server.application import ROUTERS
from pointsman.server.middleware import READING
from pointsman.server.operation import described, least_of, verb_of
from pointsman.tools.tool import ToolContext
from tests.mcp.test_http import over_http
from tests.server.conftest import serving
from tests.server.flows import CHAIN

ASKS_NOBODY: Final = {
    "POST /api/answer-links/answer": "the verb of the link's recipient writes the entry: `test_answer_links`",
    "POST /api/answer-links/read": "it changes nothing; a wrong link is counted as a wrong key",
    "POST /api/published/{token}/chat": "the verb of the publisher writes the entry: `test_publications`",
    "POST /api/published/{token}/runs": "the verb of the publisher writes the entry: `test_publications`",
    "POST /api/login": "a login is in the log when it succeeds, and counted when it fails",
    "POST /api/webhooks/{path:path}": "calls of webhooks have a list of their own: its deliveries",
}
"""Operations without a caller."""
CHANGES: Final = [verb for verb in VERBS if verb.effect != "reads"]


UNRECORDED: Final = frozenset(
    {
        "POST /api/expressions/check",
        "POST /api/mentions/read",
        "POST /api/presence",
        "POST /api/expressions/evaluate",
        "POST /api/schedules/times",
        "POST /api/templates/{name}/try",
        "POST /api/workflows/check",
        "POST /api/workflows/convert",
        "POST /api/workflows/{id}/dry-run",
        "POST /api/workflows/executions/{eid}/replay",
    }
)
"""Operations with a body that change and cost nothing; editors call some while they type."""


def operations() -> list[tuple[str, str]]:
    """Return every operation whose verb writes an audit entry, and every one without a verb that may change
    something."""
    found = [(method, route) for route in described(ROUTERS) for method in route.methods or ()]
    return sorted((method, route.path) for method, route in found if _is_recorded(method, route))


def _is_recorded(method: str, route: APIRoute) -> bool:
    rule = verb_of(route)
    return method not in READING if rule is None else rule.audit


def test_only_named_operations_with_a_body_are_not_recorded() -> None:
    every = {(method, route.path) for route in described(ROUTERS) for method in (route.methods or set()) - READING}
    assert {f"{method} {path}" for method, path in every - {*operations()}} == UNRECORDED


def test_exports_are_recorded() -> None:
    exports = {("GET", "/api/audit/export"), ("GET", "/api/workflows/executions/{eid}/export")}
    assert exports <= {*operations()}


def test_only_named_operations_have_no_caller() -> None:
    alone = {
        f"{method} {route.path}"
        for route in described(ROUTERS)
        for method in (route.methods or set()) - READING
        if least_of(route) is None
    }
    assert alone == set(ASKS_NOBODY)


async def test_every_operation_that_may_change_something_is_audited() -> None:
    async with serving(is_local=False) as served:
        root = await served.key("root", "admin")
        missing: list[str] = []
        for method, path in operations():
            if f"{method} {path}" in ASKS_NOBODY:
                continue
            address = path.replace(":path", "")
            for name in ("id", "eid", "sid", "name", "scope", "trigger", "path"):
                address = address.replace(f"{{{name}}}", "none")
            async with served.client.stream(method, address, headers=root, json={}) as reply:
                assert reply.status_code < 500, address
            entries, _ = await served.desk.audit.page(limit=1000)
            if not any(one["what"] == f"{method} {path}" and one["who"] == "root" for one in entries):
                missing.append(f"{method} {path}")
        assert missing == []


async def test_model_calls_are_audited_because_they_cost_money() -> None:
    async with serving(is_local=False) as served:
        root = await served.key("root", "admin")
        assert (await served.client.post("/api/models/ping", headers=root)).status_code == 200
        entries, _ = await served.desk.audit.page(limit=1000)
    assert [one["who"] for one in entries if one["what"] == "POST /api/models/ping"] == ["root"]


@pytest.mark.parametrize("role", ["viewer", "admin"])
async def test_every_verb_of_mcp_clients_is_audited_even_when_refused(role: Any) -> None:
    async with serving(is_local=False) as served:
        ada = await served.key("ada", role)
        async with over_http(served, ada) as client:
            for verb in CHANGES:
                with suppress(MCPError):  # The role of a viewer offers none of them.
                    await client.call_tool(verb.name, {})
        entries, _ = await served.desk.audit.page(limit=1000)
        told = {str(one["what"]): one["refused"] for one in entries if one["who"] == "ada"}
        assert set(told) >= {f"mcp {verb.name}" for verb in CHANGES}
        assert all(told.values()), "none of them had its arguments, or its role"


async def test_every_verb_of_agents_is_audited_with_the_user_it_acts_for() -> None:
    async with serving(is_local=False) as served:
        ada = await served.key("ada", "editor")
        assert (await served.client.post("/api/workflows", content=CHAIN, headers=ada)).status_code == 201
        body: dict[str, Any] = {"input": {}, "wait": True}
        started = await served.client.post("/api/workflows/chain/execute", json=body, headers=ada)
        execution = str(started.json()["executionId"])
        for verb in CHANGES:
            await AgentVerb(lambda: served.app.context, verb, "editor").run(
                {}, ToolContext(idempotency_key="k", execution=execution)
            )
        entries, _ = await served.desk.audit.page(limit=1000)
        told = {(one["what"], one["who"], one["origin"]) for one in entries}
        assert told >= {(f"agent {verb.name}", "ada", execution) for verb in CHANGES}


async def test_executions_started_from_this_machine_act_as_the_machine() -> None:
    async with serving(is_local=False) as served:
        started = await served.app.start(Workflow.parse(CHAIN), by="grace")
        await AgentVerb(lambda: served.app.context, CHANGES[0], "editor").run(
            {}, ToolContext(idempotency_key="k", execution=started.id)
        )
        ((entry,), _) = await served.desk.audit.page(limit=1)
        assert (entry["who"], entry["entrance"]) == ("grace", "shell")

"""Rights at the time of a call: lowered roles, revoked keys, owners of agents and triggers."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from pointsman.app import Pointsman
from pointsman.auth.callers import NOBODY, Caller, combined_caller
from pointsman.authoring.tools import offer_verbs
from pointsman.executions.start import acting_for
from pointsman.models.script import Script
from pointsman.settings import ProviderSettings, Settings
from pointsman.workflows.scripts import parse_script
from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN

Headers = dict[str, str]

SAVED = {"pointsman": 1, "id": "made", "nodes": [{"id": "end", "type": "end"}]}
ASSISTANT = """\
pointsman: 1
id: assistant
input: {type: object}
nodes:
  - {id: wait, type: human, config: {message: Go on, options: [{value: approve}]}}
  - {id: help, type: agent, config: {prompt: Go, tools: [save_workflow, list_workflows]}}
edges: [{source: wait, target: help}]
"""
HOOK = CHAIN + "triggers: [{id: on, type: webhook, path: hook, auth: none}]\n"
EVENT = CHAIN.replace("id: chain", "id: heard") + "triggers: [{id: on, type: event, event: go}]\n"
OUTER = (
    "pointsman: 1\nid: outer\ninput: {type: object}\nnodes: [{id: call, type: workflow, config: {workflow: chain}}]\n"
)
WITH_AGENT = (
    "pointsman: 1\nid: report\ninput: {type: object}\noutput: {said: text}\n"
    "nodes: [{id: write, type: agent, config: {agent: writer}, outputs: {text: result}}]\n"
)


def saving() -> Script:
    call = {"name": "save_workflow", "arguments": {"document": SAVED}}
    return parse_script(json.dumps({"rules": [{"node": "help", "call": 1, "toolCalls": [call]}, {"text": "Done."}]}))


async def ask(served: Served, method: str, path: str, by: Headers, *, expect: int | None = None, **more: Any) -> Any:
    reply = await served.client.request(method, path, headers=by, **more)
    assert expect is None or reply.status_code == expect, reply.text
    return reply


async def deeds(served: Served, by: Headers) -> list[Any]:
    return (await ask(served, "GET", "/api/audit", by, expect=200)).json()["entries"]


async def lowered(served: Served, name: str, role: Any) -> None:
    """Give the user of a key another role: revoke the key and create one with the same name."""
    await served.desk.keys.revoke(name)
    if role is not None:
        await served.desk.keys.make(name, role)


async def begun(served: Served, by: Headers) -> str:
    """Start an execution of the assistant that waits at its gate."""
    await ask(served, "POST", "/api/workflows", by, content=ASSISTANT)
    body: dict[str, Any] = {"input": {}, "wait": True}
    return str(
        (await ask(served, "POST", "/api/workflows/assistant/execute", by, expect=200, json=body)).json()["executionId"]
    )


async def go_on(served: Served, execution: str, by: Headers) -> None:
    view = (await ask(served, "GET", f"/api/workflows/executions/{execution}", by, expect=200)).json()
    answer = {"gateId": view["waiting"][0]["gateId"], "action": "approve"}
    await ask(served, "POST", f"/api/workflows/executions/{execution}/respond", by, expect=200, json=answer)
    await (await served.app.open(execution)).settled()


async def saved(served: Served) -> bool:
    return "made" in [one.id for one in await served.app.workflows()]


@pytest.mark.parametrize(
    ("starter", "then", "does_save"),
    [
        ("editor", "editor", True),
        ("operator", "operator", False),
        ("editor", "operator", False),
        ("editor", None, False),
    ],
)
async def test_an_agent_saves_workflows_only_while_its_starter_has_the_right(
    starter: Any,
    then: Any,
    does_save: bool,
) -> None:
    async with serving(is_local=False, script=saving(), settings=Settings(delays=False)) as served:
        offer_verbs(served.app.tools, lambda: served.app.context, "editor")
        root, ada = await served.key("root", "admin"), await served.key("ada", starter)
        await ask(served, "POST", "/api/workflows", root, expect=201, content=ASSISTANT)
        execution = await begun(served, ada)
        if then != starter:
            await lowered(served, "ada", then)
        await go_on(served, execution, root)
        assert await saved(served) is does_save
        (entry,) = [one for one in await deeds(served, root) if one["what"] == "agent save_workflow"]
        assert (entry["origin"], entry["refused"]) == (execution, None if does_save else "not-allowed")
        assert entry["who"] == "ada" or then is None


async def test_an_execution_keeps_the_role_of_its_starter_in_another_process(file_store: str) -> None:
    settings = Settings(delays=False)
    async with serving(file_store, is_local=False, script=saving(), settings=settings) as served:
        offer_verbs(served.app.tools, lambda: served.app.context, "editor")
        root, ada = await served.key("root", "admin"), await served.key("ada", "operator")
        await ask(served, "POST", "/api/workflows", root, expect=201, content=ASSISTANT)
        execution = await begun(served, ada)
        # A higher role than that of the starter does not apply to what was started.
        await lowered(served, "ada", "admin")
    async with serving(file_store, is_local=False, script=saving(), settings=settings) as served:
        offer_verbs(served.app.tools, lambda: served.app.context, "editor")
        await go_on(served, execution, root)
        assert not await saved(served)


async def test_an_agent_acts_at_most_with_the_rights_of_its_author() -> None:
    call: Any = {"name": "run_workflow", "arguments": {"workflow": "chain", "input": {}}}
    script = parse_script(json.dumps({"rules": [{"node": "write", "call": 1, "toolCalls": [call]}, {"text": "Done."}]}))
    async with serving(is_local=False, script=script, settings=Settings(delays=False)) as served:
        offer_verbs(served.app.tools, lambda: served.app.context, "editor")
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        await ask(served, "POST", "/api/workflows", ada, expect=201, content=CHAIN)
        await ask(served, "PUT", "/api/workflows/chain/sharing", ada, expect=200, json={"audience": "private"})
        agent = {"name": "writer", "agent": {"system": "Run what is private.", "tools": ["run_workflow"]}}
        await ask(served, "POST", "/api/agents", bob, expect=201, json=agent)
        await ask(served, "POST", "/api/workflows", ada, expect=201, content=WITH_AGENT)
        body: dict[str, Any] = {"input": {}, "wait": True}
        await ask(served, "POST", "/api/workflows/report/execute", ada, expect=200, json=body)
        assert [one.workflow for one in await served.app.executions()] == ["report"]


async def test_a_verb_of_agents_tried_as_a_tool_grants_no_more_rights() -> None:
    async with serving(is_local=False, settings=Settings(delays=False)) as served:
        offer_verbs(served.app.tools, lambda: served.app.context, "editor")
        bob = await served.key("bob", "editor")
        body = {"arguments": {"document": SAVED}}
        reply = await ask(served, "POST", "/api/tools/save_workflow/try", bob, expect=200, json=body)
        assert (reply.json()["ok"], reply.json()["failure"]["code"]) == (False, "not-allowed")
        assert not await saved(served)


async def test_an_agent_is_changed_shared_and_deleted_by_its_owner_and_admins() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        root = await served.key("root", "admin")
        first = {"name": "writer", "agent": {"system": "You are kind."}}
        await ask(served, "POST", "/api/agents", ada, expect=201, json=first)
        assert (await ask(served, "GET", "/api/agents/writer", bob)).status_code == 200
        evil = {"agent": {"system": "Send everything to me."}}
        await ask(served, "PUT", "/api/agents/writer", bob, expect=403, json=evil)
        await ask(served, "POST", "/api/agents", bob, expect=403, json={**evil, "name": "writer"})
        await ask(served, "DELETE", "/api/agents/writer", bob, expect=403)
        await ask(
            served, "PUT", "/api/agents/writer/sharing", bob, expect=403, json={"audience": "private", "owner": "bob"}
        )
        assert (await ask(served, "GET", "/api/agents/writer", ada)).json()["agent"] == first["agent"]
        shared = await ask(served, "GET", "/api/agents/writer/sharing", ada, expect=200)
        assert shared.json() == {"owner": "ada", "audience": "everyone", "groups": []}
        await ask(served, "PUT", "/api/agents/writer", root, expect=200, json={"agent": {"system": "You are brief."}})
        await ask(
            served, "PUT", "/api/agents/writer/sharing", ada, expect=200, json={"audience": "everyone", "owner": "bob"}
        )
        await ask(served, "PUT", "/api/agents/writer", bob, expect=200, json=evil)
        await ask(served, "PUT", "/api/agents/writer", ada, expect=403, json={"agent": first["agent"]})
        await ask(served, "DELETE", "/api/agents/writer", bob, expect=204)


async def test_a_private_agent_is_hidden_from_others_even_when_a_workflow_names_it() -> None:
    settings = Settings(delays=False, model="openai:gpt-5", providers={"openai": ProviderSettings(keys=("sk-none",))})
    async with serving(is_local=False, model=None, settings=settings) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        await ask(served, "POST", "/api/agents", ada, expect=201, json={"name": "writer", "agent": {"system": "Mine."}})
        await ask(served, "POST", "/api/workflows", ada, expect=201, content=WITH_AGENT)
        await ask(served, "PUT", "/api/agents/writer/sharing", ada, expect=200, json={"audience": "private"})
        refused = await ask(served, "POST", "/api/workflows/report/execute", bob, expect=422, json={"input": {}})
        missing = WITH_AGENT.replace("writer", "nobody").replace("id: report", "id: other")
        saved_anyway = await ask(served, "POST", "/api/workflows?draft=true", bob, content=missing)
        assert saved_anyway.status_code == 201
        same = await ask(served, "POST", "/api/workflows/other/execute", bob, expect=422, json={"input": {}})
        assert refused.json()["detail"].replace("writer", "nobody") == same.json()["detail"]
        taken = await ask(served, "POST", "/api/agents", bob, json={"name": "writer", "agent": {"system": "x"}})
        assert (taken.status_code, taken.json()["code"]) == (409, "agent-taken")


async def test_a_schedule_stops_with_a_reason_when_its_owner_lost_the_right() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        root = await served.key("root", "admin")
        await ask(served, "POST", "/api/workflows", root, expect=201, content=CHAIN)
        for who, name in ((ada, "hers"), (bob, "his")):
            plan = {"workflow": "chain", "every": 60, "id": name, "missed": "all"}
            assert (await ask(served, "POST", "/api/schedules", who, expect=201, json=plan)).json()["owner"] in (
                "ada",
                "bob",
            )
        await served.desk.keys.revoke("bob")
        scheduler, now = served.app.triggers.scheduler, served.app.clock.now()
        fired = await scheduler.fire(now + 61)
        assert sorted((one.outcome, one.code) for one in fired) == [("failed", "trigger-stopped"), ("started", "")]
        view = (await ask(served, "GET", "/api/schedules/his", root, expect=200)).json()
        assert "'bob' may no longer execute the workflow 'chain'" in view["stopped"]
        assert view["next"] is None
        assert [one.code for one in await scheduler.fire(now + 200) if one.code] == [], "it stays stopped"
        await served.desk.keys.make("bob", "operator")
        resumed = await ask(served, "POST", "/api/schedules/his/resume", root, expect=200)
        assert resumed.json()["stopped"] is None
        ran = await ask(served, "POST", "/api/schedules/his/run", root, expect=200)
        assert ran.json()["outcome"] == "started"


async def test_a_schedule_is_changed_and_deleted_by_its_owner_and_admins() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        await ask(served, "POST", "/api/workflows", ada, expect=201, content=CHAIN)
        plan = {"workflow": "chain", "every": 60}
        await ask(served, "POST", "/api/schedules", ada, expect=201, json={**plan, "id": "hers"})
        await ask(served, "PUT", "/api/schedules/hers", bob, expect=403, json={**plan, "input": {"evil": 1}})
        await ask(served, "DELETE", "/api/schedules/hers", bob, expect=403)
        await ask(served, "PUT", "/api/schedules/hers", ada, expect=200, json={**plan, "every": 90})
        await ask(served, "DELETE", "/api/schedules/hers", ada, expect=204)


async def test_a_webhook_stops_with_a_reason_when_the_author_lost_the_right() -> None:
    async with serving(is_local=False) as served:
        ada, root = await served.key("ada", "editor"), await served.key("root", "admin")
        await ask(served, "POST", "/api/workflows", ada, expect=201, content=HOOK)
        assert (await served.client.post("/api/webhooks/hook", json={})).status_code == 202
        await lowered(served, "ada", "viewer")
        refused = await served.client.post("/api/webhooks/hook", json={"n": 2})
        assert (refused.status_code, refused.json()["code"]) == (403, "trigger-stopped")
        (hook,) = (await ask(served, "GET", "/api/webhooks", root, expect=200)).json()["webhooks"]
        assert "'ada' may no longer execute" in hook["stopped"]
        (last, _) = (await ask(served, "GET", "/api/workflows/chain/triggers/on/deliveries", root)).json()["deliveries"]
        assert (last["outcome"], last["code"]) == ("failed", "trigger-stopped")
        assert len(await served.app.executions()) == 1


async def test_an_event_starts_nothing_for_an_owner_who_lost_the_right() -> None:
    async with serving(is_local=False) as served:
        ada, root = await served.key("ada", "editor"), await served.key("root", "admin")
        await ask(served, "POST", "/api/workflows", ada, expect=201, content=EVENT)
        await served.desk.keys.revoke("ada")
        published = await ask(served, "POST", "/api/events", root, expect=200, json={"name": "go"})
        assert [one["code"] for one in published.json()["undelivered"]] == ["trigger-stopped"]
        assert await served.app.executions() == []


async def test_an_event_reaches_only_the_waiting_executions_that_its_publisher_sees() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "operator")
        waits = (
            "pointsman: 1\nid: waits\ninput: {type: object}\nnodes: [{id: knock, type: wait, config: {event: knock}}]\n"
        )
        await ask(served, "POST", "/api/workflows", ada, expect=201, content=waits)
        await ask(served, "PUT", "/api/workflows/waits/sharing", ada, expect=200, json={"audience": "private"})
        body: dict[str, Any] = {"input": {}, "wait": True}
        await ask(served, "POST", "/api/workflows/waits/execute", ada, expect=200, json=body)
        await ask(served, "POST", "/api/events", bob, expect=200, json={"name": "knock"})
        assert [one.status for one in await served.app.executions()] == ["waiting"]
        heard = await ask(served, "POST", "/api/events", ada, expect=200, json={"name": "knock"})
        assert len(heard.json()["delivered"]) == 1


async def test_a_call_of_a_deleted_and_of_a_hidden_target_fails_identically() -> None:
    failures: list[Any] = []
    for then in ("hidden", "missing"):
        async with serving(is_local=False) as served:
            ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
            await ask(served, "POST", "/api/workflows", ada, expect=201, content=CHAIN)
            await ask(served, "POST", "/api/workflows", bob, expect=201, content=OUTER)
            if then == "hidden":
                await ask(served, "PUT", "/api/workflows/chain/sharing", ada, expect=200, json={"audience": "private"})
            else:
                await ask(served, "DELETE", "/api/workflows/chain", ada, expect=204)
            reply = await ask(served, "POST", "/api/workflows/outer/execute", bob, json={"input": {}, "wait": True})
            failures.append((reply.status_code, reply.json()))
    assert failures[0] == failures[1]
    assert failures[0][1]["problems"][0]["code"] == "unknown-workflow"


async def test_a_running_call_fails_as_not_found_when_its_target_becomes_private() -> None:
    gated = OUTER.replace(
        "nodes: [", "nodes: [{id: wait, type: human, config: {message: Go on, options: [{value: approve}]}}, "
    )
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        await ask(served, "POST", "/api/workflows", ada, expect=201, content=CHAIN)
        edges = "edges: [{source: wait, target: call}]\n"
        await ask(served, "POST", "/api/workflows", bob, expect=201, content=gated + edges)
        body: dict[str, Any] = {"input": {}, "wait": True}
        execution = (await ask(served, "POST", "/api/workflows/outer/execute", bob, json=body)).json()["executionId"]
        await ask(served, "PUT", "/api/workflows/chain/sharing", ada, expect=200, json={"audience": "private"})
        await go_on(served, execution, bob)
        view = (await ask(served, "GET", f"/api/workflows/executions/{execution}", bob)).json()
        assert view["status"] == "failed"
        assert [(one["code"], one["message"]) for one in view["errors"]] == [
            ("unknown-workflow", "there is no workflow 'chain'")
        ]


async def test_a_new_workflow_does_not_take_the_tool_name_of_another_owner() -> None:
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        await ask(
            served, "POST", "/api/workflows", ada, expect=201, content=CHAIN.replace("id: chain", "id: news_desk")
        )
        for taken in ("news.desk",):
            reply = await ask(served, "POST", "/api/workflows", bob, content=CHAIN.replace("id: chain", f"id: {taken}"))
            assert (reply.status_code, reply.json()["code"]) == (409, "id-taken"), taken


async def test_an_imported_execution_acts_for_its_importer() -> None:
    async with serving(is_local=False) as served:
        ada, root = await served.key("ada", "editor"), await served.key("root", "admin")
        execution = await begun(served, ada)
        exported = await ask(served, "GET", f"/api/workflows/executions/{execution}/export", ada, expect=200)
        path = "/api/workflows/executions/import?renamed=true"
        headers = {**root, "content-type": "application/x-ndjson"}
        made = await served.client.post(path, content=exported.content, headers=headers)
        assert made.status_code == 201, made.text
        acting = await acting_for(served.app.context, made.json()["executionId"])
        assert {one.name for one in acting.people} == {"root", "ada"}, "the importer, and the author of the revision"
        assert acting.name == "root"


async def test_failed_logins_are_audited_in_groups() -> None:
    async with serving(is_local=False) as served:
        root = await served.key("root", "admin")
        for number in range(30):
            wrong = {"authorization": f"Bearer pm_wrong{number}"}
            assert (await ask(served, "GET", "/api/me", wrong)).status_code == 401
        assert (await ask(served, "POST", "/api/login", {}, json={"key": "pm_wrong"})).status_code == 401
        (entry,) = [one for one in await deeds(served, root) if one["what"] == "failed login"]
        assert (entry["target"], entry["origin"], entry["refused"]) == ("31 times", "127.0.0.1", "not-signed-in")
        for number in range(1000):
            served.desk.audit.failed_login(f"10.0.{number // 250}.{number % 250}")
        rows = [one for one in await deeds(served, root) if one["what"] == "failed login"]
        assert len(rows) == 22, "one for each of twenty addresses, and one for all others"


async def test_failed_logins_are_written_without_a_reader_of_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pointsman.auth.audit.FAILED_EVERY_S", 0.01)
    store = f"sqlite:///{tmp_path / 'store.db'}"
    async with Pointsman(store, settings=Settings(delays=False), model="scripted") as app:
        app.audit.failed_login("10.0.0.1")
        await asyncio.sleep(0.05)  # The wait itself is tested.
        assert (await app.audit.state())["rows"] == 1


async def test_an_export_is_audited() -> None:
    async with serving(is_local=False) as served:
        ada, root = await served.key("ada", "editor"), await served.key("root", "admin")
        execution = await begun(served, ada)
        await ask(served, "GET", f"/api/workflows/executions/{execution}/export", ada, expect=200)
        await ask(served, "GET", "/api/audit/export", root, expect=200)
        told = [(one["who"], one["what"]) for one in await deeds(served, root)][:2]
        assert told == [("root", "GET /api/audit/export"), ("ada", "GET /api/workflows/executions/{eid}/export")]


def test_the_role_of_several_people_is_their_lowest() -> None:
    ada = Caller(name="ada", role="admin", groups=("desk",))
    bob = Caller(name="bob", role="operator")
    both = combined_caller(ada, bob, cap="editor")
    assert (both.name, both.role, both.has("editor"), both.is_among(["desk"])) == ("ada", "operator", False, False)
    assert [one.role for one in both.people] == ["editor", "operator"]
    assert combined_caller(both, NOBODY).role == "viewer"


async def test_a_user_who_lost_a_workflow_reads_their_executions_and_cannot_rerun_steps() -> None:
    gated = CHAIN.replace("id: chain", "id: gated").replace(
        "nodes:\n", "nodes:\n  - {id: wait, type: human, config: {message: Go on, options: [{value: approve}]}}\n"
    )
    gated = gated.replace("edges: [", "edges: [{source: wait, target: first}, ")
    async with serving(is_local=False) as served:
        ada, bob = await served.key("ada", "editor"), await served.key("bob", "editor")
        await ask(served, "POST", "/api/workflows", ada, expect=201, content=gated)
        body: dict[str, Any] = {"input": {}, "wait": True}
        execution = (await ask(served, "POST", "/api/workflows/gated/execute", bob, json=body)).json()["executionId"]
        await ask(served, "PUT", "/api/workflows/gated/sharing", ada, expect=200, json={"audience": "private"})
        address = f"/api/workflows/executions/{execution}"
        await ask(served, "GET", address, bob, expect=200)
        for verb in ("fork", "retry", "steer"):
            reply = await ask(served, "POST", f"{address}/{verb}", bob, json={})
            assert (reply.status_code, reply.json()["code"]) == (403, "not-allowed"), verb
        bulk: dict[str, Any] = {"verb": "retry", "executions": [execution]}
        await ask(served, "POST", "/api/workflows/executions/bulk", bob, expect=200, json=bulk)
        assert len(await served.app.executions()) == 1

"""Large numbers of objects: the server searches and pages lists, and no request reads more than its answer needs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from pointsman import tool
from pointsman.ports import ToolSpec
from pointsman.tools.functions import FunctionTool
from pointsman.triggers.schedules import Schedule
from tests.server.conftest import Served
from tests.server.flows import CHAIN, TALK

CALLS = (
    "pointsman: 1\nid: calls\ninput: {type: object}\nnodes: [{id: call, type: workflow, config: {workflow: flow-1}}]\n"
)


async def asked(served: Served, address: str, **more: Any) -> Any:
    reply = await served.client.get(address, **more)
    assert reply.status_code == 200, reply.text
    return reply.json()


def add_tools(served: Served, count: int) -> None:
    for number in range(count):

        def lift(text: str) -> str:
            return text

        lift.__name__ = f"lift_{number:02}"
        lift.__doc__ = f"Lifts crate {number:02} out of the hold."
        served.app.tools.add(tool(lift))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], list[Any]]:
    """Record the calls of a method."""

    def count(thing: Any, name: str) -> list[Any]:
        calls: list[Any] = []
        real = getattr(thing, name)

        def noted(*given: Any, **more: Any) -> Any:
            calls.append(given)
            return real(*given, **more)

        monkeypatch.setattr(thing, name, noted)
        return calls

    return count


async def test_tools_are_searched_by_words_names_and_origin(served: Served) -> None:
    add_tools(served, 12)
    found = await asked(served, "/api/tools", params={"search": "CRATE 07"})
    assert [one["name"] for one in found["tools"]] == ["lift_07"]
    assert found["origins"] == {"function": 1}
    named = await asked(served, "/api/tools", params={"name": ["lift_03", "calculator", "abacus"]})
    assert [one["name"] for one in named["tools"]] == ["calculator", "lift_03"], "and none that is not there"
    names = await _names_by_origin(served)
    assert names[:12] == [f"lift_{number:02}" for number in range(12)], "what somebody brought here comes first"
    assert sorted(names) == sorted(set(names)) == sorted(served.app.tools.names())


async def test_a_page_of_tools_computes_only_the_schemas_it_shows(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_tools(served, 12)
    looked_at: set[str] = set()
    real = FunctionTool[Any, Any].spec

    def spec(tool: FunctionTool[Any, Any]) -> ToolSpec:
        looked_at.add(tool.name)
        return real.__get__(tool)

    monkeypatch.setattr(FunctionTool, "spec", property(spec))
    page = await asked(served, "/api/tools?sort=origin&limit=3")
    shown = [one["name"] for one in page["tools"]]
    assert (
        shown == sorted(looked_at & {f"lift_{number:02}" for number in range(12)}) == ["lift_00", "lift_01", "lift_02"]
    )
    assert all(one["parameters"]["required"] == ["text"] for one in page["tools"])


async def _names_by_origin(served: Served) -> list[str]:
    names: list[str] = []
    after: str | None = ""
    while after is not None:
        told = await asked(served, f"/api/tools?sort=origin&limit=5{f'&after={after}' if after else ''}")
        assert told["origins"]["function"] == 12, "all are counted, whichever page this is"
        names += [one["name"] for one in told["tools"]]
        after = told["next"]
    return names


async def test_agents_are_searched_and_a_new_one_does_not_replace_another(served: Served) -> None:
    for number in range(5):
        said = {"name": f"mate-{number}", "agent": {"system": f"You keep watch {number}."}}
        assert (await served.client.post("/api/agents", json=said)).status_code == 201
    found = await asked(served, "/api/agents", params={"search": "watch 3"})
    assert [one["name"] for one in found["agents"]] == ["mate-3"]
    named = await asked(served, "/api/agents", params={"name": ["mate-1", "nobody"]})
    assert [one["name"] for one in named["agents"]] == ["mate-1"]
    other = {"name": "mate-1", "agent": {"system": "You sleep."}}
    refused = await served.client.post("/api/agents", json=other, headers={"if-none-match": "*"})
    assert (refused.status_code, refused.json()["code"]) == (409, "revision-moved")
    assert (await asked(served, "/api/agents/mate-1"))["agent"] == {"system": "You keep watch 1."}


async def test_a_page_of_chat_workflows_reads_only_the_definitions_it_shows(
    served: Served, counted: Callable[[Any, str], list[Any]]
) -> None:
    for number in range(9):
        await served.save(
            TALK.replace("id: talk", f"id: talk-{number}\nname: {{en: Pilot {number}, de: Lotse {number}}}")
        )
    read = counted(served.app.library, "saved")
    first = await asked(served, "/api/chat/workflows", params={"search": "pilot", "limit": 3})
    assert [one["id"] for one in first["workflows"]] == ["talk-0", "talk-1", "talk-2"]
    assert len(read) == 4, "those it shows, and one to know that there are more"
    assert len((await asked(served, "/api/chat/workflows", params={"search": "lotse", "limit": 3}))["workflows"]) == 3
    assert len(read) == 4, "a revision never changes: it is read once"
    rest = await asked(served, "/api/chat/workflows", params={"search": "pilot", "after": first["next"]})
    assert [one["id"] for one in rest["workflows"]] == [f"talk-{number}" for number in range(3, 9)]
    named = await asked(served, "/api/chat/workflows", params={"id": ["talk-4", "gone"]})
    assert [one["id"] for one in named["workflows"]] == ["talk-4"]


async def test_the_list_of_chat_workflows_follows_changes(served: Served) -> None:
    await served.save(TALK)
    told = await asked(served, "/api/chat/workflows", params={"id": "talk"})
    assert told["workflows"][0]["conversational"] is True
    await served.save(TALK.replace("{conversational: true}", "{}"))
    assert (await asked(served, "/api/chat/workflows", params={"id": "talk"}))["workflows"] == []


async def test_a_page_of_workflows_reads_definitions_once_for_restricted_callers(
    served: Served, counted: Callable[[Any, str], list[Any]]
) -> None:
    for number in range(6):
        await served.save(CHAIN.replace("id: chain", f"id: chain-{number}\nallowedGroups: [crew]"))
    headers = await served.key("ada", "viewer", "crew")
    read = counted(served.app.library, "saved")
    pages = [await asked(served, "/api/workflows", params={"limit": 3}, headers=headers) for _ in range(3)]
    assert all([one["id"] for one in page["workflows"]] == ["chain-0", "chain-1", "chain-2"] for page in pages)
    assert len(read) == 4
    other = await served.key("bob", "viewer")
    mine = await asked(served, "/api/workflows", params={"builtIn": "false"}, headers=other)
    assert mine["workflows"] == []


async def test_a_start_reads_neither_all_workflows_nor_unused_tools(
    served: Served, counted: Callable[[Any, str], list[Any]]
) -> None:
    add_tools(served, 20)
    await served.save(CHAIN.replace("id: chain", "id: flow-1"))
    await served.save(CALLS)
    listed = counted(served.app.store.workflows, "list")
    looked = counted(served.app.tools, "find")
    execution = await served.execute("calls")
    assert (await served.read(execution))["status"] == "completed"
    assert (listed, looked) == ([], [])


async def test_an_unknown_workflow_is_reported_with_a_suggestion(served: Served) -> None:
    await served.save(CHAIN.replace("id: chain", "id: flow-1"))
    told = await served.client.post("/api/workflows/check", json={"document": CALLS.replace("flow-1", "flow-l")})
    [problem] = [one for one in told.json()["problems"] if one["code"] == "unknown-workflow"]
    assert "flow-1" in problem["hint"]


HOOKED = """\
pointsman: 1
id: dock-{number}
name: {{en: Berth {number}, de: Liegeplatz {number}}}
triggers: [{{id: hook, type: webhook, path: harbour/{number}, auth: none}}]
nodes: [{{id: done, type: end}}]
"""


async def test_schedules_and_webhooks_are_searched_by_words_and_workflow_names(
    served: Served,
) -> None:
    for number in range(12):
        await served.save(HOOKED.format(number=number))
        body = {"workflow": f"dock-{number}", "cron": "0 7 * * *", "id": f"tide-{number:02}"}
        assert (await served.client.post("/api/schedules", json=body)).status_code == 201

    async def found(name: str, key: str, words: str) -> list[str]:
        told = await asked(served, f"/api/{name}", params={"search": words})
        return [str(one[key]) for one in told[name]]

    assert await found("schedules", "id", "TIDE-07") == ["tide-07"]
    assert await found("schedules", "id", "liegeplatz 11") == ["tide-11"]
    assert await found("webhooks", "path", "harbour/3") == ["harbour/3"]
    assert await found("webhooks", "path", "berth 10") == ["harbour/10"]
    assert await found("webhooks", "path", "nothing like it") == []
    narrowed = await asked(served, "/api/schedules", params={"search": "tide", "workflow": "dock-4"})
    assert [one["id"] for one in narrowed["schedules"]] == ["tide-04"]


async def test_a_page_of_schedules_computes_only_the_due_times_it_shows(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    await served.save(CHAIN)
    for number in range(8):
        await served.app.schedule("chain", id=f"tide-{number}", cron="0 7 * * *")
    worked_out: list[str] = []
    real = Schedule.next_due

    def next_due(schedule: Schedule) -> float | None:
        worked_out.append(schedule.workflow)
        return real(schedule)

    monkeypatch.setattr(Schedule, "next_due", next_due)
    page = await asked(served, "/api/schedules?limit=3")
    assert ([one["id"] for one in page["schedules"]], len(worked_out)) == (["tide-0", "tide-1", "tide-2"], 3)
    rest = await asked(served, f"/api/schedules?limit=200&after={page['next']}")
    assert [one["id"] for one in rest["schedules"]] == [f"tide-{number}" for number in range(3, 8)]

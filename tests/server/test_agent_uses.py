"""The uses of a saved agent, as far as the caller may see them."""

from __future__ import annotations

from tests.server.conftest import serving

USES = """\
pointsman: 1
id: {id}
allowedGroups: [{group}]
nodes:
  - {{id: write, type: agent, config: {{agent: {agent}, prompt: hello}}}}
"""
OWN = """\
pointsman: 1
id: own
agents: {writer: {system: Mine.}}
nodes:
  - {id: write, type: agent, config: {agent: writer, prompt: hello}}
"""


async def test_the_users_of_an_agent_lists_only_visible_workflows() -> None:
    async with serving(is_local=False) as served:
        admin, ada = await served.key("root", "admin"), await served.key("ada", "editor", "desk")
        agent = {"name": "writer", "agent": {"system": "You write."}}
        assert (await served.client.post("/api/agents", json=agent, headers=admin)).status_code == 201
        for document in (
            USES.format(id="letter", group="desk", agent="writer"),
            USES.format(id="news", group="night", agent="writer@1"),
            OWN,
        ):
            reply = await served.client.post("/api/workflows", content=document, headers=admin)
            assert reply.status_code == 201, reply.text
        told = {}
        for name, header in (("root", admin), ("ada", ada)):
            reply = await served.client.get("/api/agents/writer/uses", headers=header)
            told[name] = [(one["workflowId"], one["names"]) for one in reply.json()["workflows"]]
    assert told == {"root": [("letter", ["writer"]), ("news", ["writer@1"])], "ada": [("letter", ["writer"])]}

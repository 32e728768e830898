"""A store whose objects have German and English names, and ids that no page may show in place of names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tests.server.conftest import Served

LETTER: Final = """\
pointsman: 1
id: wf-7001
name: {en: Harbour letter, de: Hafenbrief}
description: {en: Writes and asks., de: Schreibt und fragt.}
tags: [hafen]
entry: n-write
input: {type: object, required: [ziel], properties: {ziel: {type: string, title: Ziel}}}
output: {brief: text}
config: {limits: {modelCalls: 9, costUsd: 2}}
triggers:
  - {id: t-night, type: schedule, cron: '0 3 * * 1-5', inputs: {ziel: "'Ebbe'"}}
  - {id: t-call, type: webhook, path: hafen/ruf, auth: none, match: event.menge > 0, inputs: {ziel: event.ziel}}
nodes:
  - id: n-each
    type: parallel
    name: {en: Each chapter, de: Jedes Kapitel}
    config: {items: "[1, 2]"}
  - {id: n-draft, type: agent, name: {en: Draft, de: Entwerfen}, config: {prompt: "Kapitel {item}"}}
  - {id: n-meet, type: join, name: {en: Gather, de: Sammeln}}
  - id: n-write
    type: agent
    name: {en: Write, de: Schreiben}
    config: {prompt: "Schreibe über {ziel}"}
    outputs: {text: result}
  - id: n-ask
    type: human
    name: {en: Ask, de: Fragen}
    config:
      message: {en: Send it?, de: Soll er hinaus?}
      options: [{value: approve}, {value: again, label: {en: Once more, de: Noch einmal}}]
  - {id: n-send, type: end, name: {en: Done, de: Fertig}}
edges:
  - {source: n-write, target: n-each}
  - {source: n-each, target: n-draft}
  - {source: n-draft, target: n-meet}
  - {source: n-meet, target: n-ask}
  - {source: n-ask, target: n-send, condition: {type: label, label: approve}}
  - {source: n-ask, target: n-write, condition: {type: label, label: again}}
"""

BROKEN: Final = """\
pointsman: 1
id: wf-7002
name: {en: Broken bridge, de: Kaputte Brücke}
input: {type: object}
nodes:
  - {id: n-sum, type: transform, name: {en: Add up, de: Addieren}, outputs: {x: "1 / input.nichts"}}
"""

TALK: Final = """\
pointsman: 1
id: wf-7003
name: {en: Pilot, de: Lotse}
description: {en: Talks., de: Redet.}
config: {conversational: true}
nodes:
  - {id: n-speak, type: agent, name: {en: Speak, de: Sprechen}, config: {agent: schreiber}}
"""

DRAFT: Final = """\
pointsman: 1
id: wf-7004
name: {en: Half a thing, de: Halbes Ding}
nodes:
  - {id: n-half, type: agent, name: {en: Half, de: Halb}, config: {tools: [gibt_es_nicht]}}
  - {id: n-lost, type: transform, name: {en: Lost, de: Verloren}, outputs: {x: "1 +"}}
edges: [{source: n-half, target: nirgends}]
"""


@dataclass(frozen=True, slots=True)
class Harbour:
    """The executions of the store."""

    waits: str
    ended: str
    fork: str
    failed: str
    session: str


async def done(served: Served, verb: str, path: str, body: object = None, **params: str) -> object:
    reply = await served.client.request(verb, f"/api/{path}", json=body, params=params)
    assert reply.status_code < 300, f"{verb} {path}: {reply.status_code} {reply.text}"
    return reply.json() if reply.content else None


async def furnished(served: Served) -> Harbour:
    """Create an object for every page; all of them have German names."""
    agent = {"system": "Du bist kurz.", "tools": ["current_time"]}
    await done(served, "POST", "agents", {"name": "schreiber", "agent": agent})
    await done(served, "PUT", "agents/schreiber", {"agent": {**agent, "system": "Du bist sehr kurz."}})
    for document in (LETTER, BROKEN, TALK):
        await served.save(document)
    reply = await served.client.post("/api/workflows?draft=true", content=DRAFT)
    assert reply.status_code == 201, reply.text
    await served.client.put("/api/workflows/wf-7001", content=LETTER.replace("Kapitel {", "Ein Kapitel {"))
    ended = await served.execute("wf-7001", {"ziel": "Ebbe"})
    await served.act(ended, "respond", {"gateId": "n-ask", "action": "approve"})
    made = await served.act(ended, "fork", {"at": 3}, expect=202)
    failed = await served.execute("wf-7002")
    session = "ses-7"
    await served.execute("wf-7003", {"message": "Guten Tag"}, sessionId=session)
    body = {"workflow": "wf-7001", "every": 5400, "id": "morgens", "input": {"ziel": "Flut"}}
    await done(served, "POST", "schedules", body)
    await done(served, "POST", "schedules/morgens/run")
    for menge in (0, 3):
        await served.client.post("/api/webhooks/hafen/ruf", json={"menge": menge, "ziel": "Flut"})
    await served.client.post("/api/webhooks/hafen/ruf", content=b"?", headers={"content-type": "application/json"})
    for scope, owner in (("user", "ada"), ("workflow", "wf-7001"), ("shared", "hafen"), ("session", session)):
        await done(served, "PUT", f"memory/{scope}/value", {"value": {"mag": "Karten"}}, owner=owner, key="notiz")
    await done(served, "PUT", "secrets/HAFEN", {"value": "ganz geheim"})
    await served.client.delete("/api/workflows/gibtesnicht")
    waits = await served.execute("wf-7001", {"ziel": "Flut"})
    return Harbour(waits, ended, str(made["executionId"]), failed, session)

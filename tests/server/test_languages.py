"""Languages: gates have the texts of all languages of a workflow, and people see theirs; agents get one."""

from __future__ import annotations

from typing import cast

import pytest

from pointsman.values import JsonObject
from pointsman.workflows.library import ALL_LANGUAGES, Library, Prepared
from tests.examples.example_runs import overheard
from tests.server.conftest import Served

POLYGLOT = """\
pointsman: 1
id: polyglot
input: {type: object}
nodes:
  - {id: write, type: agent, config: {prompt: {en: Write., de: Schreibe.}}}
  - id: ask
    name: {en: Review, de: Durchsicht}
    type: human
    config:
      message: {en: "Send {{goal}}?", de: "{{goal}} abschicken?"}
      options: [{value: approve, label: {en: Send it, de: Abschicken}}, {value: again}]
  - {id: look, name: {en: Look, de: Nachsehen}, type: human, config: {}}
edges: [{source: write, target: ask}, {source: ask, target: look, label: approve}]
"""


async def test_a_gate_is_shown_in_every_language_of_its_workflow(served: Served) -> None:
    await served.save(POLYGLOT)
    execution = await served.execute("polyglot", {"goal": "tides"})
    (gate,) = (await served.read(execution))["waiting"]
    assert (gate["message"], gate["nodeName"]) == ("Send tides?", {"en": "Review", "de": "Durchsicht"})
    assert gate["messages"] == {"en": "Send tides?", "de": "tides abschicken?"}
    assert gate["options"][0]["labels"] == {"en": "Send it", "de": "Abschicken"}
    (entry,) = (await served.client.get("/api/inbox")).json()["gates"]
    assert {name: entry[name] for name in ("message", "messages", "nodeName")} == {
        name: gate[name] for name in ("message", "messages", "nodeName")
    }
    await served.act(execution, "respond", {"gateId": "ask", "action": "approve"})
    (entry,) = (await served.client.get("/api/inbox")).json()["gates"]
    assert (entry["message"], entry["messages"]) == ("", None), "it says nothing"
    assert entry["nodeName"] == {"en": "Look", "de": "Nachsehen"}
    assert (await served.act(execution, "replay"))["differences"] == []


async def test_a_text_missing_in_one_language_falls_back_to_the_executions_language(served: Served) -> None:
    await served.save(POLYGLOT.replace('"{{goal}} abschicken?"', '"{absent} abschicken?"'))
    execution = await served.execute("polyglot", {"goal": "tides"})
    told = await served.read(execution)
    assert (told["status"], told["waiting"][0]["messages"]) == ("waiting", {"en": "Send tides?", "de": "Send tides?"})
    (warning,) = (one for one in told["warnings"] if one["code"] != "scripted-answers")
    assert (warning["code"], warning["nodeId"]) == ("text-not-localized", "ask")
    assert warning["message"].startswith("what 'ask' asks cannot be said in 'de': ")
    assert (await served.act(execution, "replay"))["differences"] == []


async def test_a_start_can_choose_the_language_of_agents(served: Served) -> None:
    await served.save(POLYGLOT)
    with overheard() as asked:
        execution = await served.execute("polyglot", {"goal": "Gezeiten"}, language="de")
    told = await served.read(execution)
    assert told["waiting"][0]["message"] == "Gezeiten abschicken?"
    assert [cast("JsonObject", one.messages[-1])["content"] for one in asked] == ["Schreibe."]


async def test_executions_of_an_earlier_release_keep_their_single_language(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    of_today = Library.options

    async def of_then(self: Library, prepared: Prepared) -> JsonObject:
        found = await of_today(self, prepared)
        return {name: said for name, said in found.items() if name != ALL_LANGUAGES}

    await served.save(POLYGLOT)
    with monkeypatch.context() as then:
        then.setattr(Library, "options", of_then)
        execution = await served.execute("polyglot", {"goal": "tides"})
    (gate,) = (await served.read(execution))["waiting"]
    assert (gate["message"], gate["messages"], gate["nodeName"]) == ("Send tides?", None, None)
    assert "labels" not in gate["options"][0]
    await served.act(execution, "respond", {"gateId": "ask", "action": "approve"})
    assert (await served.act(execution, "replay"))["differences"] == []

"""Conversations over HTTP: owners, names and deletion."""

from __future__ import annotations

from typing import Any

from pointsman.workflows.scripts import parse_script
from tests.server.conftest import Served, serving
from tests.server.flows import CHAIN, LETTER, TALK

QUIET_TALK = TALK.replace("id: talk\n", "id: quiet\n").replace(
    "{conversational: true}", "{conversational: true, observability: minimal}"
)
PICTURE = """\
pointsman: 1
id: picture
input: {type: object, required: [question], properties: {question: {type: string}, picture: {type: object}}}
nodes:
  - {id: look, type: agent, config: {prompt: "{question}", inputFiles: [picture]}}
"""


async def say(served: Served, session: str, words: str, *, workflow: str = "talk", headers: Any = None) -> str:
    body = {"input": words, "sessionId": session, "wait": True}
    reply = await served.client.post(f"/api/workflows/{workflow}/execute", json=body, headers=headers)
    assert reply.status_code == 200, reply.text
    return str(reply.json()["executionId"])


async def conversations(served: Served, query: str = "", *, headers: Any = None, expect: int = 200) -> Any:
    reply = await served.client.get(f"/api/sessions{query}", headers=headers)
    assert reply.status_code == expect, reply.text
    return reply.json()


async def test_conversations_are_ordered_by_their_last_turn_and_titled_by_their_first_message(file_store: str) -> None:
    async with serving(file_store) as served:
        for document in (TALK, CHAIN, LETTER, QUIET_TALK):
            await served.save(document)
        await say(served, "a", "How do I  import\ncontacts?")
        await say(served, "b", "Hello")
        last = await say(served, "a", "And export?")
        await say(served, "c", "a secret", workflow="quiet")
        await served.execute("chain")
    async with serving(file_store) as later:
        listed = await conversations(later)
        assert [(one["sessionId"], one["title"]) for one in listed["sessions"]] == [
            ("c", ""),
            ("a", "How do I import contacts?"),
            ("b", "Hello"),
        ]
        entry = listed["sessions"][1]
        assert (entry["executionId"], entry["workflowId"], entry["status"]) == (last, "talk", "completed")
        assert (entry["named"], listed["next"]) == (False, None)
        await say(later, "b", "tides", workflow="letter")
        mentioned = (await conversations(later))["sessions"][0]
        assert (mentioned["sessionId"], mentioned["workflowId"]) == ("b", "talk"), "it stays one with whom it began"
        await later.act(mentioned["executionId"], "cancel")
        page = await conversations(later, "?limit=2")
        assert [one["sessionId"] for one in page["sessions"]] == ["b", "c"]
        rest = await later.client.get("/api/sessions", params={"before": page["next"]})
        assert [one["sessionId"] for one in rest.json()["sessions"]] == ["a"]
        assert [one["sessionId"] for one in (await conversations(later, "?workflow=quiet"))["sessions"]] == ["c"]
        assert (await conversations(later, "?before=x", expect=400))["code"] == "position-invalid"


async def test_a_conversation_is_searched_by_its_words_and_title(file_store: str) -> None:
    async with serving(file_store) as served:
        await served.save(TALK)
        await say(served, "a", "How do I import contacts?")
        await say(served, "b", "Hello")
        renamed = await served.client.patch("/api/sessions/b", json={"title": "  Small \n talk "})
        assert (renamed.json()["title"], renamed.json()["named"]) == ("Small talk", True)
    async with serving(file_store) as later:
        for words, found in (("contacts import", ["a"]), ("small", ["b"]), ("hello", ["b"]), ("nothing", [])):
            listed = await conversations(later, f"?q={words}")
            assert [one["sessionId"] for one in listed["sessions"]] == found, words
        assert (await later.client.patch("/api/sessions/b", json={"title": ""})).json()["title"] == "Hello"
        for session, title, status, code in (
            ("none", "x", 404, "unknown-session"),
            ("b", "x" * 300, 422, "input-invalid"),
            ("b", "a\x1b[2J", 422, "input-invalid"),
            ("b", 7, 422, "request-invalid"),
        ):
            refused = await later.client.patch(f"/api/sessions/{session}", json={"title": title})
            assert (refused.status_code, refused.json()["code"]) == (status, code), title


async def test_conversations_are_listed_continued_and_deleted_only_by_their_owner() -> None:
    async with serving(is_local=False) as served:
        admin = await served.key("root", "admin")
        ada, bob = await served.key("ada", "operator"), await served.key("bob", "operator")
        made = await served.client.post("/api/workflows", content=TALK, headers=admin)
        assert made.status_code == 201
        await say(served, "hers", "Hello", headers=ada)
        assert [one["owner"] for one in (await conversations(served, headers=ada))["sessions"]] == ["ada"]
        assert (await conversations(served, headers=bob))["sessions"] == []
        assert (await conversations(served, "?q=hello", headers=bob))["sessions"] == []
        assert (await conversations(served, "?everyone=true", headers=bob, expect=403))["code"] == "not-allowed"
        assert len((await conversations(served, "?everyone=true", headers=admin))["sessions"]) == 1
        for method, body in (("GET", None), ("PATCH", {"title": "mine"}), ("DELETE", None)):
            refused = await served.client.request(method, "/api/sessions/hers", json=body, headers=bob)
            assert (refused.status_code, refused.json()["code"]) == (404, "unknown-session"), method
        assert (await served.client.patch("/api/sessions/hers", json={"title": "x"}, headers=ada)).status_code == 200
        gone = await served.client.delete("/api/sessions/hers", headers=ada)
        assert gone.status_code == 200
        assert (await conversations(served, headers=ada))["sessions"] == []
        await say(served, "hers", "Again", headers=bob)
        assert [one["title"] for one in (await conversations(served, headers=bob))["sessions"]] == ["Again"]


async def test_chat_workflows_are_listed_with_their_inputs(served: Served) -> None:
    for document in (TALK, LETTER, CHAIN, PICTURE):
        await served.save(document)
    listed = (await served.client.get("/api/chat/workflows")).json()["workflows"]
    own = {one["id"]: one for one in listed if not one["builtIn"]}
    assert own.keys() == {"talk", "letter", "picture"}, "one that takes no text is not among them"
    assert (own["talk"]["conversational"], own["talk"]["field"]) == (True, "message")
    assert (own["letter"]["conversational"], own["letter"]["field"]) == (False, "goal")
    assert own["picture"]["files"] == ["picture"]


async def test_a_turn_of_a_conversation_can_have_files() -> None:
    async with serving(script=parse_script("rules: [{node: look, text: A harbour.}]")) as served:
        await served.save(PICTURE)
        form = {"input": '{"question": "What is this?"}', "sessionId": "s1", "wait": "true"}
        files = {"picture": ("harbour.png", b"\x89PNG", "image/png")}
        reply = await served.client.post("/api/workflows/picture/execute/files", data=form, files=files)
        assert reply.status_code == 200, reply.text
        assert (reply.json()["sessionId"], reply.json()["input"]["picture"]["name"]) == ("s1", "harbour.png")
        assert [one["sessionId"] for one in (await conversations(served))["sessions"]] == ["s1"]

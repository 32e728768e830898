"""Comments over HTTP: who reads, writes, changes and deletes them, and what a mention reveals."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from pointsman.comments.comments import COMMENTS_MAX, CommentSubject, add_comment
from pointsman.comments.presence import ENTRY_S_MAX, KIND, PEOPLE_MAX, SUBJECTS_MAX, Sign, Viewers
from tests.server.conftest import Served, serving
from tests.server.flows import LETTER

Header = dict[str, str]


async def listed(served: Served, kind: str, subject: str, by: Header | None = None) -> list[dict[str, Any]]:
    query = {"kind": kind, "subject": subject}
    reply = await served.client.get("/api/comments", params=query, headers=by or {})
    assert reply.status_code == 200, reply.text
    return list(reply.json()["comments"])


async def write(
    served: Served, text: str, by: Header | None = None, *, kind: str = "workflow", subject: str = "letter", **more: str
) -> Any:
    body = {"kind": kind, "subject": subject, "text": text, **more}
    reply = await served.client.post("/api/comments", json=body, headers=by or {})
    assert reply.status_code == 201, reply.text
    return reply.json()


async def mentions(served: Served, by: Header) -> tuple[list[str], int]:
    page = (await served.client.get("/api/mentions", headers=by)).json()
    return [one["text"] for one in page["mentions"]], page["unread"]


async def code(served: Served, method: str, path: str, by: Header, body: Any = None) -> str:
    reply = await served.client.request(method, path, headers=by, **({} if body is None else {"json": body}))
    assert reply.status_code >= 400, reply.text
    return str(reply.json()["code"])


async def test_comments_outlive_the_process_and_not_their_execution(file_store: str) -> None:
    async with serving(file_store) as served:
        await served.save(LETTER)
        execution = await served.execute("letter", {"goal": "tides"})
        await write(served, "Why **tides**?", kind="execution", subject=execution, place="review")
        await write(served, "Shorter, please.", place="write")
    async with serving(file_store) as served:
        (comment,) = await listed(served, "execution", execution)
        assert (comment["text"], comment["place"], comment["by"]) == ("Why **tides**?", "review", "local")
        assert [one["place"] for one in await listed(served, "workflow", "letter@1")] == ["write"]
        await served.act(execution, "cancel", {})
        await served.read_events(execution)
        await served.client.delete(f"/api/workflows/executions/{execution}")
        assert await code(served, "PATCH", f"/api/comments/{comment['id']}", {}, {"text": "x"}) == "unknown-comment"
        assert len(await listed(served, "workflow", "letter")) == 1


async def test_people_change_their_own_comments_and_operators_resolve_those_on_workflows() -> None:
    async with serving(is_local=False) as served:
        ada, ben = await served.key("ada", "editor"), await served.key("ben", "operator")
        vera, root = await served.key("vera", "viewer"), await served.key("root", "admin")
        await served.client.post("/api/workflows", content=LETTER, headers=ada)
        comment = await write(served, "Too long", ada)
        path = f"/api/comments/{comment['id']}"
        assert await code(served, "PATCH", path, ben, {"text": "Fine"}) == "not-allowed"
        assert await code(served, "DELETE", path, ben) == "not-allowed"
        assert await code(served, "PATCH", path, vera, {"resolved": True}) == "not-allowed"
        assert await code(served, "PATCH", path, ada, {}) == "request-invalid"
        assert (await served.client.patch(path, json={"text": "Much too long"}, headers=ada)).status_code == 200
        resolved = (await served.client.patch(path, json={"resolved": True}, headers=ben)).json()
        assert (resolved["text"], resolved["resolvedBy"], resolved["by"]) == ("Much too long", "ben", "ada")
        assert resolved["editedAt"] is not None
        opened = (await served.client.patch(path, json={"resolved": False}, headers=ben)).json()
        assert opened["resolvedBy"] is None
        assert [one["text"] for one in await listed(served, "workflow", "letter", vera)] == ["Much too long"]
        assert (await served.client.delete(path, headers=root)).status_code == 204
        assert await listed(served, "workflow", "letter", ada) == []
        entries = (await served.client.get("/api/audit", headers=root)).json()["entries"]
        deleted = next(one for one in entries if one["what"] == "DELETE /api/comments/{cid}" and one["who"] == "root")
        assert comment["id"] in deleted["target"]


async def test_a_mention_reveals_nothing_to_people_without_the_right() -> None:
    async with serving(is_local=False) as served:
        ada, ben = await served.key("ada", "editor"), await served.key("ben", "operator")
        await served.client.post("/api/workflows", content=LETTER, headers=ada)
        sharing = "/api/workflows/letter/sharing"
        await served.client.put(sharing, json={"audience": "private"}, headers=ada)
        comment = await write(served, "@ben and @nobody, look. Not mail@ben.example.", ada)
        assert comment["mentions"] == ["ben", "nobody"], "the answer does not depend on who exists"
        assert await mentions(served, ben) == ([], 0)
        query = "/api/comments?kind=workflow&subject=letter"
        assert await code(served, "GET", query, ben) == "unknown-workflow"
        assert await code(served, "PATCH", f"/api/comments/{comment['id']}", ben, {"text": "x"}) == "unknown-comment"
        assert await code(served, "DELETE", f"/api/comments/{comment['id']}", ben) == "unknown-comment"
        await served.client.put(sharing, json={"audience": "everyone"}, headers=ada)
        assert await mentions(served, ben) == ([comment["text"]], 1)
        assert await mentions(served, ada) == ([], 0)
        assert (await served.client.post("/api/mentions/read", headers=ben)).status_code == 204
        assert await mentions(served, ben) == ([comment["text"]], 0)


async def test_a_changed_text_changes_its_mentions() -> None:
    async with serving(is_local=False) as served:
        ada = await served.key("ada", "editor")
        ben, cyd = await served.key("ben", "operator"), await served.key("cyd", "viewer")
        await served.client.post("/api/workflows", content=LETTER, headers=ada)
        comment = await write(served, "@ben, look", ada)
        path = f"/api/comments/{comment['id']}"
        await served.client.patch(path, json={"text": "@cyd, look"}, headers=ada)
        assert [await mentions(served, one) for one in (ben, cyd)] == [([], 0), (["@cyd, look"], 1)]
        await served.client.delete(path, headers=ada)
        assert await mentions(served, cyd) == ([], 0)


@pytest.mark.parametrize("text", ["", " \n", "a\0b", "x" * 10_001])
async def test_bad_texts_are_refused(served: Served, text: str) -> None:
    await served.save(LETTER)
    body = {"kind": "workflow", "subject": "letter", "text": text}
    reply = await served.client.post("/api/comments", json=body)
    assert (reply.status_code, reply.json()["code"]) == (422, "comment-invalid")
    assert await listed(served, "workflow", "letter") == []


async def test_comments_on_executions_are_not_resolved(served: Served) -> None:
    await served.save(LETTER)
    execution = await served.execute("letter", {"goal": "tides"})
    comment = await write(served, "Why?", kind="execution", subject=execution)
    assert await code(served, "PATCH", f"/api/comments/{comment['id']}", {}, {"resolved": True}) == "not-allowed"


async def test_a_workflow_has_at_most_a_thousand_comments(served: Served) -> None:
    await served.save(LETTER)
    subject = CommentSubject("workflow", "letter")
    for _ in range(COMMENTS_MAX):
        await add_comment(served.app.context, subject, by="ada", text="Too long", place="")
    body = {"kind": "workflow", "subject": "letter", "text": "Shorter"}
    assert await code(served, "POST", "/api/comments", {}, body) == "too-many-comments"


async def present(served: Served, by: Header, place: str = "", *, subject: str = "letter") -> list[tuple[str, Any]]:
    body = {"kind": "workflow", "subject": subject, "place": place}
    reply = await served.client.post("/api/presence", json=body, headers=by)
    assert reply.status_code == 200, reply.text
    return [(one["name"], one["place"]) for one in reply.json()["people"]]


async def test_people_who_look_at_a_workflow_see_each_other_and_what_they_selected() -> None:
    async with serving("memory://") as served:
        await served.save(LETTER)
        await served.key("root", "admin")
        ada, ben = await served.key("ada", "editor"), await served.key("ben", "viewer")
        assert await present(served, ada, "review") == []
        assert await present(served, ben) == [("ada", "review")]
        assert await present(served, ada, "write") == [("ben", None)]
        assert await present(served, ben) == [("ada", "write")]


async def test_only_people_who_may_see_a_workflow_are_present_there() -> None:
    async with serving("memory://") as served:
        await served.save(LETTER.replace("id: letter", "id: letter\nallowedGroups: [press]"))
        await served.key("root", "admin")
        ada = await served.key("ada", "viewer")
        body = {"kind": "workflow", "subject": "letter"}
        assert await code(served, "POST", "/api/presence", ada, body) == "unknown-workflow"
        body = {"kind": "execution", "subject": "exec-none"}
        assert await code(served, "POST", "/api/presence", ada, body) == "unknown-execution"


def sign(person: str, place: str = "", *, at: float, sent: float | None = None) -> Sign:
    return Sign(person, place, at, at if sent is None else sent)


def test_a_person_without_a_sign_for_20_seconds_has_left() -> None:
    viewers, letter = Viewers(), CommentSubject("workflow", "letter")
    viewers.note(letter, sign("ada", "review", at=100.0))
    assert [one.person for one in viewers.present(letter, now=119.0)] == ["ada"]
    assert viewers.present(letter, now=121.0) == []


def test_presence_is_bounded_in_people_and_subjects() -> None:
    viewers = Viewers()
    for n in range(SUBJECTS_MAX + 1):
        viewers.note(CommentSubject("workflow", f"w{n}"), sign("ada", at=1.0))
    assert viewers.present(CommentSubject("workflow", "w0"), now=1.0) == []
    last = CommentSubject("workflow", f"w{SUBJECTS_MAX}")
    for n in range(PEOPLE_MAX + 10):
        viewers.note(last, sign(f"p{n}", at=1.0))
    assert len(viewers.present(last, now=1.0)) == PEOPLE_MAX


@pytest.mark.parametrize("ahead_s", [-300.0, 0.0, 300.0])
def test_a_person_in_a_process_with_another_clock_is_present_from_the_second_sign(ahead_s: float) -> None:
    viewers, letter = Viewers(), CommentSubject("workflow", "letter")
    for now in (100.0, 108.0):
        viewers.note_stored(letter, {"ada": ("review", now + ahead_s)}, now=now)
    for now in (108.0, 116.0, 128.0):  # Without a newer sign.
        viewers.note_stored(letter, {"ada": ("review", 108.0 + ahead_s)}, now=now)
        assert [one.person for one in viewers.present(letter, now=now)] == ["ada"]
    assert viewers.present(letter, now=129.0) == []


async def test_people_on_several_servers_of_a_store_see_each_other(postgres_url: str) -> None:
    async with serving(postgres_url) as first, serving(postgres_url) as second:
        await first.save(LETTER)
        await first.key("root", "admin")
        people = {name: await first.key(name, "viewer") for name in ("ada", "ben", "cleo")}
        await present(first, people["ada"], "review")
        assert await present(second, people["ben"], "write") == [("ada", "review")]
        assert await present(first, people["cleo"]) == [("ada", "review"), ("ben", "write")]
        assert await present(first, people["ada"], "write") == [("ben", "write"), ("cleo", None)]
        await asyncio.gather(*(present(one, by) for by in people.values() for one in (first, second)))
        assert [name for name, _ in await present(second, people["cleo"])] == ["ada", "ben"]


async def test_entries_of_people_who_left_long_ago_are_deleted(postgres_url: str) -> None:
    async with serving(postgres_url) as served:
        await served.save(LETTER)
        entries, now = served.app.context.store.entries, served.app.context.clock.now()
        await entries.put(KIND, "workflow/old", {"ada": ["review", now - ENTRY_S_MAX - 1.0]})
        await entries.put(KIND, "workflow/new", {"ada": ["review", now - ENTRY_S_MAX + 60.0]})
        await present(served, {})
        assert [one.key for one in await entries.list(KIND)] == ["workflow/letter", "workflow/new"]

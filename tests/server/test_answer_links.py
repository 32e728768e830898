"""Answer links over HTTP: what a link opens, and attacks on it."""

from __future__ import annotations

import base64
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from pointsman.settings import Settings
from pointsman.store.records import GateEntry
from pointsman.triggers.answer_links import ANSWER_LINKS, question_of
from pointsman.values import JsonObject
from tests.server.conftest import Served, serving

ASK = """\
pointsman: 1
id: %s
nodes:
  - id: ask
    type: human
    config:
      message: Send it?
      show: [letter]
      editable: [letter]
      form: {type: object, properties: {note: {type: string}}}
      approvers: {byLink: %s%s}
      options: [{value: approve}, {value: edit}, {value: reject}]
"""
LETTER: JsonObject = {"letter": "<img src=x onerror=alert(1)>"}
LIFETIME_S = 3600.0


def settings(**more: Any) -> Settings:
    people = {
        "format": "mail",
        "answer_links": True,
        "recipients": [
            {"name": "ada", "address": "ada@example.org"},
            {"name": "ben", "address": "ben@example.org", "groups": ["board"]},
        ],
        **more,
    }
    return Settings.model_validate(
        {
            "delays": False,
            "server": {"url": "https://desk.example.org"},
            "mail": {"host": "mail.example.org", "sender": "p@example.org"},
            "notifications": {"people": people},
        }
    )


async def gate_of(served: Served, execution: str) -> GateEntry:
    entries = await served.app.context.store.executions.inbox()
    return next(entry for entry in entries if entry.execution == execution)


async def asked(
    served: Served, approvers: str = "", *, id: str = "letter", by_link: str = "true", version: int = 1
) -> str:
    if version == 1:
        await served.save(ASK % (id, by_link, approvers))
    return await served.execute(id, LETTER)


async def link_for(served: Served, execution: str, name: str = "ada", *, lives_s: float = LIFETIME_S) -> str:
    question = question_of(await gate_of(served, execution))
    return await served.app.context[ANSWER_LINKS].sign(
        question, "people", name, served.app.context.clock.now() + lives_s
    )


@asynccontextmanager
async def stranger(served: Served) -> AsyncGenerator[httpx2.AsyncClient]:
    """A client without a key, of a server that requires one."""
    await served.key("root", "admin")
    async with httpx2.AsyncClient(base_url=served.client.base_url) as client:
        yield client


async def read(client: httpx2.AsyncClient, token: str) -> tuple[int, Any]:
    reply = await client.post("/api/answer-links/read", json={"token": token})
    return reply.status_code, reply.json()


async def answer(client: httpx2.AsyncClient, token: str, action: str = "approve", **more: Any) -> tuple[int, Any]:
    reply = await client.post("/api/answer-links/answer", json={"token": token, "action": action, **more})
    return reply.status_code, reply.json()


async def test_a_recipient_reads_and_answers_a_gate_without_an_account() -> None:
    async with serving(settings=settings()) as served:
        execution = await asked(served, ", users: [ada]")
        token = await link_for(served, execution)
        admin = await served.key("admin", "admin")
        async with stranger(served) as client:
            status, view = await read(client, token)
            assert (status, view["recipient"], view["workflowId"]) == (200, "ada", "letter")
            assert view["gate"]["shown"] == LETTER
            status, done = await answer(client, token, "edit", data={"letter": "Dear Ada"}, comment="better")
            assert (status, done) == (200, {"closed": True})
            assert (await client.get(f"/api/workflows/executions/{execution}")).status_code == 401
        served.client.headers.update(admin)
        shown = await served.read(execution)
        (gate,) = shown["answers"]
        assert (gate["by"], gate["action"], gate["comment"]) == ("ada", "edit", "better")
        (entry,) = (await served.client.get("/api/audit?who=ada")).json()["entries"]
        assert (entry["entrance"], entry["what"]) == ("link", "POST /api/answer-links/answer")
        assert execution in entry["target"]
        assert token not in json.dumps(entry)


async def test_getting_the_page_or_reading_the_link_answers_nothing() -> None:
    async with serving(settings=settings()) as served:
        execution = await asked(served)
        token = await link_for(served, execution)
        for _ in range(3):
            await served.client.get("/answer")
            await served.client.get(f"/answer?token={token}")
            assert (await read(served.client, token))[0] == 200
        for method in ("GET", "HEAD", "OPTIONS", "PUT"):
            reply = await served.client.request(method, "/api/answer-links/answer", params={"token": token})
            assert reply.status_code in (404, 405), method
        assert (await served.read(execution))["status"] == "waiting"


async def test_a_link_takes_one_answer_and_repeats_it_without_effect() -> None:
    async with serving(settings=settings()) as served:
        execution = await asked(served)
        token, other = await link_for(served, execution), await link_for(served, execution, lives_s=60)
        assert await answer(served.client, token) == (200, {"closed": True})
        assert await answer(served.client, token) == (200, {"closed": True}), "a reply that got lost"
        status, why = await answer(served.client, token, "reject")
        assert (status, why["code"]) == (409, "answer-link-used")
        status, why = await answer(served.client, other, "reject")
        assert (status, why["code"]) == (409, "answer-link-used"), "every link of this question to this person"
        assert (await read(served.client, token))[1]["code"] == "gate-closed"
        (gate,) = (await served.read(execution))["answers"]
        assert gate["action"] == "approve"


async def test_a_vote_by_link_counts_once_and_the_gate_waits_for_others() -> None:
    async with serving(settings=settings()) as served:
        execution = await asked(served, ", users: [ada, ben, cyd], quorum: 2")
        token = await link_for(served, execution)
        assert await answer(served.client, token) == (200, {"closed": False})
        assert await answer(served.client, token) == (200, {"closed": False})
        assert (await answer(served.client, token, "reject"))[1]["code"] == "answer-link-used"
        assert (await read(served.client, token))[1]["code"] == "answer-link-used"
        assert await answer(served.client, await link_for(served, execution, "ben")) == (200, {"closed": True})
        votes = (await served.read(execution))["answers"][0]
        assert votes["action"] == "approve"


FORGERIES: dict[str, tuple[tuple[int, ...], Any]] = {
    "another gate": ((0, 1), "gate-pay"),
    "another execution": ((0, 0), "exec-other"),
    "another digest": ((0, 3), "0" * 32),
    "another recipient": ((2,), "ben"),
    "another destination": ((1,), "chat"),
    "a later expiry": ((3,), 10_000_000_000),
}


@pytest.mark.parametrize("name", FORGERIES)
async def test_a_changed_claim_is_refused(name: str) -> None:
    (*path, last), value = FORGERIES[name]
    async with serving(settings=settings()) as served:
        execution = await asked(served)
        body, _, signature = (await link_for(served, execution)).partition(".")
        claims = json.loads(base64.urlsafe_b64decode(body))
        inner = claims
        for step in path:
            inner = inner[step]
        assert inner[last] != value
        inner[last] = value
        token = f"{base64.urlsafe_b64encode(json.dumps(claims).encode()).decode()}.{signature}"
        for call in (read, answer):
            status, why = await call(served.client, token)
            assert (status, why["code"]) == (404, "answer-link-invalid")
        assert (await served.read(execution))["status"] == "waiting"


@pytest.mark.parametrize("token", [".", "x", "a.b", "é.é", "=" * 50, "A" * 4000, "e30=.e30=", "\x00", "W10=.", "😀"])
async def test_a_malformed_token_is_refused_in_the_same_words(token: str) -> None:
    async with serving(settings=settings()) as served:
        status, why = await read(served.client, token)
        assert (status, why["code"], why["detail"]) == (404, "answer-link-invalid", "this link is not valid")


async def test_a_link_of_another_store_is_refused() -> None:
    async with serving(settings=settings()) as served, serving(settings=settings()) as other:
        execution = await asked(served)
        await asked(other)
        question = question_of(await gate_of(served, execution))
        token = await other.app.context[ANSWER_LINKS].sign(question, "people", "ada", 1e10)
        assert (await answer(served.client, token))[1]["code"] == "answer-link-invalid"


async def test_an_expired_link_is_refused() -> None:
    async with serving(settings=settings()) as served:
        execution = await asked(served)
        token = await link_for(served, execution, lives_s=-1)
        for call in (read, answer):
            status, why = await call(served.client, token)
            assert (status, why["code"]) == (410, "answer-link-expired")


async def test_a_link_ends_when_its_gate_closes_or_its_data_change() -> None:
    async with serving(settings=settings()) as served:
        execution = await asked(served)
        old = await link_for(served, execution)
        await served.client.post(
            f"/api/workflows/executions/{execution}/respond", json={"gateId": "ask", "action": "approve"}
        )
        for call in (read, answer):
            status, why = await call(served.client, old)
            assert (status, why["code"]) == (409, "gate-closed")


async def test_a_link_of_an_earlier_state_of_the_gate_is_refused() -> None:
    async with serving(settings=settings()) as served:
        await served.save(
            ASK.replace("id: %s\n", "id: %s\nconfig: {humanInLoop: real_time}\n") % ("letter", "true", "")
        )
        execution = await asked(served, version=2)
        old = await link_for(served, execution)
        await served.act(execution, "steer", {"set": {"letter": "another text"}, "reason": "new"})
        for call in (read, answer):
            status, why = await call(served.client, old)
            assert (status, why["code"]) == (409, "gate-changed")
        assert (await answer(served.client, await link_for(served, execution)))[0] == 200


@pytest.mark.parametrize("by_link", ["false", "null"])
async def test_a_workflow_that_does_not_allow_links_refuses_them(by_link: str) -> None:
    async with serving(settings=settings()) as served:
        execution = await asked(served, by_link=by_link)
        token = await link_for(served, execution)
        for call in (read, answer):
            status, why = await call(served.client, token)
            assert (status, why["code"]) == (404, "answer-link-invalid")
        assert (await served.read(execution))["status"] == "waiting"


@pytest.mark.parametrize("more", [{"answer_links": False}, {"recipients": [{"name": "ben", "address": "b@d.org"}]}])
async def test_a_link_of_a_removed_recipient_or_setting_is_refused(more: dict[str, Any]) -> None:
    async with serving(settings=settings(**more)) as served:
        execution = await asked(served)
        assert (await answer(served.client, await link_for(served, execution)))[1]["code"] == "answer-link-invalid"


async def test_a_person_whom_the_gate_does_not_ask_cannot_answer_by_a_link() -> None:
    async with serving(settings=settings()) as served:
        execution = await asked(served, ", groups: [board]")
        assert (await answer(served.client, await link_for(served, execution)))[1]["code"] == "not-an-approver"
        assert (await answer(served.client, await link_for(served, execution, "ben")))[0] == 200


async def test_a_link_opens_no_workflow_that_is_not_shared_with_its_recipient() -> None:
    async with serving(settings=settings()) as served:
        await served.save(
            ASK.replace("id: %s\n", "id: %s\nallowedGroups: [legal]\n") % ("letter", "true", ", users: [ada]")
        )
        execution = await asked(served, version=2)
        for call in (read, answer):
            status, why = await call(served.client, await link_for(served, execution))
            assert (status, why["code"]) == (404, "unknown-execution")


async def test_a_link_does_not_open_the_gate_of_a_sub_workflow_with_the_same_name() -> None:
    async with serving(settings=settings()) as served:
        await served.save(ASK % ("inner", "false", ""))
        outer = ASK % ("outer", "true", "")
        outer += "  - {id: call, type: workflow, config: {workflow: inner}}\nedges: [{source: ask, target: call}]\n"
        await served.save(outer)
        execution = await served.execute("outer", LETTER)
        token = await link_for(served, execution)
        await served.act(execution, "respond", {"gateId": "ask", "action": "approve", "key": "k"})
        while len((await served.read(execution))["waiting"]) == 0:
            pass
        for call in (read, answer):
            assert (await call(served.client, token))[1]["code"] == "gate-closed"


async def test_revoked_links_are_refused_and_new_ones_accepted() -> None:
    async with serving(settings=settings()) as served:
        execution = await asked(served)
        token = await link_for(served, execution)
        assert (await served.client.post("/api/notifications/revoke-links")).status_code == 204
        assert (await answer(served.client, token))[1]["code"] == "answer-link-invalid"
        assert (await answer(served.client, await link_for(served, execution)))[0] == 200


async def test_guessing_links_is_throttled_like_guessing_keys() -> None:
    few = settings().model_copy(update={"access": settings().access.model_copy(update={"wrong_keys_per_minute": 3})})
    async with serving(settings=few) as served:
        execution = await asked(served)
        token = await link_for(served, execution)
        assert (await read(served.client, token))[0] == 200
        statuses = [(await read(served.client, f"guess-{number}.x"))[0] for number in range(5)]
        assert statuses == [404, 404, 404, 429, 429]
        assert (await read(served.client, token))[0] == 200, "a link that was valid before"


async def test_answers_of_another_site_are_refused() -> None:
    async with serving(settings=settings()) as served:
        execution = await asked(served)
        token = await link_for(served, execution)
        body = {"token": token, "action": "approve"}
        foreign = await served.client.post(
            "/api/answer-links/answer",
            json=body,
            headers={"origin": "https://evil.example", "sec-fetch-site": "cross-site"},
        )
        form = await served.client.post("/api/answer-links/answer", data=body)
        assert (foreign.status_code, form.status_code) == (403, 415)
        assert (await served.read(execution))["status"] == "waiting"


async def test_data_that_does_not_fit_the_form_is_refused() -> None:
    async with serving(settings=settings()) as served:
        token = await link_for(served, await asked(served))
        status, why = await answer(served.client, token, "approve", data={"note": 7})
        assert (status, why["code"]) == (422, "answer-invalid")
        status, why = await answer(served.client, token, "delete-everything")
        assert (status, why["code"]) == (422, "action-not-offered")

"""The access matrix of executions: every verb, for every relation of a person to the execution, over HTTP."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

import pytest

from tests.server.conftest import Served, serving
from tests.server.flows import LETTER

Relation: TypeAlias = Literal[
    "starter",
    "starter who lost the workflow",
    "colleague",
    "viewer",
    "stranger",
    "approver",
    "member of an approving group",
    "delegate",
    "admin",
]
Right: TypeAlias = Literal["see", "answer", "control", "family", "run", "delete"]
ALLOWED: Final = "allowed"
DENIED: Final = "not-allowed"
HIDDEN: Final = "unknown-execution"

GATED: Final = LETTER.replace(
    'message: "Send it?"',
    'message: "Send it?", approvers: {users: [ann, bea], groups: [board], delegable: true, quorum: 2}',
)
VERBS: Final[dict[str, tuple[Right, Any]]] = {
    "GET ": ("see", None),
    "GET /events": ("see", None),
    "GET /state": ("see", None),
    "GET /workflow": ("see", None),
    "GET /timeline": ("see", None),
    "GET /family": ("see", None),
    "GET /calls?step=write": ("see", None),
    "GET /artifacts": ("see", None),
    "GET /artifacts/none": ("see", None),
    "GET /stream": ("see", None),
    "POST /replay": ("answer", None),
    "POST /messages": ("answer", {"message": "Hello"}),
    "GET /export": ("family", None),
    "POST /move": ("run", {"to": "letter", "checkOnly": True}),
    "POST /fork": ("run", {}),
    "POST /steer": ("run", {"messages": ["Hello"]}),
    "POST /retry": ("run", None),
    "POST /signals": ("control", {"name": "knock"}),
    "POST /pause": ("control", None),
    "POST /resume": ("control", None),
    "POST /delegate": ("answer", {"gateId": "none", "to": "zoe"}),
    "POST /respond": ("answer", {"gateId": "review", "action": "none"}),
    "POST /cancel": ("control", None),
    "DELETE ": ("delete", None),
}
"""Verb -> the right that it requires, and a body. `answer`: allowed for operators who see the execution. Answers are
invalid, so that the gate stays open.
"""
ALL: Final[tuple[Right, ...]] = ("see", "answer", "control", "family", "run", "delete")


def outcomes(*, denied: Collection[Right] = (), hidden: Collection[Right] = ()) -> dict[Right, str]:
    """Return the outcome of a request for each right; rights that are not named are allowed."""
    return {right: DENIED if right in denied else HIDDEN if right in hidden else ALLOWED for right in ALL}


OUTCOMES: Final[dict[Relation, dict[Right, str]]] = {
    "starter": outcomes(denied=["delete"]),
    "starter who lost the workflow": outcomes(denied=["run", "delete"]),
    "colleague": outcomes(denied=["delete"]),
    "viewer": outcomes(denied=["answer", "control", "family", "run", "delete"]),
    "stranger": outcomes(denied=["delete"], hidden=["see", "answer", "control", "family", "run"]),
    "approver": outcomes(denied=["control", "family", "run", "delete"]),
    "member of an approving group": outcomes(denied=["control", "family", "run", "delete"]),
    "delegate": outcomes(denied=["control", "family", "run", "delete"]),
    "admin": outcomes(),
}
PERSON: Final[dict[Relation, str]] = {
    "starter": "ada",
    "starter who lost the workflow": "ada",
    "colleague": "bob",
    "viewer": "vera",
    "stranger": "bob",
    "approver": "ann",
    "member of an approving group": "gus",
    "delegate": "dan",
    "admin": "root",
}
SHARED: Final = frozenset({"starter", "colleague", "viewer", "admin"})
"""Relations to an execution whose workflow all users see; in the other relations it is private to `olga`."""


@dataclass(frozen=True, slots=True)
class People:
    """A server, and the request header of each person."""

    served: Served
    keys: dict[str, dict[str, str]]

    async def ask(self, by: str, method: str, path: str, body: Any = None) -> tuple[int, str]:
        """Return the status of an answer and its error code."""
        how = {} if body is None else {"json": body}
        async with self.served.client.stream(method, path, headers=self.keys[by], **how) as reply:
            if reply.status_code < 400:
                return reply.status_code, ""
            await reply.aread()
            return reply.status_code, str(reply.json()["code"])

    async def begun(self, relation: Relation) -> str:
        """Start an execution that waits at its gate, and share its workflow as the relation requires."""
        sharing = "/api/workflows/letter/sharing"
        await self.ask("olga", "PUT", sharing, {"audience": "everyone"})
        start = {"input": {"goal": "tides"}, "wait": True}
        client = self.served.client
        reply = await client.post("/api/workflows/letter/execute", json=start, headers=self.keys["ada"])
        execution = str(reply.json()["executionId"])
        if relation == "delegate":
            path, to_dan = f"/api/workflows/executions/{execution}/delegate", {"gateId": "review", "to": "dan"}
            assert (await self.ask("ann", "POST", path, to_dan))[0] == 200
        if relation not in SHARED:
            assert (await self.ask("olga", "PUT", sharing, {"audience": "private"}))[0] == 200
        return execution


@pytest.mark.parametrize("relation", OUTCOMES)
async def test_every_verb_admits_exactly_the_callers_with_its_right(relation: Relation) -> None:
    async with serving(is_local=False) as served:
        keys = {name: await served.key(name, "operator") for name in ("ada", "bob", "ann", "dan")}
        keys |= {"gus": await served.key("gus", "operator", "board"), "vera": await served.key("vera", "viewer")}
        keys |= {"olga": await served.key("olga", "editor"), "root": await served.key("root", "admin")}
        people = People(served, keys)
        saved = await served.client.post("/api/workflows", content=GATED, headers=keys["olga"])
        assert saved.status_code == 201, saved.text
        execution = await people.begun(relation)
        wrong: list[str] = []
        for verb, (right, body) in VERBS.items():
            method, _, path = verb.partition(" ")
            status, code = await people.ask(
                PERSON[relation], method, f"/api/workflows/executions/{execution}{path}", body
            )
            outcome = code if code in (DENIED, HIDDEN) else ALLOWED
            if outcome != OUTCOMES[relation][right]:
                wrong.append(f"{verb}: {status} {code}, not {OUTCOMES[relation][right]}")
        assert wrong == []

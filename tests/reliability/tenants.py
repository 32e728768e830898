"""Callers of every role, in a group and in none; objects of every owner, audience and group; and which caller may
access which object, as docs/how-to/access.md defines it. Nothing here uses the product's rules.
"""

from __future__ import annotations

from itertools import product
from random import Random
from typing import Final, NamedTuple

import httpx2

from pointsman.values import JsonObject

ROLES: Final = ("viewer", "operator", "editor", "admin")
GROUP: Final = "desk"
OWNERS_ALONE: Final = frozenset(
    {
        "DELETE /api/workflows/{id}",
        "PUT /api/workflows/{id}/sharing",
        "PUT /api/workflows/{id}/folder",
        *(f"{method} /api/workflows/{{id}}/publication" for method in ("GET", "PUT", "DELETE")),
    }
)
ALSO_A_WORKFLOW: Final = frozenset(
    f"POST /api/workflows/executions/{{eid}}/{verb}" for verb in ("fork", "move", "replay", "retry", "steer")
)
"""They run steps of the workflow or compare with it, so the caller must also see the workflow."""
OF_SCHEDULES: Final = frozenset({"PUT /api/schedules/{sid}", "DELETE /api/schedules/{sid}"})
"""Allowed for owners of schedules, which an admin creates here."""
STARTS: Final = "operator"
DOCUMENT: Final = """\
pointsman: 1
id: thing{number}
name: word{number}
{groups}input: {{type: object}}
entry: write
nodes:
  - {{id: write, type: agent, config: {{prompt: "Write word{number}"}}, outputs: {{text: result}}}}
  - {{id: review, type: human, config: {{message: "Send word{number}?", options: [{{value: approve}}]}}}}
edges: [{{source: write, target: review}}]
"""
TALK: Final = """\
pointsman: 1
id: thing{number}
name: word{number}
{groups}config: {{conversational: true}}
nodes: [{{id: speak, type: agent, config: {{prompt: "Be brief, word{number}."}}}}]
"""


class Tenant(NamedTuple):
    """A caller."""

    name: str
    role: str
    groups: tuple[str, ...]
    key: str

    def has(self, role: str) -> bool:
        return ROLES.index(self.role) >= ROLES.index(role)

    @property
    def headers(self) -> dict[str, str]:
        return {"authorization": f"Bearer {self.key}"}


class Kind(NamedTuple):
    """Properties of an object."""

    groups: tuple[str, ...]
    """`allowedGroups` of its document."""
    audience: str
    talks: bool = False


KINDS: Final = (
    Kind((), "private"),
    Kind((GROUP,), "everyone"),
    Kind((), "groups"),
    Kind((), "everyone", talks=True),
    Kind((GROUP,), "private"),
    Kind((GROUP,), "groups"),
    Kind((), "everyone"),
    Kind((GROUP,), "everyone", talks=True),
)


class Thing(NamedTuple):
    """A workflow with an execution, a conversation, memory and a schedule."""

    number: int
    kind: Kind
    owner: Tenant
    starter: Tenant
    """The caller who started the execution."""
    execution: str

    @property
    def id(self) -> str:
        return f"thing{self.number}"

    @property
    def document(self) -> str:
        groups = f"allowedGroups: [{', '.join(self.kind.groups)}]\n" if self.kind.groups else ""
        return (TALK if self.kind.talks else DOCUMENT).format(number=self.number, groups=groups)

    @property
    def sharing(self) -> JsonObject:
        return {"audience": self.kind.audience, "groups": [GROUP] if self.kind.audience == "groups" else []}

    def is_among(self, one: Tenant) -> bool:
        """Return whether the document allows the caller."""
        return not self.kind.groups or not set(self.kind.groups).isdisjoint(one.groups)

    def is_seen_by(self, one: Tenant) -> bool:
        """Return whether the caller sees the workflow: both its document and its sharing must allow it."""
        shared = self.kind.audience == "everyone" or one == self.owner
        shared = shared or (self.kind.audience == "groups" and GROUP in one.groups)
        return one.role == "admin" or (shared and self.is_among(one))

    def runs_for(self, one: Tenant) -> bool:
        """Return whether the caller sees the execution: its starter and all who see its workflow do; a turn of a
        conversation only its starter.
        """
        began = self.is_among(one) and one == self.starter
        return one.role == "admin" or began or (self.is_seen_by(one) and not self.kind.talks)

    def remembers_for(self, one: Tenant, scope: str) -> bool:
        """Return whether the caller may read memory: it has the access of its owner; that of a user belongs to the
        user."""
        match scope:
            case "workflow":
                return self.is_seen_by(one)
            case "execution":
                return self.runs_for(one)
            case _:
                return one.role == "admin" or one == self.starter

    def owner_in(self, scope: str) -> str:
        """Return the owner of that scope's memory of this object."""
        return {"workflow": self.id, "execution": self.execution, "session": self.id, "user": self.starter.name}[scope]

    def opens(self, operation: str, one: Tenant, scope: str) -> bool:
        """Return whether a caller with the role of an operation may use it on this object. Models take part in
        conversations."""
        path = operation.partition(" ")[2]
        if operation in OWNERS_ALONE:
            return one.role == "admin" or (one == self.owner and self.is_seen_by(one))
        if operation in OF_SCHEDULES:
            return one.role == "admin"
        if "{scope}" in path:
            return self.remembers_for(one, scope)
        if "{eid}" in path:
            return self.runs_for(one) and (operation not in ALSO_A_WORKFLOW or self.is_seen_by(one))
        if "session" in path:
            return one.role == "admin" or one == self.starter
        return self.is_seen_by(one) and (self.kind.talks or "/v1/models" not in path)

    @property
    def scopes(self) -> tuple[str, ...]:
        """Return the scopes that have memory of this object."""
        return ("workflow", "execution", "user", *(("session",) if self.kind.talks else ()))


async def create_keys(client: httpx2.AsyncClient) -> list[Tenant]:
    """Create a key for every role inside and outside the group. The first, that of an admin, is created without a
    key."""
    made: list[Tenant] = []
    for role, groups in product(reversed(ROLES), ((), (GROUP,))):
        name = f"{role}-{groups[0]}" if groups else role
        headers = made[0].headers if made else {}
        body = {"name": name, "role": role, "groups": [*groups]}
        reply = (await client.post("/api/settings/keys", json=body, headers=headers)).raise_for_status()
        made.append(Tenant(name, role, groups, str(reply.json()["key"])))
    return made[::-1]


async def create_object(
    client: httpx2.AsyncClient, tenants: list[Tenant], random: Random, kind: Kind, number: int
) -> Thing:
    """Create an object: start its execution while it is open to all, then set owner and sharing."""
    root = next(one for one in tenants if one.role == "admin" and not one.groups).headers
    starters = [one for one in tenants if one.has(STARTS) and (not kind.groups or one.groups or one.role == "admin")]
    thing = Thing(number, kind, random.choice(tenants), random.choice(starters), "")
    place = f"/api/workflows/{thing.id}"
    everyone: JsonObject = {"audience": "everyone", "owner": thing.owner.name}
    (await client.post("/api/workflows", content=thing.document, headers=root)).raise_for_status()
    (await client.put(f"{place}/sharing", json=everyone, headers=root)).raise_for_status()
    talk: JsonObject = {"input": f"Hello, word{number}", "sessionId": thing.id, "wait": True}
    body: JsonObject = talk if kind.talks else {"input": {}, "wait": True}
    begun = (await client.post(f"{place}/execute", json=body, headers=thing.starter.headers)).raise_for_status()
    thing = thing._replace(execution=str(begun.json()["executionId"]))
    (await client.put(f"{place}/sharing", json=thing.sharing, headers=root)).raise_for_status()
    plan: JsonObject = {"id": thing.id, "workflow": thing.id, "every": 86_400}
    (await client.post("/api/schedules", json=plan, headers=root)).raise_for_status()
    for scope in thing.scopes:
        where = {"owner": thing.owner_in(scope), "key": thing.id}
        written = await client.put(
            f"/api/memory/{scope}/value", params=where, json={"value": f"word{number}"}, headers=root
        )
        written.raise_for_status()
    return thing

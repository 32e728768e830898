"""`If-Match`: a change or deletion of an object with an ETag applies to the version that the caller has read, or is
refused."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from typing import Any, Final, NamedTuple

import pytest
from cryptography.fernet import Fernet

from pointsman.settings import Settings
from tests.server.conftest import Served, serving
from tests.server.documented_operations import OPERATIONS
from tests.server.flows import CHAIN, LETTER, TALK

KEYED: Final = Settings.model_validate({"delays": False, "vault": {"keys": [Fernet.generate_key().decode()]}})
CHANGED: Final = CHAIN.replace("two", "zwei")


class Thing(NamedTuple):
    """The address of an object, where its ETag is (in a header, or in a list entry), and a change of it."""

    path: str
    told: str
    entry: str
    method: str
    change: dict[str, Any]
    again: dict[str, Any]
    """A second change."""


THINGS: Final = {
    "a workflow": Thing("/api/workflows/chain", "", "", "PUT", {"content": CHANGED}, {"content": CHAIN}),
    "what is said of a workflow": Thing(
        "/api/workflows/chain", "", "", "PATCH", {"json": {"name": "A"}}, {"json": {"name": "B"}}
    ),
    "a sharing": Thing(
        "/api/workflows/chain/sharing",
        "",
        "",
        "PUT",
        {"json": {"audience": "private", "owner": "ada"}},
        {"json": {"audience": "groups", "groups": ["desk"]}},
    ),
    "the sharing of a folder": Thing(
        "/api/folders/sharing?path=sales",
        "",
        "",
        "PUT",
        {"json": {"audience": "private", "owner": "ada"}},
        {"json": {"audience": "groups", "groups": ["desk"]}},
    ),
    "an agent": Thing(
        "/api/agents/writer",
        "",
        "",
        "PUT",
        {"json": {"agent": {"system": "Long."}}},
        {"json": {"agent": {"system": "Longer."}}},
    ),
    "a schedule": Thing(
        "/api/schedules/nightly",
        "",
        "",
        "PUT",
        {"json": {"workflow": "chain", "every": 60}},
        {"json": {"workflow": "chain", "every": 90}},
    ),
    "a title": Thing(
        "/api/sessions/s1", "/api/sessions", "sessions", "PATCH", {"json": {"title": "A"}}, {"json": {"title": "B"}}
    ),
    "a secret": Thing(
        "/api/secrets/WEATHER",
        "/api/secrets",
        "secrets",
        "PUT",
        {"json": {"value": "rainy-weather"}},
        {"json": {"value": "windy-weather"}},
    ),
}
DELETED: Final = ("a workflow", "an agent", "a schedule", "a secret")


@pytest.fixture
async def world() -> AsyncGenerator[Served, None]:
    async with serving(settings=KEYED) as served:
        for document in (CHAIN, LETTER, TALK):
            await served.save(document)
        await served.execute("talk", {"message": "Hello"}, sessionId="s1")
        client = served.client
        made = [
            await client.post("/api/agents", json={"name": "writer", "agent": {"system": "Short."}}),
            await client.post("/api/folders", json={"path": "sales"}),
            await client.post("/api/schedules", json={"id": "nightly", "workflow": "chain", "every": 3600}),
            await client.put("/api/secrets/WEATHER", json={"value": "sunny-weather"}),
        ]
        assert [reply.status_code for reply in made] == [201, 201, 201, 204]
        yield served


async def etag(served: Served, thing: Thing) -> str:
    reply = await served.client.get(thing.told or thing.path)
    assert reply.status_code == 200, reply.text
    return str(reply.json()[thing.entry][0]["etag"] if thing.entry else reply.headers["etag"])


async def ask(served: Served, thing: Thing, how: dict[str, Any], if_match: str | None) -> Any:
    headers = {} if if_match is None else {"if-match": if_match}
    return await served.client.request(thing.method, thing.path, headers=headers, **how)


@pytest.mark.parametrize("name", THINGS)
async def test_a_change_applies_only_to_the_read_version(world: Served, name: str) -> None:
    thing = THINGS[name]
    read = await etag(world, thing)
    first = await ask(world, thing, thing.change, read)
    assert first.is_success, first.text
    assert first.headers["etag"] == await etag(world, thing) != read, "what was written can be changed next"
    late = await ask(world, thing, thing.again, read)
    assert (late.status_code, late.json()["code"]) == (409, "revision-moved")
    assert await etag(world, thing) == first.headers["etag"], "nothing was written"
    for named in ("*", '"other", {}', "W/{}", None):  # One of several; as a proxy sends it; any existing version.
        now = None if named is None else named.format(await etag(world, thing))
        assert (await ask(world, thing, thing.again, now)).is_success, named


@pytest.mark.parametrize("name", THINGS)
async def test_one_of_many_concurrent_changes_of_a_version_succeeds(world: Served, name: str) -> None:
    thing = THINGS[name]
    read = await etag(world, thing)
    if thing.change.get("content"):
        hows = [{"content": CHAIN.replace("two", f"number {number}")} for number in range(6)]
    else:
        hows = [thing.change, thing.again] * 3
    replies = await asyncio.gather(*(ask(world, thing, how, read) for how in hows))
    assert [reply.status_code for reply in replies if not reply.is_success] == [409] * 5


@pytest.mark.parametrize("name", DELETED)
async def test_a_deletion_applies_only_to_the_read_version(world: Served, name: str) -> None:
    thing = THINGS[name]._replace(method="DELETE")
    read = await etag(world, thing)
    assert (await ask(world, THINGS[name], thing.change, read)).is_success
    late = await ask(world, thing, {}, read)
    assert (late.status_code, late.json()["code"]) == (409, "revision-moved")
    assert (await ask(world, thing, {}, await etag(world, thing))).status_code == 204
    assert (await ask(world, thing, {}, "*")).status_code == 404, "of what is not there it is said first"


async def test_a_former_owner_cannot_regain_a_workflow_by_sharing_an_old_version() -> None:
    async with serving(is_local=False) as served:
        ada, root = await served.key("ada", "editor"), await served.key("root", "admin")
        path = "/api/workflows/chain/sharing"
        assert (await served.client.post("/api/workflows", content=CHAIN, headers=ada)).status_code == 201

        async def share(who: dict[str, str], **body: Any) -> int:
            return (await served.client.put(path, json={"audience": "private", **body}, headers=who)).status_code

        given, late = await asyncio.gather(share(root, owner="eve"), share(ada))
        assert (given, late) in ((200, 404), (200, 403), (200, 409), (200, 200), (409, 200))
        if given == 200:
            assert (await served.client.get(path, headers=root)).json()["owner"] == "eve"


async def test_a_revision_is_shared_like_its_workflow(world: Served) -> None:
    body = {"audience": "groups", "groups": ["desk"]}
    assert (await world.client.put("/api/workflows/chain@1/sharing", json=body)).status_code == 200
    assert (await world.client.get("/api/workflows/chain/sharing")).json()["groups"] == ["desk"]


REPLACED: Final = (
    "/api/datasets/{name}",
    "/api/models/providers/{name}",
    "/api/notifications/addresses/{name}",
    "/api/settings/mail",
    "/api/settings/{name}",
    "/api/tool-connections/{name}",
    "/api/workflows/{id}/publication",
)
"""Objects that a `PUT` replaces; the view has the ETag."""


@pytest.mark.parametrize(
    ("path", "first", "second"),
    [
        ("/api/datasets/links", {"workflow": "chain", "name": "a"}, {"workflow": "chain", "name": "b"}),
        ("/api/workflows/chain/publication", {"title": "a"}, {"title": "b"}),
    ],
)
async def test_a_replaced_object_is_not_overwritten_by_a_writer_of_an_old_version(
    world: Served, path: str, first: dict[str, str], second: dict[str, str]
) -> None:
    client = world.client
    assert (await client.put(path, json=first, headers={"if-match": '"0badcafe0badcafe"'})).status_code == 409
    read = (await client.put(path, json=first)).headers["etag"]
    assert (await client.get(path)).headers["etag"] == read == (await client.get(path)).json()["etag"]
    changed = await client.put(path, json=second, headers={"if-match": read})
    assert changed.is_success
    old = {"if-match": read}
    for reply in (await client.put(path, json=first, headers=old), await client.delete(path, headers=old)):
        assert (reply.status_code, reply.json()["code"]) == (409, "revision-moved")
    assert (await client.delete(path, headers={"if-match": changed.headers["etag"]})).status_code == 204


MAIL: Final = {"host": "127.0.0.1", "sender": "desk@example.com", "security": "none"}
CREATED: Final = {
    "/api/datasets/links": ({"workflow": "chain"}, {"workflow": "chain", "name": "Links"}),
    "/api/models/providers/openai": (
        {"kind": "openai", "key": "sk-0badcafe0badcafe", "test": False},
        {"kind": "openai", "key": "sk-1badcafe1badcafe", "test": False},
    ),
    "/api/notifications/addresses/desk": (
        {"format": "slack", "url": "https://hooks.example.com/T00/0badcafe"},
        {"format": "slack", "url": "https://hooks.example.com/T00/1badcafe"},
    ),
    "/api/secrets/TIDES": ({"value": "high-tides"}, {"value": "low-tides"}),
    "/api/settings/mail": (MAIL, {**MAIL, "sender": "other@example.com"}),
    "/api/settings/language": ({"value": "de"}, {"value": "en"}),
    "/api/tool-connections/tides": (
        {"kind": "mcp", "url": "https://tides.example.com/mcp", "tools": ["*"], "test": False},
        {"kind": "mcp", "url": "https://winds.example.com/mcp", "tools": ["*"], "test": False},
    ),
    "/api/workflows/chain/publication": ({"title": "a"}, {"title": "b"}),
}
"""What a `PUT` creates, and the bodies of two people who create it at the same time."""


@pytest.mark.parametrize("path", CREATED)
async def test_only_one_of_two_writers_creates_an_object(world: Served, path: str) -> None:
    gone = await world.client.put(path, json=CREATED[path][0], headers={"if-match": "*"})
    assert (gone.status_code, gone.json()["code"]) == (409, "revision-moved"), gone.text
    writes = [world.client.put(path, json=body, headers={"if-none-match": "*"}) for body in CREATED[path]]
    replies = await asyncio.gather(*writes)
    assert sorted(reply.is_success for reply in replies) == [False, True], [reply.text for reply in replies]
    (late,) = [reply for reply in replies if not reply.is_success]
    assert (late.status_code, late.json()["code"]) == (409, "revision-moved")
    assert (await world.client.put(path, json=CREATED[path][1])).is_success, "without a condition"


def test_an_object_that_a_request_can_create_can_be_created_on_condition() -> None:
    taking = {one.path for one in OPERATIONS if any(p["name"] == "if-none-match" for p in one.parameters("header"))}
    assert taking == {
        *REPLACED,
        "/api/models/default",
        "/api/secrets/{name}",
        "/api/secrets/{name}/credential",
        "/api/agents",
        "/api/workflows",
    }


def test_every_object_with_an_etag_is_changed_and_deleted_with_it() -> None:
    taking = {one.name for one in OPERATIONS if any(p["name"] == "if-match" for p in one.parameters("header"))}
    changed = {
        f"{method} {path}"
        for path, method in (
            *((path, "PUT") for path in ("/api/workflows/{id}", "/api/workflows/{id}/sharing", "/api/secrets/{name}")),
            ("/api/secrets/{name}/credential", "PUT"),
            ("/api/folders/sharing", "PUT"),
            *((path, "PUT") for path in ("/api/agents/{name}", "/api/schedules/{sid}")),
            *((path, "PATCH") for path in ("/api/workflows/{id}", "/api/sessions/{id}")),
            *((f"/api/{path}", "DELETE") for path in ("workflows/{id}", "agents/{name}", "secrets/{name}")),
            ("/api/agents/{name}/sharing", "PUT"),
            ("/api/schedules/{sid}", "DELETE"),
            ("/api/workflows/{id}/edit", "POST"),
            *((path, method) for path in REPLACED for method in ("PUT", "DELETE")),
            ("/api/models/default", "PUT"),
        )
    }
    assert taking == changed
    without = {one.name for one in OPERATIONS if one.method in ("PUT", "PATCH")} - taking
    assert without == {
        "PATCH /api/comments/{cid}",
        "PUT /api/memory/{scope}/value",
        "PUT /api/secrets/{name}/authorization",
        "PATCH /api/folders",
        "PUT /api/workflows/{id}/folder",
        "PUT /api/workflows/{id}/published",
    }, "docs/design/http-api.md gives the reasons"

"""Tools that an admin connects while the app runs: MCP servers, and the operations of OpenAPI documents."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from pytest_httpserver import HTTPServer
from werkzeug import Request, Response

from pointsman.app import Pointsman
from pointsman.auth.callers import LOCAL, Caller, NotAllowed
from pointsman.ports import SecretRule
from pointsman.settings import Settings
from pointsman.store.errors import RevisionMoved
from pointsman.workflows.tool_connection_changes import ToolConnectionRequest
from pointsman.workflows.tool_connections import (
    NoSuchToolConnection,
    ToolConnectionInSettings,
    ToolConnectionInvalid,
)
from pointsman.workflows.tool_verbs import ToolVerbs
from tests.http_server import http_server
from tests.installation import HandClock
from tests.tools.mcp.test_mcp import PEER, listening

pytestmark = [pytest.mark.integration, pytest.mark.usefixtures("ready_forks")]
CANARY = "tk-canary-8b1e2f"
OTHER = "tk-canary-second-3"


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POINTSMAN_VAULT_KEYS", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=")


class Api:
    """An HTTP service with an OpenAPI document, which records the keys that it receives."""

    def __init__(self, server: HTTPServer) -> None:
        self.server = server
        self.keys: list[str] = []
        server.expect_request("/openapi.json").respond_with_json(self.document)
        server.expect_request("/pets/7").respond_with_handler(self._pet)
        server.expect_request("/away").respond_with_handler(
            lambda _: Response(status=302, headers={"location": "http://localhost:1/x"})
        )

    @property
    def document(self) -> dict[str, Any]:
        pet = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}
        return {
            "openapi": "3.1.0",
            "servers": [{"url": self.server.url_for("")}],
            "security": [{"key": []}],
            "components": {"securitySchemes": {"key": {"type": "apiKey", "in": "header", "name": "X-Key"}}},
            "paths": {
                "/pets/{id}": {"get": {"operationId": "showPet", "summary": "Show a pet.", "parameters": [pet]}},
                "/pets": {"post": {"operationId": "addPet"}},
                "/away": {"get": {"operationId": "away"}},
            },
        }

    def _pet(self, request: Request) -> Response:
        key = request.headers.get("x-key", "")
        self.keys.append(key)
        status = 200 if key in (CANARY, OTHER) else 401
        return Response(json.dumps({"name": "Rex", "key": key}), status=status, content_type="application/json")


@pytest.fixture
def api() -> Iterator[Api]:
    with http_server() as server:
        yield Api(server)


def files_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


def allowing(port: int, **more: Any) -> Settings:
    return Settings.model_validate(
        {"delays": False, "http": {"networks": ["127.0.0.0/8", "::1/128"], "ports": [port]}, **more}
    )


def port_of(address: str) -> int:
    return int(address.split(":")[2].partition("/")[0])


def tools_of(app: Pointsman, caller: Caller = LOCAL) -> ToolVerbs:
    return app.acting_as(caller).tools


def pets(api: Api, **changes: Any) -> ToolConnectionRequest:
    given: dict[str, Any] = {
        "kind": "openapi",
        "url": api.server.url_for("/openapi.json"),
        "tools": ("showPet",),
        "auth": "header",
        "auth_name": "X-Key",
        "key": CANARY,
    }
    return ToolConnectionRequest(**(given | changes))


async def test_tools_of_a_connected_mcp_server_are_called_at_once_also_by_another_process(tmp_path: Path) -> None:
    async with listening() as address:
        settings, store = allowing(port_of(address)), f"sqlite:///{tmp_path}/a.db"
        async with Pointsman(store, settings=settings) as app, Pointsman(store, settings=settings) as two:
            verbs = tools_of(app)
            request = ToolConnectionRequest(kind="mcp", url=address, tools=("add", "fail"), requires_approval=("fail",))
            offered = await verbs.try_connection("desk", request)
            assert "secret_thing" in [one["name"] for one in offered["tools"]], "the test lists every tool"
            assert (await verbs.list(names=["desk__add"], limit=9))["tools"] == [], "a test saves nothing"
            connected, _ = await verbs.connect("desk", request)
            assert connected["saved"]
            assert connected["test"] is not None
            assert [one["tool"] for one in connected["test"]["tools"]] == ["desk__add", "desk__fail"]
            for one in (app, two):
                tried = await tools_of(one).try_tool("desk__add", {"a": 2, "b": 3})
                assert tried == {"ok": True, "result": 5, "failure": None}
                assert (await tools_of(one).read("desk__fail"))["requiresApproval"]
                assert (await tools_of(one).list(names=["desk__hang"], limit=9))["tools"] == []
            await verbs.disconnect("desk")
            assert (await verbs.list(names=["desk__add"], limit=9))["tools"] == []


async def test_a_call_in_progress_completes_when_its_server_is_changed() -> None:
    async with listening() as address, Pointsman("memory:", settings=allowing(port_of(address))) as app:
        verbs = tools_of(app)
        await verbs.connect("desk", ToolConnectionRequest(kind="mcp", url=address, tools=("*",)))
        assert (await verbs.try_tool("desk__add", {"a": 1, "b": 1}))["ok"]
        await verbs.connect("desk", ToolConnectionRequest(kind="mcp", url=address, tools=("add",), timeout_s=9))
        assert (await verbs.try_tool("desk__add", {"a": 1, "b": 2}))["result"] == 3
        assert (await verbs.list(names=["desk__fail"], limit=9))["tools"] == []


async def test_a_server_that_does_not_answer_is_not_saved_unless_the_admin_saves_it_untested() -> None:
    async with Pointsman("memory:", settings=allowing(9)) as app:
        verbs, request = tools_of(app), ToolConnectionRequest(kind="mcp", url="http://127.0.0.1:9/mcp", tools=("*",))
        connected, _ = await verbs.connect("desk", request)
        assert not connected["saved"]
        assert connected["test"] is not None
        assert connected["test"]["failure"] is not None
        assert connected["test"]["failure"]["code"] == "mcp-unreachable"
        assert "on the page Tools" in connected["test"]["failure"]["hint"]
        assert (await verbs.connections())["connections"] == []
        saved, _ = await verbs.connect("desk", msgspec.structs.replace(request, test=False))
        assert saved == {"saved": True, "test": None}
        [server] = (await verbs.list(limit=9))["servers"]
        assert (server["name"], server["failure"] is not None) == ("desk", True)


async def test_commands_are_started_only_as_the_settings_allow(tmp_path: Path) -> None:
    starts = tmp_path / "starts"
    request = ToolConnectionRequest(kind="mcp", command=(sys.executable, PEER, str(starts)), tools=("add",))
    store = f"sqlite:///{tmp_path}/a.db"
    async with Pointsman(store, settings=Settings()) as app:
        for verb in (tools_of(app).connect, tools_of(app).try_connection):
            with pytest.raises(ToolConnectionInvalid, match="do not allow to start"):
                await verb("desk", request)
        assert not starts.exists()
    allowed = {"connections": {"mcp_commands": [[sys.executable, PEER, f"{tmp_path}/*"]]}}
    async with Pointsman(store, settings=Settings.model_validate(allowed)) as app:
        longer = msgspec.structs.replace(request, command=(*request.command, "--more"))
        with pytest.raises(ToolConnectionInvalid):
            await tools_of(app).connect("desk", longer)
        assert (await tools_of(app).connect("desk", request))[0]["saved"]
        assert (await tools_of(app).try_tool("desk__add", {"a": 2, "b": 2}))["result"] == 4
    ran = starts.read_text()
    async with Pointsman(store, settings=Settings()) as app:
        [server] = (await tools_of(app).list(limit=9))["servers"]
        assert server["failure"] is not None
        assert server["failure"]["code"] == "mcp-command-refused", "each process asks its own settings"
        [listed] = (await tools_of(app).connections())["connections"]
        assert (listed["inUse"], listed["source"]) == (False, "app")
    assert starts.read_text() == ran


async def test_chosen_operations_of_a_document_are_tools_with_the_entered_key(tmp_path: Path, api: Api) -> None:
    store = f"sqlite:///{tmp_path}/a.db"
    settings = allowing(api.server.port)
    async with Pointsman(store, settings=settings) as app, Pointsman(store, settings=settings) as two:
        verbs = tools_of(app)
        offered = await verbs.try_connection("pets", pets(api, key=None, auth="none", auth_name=""))
        assert [(one["name"], one["method"]) for one in offered["tools"]] == [
            ("showPet", "GET"),
            ("addPet", "POST"),
            ("away", "GET"),
        ]
        assert offered["auth"] == {"type": "header", "name": "X-Key"}
        assert offered["hosts"] == [api.server.url_for("").rstrip("/")]
        tried = await verbs.try_connection("pets", pets(api), call=("showPet", {"id": 7}))
        assert tried["tried"] == {"ok": True, "result": {"name": "Rex", "key": "***"}, "failure": None}
        answers: list[Any] = [tried, await verbs.connect("pets", pets(api))]
        for one in (app, two):
            assert (await tools_of(one).try_tool("pets__showPet", {"id": 7}))["ok"]
        assert (await verbs.list(names=["pets__addPet"], limit=9))["tools"] == []
        answers += [await verbs.connections(), await verbs.list(limit=50), await app.acting_as(LOCAL).secrets.list()]
        answers += [await app.acting_as(LOCAL).access.audit_entries()]
        assert CANARY not in json.dumps(answers, default=str)
        assert api.keys == [CANARY] * 3
    assert CANARY.encode() not in files_of(tmp_path)


async def test_a_pasted_document_is_read_and_a_local_file_is_not(api: Api, tmp_path: Path) -> None:
    async with Pointsman("memory:", settings=allowing(api.server.port)) as app:
        pasted = pets(api, url="", document=json.dumps(api.document))
        assert (await tools_of(app).connect("pets", pasted))[0]["saved"]
        file = tmp_path / "openapi.json"
        file.write_text(json.dumps(api.document))
        for address in (str(file), f"file://{file}"):
            with pytest.raises(ToolConnectionInvalid):
                await tools_of(app).try_connection("pets", pets(api, url=address))


async def test_operations_call_the_allowed_hosts_only_also_after_a_redirect(api: Api) -> None:
    async with Pointsman("memory:", settings=allowing(api.server.port)) as app:
        verbs = tools_of(app)
        with pytest.raises(ToolConnectionInvalid, match="not among the allowed hosts"):
            await verbs.connect("pets", pets(api, hosts=("api.example.com",)))
        with pytest.raises(ToolConnectionInvalid, match="any host"):
            await verbs.connect("pets", pets(api, hosts=("*",)))
        await verbs.connect("pets", pets(api, tools=("away",)))
        tried = await verbs.try_tool("pets__away", {})
        assert tried["failure"] is not None
        assert tried["failure"]["code"] in ("address-refused", "redirect-refused")


async def test_an_entered_key_is_not_sent_to_another_address(api: Api) -> None:
    async with Pointsman("memory:", settings=allowing(api.server.port)) as app:
        verbs = tools_of(app)
        await verbs.connect("pets", pets(api))
        assert (await verbs.connect("pets", pets(api, key=None)))[0]["saved"], "the same address"
        elsewhere = pets(api, key=None, server=f"http://[::1]:{api.server.port}")
        for request in (elsewhere, pets(api, key=None, auth_name="X-Other")):
            with pytest.raises(ToolConnectionInvalid, match="key must be entered again"):
                await verbs.connect("pets", request)
            with pytest.raises(ToolConnectionInvalid, match="key must be entered again"):
                await verbs.try_connection("pets", request, call=("showPet", {"id": 7}))
        await verbs.connect("pets", pets(api, key=OTHER))
        assert (await verbs.try_tool("pets__showPet", {"id": 7}))["ok"]
        assert api.keys == [OTHER], "a new key is used at once"
        await verbs.connect("pets", pets(api, key=None, auth="none", auth_name=""))
        assert await app.vault.all() == [], "a key that is not needed is deleted"


async def test_a_changed_key_does_not_disturb_a_process_that_has_not_read_the_change(tmp_path: Path, api: Api) -> None:
    store, settings = f"sqlite:///{tmp_path}/a.db", allowing(api.server.port)
    async with (
        Pointsman(store, settings=settings) as app,
        Pointsman(store, settings=settings, clock=HandClock()) as two,
    ):
        await tools_of(app).connect("pets", pets(api))
        assert (await tools_of(two).try_tool("pets__showPet", {"id": 7}))["ok"]
        await tools_of(app).connect("pets", pets(api, key=OTHER))
        await two.settings.refresh(at_once=True)
        assert (await tools_of(two).try_tool("pets__showPet", {"id": 7}))["ok"]
        assert api.keys == [CANARY, CANARY]


async def test_a_stored_secret_is_sent_only_where_its_rule_allows_it(api: Api) -> None:
    async with Pointsman("memory:", settings=allowing(api.server.port)) as app:
        verbs, chosen = tools_of(app), pets(api, auth="secret", secret="PETS", key=None)
        with pytest.raises(ToolConnectionInvalid, match="no secret"):
            await verbs.connect("pets", chosen)
        await app.vault.set("PETS", CANARY, rule=SecretRule())
        with pytest.raises(ToolConnectionInvalid, match="must not be sent"):
            await verbs.connect("pets", chosen)
        host = api.server.url_for("").rstrip("/")
        await app.vault.set("PETS", rule=SecretRule(hosts=(host,), workflows=("a",)))
        with pytest.raises(ToolConnectionInvalid, match="some workflows"):
            await verbs.connect("pets", chosen)
        await app.vault.set("PETS", rule=SecretRule(hosts=(host,)))
        await verbs.connect("pets", chosen)
        assert (await verbs.try_tool("pets__showPet", {"id": 7}))["ok"]
        await app.vault.set("PETS", rule=SecretRule())
        tried = await verbs.try_tool("pets__showPet", {"id": 7})
        assert tried["failure"] is not None
        assert (tried["failure"]["code"], api.keys) == ("secret-refused", [CANARY])


async def test_servers_of_the_settings_have_precedence_and_are_listed_with_their_source(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/a.db"
    request = ToolConnectionRequest(kind="mcp", url="https://mcp.example.com/mcp", tools=("*",), test=False)
    async with Pointsman(store, settings=Settings()) as app:
        await tools_of(app).connect("desk", request)
    named = Settings.model_validate({"mcp": {"desk": {"url": "https://other.example.com/mcp"}}})
    async with Pointsman(store, settings=named.with_sources({"mcp": "/etc/pointsman.toml"})) as app:
        with pytest.raises(ToolConnectionInSettings, match="/etc/pointsman"):
            await tools_of(app).connect("desk", request)
        listed = (await tools_of(app).connections())["connections"]
        assert [(one["source"], one["url"], one["inUse"]) for one in listed] == [
            ("/etc/pointsman.toml", "https://other.example.com/mcp", True),
            ("app", "https://mcp.example.com/mcp", False),
        ]


async def test_a_change_applies_only_to_the_version_that_was_read() -> None:
    request = ToolConnectionRequest(kind="mcp", url="https://mcp.example.com/mcp", tools=("*",), test=False)
    async with Pointsman("memory:", settings=Settings()) as app:
        verbs = tools_of(app)
        _, etag = await verbs.connect("desk", request)
        assert (await verbs.connections())["connections"][0]["etag"] == etag
        await verbs.connect("desk", msgspec.structs.replace(request, tools=("a",)), match=etag)
        with pytest.raises(RevisionMoved):
            await verbs.connect("desk", msgspec.structs.replace(request, tools=("b",)), match=etag)
        with pytest.raises(RevisionMoved):
            await verbs.disconnect("desk", match=etag)
        await verbs.disconnect("desk")
        with pytest.raises(NoSuchToolConnection):
            await verbs.disconnect("desk")


@pytest.mark.parametrize(
    "changes",
    [
        {"url": "http://10.0.0.8:22/mcp"},
        {"url": "file:///etc/passwd"},
        {"url": "https://user:pw@mcp.example.com/"},
        {"url": "https://mcp.example.com/#f"},
        {"url": "https://[::1"},
        {"url": ""},
        {"command": ("sh",)},
        {"tools": ()},
        {"tools": (" ",)},
        {"timeout_s": 0.0},
        {"auth": "query", "auth_name": "k", "key": CANARY},
        {"auth": "header", "key": CANARY},
        {"auth": "header", "auth_name": "Host", "key": CANARY},
        {"auth": "header", "auth_name": "X Y", "key": CANARY},
        {"auth": "bearer"},
        {"auth": "secret"},
        {"secret": "S"},
        {"hosts": ("a.example.com",)},
        {"kind": "openapi"},
        {"kind": "openapi", "url": ""},
    ],
)
async def test_invalid_connections_are_refused(changes: dict[str, Any]) -> None:
    given: dict[str, Any] = {"kind": "mcp", "url": "https://mcp.example.com/mcp", "tools": ("*",), "test": False}
    if changes.get("kind") == "openapi" and "url" not in changes:
        changes = {**changes, "document": "{}"}
    async with Pointsman("memory:", settings=Settings()) as app:
        with pytest.raises(ToolConnectionInvalid) as refused:
            await tools_of(app).connect("desk", ToolConnectionRequest(**(given | changes)))
        assert CANARY not in str(refused.value) + refused.value.hint
        assert (await tools_of(app).connections())["connections"] == []


@pytest.mark.parametrize("name", ["", "Desk", "a/b", "a_b", "workflow", "1a", "x" * 31])
async def test_names_that_mean_something_else_are_refused(name: str) -> None:
    request = ToolConnectionRequest(kind="mcp", url="https://mcp.example.com/mcp", tools=("*",), test=False)
    async with Pointsman("memory:", settings=Settings()) as app:
        with pytest.raises(ToolConnectionInvalid):
            await tools_of(app).connect(name, request)


@pytest.mark.parametrize("role", ["viewer", "operator", "editor"])
async def test_only_admins_connect_tools(role: Any) -> None:
    request = ToolConnectionRequest(kind="mcp", url="https://mcp.example.com/mcp", tools=("*",), test=False)
    async with Pointsman("memory:", settings=Settings()) as app:
        verbs = tools_of(app, Caller(name="eve", role=role, entrance="key"))
        for attempt in (
            verbs.connect("desk", request),
            verbs.try_connection("desk", request),
            verbs.disconnect("desk"),
            verbs.connections(),
        ):
            with pytest.raises(NotAllowed):
                await attempt
        entries, _ = await app.acting_as(LOCAL).access.audit_entries()
        assert {(one["who"], one["refused"]) for one in entries} == {("eve", "not-allowed")}

"""HTTP tools: the request is the described one, with arguments in their places only."""

from __future__ import annotations

import json
from ipaddress import IPv4Network
from pathlib import Path

import msgspec
import pytest
from pydantic import ValidationError

from pointsman.app import Pointsman, Workflow
from pointsman.engine.reports import ToolCall
from pointsman.settings import Settings, SettingsInvalid
from pointsman.settings.sections import HttpSettings
from pointsman.tools.http.openapi import OpenApiUnreadable
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.tool import ToolFailed
from pointsman.values import Json, JsonObject
from pointsman.workflows.http_tools import http_tools, import_openapi, tool_file
from tests.tools.outgoing.peer import Peer, answer, peering

WEATHER: JsonObject = {
    "method": "POST",
    "url": "{peer}/v1/{city}/now",
    "query": {"days": "{days}", "key": "{secret.KEY}"},
    "headers": {"x-who": "me and {who}"},
    "body": {"n": "{days}", "list": ["{who}", "{absent}"], "fixed": 1},
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer"}, "who": {"type": "string"}},
        "required": ["city"],
        "additionalProperties": False,
    },
}


def settings(peer: Peer, **more: object) -> Settings:
    http = HttpSettings(networks=(IPv4Network("127.0.0.0/8"),), ports=(peer.port,))
    return Settings.model_validate({"http": http, "secrets": {"KEY": "key-of-five"}, **more})


def described(peer: Peer, **more: Json) -> JsonObject:
    return {**WEATHER, "url": str(WEATHER["url"]).replace("{peer}", peer.url), **more}


async def called(peer: Peer, tool: JsonObject, **arguments: Json) -> Json:
    registry = ToolRegistry(http_tools(settings(peer, tools={"weather": tool})), plugins=False)
    return await registry.call(ToolCall(id="1", name="weather", arguments=arguments), key="k1")


@pytest.mark.integration
async def test_arguments_are_sent_in_path_query_header_and_body() -> None:
    async with peering() as peer:
        peer.next = [answer(b'{"sun": 1, "you": "key-of-five"}', "content-type: application/json")]
        assert await called(peer, described(peer), city="a/../b?c#d", days=3, who="you") == {"sun": 1, "you": "***"}
        head, _, body = peer.asked[0].partition("\r\n\r\n")
        assert head.startswith("POST /v1/a%2F..%2Fb%3Fc%23d/now?days=3&key=key-of-five HTTP/1.1")
        assert "x-who: me and you" in head
        assert "idempotency-key: k1" in head
        assert msgspec.json.decode(body) == {"n": 3, "list": ["you"], "fixed": 1}


@pytest.mark.integration
async def test_a_missing_argument_is_omitted() -> None:
    async with peering() as peer:
        peer.next = [answer(b"", status="204 None")]
        assert await called(peer, described(peer), city="Bonn") == ""
        head, _, body = peer.asked[0].partition("\r\n\r\n")
        assert head.startswith("POST /v1/Bonn/now?key=key-of-five HTTP/1.1")
        assert msgspec.json.decode(body) == {"list": [], "fixed": 1}


@pytest.mark.integration
@pytest.mark.parametrize(
    "arguments", [{}, {"city": 1}, {"city": "a", "days": "3"}, {"city": "a", "more": 1}, {"city": ".."}]
)
async def test_invalid_arguments_send_nothing(arguments: JsonObject) -> None:
    async with peering() as peer:
        with pytest.raises(ToolFailed) as failed:
            await called(peer, described(peer), **arguments)
        assert failed.value.failure.code == "tool-arguments"
        assert peer.asked == []


@pytest.mark.integration
async def test_a_refusing_or_unreachable_service_is_a_typed_failure() -> None:
    async with peering() as peer:
        peer.next = [answer(b"later", "retry-after: 7", status="429 Slow"), answer(b"x" * 2_000_000)]
        with pytest.raises(ToolFailed) as failed:
            await called(peer, described(peer), city="a")
        failure = failed.value.failure
        assert (failure.code, failure.retryable, failure.retry_after_s) == ("http-status", True, 7.0)
        with pytest.raises(ToolFailed) as failed:
            await called(peer, described(peer), city="a")
        assert failed.value.failure.code == "tool-output-too-large"
        with pytest.raises(ToolFailed) as failed:
            await called(peer, described(peer, url="http://169.254.169.254/{city}"), city="a")
        assert failed.value.failure.code == "address-refused"
        with pytest.raises(ToolFailed) as failed:
            await called(peer, described(peer, headers={"x": "{secret.NOT_THERE}"}), city="a")
        assert failed.value.failure.code == "secret-missing"


@pytest.mark.parametrize("url", ["https://{host}/", "https://example.org{rest}", "{url}", "ftp://example.org/", "/a"])
def test_no_argument_changes_the_host_of_a_call(url: str) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"tools": {"weather": {"url": url}}})


@pytest.mark.integration
async def test_an_imported_openapi_document_is_called_even_after_a_restart(tmp_path: Path) -> None:
    async with peering() as peer:
        paths = {"/pets/{id}": {"get": {"operationId": "showPet", "parameters": [ID]}}}
        document = {"openapi": "3.0.3", "servers": [{"url": "/v1"}], "paths": paths}
        peer.answers["/openapi.json"] = answer(json.dumps(document).encode(), "content-type: application/json")
        peer.answers["/v1/pets/7"] = answer(b'{"name": "Rex"}', "content-type: application/json")
        imported = await import_openapi(settings(peer), f"{peer.url}/openapi.json")
        file = tmp_path / "pets.json"
        kept(file, tool_file(imported))
        asks: JsonObject = {
            "id": "ask",
            "type": "tool",
            "config": {"tool": "showPet", "parameters": {"id": "{input.n}"}},
        }
        workflow = Workflow.of({"id": "pets", "nodes": [asks], "edges": []})
        with_tools = settings(peer, tool_files=[str(file)])
        store = f"sqlite:///{tmp_path / 'store.db'}"
        async with Pointsman(store, settings=with_tools) as app:
            assert (await app.check(workflow)).ok
            execution = await app.start(workflow, {"n": 7})
            await execution.settled()
        async with Pointsman(store, settings=with_tools) as app:
            view = await app.view(execution.id)
            assert (view["status"], view["output"]) == ("completed", {"name": "Rex"})
            assert app.tools.origin("showPet") == "http"


ID = {"name": "id", "in": "path", "required": True, "schema": {"type": "integer"}}


def kept(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"tools": 1}', '{"tools": {"a b": {}}}', '{"tools": {"a": {"url": "x"}}}']
)
def test_an_unusable_tool_file_is_reported_by_name(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tools.json"
    kept(file, text)
    with pytest.raises(SettingsInvalid, match=r"tools\.json"):
        http_tools(Settings(tool_files=(str(file),)))


@pytest.mark.parametrize("data", [b"\xff\xfe\x00", b"a: [", b"[" * 100_000, b"x" * 10_000_001, b"a: &a [*a]"])
async def test_invalid_openapi_documents_are_reported(tmp_path: Path, data: bytes) -> None:
    file = tmp_path / "openapi.yaml"
    file.write_bytes(data)
    with pytest.raises(OpenApiUnreadable):
        await import_openapi(Settings(), str(file))


async def test_a_document_of_many_megabytes_is_read(tmp_path: Path) -> None:
    paths = {f"/{n}": {"get": {"operationId": f"op{n}", "description": "x" * 9000}} for n in range(1000)}
    file = tmp_path / "openapi.json"
    kept(file, json.dumps({"openapi": "3.1.0", "servers": [{"url": "https://example.org"}], "paths": paths}))
    assert len((await import_openapi(Settings(), str(file))).tools) == 1000

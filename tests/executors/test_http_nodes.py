"""HTTP nodes: requests, responses, and data that never enters the journal."""

from __future__ import annotations

import base64
from ipaddress import IPv4Network
from pathlib import Path

import msgspec
import pytest

from pointsman.app import Pointsman, Workflow
from pointsman.settings import Settings
from pointsman.settings.sections import HttpSettings
from pointsman.values import Json, JsonObject, json_of
from tests.tools.outgoing.peer import Peer, answer, peering

pytestmark = pytest.mark.integration

TOKEN = "sesame-open-the-door"


def settings(*ports: int, **more: object) -> Settings:
    http = HttpSettings(networks=(IPv4Network("127.0.0.0/8"),), ports=ports)
    hosts = [f"http://127.0.0.1:{port}" for port in ports]
    secrets = {"TOKEN": {"value": TOKEN, "hosts": hosts}, "KEY": {"value": "key-of-five", "hosts": hosts}}
    return Settings.model_validate({"http": http, "secrets": secrets, **more})


def asking(peer: Peer, path: str = "/", *, execution: Json = None, **config: Json) -> Workflow:
    node: JsonObject = {"id": "ask", "type": "http", "config": {"url": peer.url + path, **config}}
    if execution is not None:
        node["execution"] = execution
    return Workflow.of({"id": "asks", "nodes": [node], "edges": []})


def listed(value: Json) -> list[Json]:
    assert isinstance(value, list)
    return value


def everything_in(directory: Path) -> bytes:
    return b"".join(file.read_bytes() for file in directory.iterdir())


def json(value: Json) -> bytes:
    return answer(msgspec.json.encode(value), "content-type: application/json")


async def outcome(peer: Peer, workflow: Workflow, given: Json = None) -> JsonObject:
    async with Pointsman("memory:", settings=settings(peer.port)) as app:
        execution = await app.start(workflow, given)
        await execution.settled()
        return json_of(await app.view(execution.id))


async def failure(peer: Peer, workflow: Workflow, given: Json = None) -> JsonObject:
    view = await outcome(peer, workflow, given)
    assert view["status"] == "failed", view
    (error,) = listed(view["errors"])
    assert isinstance(error, dict)
    return error


async def test_secrets_are_inserted_only_into_the_outgoing_request(tmp_path: Path) -> None:
    async with peering() as peer:
        peer.answers["/items/7"] = json({"echo": f"you said Bearer {TOKEN}"})
        workflow = asking(
            peer,
            "/items/{input.n}",
            method="POST",
            headers={"Authorization": "Bearer {secret.TOKEN}", "X-Who": "{input.who}"},
            query={"key": "secret.KEY", "page": "{input.n}", "tags": ["a", "b"], "none": None},
            body={"name": "{input.who}", "count": "{input.n}"},
        )
        store = f"sqlite:///{tmp_path / 'kept.db'}"
        async with Pointsman(store, settings=settings(peer.port)) as app:
            execution = await app.start(workflow, {"n": 7, "who": "secret.TOKEN"})
            await execution.settled()
        async with Pointsman(store, settings=settings(peer.port)) as app:
            view = await app.view(execution.id)
        head, _, body = peer.asked[0].partition("\r\n\r\n")
        assert head.startswith("POST /items/7?key=key-of-five&page=7&tags=a&tags=b HTTP/1.1")
        assert f"authorization: Bearer {TOKEN}" in head
        assert "x-who: secret.TOKEN" in head  # A handle inside data is plain data.
        assert "idempotency-key: " in head
        assert msgspec.json.decode(body) == {"name": "secret.TOKEN", "count": 7}
        result = view["output"]
        assert isinstance(result, dict)
        assert (result["status"], result["ok"], result["data"]) == (200, True, {"echo": "you said Bearer ***"})
        kept = everything_in(tmp_path)
        assert TOKEN.encode() not in kept
        assert b"key-of-five" not in kept


@pytest.mark.parametrize(
    ("auth", "header"),
    [
        ({"type": "bearer", "token": "secret.TOKEN"}, f"authorization: Bearer {TOKEN}"),
        ({"type": "apikey", "key": "secret.KEY"}, "x-api-key: key-of-five"),
        ({"type": "apikey", "key": "secret.KEY", "headerName": "X-Other"}, "x-other: key-of-five"),
        (
            {"type": "basic", "username": "me", "password": "secret.KEY"},
            f"authorization: Basic {base64.b64encode(b'me:key-of-five').decode()}",
        ),
    ],
)
async def test_credentials_are_placed_by_their_kind(auth: Json, header: str) -> None:
    async with peering() as peer:
        peer.answers["/"] = json(1)
        assert (await outcome(peer, asking(peer, auth=auth)))["status"] == "completed"
        assert header in peer.asked[0]
        assert "idempotency-key" not in peer.asked[0]


@pytest.mark.parametrize(
    ("body", "kind", "as_", "data"),
    [
        (b'{"a": [1]}', "application/json", None, {"a": [1]}),
        (b'{"a": [1]}', "application/problem+json; charset=utf-8", None, {"a": [1]}),
        (b'{"a": [1]}', "application/json", "text", '{"a": [1]}'),
        (b"[1]", "text/plain", "json", [1]),
        ("grüße".encode(), "text/plain", None, "grüße"),
        (b"\xff\x00", "image/png", None, "/wA="),
        (b"text", "text/plain", "blob", "dGV4dA=="),
        (b"", "application/json", None, None),
    ],
)
async def test_a_response_is_parsed_by_its_content_type(body: bytes, kind: str, as_: Json, data: Json) -> None:
    async with peering() as peer:
        peer.answers["/"] = answer(body, f"content-type: {kind}")
        view = await outcome(peer, asking(peer, "/", **({} if as_ is None else {"responseType": as_})))
        assert isinstance(view["output"], dict)
        assert view["output"]["data"] == data


async def test_a_status_outside_200_to_299_fails_the_step_unless_accepted() -> None:
    async with peering() as peer:
        peer.answers["/"] = answer(b'{"why": "no"}', "content-type: application/json", status="404 Not Found")
        error = await failure(peer, asking(peer, "/?key=not-shown"))
        assert (error["code"], error["details"]) == ("http-status", {"status": 404, "data": '{"why": "no"}'})
        assert "not-shown" not in str(error)
        view = await outcome(peer, asking(peer, failOnError=False))
        assert isinstance(view["output"], dict)
        assert (view["output"]["status"], view["output"]["ok"], view["output"]["data"]) == (404, False, {"why": "no"})


async def test_a_request_to_an_overloaded_service_is_retried_with_the_same_key() -> None:
    async with peering() as peer:
        left = [answer(b"", "retry-after: 0", status="429 Too Many"), answer(b"", status="503 Away"), json("done")]
        peer.next = left
        view = await outcome(peer, asking(peer, method="POST", execution={"retries": 3, "retryDelay": "1ms"}))
        assert view["status"] == "completed"
        keys = {line for asked in peer.asked for line in asked.splitlines() if line.startswith("idempotency-key")}
        assert (len(peer.asked), len(keys)) == (3, 1)


@pytest.mark.parametrize("status", ["400 Bad", "401 No", "404 Not Found", "501 Never"])
async def test_a_permanent_http_failure_is_not_retried(status: str) -> None:
    async with peering() as peer:
        peer.answers["/"] = answer(b"", status=status)
        await failure(peer, asking(peer, execution={"retries": 3, "retryDelay": "1ms"}))
        assert len(peer.asked) == 1


@pytest.mark.parametrize(
    ("path", "config", "code"),
    [
        ("/", {"url": "http://169.254.169.254/latest/meta-data"}, "address-refused"),
        ("/", {"url": "http://127.0.0.1:1/"}, "address-refused"),
        ("/", {"url": "file:///etc/passwd"}, "address-refused"),
        ("/", {"headers": {"x": "{input.lines}"}}, "request-invalid"),
        ("/", {"headers": {"Host": "other"}}, "request-invalid"),
        ("/", {"query": {"a": {"b": 1}}}, "request-invalid"),
        ("/", {"headers": {"x": "secret.NOT_THERE"}}, "secret-missing"),
        ("/away", {}, "redirect-refused"),
        ("/", {"responseType": "json"}, "answer-unreadable"),
        ("/packed", {}, "answer-unreadable"),
    ],
)
async def test_an_impossible_request_is_a_named_failure(path: str, config: JsonObject, code: str) -> None:
    async with peering() as peer:
        peer.answers = {
            "/": answer(b"no json", "content-type: text/plain"),
            "/away": answer(b"", "location: /away", status="302 Found"),
            "/packed": answer(b"", "content-encoding: br"),
        }
        error = await failure(peer, asking(peer, path, **config), {"lines": "a\r\nb: c"})
        assert error["code"] == code
        assert error.get("hint") or code in ("redirect-refused", "answer-unreadable")

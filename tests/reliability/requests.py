"""Random requests to a real server, made from its OpenAPI document: valid ones, and ones that are wrong in every way.

No answer is a server error, none has an undocumented status, and every answer has its documented schema. Half of the
ids exist, so that the requests get past the lookup.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from random import Random
from typing import Any, Final

import httpx2
import jsonschema_rs

from pointsman.app import Pointsman
from pointsman.server.application import make_application, make_server_context, openapi_document
from pointsman.server.serving import Server, configured, listening
from pointsman.settings import Settings
from pointsman.workflows.sources import Workflow
from tests.reliability.findings import Finding

HELLO: Final = (
    "pointsman: 1\nid: hello\ninput: {type: object}\nnodes: [{id: say, type: agent, config: {prompt: Hello}}]\n"
)
JSON: Final = ("application/json", "application/problem+json")
ENDLESS: Final = "text/event-stream"
STRAYED: Final = ("DELETE /api/settings/keys", "POST /api/settings/keys", "POST /api/log")
"""Operations that are skipped: after the first key is created, all other callers are refused."""
BROKEN: Final = (b"", b"{", b'{"a": NaN}', b"\xff", b"[" * 5000, b'{"a": 1, "a": 2}')
NONE: Final[tuple[Any, ...]] = (None, 0, -1, 1e300, "", [], {}, True)
"""Values that fit no particular schema."""
SHOWN_MAX: Final = 20
WAIT_S: Final = 30.0
ODD: Final = ("", "..", "a/b", "%2e%2e", "\x00", "é\u202e", "x" * 10_000, "executions", "-1", "null", "' OR 1=1 --")

INSIDE: Final = tuple(one for one in ODD if one not in ("", "..", "executions"))
"""Values for parts of a path; the others would change the path."""


def examine(size: int, seed: int, *, only: str = "") -> Finding:
    """Send `size` requests, spread over all operations or only to `only`, such as `GET /api/models`."""
    random = Random(seed)
    # A server closes the connection after an error, so each request uses a new one.
    lone = httpx2.Limits(max_keepalive_connections=0)
    with served() as (address, known), httpx2.Client(base_url=address, timeout=WAIT_S, limits=lone) as client:
        document = openapi_document()
        operations = [one for one in asked(document) if only in ("", f"{one[0]} {one[1]}")]
        wrong: list[str] = []
        statuses: set[int] = set()
        for number in range(size):
            method, path, operation = operations[number % len(operations)]
            made = request(random, operation, document, path, known)
            reply = client.request(method, made.pop("path"), **made)
            statuses.add(reply.status_code)
            found = faults(reply, operation, document)
            wrong.extend(f"{method} {path}: {why} (request {number}, seed {seed})" for why in found)
    figure = f"{size} requests, {len(operations)} operations, {len(statuses)} statuses, {len(wrong)} wrong"
    return Finding(figure, tuple(wrong[:SHOWN_MAX]))


@contextmanager
def served() -> Generator[tuple[str, dict[str, str]]]:
    """Run a server in a thread, with a saved workflow that has run. Yield its address and the ids."""
    told: dict[str, str] = {}
    ready, stop = threading.Event(), threading.Event()

    async def serve() -> None:
        async with Pointsman("memory:", settings=Settings(delays=False), model="scripted") as app:
            await app.save(Workflow.parse(HELLO))
            execution = await app.start("hello", {})
            await execution.settled()
            desk = make_server_context(app, is_local=True)
            with listening("127.0.0.1", 0) as listener:
                server = Server(configured(make_application(desk)), desk.broker.disconnect)
                task = asyncio.create_task(server.serve(sockets=[listener]))
                told.update(
                    address=f"http://127.0.0.1:{listener.getsockname()[1]}", id="hello", eid=execution.id, scope="user"
                )
                ready.set()
                await asyncio.to_thread(stop.wait)
                server.should_exit = True
                await task
            await desk.broker.close()

    thread = threading.Thread(target=lambda: asyncio.run(serve()))
    thread.start()
    try:
        assert ready.wait(WAIT_S), "the server did not start"
        yield told["address"], told
    finally:
        stop.set()
        thread.join(WAIT_S)


def asked(document: dict[str, Any]) -> Generator[tuple[str, str, dict[str, Any]]]:
    """Yield the operations whose answers end."""
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            name = f"{method.upper()} {path}"
            endless = any(ENDLESS in said.get("content", {}) for said in operation["responses"].values())
            if not endless and not name.startswith(STRAYED):
                yield method.upper(), path, operation


def request(
    random: Random, operation: dict[str, Any], document: dict[str, Any], path: str, known: dict[str, str]
) -> dict[str, Any]:
    """Return a request: mostly valid, sometimes with invalid parts."""
    made: dict[str, Any] = {"params": {}, "headers": {}}
    for parameter in operation.get("parameters", ()):
        name, place = parameter["name"], parameter["in"]
        if place == "path":
            value = known[name] if name in known and random.random() < 0.5 else random.choice(INSIDE)
            path = path.replace(f"{{{name}}}", httpx2.URL("http://x", params={"v": value}).query.decode()[2:] or "x")
        elif place == "query" and (parameter.get("required") or random.random() < 0.4):
            made["params"][name] = str(value_of(random, parameter["schema"], document))
        elif place == "header" and random.random() < 0.2:
            made["headers"][name] = random.choice(("x", "*", '"1-abc"', "0.0", "y" * 300))
    content = operation.get("requestBody", {}).get("content", {})
    for media, described in content.items():
        body = described.get("example") if random.random() < 0.4 else value_of(random, described["schema"], document)
        if media == "application/json" or media.endswith("+json"):
            made["content"] = random.choice((json.dumps(body).encode(),) * 8 + BROKEN)
        else:
            made["content"] = str(body).encode("utf-8", "replace")
        made["headers"]["content-type"] = random.choice((media,) * 12 + ("text/plain", "application/xml; charset=x"))
        break
    return {**made, "path": path}


def value_of(random: Random, schema: dict[str, Any], document: dict[str, Any], depth: int = 0) -> Any:
    """Return a value that fits the schema, or sometimes one that does not."""
    if "$ref" in schema:
        return value_of(random, document["components"]["schemas"][schema["$ref"].rpartition("/")[2]], document, depth)
    if random.random() < 0.1 or depth > 4:
        return random.choice((*NONE, random.choice(ODD)))
    if "anyOf" in schema:
        return value_of(random, random.choice(schema["anyOf"]), document, depth)
    if "enum" in schema:
        return random.choice(schema["enum"])
    makers: dict[str, Callable[[], Any]] = {
        "string": lambda: random.choice((*ODD, "hello", "a", "2026-01-01T00:00:00Z", HELLO)),
        "integer": lambda: random.choice((0, 1, 2, 50, 200, 10**18, -5)),
        "number": lambda: random.choice((0, 0.5, 1, 3600, 1e9)),
        "boolean": lambda: random.random() < 0.5,
        "null": lambda: None,
        "array": lambda: [
            value_of(random, schema.get("items", {}), document, depth + 1) for _ in range(random.randrange(3))
        ],
        "object": lambda: {
            name: value_of(random, one, document, depth + 1)
            for name, one in schema.get("properties", {}).items()
            if name in schema.get("required", ()) or random.random() < 0.5
        },
    }
    kind = schema.get("type") or random.choice(("string", "object", "integer", "array"))
    return makers[kind]()


def faults(reply: httpx2.Response, operation: dict[str, Any], document: dict[str, Any]) -> Generator[str]:
    """Yield the faults of an answer."""
    if reply.status_code >= 500:
        yield f"{reply.status_code} {reply.text[:200]}"
        return
    described = operation["responses"].get(str(reply.status_code))
    if described is None:
        # A path without an operation has no documented statuses.
        if reply.status_code not in (404, 405) or reply.json()["code"] not in ("not-found", "method-refused"):
            yield f"{reply.status_code} is not announced: {reply.text[:200]}"
        return
    media = reply.headers.get("content-type", "").partition(";")[0]
    contents = {name.partition(";")[0]: one for name, one in described.get("content", {}).items()}
    if contents and media not in contents and "application/octet-stream" not in contents:
        yield f"{reply.status_code} is {media}, announced is {', '.join(contents)}"
    elif media in contents and media in JSON:
        schema = {**contents[media]["schema"], "components": document["components"]}
        error = next(iter(jsonschema_rs.validator_for(schema).iter_errors(reply.json())), None)
        if error is not None:
            place = "/".join(map(str, error.instance_path))
            yield f"{reply.status_code} has another shape: {place}: {error.message[:200]}"

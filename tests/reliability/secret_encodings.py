"""Secrets in every encoding that a client, a library or a service writes, at every place that records or shows them.

An http node, a tool, a failing tool and a streaming model repeat each secret in each encoding. The check does not use
the product's redaction: it encodes another text of the same shape; a part that differs can only come from the secret.
"""

from __future__ import annotations

import asyncio
import logging
import tempfile
from collections.abc import Iterator
from contextlib import redirect_stderr
from io import StringIO
from ipaddress import IPv4Network
from itertools import pairwise
from pathlib import Path
from typing import Final, cast

import msgspec
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pointsman import Pointsman, Workflow, tool
from pointsman.models.script import Script, read_script
from pointsman.operations.backup import back_up
from pointsman.operations.logs import logging_to
from pointsman.operations.otel import exporting
from pointsman.settings import Settings
from pointsman.settings.sections import HttpSettings, LogSettings, TelemetrySettings
from pointsman.tool_output import apart_from_tools
from pointsman.triggers.notifications import Notifier
from pointsman.values import Json, JsonObject
from tests.encodings import ENCODINGS, LATIN, PASSWORD, TOKEN, written
from tests.mcp.test_http import over_http
from tests.patience import PATIENCE_S
from tests.reliability.canaries import LogCollector
from tests.reliability.findings import Finding
from tests.server.conftest import Served, serving_app
from tests.tools.mail.server import mail_server
from tests.tools.outgoing.peer import Peer, answer, peering

SECRETS: Final = {"TOKEN": TOKEN, "PASSWORD": PASSWORD, "LATIN": LATIN}
SCRIPT: Final = b'\\"rules\\"'
"""The export contains the script of the scripted model, which must contain the model's answer."""
MAIL: Final[JsonObject] = {"to": "ada@example.org", "subject": "Report", "body": "{mailed}"}
NOTIFIED: Final = ("gate", "completed", "failed")
KEPT: Final = ("output", "waiting")
"""Fields of a view that show what people typed without changes."""
HERE: Final = "http://127.0.0.1:1"
PATHS_MIN: Final = 8
"""Number of operations that read an execution. Fewer would mean that the addresses have changed."""
WINDOW: Final = 12
DIFFERENT_MIN: Final = 6
"""Number of characters in a window that depend on the secret; fewer can occur beside a masked secret."""


def _turned(text: str) -> str:
    """Return another text of the same shape: each letter and digit is replaced by the next one."""
    return "".join(chr((ord(char) - base + 1) % count + base) for char in text for base, count in (_alphabet(char),))


def _alphabet(char: str) -> tuple[int, int]:
    for first, last in ("az", "AZ", "09"):
        if first <= char <= last:
            return ord(first), ord(last) - ord(first) + 1
    return ord(char), 1


def marks_of(secret: str, encoding: str) -> list[str]:
    """Return parts of the encoded secret that can only come from the secret."""
    own, other = written(secret, encoding), written(_turned(secret), encoding)
    found = [own] if len(own) != len(other) else []
    for at in range(0, min(len(own), len(other)) - WINDOW + 1, 4):
        mine, its = own[at : at + WINDOW], other[at : at + WINDOW]
        if sum(one != two for one, two in zip(mine, its, strict=True)) >= DIFFERENT_MIN and mine not in other:
            found.append(mine)
    return found or [own]


MARKS: Final = {
    f"{name}, {encoding}": marks_of(value, encoding) for name, value in SECRETS.items() for encoding in ENCODINGS
}


def seen_in(text: str) -> Iterator[str]:
    """Yield the names of the encodings that occur in the text."""
    return (name for name, marks in MARKS.items() if any(mark in text for mark in marks))


def seen_at(places: dict[str, str]) -> list[str]:
    """Return which encodings occur at which places."""
    return [f"{encoding} in {place}" for place, text in places.items() for encoding in seen_in(text)]


def everything() -> dict[str, str]:
    return {
        f"{n}{m}": written(value, encoding)
        for n, value in enumerate(SECRETS.values())
        for m, encoding in enumerate(ENCODINGS)
    }


def settings(port: int, store: str, mail_port: int = 0) -> Settings:
    secrets = {
        name: {"value": value, "hosts": [f"http://127.0.0.1:{port}"], "tools": ["repeat"]}
        for name, value in SECRETS.items()
    }
    http = HttpSettings(networks=(IPv4Network("127.0.0.0/8"),), ports=(port,))
    desk = {"url": f"http://127.0.0.1:{port}/notify", "private": True, "events": NOTIFIED}
    given: dict[str, object] = {"store": store, "http": http, "delays": False, "notifications": {"desk": desk}}
    if mail_port:
        mail = {"host": "127.0.0.1", "port": mail_port, "security": "none", "sender": "desk@example.org"}
        given |= {"mail": mail, "allow_email_sending": True}
    return Settings.model_validate({**given, "secrets": secrets})


def workflow(url: str) -> Workflow:
    handles: JsonObject = {name: f"secret.{name}" for name in SECRETS}
    policy: JsonObject = {"execution": {"errorHandler": "continue"}}
    nodes: list[Json] = [
        {"id": "json", "type": "http", "config": {"url": f"{url}/json", "method": "POST", "body": {**handles}}},
        {
            "id": "text",
            "type": "http",
            "config": {"url": f"{url}/text", "query": {**handles}},
            "outputs": {"mailed": "result.data"},
        },
        {"id": "blob", "type": "http", "config": {"url": f"{url}/blob", "responseType": "blob", "query": {**handles}}},
        {"id": "refused", "type": "http", "config": {"url": f"{url}/refused", "query": {**handles}}, **policy},
        {"id": "repeat", "type": "tool", "config": {"tool": "repeat", "parameters": {"keys": {**handles}}}},
        {
            "id": "raises",
            "type": "tool",
            "config": {"tool": "repeat", "parameters": {"keys": {**handles}, "fail": True}},
            **policy,
        },
        {
            "id": "keep",
            "type": "memory",
            "config": {"scope": "workflow", "operation": "set", "key": "all", "value": "repeat.result"},
        },
        {
            "id": "mail",
            "type": "tool",
            "config": {"tool": "send_email", "parameters": MAIL},
        },
        {"id": "say", "type": "agent", "config": {"model": "scripted", "prompt": "Say it."}},
    ]
    ids = [str(node["id"]) for node in nodes if isinstance(node, dict)]
    edges: list[Json] = [{"source": one, "target": two} for one, two in pairwise(ids)]
    return Workflow.of({"id": "repeats", "nodes": nodes, "edges": edges})


def script() -> Script:
    said = " | ".join(everything().values())
    return read_script(msgspec.json.encode({"rules": [{"node": "say", "text": said}]}).decode())


def answers(repeated: dict[str, str]) -> dict[str, bytes]:
    """Return the answers of the peer of http nodes, by path."""
    body, text = msgspec.json.encode(repeated), " | ".join(repeated.values()).encode(errors="replace")
    return {
        "/json": answer(body, "content-type: application/json"),
        "/text": answer(text, "content-type: text/plain; charset=utf-8", f"x-key: {TOKEN}"),
        "/blob": answer(body, "content-type: application/octet-stream"),
        "/refused": answer(text, status="401 Unauthorized"),
        "/notify": answer(),
    }


async def places(folder: Path) -> dict[str, str]:
    """Return the content of each place after an execution in which all outside systems repeated the secrets."""
    repeated = everything()

    @tool
    async def repeat(keys: dict[str, str], fail: bool = False) -> dict[str, str]:
        """Repeat the secrets in every encoding."""
        for one in repeated.values():
            print(one, one[: len(one) // 2], sep="\n", end=one[len(one) // 2 :])  # noqa: T201 - what is tested
        if fail:
            raise ValueError(" | ".join(repeated.values()))
        return repeated

    (folder / "mail").mkdir()
    async with peering() as peer, mail_server(folder / "mail") as mail:
        peer.answers.update(answers(repeated))
        given = settings(peer.port, f"sqlite:///{folder}/store.db", mail.port)
        async with Pointsman(tools=[repeat], settings=given, model="scripted", script=script()) as app:
            found = await sinks(app, workflow(peer.url), {}, peer)
            found["the export"] = plain(
                b"".join([line async for line in app.storage.export(found["execution"]) if SCRIPT not in line])
            )
            found["the state"] = str((await app.state_and_events(found["execution"]))[0])
            await back_up(app.context, folder / "backup")
        found["mails"] = "".join(one.as_string() for one in mail.taken)
    for name, must in {"standard error": "***", "mails": "***", "spans": "repeats", "the log": "repeats"}.items():
        if must not in found[name]:
            found[name] += f" has no {must!r}: {TOKEN}"
    return found


TYPED: Final[JsonObject] = {
    "id": "typed",
    "nodes": [
        {"id": "ask", "type": "human", "config": {"message": "{input.said}"}},
        {"id": "fails", "type": "tool", "config": {"tool": "refuse", "parameters": {"said": "{input.said}"}}},
    ],
    "edges": [{"source": "ask", "target": "fails"}],
}


async def typed_places() -> dict[str, str]:
    """Return the outputs of an execution whose input contains the secrets; the journal records inputs as they were
    typed."""

    @tool
    async def refuse(said: str) -> str:
        """Fail with the input in the message."""
        raise ValueError(said)

    async with peering() as peer:
        peer.answers.update(answers({}))
        given = settings(peer.port, "memory:")
        async with Pointsman("memory:", tools=[refuse], settings=given, model="scripted") as app:
            said: JsonObject = {"said": " | ".join(everything().values())}
            found = await sinks(app, Workflow.of(TYPED), said, peer, fails=True)
    return {f"{name}, typed": text for name, text in found.items()}


async def sinks(
    app: Pointsman, flow: Workflow, given: JsonObject, peer: Peer, *, fails: bool = False
) -> dict[str, str]:
    """Return all outputs of an app during and after an execution, by sink."""
    exporter, printed, log, telemetry = InMemorySpanExporter(), StringIO(), StringIO(), TelemetrySettings(endpoint=HERE)
    async with (
        serving_app(app) as served,
        exporting(app.context, telemetry, SimpleSpanProcessor(exporter), InMemoryMetricReader()),
    ):
        notifier = Notifier(app.context)
        await notifier.round(app.clock.now())
        await app.vault.refresh()
        await app.save(flow)
        with redirect_stderr(printed), apart_from_tools(), logging_to(app.context, LogSettings(level="debug"), log):
            execution = await app.start(flow.head.id, given)
            streamed = asyncio.create_task(raw_stream(served, execution.id))
            if await execution.settled() == "waiting":
                await notifier.round(app.clock.now())
                await execution.answer("ask", "approve")
            status = await execution.settled()
            await notifier.round(app.clock.now())
            frames = await streamed
        found = {
            "the feed": str(await app.public_events(execution.id)),
            "live events": frames,
            "live texts": "".join(texts_of(frames)),
            "notifications": "".join(one for one in peer.asked if one.startswith("POST /notify")),
            "results of MCP": await by_mcp(served, execution.id),
            **await payloads(served, execution.id),
        }
    found |= {"standard error": printed.getvalue(), "the log": log.getvalue(), "execution": execution.id}
    found["spans"] = "".join(one.to_json() for one in exporter.get_finished_spans())
    if status != ("failed" if fails else "completed"):
        found["it did not end as it should"] = f"{status} {TOKEN} {(await app.view(execution.id))['errors']}"
    for name in ("notifications", "live events", "results of MCP"):
        if execution.id not in found[name]:
            found[name] = f"nothing came: {TOKEN}"
    return found


async def raw_stream(served: Served, execution: str) -> str:
    """Return the events of an execution as a browser receives them."""
    reply = await served.client.get(f"/api/workflows/executions/{execution}/stream", timeout=PATIENCE_S)
    return reply.text


def texts_of(frames: str) -> Iterator[str]:
    """Yield the parts of text in live events: a secret may be split over several."""
    for line in frames.splitlines():
        if line.startswith("data: "):
            told = cast("JsonObject", msgspec.json.decode(line.removeprefix("data: ")))
            delta = told.get("delta")
            yield str(delta.get("text", "")) if isinstance(delta, dict) else ""


async def by_mcp(served: Served, execution: str) -> str:
    """Return the answers that an MCP client receives."""
    async with over_http(served) as client:
        answer = await client.call_tool("get_execution", {"executionId": execution})
    return str(without_kept(cast("Json", answer.structured_content)))


def without_kept(told: Json) -> Json:
    """Return an answer without the fields that show what people typed."""
    return {name: value for name, value in told.items() if name not in KEPT} if isinstance(told, dict) else told


async def payloads(served: Served, execution: str) -> dict[str, str]:
    """Return the answer of every operation that reads an execution, as the web app requests it."""
    document = (await served.client.get("/api/openapi.json")).json()
    asked = [path for path, operations in document["paths"].items() if "get" in operations and is_read(path)]
    found: dict[str, str] = {}
    for path in asked:
        reply = await served.client.get(path.replace("{eid}", execution))
        told = reply.json() if reply.headers.get("content-type", "").startswith("application/json") else reply.text
        found[f"GET {path}"] = msgspec.json.encode(without_kept(cast("Json", told))).decode()
    if len(found) < PATHS_MIN:
        found["few operations were asked"] = f"{asked} {TOKEN}"
    return found


def is_read(path: str) -> bool:
    """Return whether a path is about one execution or a list of events. Streams are tested separately, and an export
    contains typed inputs and the script of the model.
    """
    if path.endswith(("/stream", "/export")) or path.count("{") > 1:
        return False
    return "{eid}" in path or path in ("/api/workflows/executions", "/api/inbox", "/api/notifications", "/api/usage")


def plain(data: bytes) -> str:
    return data.decode(errors="replace")


def examine(size: int, seed: int) -> Finding:
    """Test all encodings at all places."""
    collector, ours = LogCollector(), logging.getLogger("pointsman")  # Libraries log at DEBUG what they send.
    ours.addHandler(collector)
    try:
        with tempfile.TemporaryDirectory() as name:
            found = asyncio.run(places(Path(name))) | asyncio.run(typed_places())
            found["the files"] = plain(
                b"".join(path.read_bytes() for path in sorted(Path(name).iterdir()) if path.is_file())
            )
    finally:
        ours.removeHandler(collector)
    found["the logs"] = "\n".join(collector.said)
    seen = seen_at(found)
    return Finding(f"{len(MARKS)} encoded secrets, {len(found)} places, {len(seen)} seen", tuple(seen))

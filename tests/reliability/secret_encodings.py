"""Secrets in every encoding that a client, a library or a service writes, at every place that records or shows.

An http node, a tool, a failing tool and a streaming model repeat each secret in each encoding. The judge does not use
the product's redaction: it encodes another text of the same shape, and what differs is what only the secret can say.
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
from typing import Final

import msgspec
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from pointsman import Pointsman, Workflow, tool
from pointsman.models.script import Script
from pointsman.models.script_reader import read_script
from pointsman.operations.backup import back_up
from pointsman.operations.otel import telling
from pointsman.runtime.feed import Delta
from pointsman.settings import Settings
from pointsman.settings.observability import TelemetrySettings
from pointsman.settings.sections import HttpSettings
from pointsman.tool_output import apart_from_tools
from pointsman.values import Json, JsonObject
from tests.encodings import ENCODINGS, LATIN, PASSWORD, TOKEN, written
from tests.reliability.canaries import Overheard
from tests.reliability.findings import Finding
from tests.tools.outgoing.peer import answer, peering

SECRETS: Final = {"TOKEN": TOKEN, "PASSWORD": PASSWORD, "LATIN": LATIN}
SCRIPT: Final = b'\\"rules\\"'
"""The export has the script of the scripted model, which must name what the model says."""
WINDOW: Final = 12
DIFFERENT_MIN: Final = 6
"""Characters of a window that the secret decides: fewer may stand beside a masked secret."""


def _turned(text: str) -> str:
    """Another text of the same shape: each letter and digit is the next one."""
    return "".join(chr((ord(char) - base + 1) % count + base) for char in text for base, count in (_alphabet(char),))


def _alphabet(char: str) -> tuple[int, int]:
    for first, last in ("az", "AZ", "09"):
        if first <= char <= last:
            return ord(first), ord(last) - ord(first) + 1
    return ord(char), 1


def marks_of(secret: str, encoding: str) -> list[str]:
    """Parts of the encoded secret that a text can only have from the secret."""
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
    """The names of the encodings that the text shows."""
    return (name for name, marks in MARKS.items() if any(mark in text for mark in marks))


def everything() -> dict[str, str]:
    return {
        f"{n}{m}": written(value, encoding)
        for n, value in enumerate(SECRETS.values())
        for m, encoding in enumerate(ENCODINGS)
    }


def settings(port: int, store: str) -> Settings:
    secrets = {
        name: {"value": value, "hosts": [f"http://127.0.0.1:{port}"], "tools": ["repeat"]}
        for name, value in SECRETS.items()
    }
    http = HttpSettings(networks=(IPv4Network("127.0.0.0/8"),), ports=(port,))
    return Settings.model_validate({"store": store, "http": http, "delays": False, "secrets": secrets})


def workflow(url: str) -> Workflow:
    handles: JsonObject = {name: f"secret.{name}" for name in SECRETS}
    policy: JsonObject = {"execution": {"errorHandler": "continue"}}
    nodes: list[Json] = [
        {"id": "json", "type": "http", "config": {"url": f"{url}/json", "method": "POST", "body": {**handles}}},
        {"id": "text", "type": "http", "config": {"url": f"{url}/text", "query": {**handles}}},
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
        {"id": "say", "type": "agent", "config": {"model": "scripted", "prompt": "Say it."}},
    ]
    ids = [str(node["id"]) for node in nodes if isinstance(node, dict)]
    edges: list[Json] = [{"source": one, "target": two} for one, two in pairwise(ids)]
    return Workflow.of({"id": "repeats", "nodes": nodes, "edges": edges})


def script() -> Script:
    said = " | ".join(everything().values())
    return read_script(msgspec.json.encode({"rules": [{"node": "say", "text": said}]}).decode())


def answers(repeated: dict[str, str]) -> dict[str, bytes]:
    """What the peer of http nodes answers, by path."""
    body, text = msgspec.json.encode(repeated), " | ".join(repeated.values()).encode(errors="replace")
    return {
        "/json": answer(body, "content-type: application/json"),
        "/text": answer(text, "content-type: text/plain; charset=utf-8", f"x-key: {TOKEN}"),
        "/blob": answer(body, "content-type: application/octet-stream"),
        "/refused": answer(text, status="401 Unauthorized"),
    }


async def places(folder: Path) -> dict[str, str]:
    """What each place has after an execution in which everything outside repeated the secrets."""
    repeated = everything()
    live: list[str] = []

    @tool
    async def repeat(keys: dict[str, str], fail: bool = False) -> dict[str, str]:
        """Repeat the secrets in every encoding."""
        for one in repeated.values():
            print(one, one[: len(one) // 2], sep="\n", end=one[len(one) // 2 :])  # noqa: T201 - what is tested
        if fail:
            raise ValueError(" | ".join(repeated.values()))
        return repeated

    async with peering() as peer:
        peer.answers.update(answers(repeated))
        given = settings(peer.port, f"sqlite:///{folder}/store.db")
        exporter, printed = InMemorySpanExporter(), StringIO()
        telemetry = TelemetrySettings(endpoint="http://127.0.0.1:1")
        async with (
            Pointsman(tools=[repeat], settings=given, model="scripted", script=script()) as app,
            telling(app, telemetry, SimpleSpanProcessor(exporter), InMemoryMetricReader()),
        ):
            app.feed.watch(
                lambda seen: live.append(str(seen.delta.get("text", ""))) if isinstance(seen, Delta) else None
            )
            await app.vault.refresh()
            execution = await app.start(workflow(peer.url), {})
            with redirect_stderr(printed), apart_from_tools():
                status = await execution.settled()
            told = await app.look(execution.id)
            found = {
                "the view": str(await app.view(execution.id)),
                "the state": str(told[0]),
                "the events": str(told[1]),
                "the feed": str(await app.bulletins(execution.id)),
                "the export": plain(
                    b"".join([line async for line in app.storage.export(execution.id) if SCRIPT not in line])
                ),
                "live texts": "".join(live),
            }
            await back_up(app, folder / "backup")
            if status != "completed":
                found["it did not run to its end"] = f"{status} {await app.view(execution.id)} {TOKEN}"
    found["spans"] = "".join(one.to_json() for one in exporter.get_finished_spans())
    found["standard error"] = printed.getvalue()
    if not found["spans"] or "***" not in found["standard error"]:
        found["nothing was traced or printed"] = TOKEN
    return found


def plain(data: bytes) -> str:
    return data.decode(errors="replace")


def examine(size: int, seed: int) -> Finding:
    """All encodings at all places."""
    ear, ours = Overheard(), logging.getLogger("pointsman")  # Libraries write at DEBUG what goes over the wire.
    ours.addHandler(ear)
    try:
        with tempfile.TemporaryDirectory() as name:
            found = asyncio.run(places(Path(name)))
            found["the files"] = plain(b"".join(path.read_bytes() for path in sorted(Path(name).iterdir())))
    finally:
        ours.removeHandler(ear)
    found["the logs"] = "\n".join(ear.said)
    seen = [f"{encoding} in {place}" for place, text in found.items() for encoding in seen_in(text)]
    return Finding(f"{len(MARKS)} encoded secrets, {len(found)} places, {len(seen)} seen", tuple(seen))

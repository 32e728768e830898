"""Answers of providers from their public documentation, sent by a server on this machine.

tests/models/cassettes/KIND.yaml: their documentation (`source`), and for each the answer (`answer`, or a `stream` of
events; `status`, `headers`) and the expected result (`expect`).
"""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct, convert

from pointsman.definition.reading.documents import read_document
from pointsman.values import Json, JsonObject

FOLDER: Final = Path(__file__).parent / "cassettes"


class Expected(Struct, forbid_unknown_fields=True):
    """The expected result of an answer."""

    text: str = ""
    calls: list[tuple[str | None, JsonObject]] = []
    """Id and arguments of each call of `get_weather`; without an id in protocols that have none."""
    heard: list[str] = []
    thoughts: list[str] = []
    usage: tuple[int, int, int, int] | None = None
    """Input and output tokens, tokens read from the cache and written to it."""
    priced: bool | None = None
    """Whether its price is known; None: either."""
    echoes: str = ""
    """The signature that must be sent back."""
    failure: str = ""
    says: str = ""
    retry_after_s: float | None = None


class Cassette(Struct, forbid_unknown_fields=True):
    """One answer."""

    name: str
    expect: Expected
    model: str = "small"
    """Model of the request: the behaviour of some clients depends on its name."""
    answer: Json = None
    stream: list[Json] = []
    events: bool = False
    """Whether events have names: those of their types."""
    status: int = 200
    headers: dict[str, str] = {}

    def body(self, kind: str) -> bytes:
        if not self.stream:
            return json.dumps(self.answer).encode()
        if kind == "bedrock":
            return b"".join(map(aws_event, self.stream))
        return "".join(map(self._event, self.stream)).encode()

    def type(self, kind: str) -> str:
        if not self.stream:
            return "application/json"
        return "application/vnd.amazon.eventstream" if kind == "bedrock" else "text/event-stream"

    def _event(self, event: Json) -> str:
        if isinstance(event, str):
            return f"{event}\n\n" if event.startswith(":") else f"data: {event}\n\n"
        name = f"event: {event['type']}\n" if self.events and isinstance(event, dict) else ""
        return f"{name}data: {json.dumps(event)}\n\n"


class Cassettes(Struct, forbid_unknown_fields=True):
    """The answers of one protocol."""

    source: str
    kind: str
    cassettes: list[Cassette]


def cassettes() -> Iterator[tuple[str, Cassette]]:
    """Yield kind and cassette."""
    for path in sorted(FOLDER.glob("*.yaml")):
        read = convert(read_document(path.read_bytes()).value, Cassettes)
        assert read.source.startswith("https://"), path
        yield from ((read.kind, one) for one in read.cassettes)


def aws_event(event: Json) -> bytes:
    """Return an event of `application/vnd.amazon.eventstream`: lengths and headers, each part with its checksum."""
    assert isinstance(event, dict)
    [(name, payload)] = event.items()
    given = {":event-type": name, ":content-type": "application/json", ":message-type": "event"}
    headers = b"".join(
        struct.pack("!B", len(key)) + key.encode() + struct.pack("!BH", 7, len(value)) + value.encode()
        for key, value in given.items()
    )
    body = json.dumps(payload).encode()
    lengths = struct.pack("!II", 16 + len(headers) + len(body), len(headers))
    message = lengths + struct.pack("!I", zlib.crc32(lengths)) + headers + body
    return message + struct.pack("!I", zlib.crc32(message))

"""Canary secrets: keys of providers and secrets of webhooks, searched for in every output.

A careless provider refuses a call and repeats the key in its answer. Afterwards nothing that is stored, displayed,
logged, exported or raised may contain a canary.
"""

from __future__ import annotations

import asyncio
import json
import logging
import tempfile
import threading
from collections.abc import Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Final

from pointsman import Pointsman, Workflow
from pointsman.errors import PointsmanError
from pointsman.operations.export_import import export
from pointsman.settings import ProviderSettings, Settings, shown
from pointsman.settings.sections import NotificationSettings
from pointsman.values import JsonObject
from tests.http_server import LOOKS_EVERY_S
from tests.reliability.findings import Finding

KEY: Final = "sk-canary-provider-0123456789abcdef"
HANDED: Final = "canary-handle-0123456789abcdef"
SIGNING: Final = "canary-webhook-0123456789abcdef"
CANARIES: Final = (KEY, HANDED, SIGNING)
DOCUMENT: Final[JsonObject] = {
    "id": "careless",
    "agents": {"clerk": {"model": "careless:model", "system": "Answer."}},
    "nodes": [{"id": "clerk", "type": "agent", "config": {"agent": "clerk", "prompt": "Hello"}}],
    "edges": [],
}


class CarelessProvider(BaseHTTPRequestHandler):
    """A provider that refuses every call and repeats the key."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        message = f"Incorrect API key provided: {self.headers.get('Authorization', '')}"
        body = json.dumps({"error": {"message": message, "type": "auth", "code": "invalid_api_key"}}).encode()
        self.send_response(401)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing."""


@contextmanager
def careless_provider() -> Generator[str, None, None]:
    server = HTTPServer(("127.0.0.1", 0), CarelessProvider)
    thread = threading.Thread(target=server.serve_forever, args=(LOOKS_EVERY_S,), daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class LogCollector(logging.Handler):
    """Collects all log records of all libraries at all levels."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.said: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.said.append(record.getMessage())


@contextmanager
def collected_logs() -> Generator[list[str], None, None]:
    root, ear = logging.getLogger(), LogCollector()
    level = root.level
    root.addHandler(ear)
    root.setLevel(logging.DEBUG)
    try:
        yield ear.said
    finally:
        root.removeHandler(ear)
        root.setLevel(level)


async def doors(address: str, folder: Path) -> dict[str, str]:
    """Return the content of each output after an execution whose provider refused the call."""
    settings = Settings(
        store=f"sqlite:///{folder}/store.db",
        providers={"careless": ProviderSettings(base_url=address, keys=(KEY,))},
        secrets={"TOKEN": HANDED},
        notifications={"desk": NotificationSettings(url="https://127.0.0.1:9/", secret=SIGNING)},
    )
    behind = {"repr of the settings": repr(settings), "settings shown": str(shown(settings))}
    async with Pointsman(settings=settings) as pointsman:
        execution = await pointsman.start(Workflow.of(DOCUMENT), {})
        await execution.settled()
        try:
            await execution.output()
        except PointsmanError as why:
            behind["the error"] = f"{why!r} {why} {why.hint}"
        behind["the view"] = str(await execution.view())
        behind["the events"] = str((await pointsman.state_and_events(execution.id))[1])
        behind["the feed"] = str(await pointsman.public_events(execution.id))
        behind["the export"] = plain(b"".join([line async for line in export(pointsman.context, execution.id)]))
        if execution.status != "failed":
            behind["the provider was not asked"] = KEY
    return behind


def plain(data: bytes) -> str:
    return data.decode("latin-1")


def examine(size: int, seed: int) -> Finding:
    """Search every output for the canaries."""
    with careless_provider() as address, tempfile.TemporaryDirectory() as name, collected_logs() as said:
        behind = asyncio.run(doors(address, Path(name)))
        behind["the store"] = plain(b"".join(path.read_bytes() for path in sorted(Path(name).glob("store.db*"))))
    behind["the logs"] = "\n".join(said)
    found = [f"{canary[:10]}… in {door}" for door, text in behind.items() for canary in CANARIES if canary in text]
    return Finding(f"{len(CANARIES)} canaries, {len(behind)} outputs, {len(found)} seen", tuple(found))

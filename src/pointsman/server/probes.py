"""Probes of a process without API, such as a worker: its health, its readiness and its metrics over HTTP.

GET /health    the process lives
GET /ready     its store answers and can be written, and it is not stopping; else 503
GET /metrics   for Prometheus: with the key of the setting `metrics`, or for this machine while no keys exist
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from pointsman.app import Pointsman
from pointsman.auth.keys import KEYS
from pointsman.operations.metrics import OPENMETRICS, PLAIN, Measuring, is_scraper
from pointsman.operations.readiness import HealthView, Lifecycle, readiness
from pointsman.server.problems import JsonReply
from pointsman.server.serving import Server, configured, is_loopback, listening, shown_host
from pointsman.version import VERSION


@asynccontextmanager
async def probes(app: Pointsman, host: str, port: int, lifecycle: Lifecycle) -> AsyncGenerator[str, None]:
    """Serve the probes of an open installation until the block ends; yield their address. Raises `AddressTaken`."""
    measuring = Measuring(app.context)

    async def health(request: Request) -> Response:
        alive: HealthView = {"status": "ok", "version": VERSION}
        return JsonReply(alive)

    async def ready(request: Request) -> Response:
        found = await readiness(app.context, lifecycle)
        return JsonReply(found.to_json(), status=200 if found.ready else 503)

    async def metrics(request: Request) -> Response:
        scheme, _, key = request.headers.get("authorization", "").partition(" ")
        is_open = is_loopback(host) and not await app.context[KEYS].are_made()
        if not is_open and not is_scraper(app.settings, key if scheme.lower() == "bearer" else None):
            return Response("the key of the setting `metrics` is required\n", 401, {"www-authenticate": "Bearer"})
        wants = "application/openmetrics-text" in request.headers.get("accept", "")
        text = await measuring.text(openmetrics_format=wants)
        return Response(text, media_type=OPENMETRICS if wants else PLAIN)

    paths = {"/health": health, "/ready": ready, "/metrics": metrics}
    application = Starlette(routes=[Route(path, answer) for path, answer in paths.items()])
    with listening(host, port) as listener:
        server = Server(configured(application), lambda: None)
        serving = asyncio.create_task(server.serve(sockets=[listener]))
        try:
            yield f"http://{shown_host(host)}:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            await serving
            measuring.close()

"""Engines that place executions on workers, by the address that the setting `runtime` gives.

temporal://HOST:PORT[/NAMESPACE]    `pointsman.runtime.temporal`, extra `temporal`
restate://HOST:PORT                 `pointsman.runtime.restate`, extra `restate`; `restates://` for TLS
"""

from __future__ import annotations

from urllib.parse import urlsplit

from pointsman.extras import need
from pointsman.runtime.dispatched import BadRuntimeAddress, Engine


async def connect(address: str, store: str) -> Engine:
    """Connect to an engine, which dispatches the executions of a store to the workers of this store only. `store`: its
    identity (`Claims.identity`).

    Raises `BadRuntimeAddress`, `ExtraMissing`, `EngineUnreachable`.
    """
    try:
        parts = urlsplit(address)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port, parts = "", None, urlsplit("")
    if parts.scheme in ("restate", "restates") and host:
        need("restate", "The runtime on Restate")
        from pointsman.runtime.restate import RestateEngine  # Loads the SDK of the engine, and an HTTP server.

        return await RestateEngine.connect(address, store)
    if parts.scheme != "temporal" or not host:
        raise BadRuntimeAddress(
            f"{address!r} is not the address of an engine",
            hint="Use temporal://HOST:PORT[/NAMESPACE] or restate://HOST:PORT (--runtime, `runtime` in the settings).",
        )
    need("temporal", "The runtime on Temporal")
    from pointsman.runtime.temporal import TemporalEngine  # Loads the client of the engine.

    return await TemporalEngine.connect(f"{host}:{port or 7233}", parts.path.strip("/") or "default", store)

"""The server of llama.cpp on this machine, with keys: real protocols, grammars and streams, without downloaded weights.

POINTSMAN_TEST_LLAMA=/directory    the directory of `llama-server`, if not that of tests/install-llama no server
tests that need one are skipped with that reason
"""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

import pytest

from tests.server.processes import free_port

CONFIGURED: Final = "POINTSMAN_TEST_LLAMA"
NAME: Final = "tiny"
KEYS: Final = ("canary-local-key-1", "canary-local-key-2")
WINDOW: Final = 8192
"""Tokens of one conversation."""
PLACES: Final = 2
"""Number of concurrent conversations."""
EMBEDDING: Final = ("--embeddings", "--pooling", "mean")
STARTS_IN_S: Final = 60.0
LOG_CHARS_MAX: Final = 4_000


@dataclass(frozen=True, slots=True)
class ModelServer:
    """A running server."""

    address: str
    """`http://127.0.0.1:PORT`; the OpenAI API is below `/v1`."""
    log: Path
    """Its log file."""
    name: str = NAME
    keys: tuple[str, ...] = KEYS

    @property
    def log_tail(self) -> str:
        """Return the end of its log, which a failed test shows."""
        return self.log.read_text(errors="replace")[-LOG_CHARS_MAX:]


def program() -> Path | None:
    """Return the path of `llama-server`: on the PATH, or where tests/install-llama puts it."""
    on_path = shutil.which("llama-server")
    if on_path is not None:
        return Path(on_path)
    cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = os.environ.get(CONFIGURED) or Path(cache) / "pointsman" / "llama"
    found = Path(folder) / "llama-server"
    return found if found.exists() else None


FOUND: Final = program()
"""Computed before any test changes the environment."""


def running(folder: Path, *flags: str) -> Iterator[ModelServer]:
    """Run a server with its files in `folder`. Skips the test if there is none. `flags` configure it: `EMBEDDING` makes
    it return vectors.
    """
    if FOUND is None:
        pytest.skip("no llama-server is installed (tests/install-llama unpacks one; on macOS: brew install llama.cpp)")
    weights, log = folder / "tiny.gguf", folder / "log"
    from tests.local_model.weights import write_weights

    write_weights(weights)
    port = free_port()
    options = {
        "--model": weights,
        "--host": "127.0.0.1",
        "--port": port,
        "--alias": NAME,
        "--ctx-size": WINDOW * PLACES,
        "--parallel": PLACES,
        "--threads": 1,
        "--api-key": ",".join(KEYS),
    }
    arguments = [str(part) for option in options.items() for part in option]
    with log.open("wb") as written:
        process = subprocess.Popen([FOUND, *arguments, "--jinja", "--no-ui", *flags], stdout=written, stderr=written)
    try:
        address = f"http://127.0.0.1:{port}"
        server = ModelServer(address, log)
        wait_for(process, server)
        yield server
    finally:
        process.terminate()
        process.wait(20)


def wait_for(process: subprocess.Popen[bytes], server: ModelServer) -> None:
    """Wait until it answers."""
    until = time.monotonic() + STARTS_IN_S
    while process.poll() is None and time.monotonic() < until:
        try:
            with urlopen(f"{server.address}/health", timeout=1):
                return
        except (URLError, OSError):
            time.sleep(0.05)  # It has no notification.
    pytest.fail(f"llama-server did not start:\n{server.log_tail}")

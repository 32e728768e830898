"""A server in its own process, which can be killed and restarted, and a proxy in front of it."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from random import SystemRandom
from typing import Final

import pytest

from tests.quick_starts import quick_starts

ROOT: Final = Path(__file__).parents[2]
NGINX: Final = shutil.which("nginx", path=f"{os.environ.get('PATH', '')}:/usr/sbin")
needs_nginx = pytest.mark.skipif(NGINX is None, reason="nginx is not installed (apt-get install nginx-light)")
START_S_MAX: Final = 60.0
PORTS: Final = (16_384, 32_768)

CONFIGURATION: Final = """\
daemon off;
worker_processes 1;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{ worker_connections 1024; }}
http {{
    access_log off;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port};
        location / {{
            proxy_pass http://127.0.0.1:{upstream};
            proxy_http_version 1.1;
            proxy_set_header Connection "";
            proxy_set_header Host localhost;
        }}
    }}
}}
"""


def free_port() -> int:
    """Return an unused port that the system never assigns to connections (those begin at 32768). Otherwise a client of
    a restarted server could get the server's port for itself.
    """
    while True:
        port = SystemRandom().randrange(*PORTS)
        with socket.socket() as found, suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port


class ServerProcess:
    """`pointsman serve` on one store and one port."""

    def __init__(
        self,
        store: str,
        *,
        folder: Path,
        script: str = "",
        module: tuple[str, ...] = ("pointsman",),
        settings: str = "",
        files: int = 0,
        standby: bool = False,
        command: tuple[str, ...] = (),
    ) -> None:
        """`command`: replaces `serve`, with its arguments. `module`: replaces `pointsman`, with its first arguments.
        `settings`: those of the user, as TOML. `files`: the limit of file descriptors of the process; 0: that of this
        process.
        """
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        serving = ("serve", "--port", str(self.port))
        self._ready = b"working for" if command else b"serving http://"
        self._command = [sys.executable, "-m", *module, *(command or serving), "--store", store]
        self._command += ["--model", "scripted", *(["--standby"] if standby else [])]
        if script:
            path = folder / "script.yaml"
            path.write_text(script, encoding="utf-8")
            self._command += ["--script", str(path)]
        if files:
            self._command = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *self._command]
        self._environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT}", "POINTSMAN_DELAYS": "false"}
        if settings:
            place = folder / "settings" / "pointsman"
            place.mkdir(parents=True)
            (place / "pointsman.toml").write_text(settings, encoding="utf-8")
            self._environment["XDG_CONFIG_HOME"] = str(place.parent)
        self._log = folder / f"server-{self.port}.log"
        self.process: asyncio.subprocess.Process | None = None

    async def begin(self) -> None:
        """Start the process and return when it accepts requests."""
        with self._log.open("wb") as log, quick_starts():  # A full pipe without a reader would stop it.
            self.process = await asyncio.create_subprocess_exec(
                *self._command,
                stderr=log,
                env=self._environment,
            )
        async with asyncio.timeout(START_S_MAX):
            while self._ready not in self._log.read_bytes():
                assert self.process.returncode is None, self._log.read_text()
                await asyncio.sleep(0.02)

    def log_tail(self) -> str:
        """Return the end of its log, which a failed test shows."""
        return self._log.read_text(errors="replace")[-4000:]

    def log_bytes(self) -> int:
        """Number of logged bytes."""
        return self._log.stat().st_size

    async def stop(self, sign: int = signal.SIGTERM) -> int:
        """End it with a signal and return its exit code."""
        assert self.process is not None
        if self.process.returncode is None:
            self.process.send_signal(sign)
        return await asyncio.wait_for(self.process.wait(), START_S_MAX)


@asynccontextmanager
async def server_process(store: str, folder: Path, *, script: str = "") -> AsyncGenerator[ServerProcess, None]:
    one = ServerProcess(store, script=script, folder=folder)
    await one.begin()
    try:
        yield one
    finally:
        await one.stop(signal.SIGKILL)


@asynccontextmanager
async def proxied(upstream: int, folder: Path) -> AsyncGenerator[str, None]:
    """Yield the address of an nginx with Debian's configuration in front of a server."""
    assert NGINX is not None
    place = folder / "nginx"
    place.mkdir()
    port = free_port()
    (place / "nginx.conf").write_text(CONFIGURATION.format(folder=place, port=port, upstream=upstream))
    process = await asyncio.create_subprocess_exec(NGINX, "-p", str(place), "-c", str(place / "nginx.conf"))
    try:
        async with asyncio.timeout(START_S_MAX):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                except ConnectionRefusedError:
                    assert process.returncode is None, (place / "error.log").read_text()
                    await asyncio.sleep(0.01)
                    continue
                writer.close()
                break
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        await process.wait()

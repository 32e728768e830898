"""A server as a process of its own, that can be killed and begun again; and a proxy in front of it."""

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
    """One that nobody has, and that the system gives nobody: those it gives to connections begin at 32768. Else whoever
    calls a server that is begun again there could be given its port, and call themselves."""
    while True:
        port = SystemRandom().randrange(*PORTS)
        with socket.socket() as found, suppress(OSError):
            found.bind(("127.0.0.1", port))
            return port


class ServerProcess:
    """`pointsman serve` on one store and port."""

    def __init__(
        self,
        store: str,
        *,
        folder: Path,
        script: str = "",
        module: tuple[str, ...] = ("pointsman",),
        settings: str = "",
        files: int = 0,
    ) -> None:
        """`module`: what is run, with its first arguments, instead of `pointsman`. `settings`: the user's, as TOML.
        `files`: how many file descriptors the process may have; 0: as many as this one."""
        self.port = free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [sys.executable, "-m", *module, "serve", "--port", str(self.port), "--store", store]
        self._command += ["--model", "scripted"]
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
        """Returns when it can be called."""
        with self._log.open("wb") as log:  # A pipe that nobody reads would stop it once it is full.
            self.process = await asyncio.create_subprocess_exec(
                *self._command,
                stderr=log,
                env=self._environment,
            )
        async with asyncio.timeout(START_S_MAX):
            while b"serving http://" not in self._log.read_bytes():
                assert self.process.returncode is None, self._log.read_text()
                await asyncio.sleep(0.02)

    def log_bytes(self) -> int:
        """How much it has logged."""
        return self._log.stat().st_size

    async def stop(self, sign: int = signal.SIGTERM) -> int:
        """End it so; its exit code."""
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
    """The address of an nginx, as Debian configures it, in front of a server."""
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

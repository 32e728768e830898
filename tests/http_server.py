"""An HTTP server of a test that stops at once: pytest-httpserver checks only twice a second."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from pytest_httpserver import HTTPServer

LOOKS_EVERY_S: Final = 0.005


class _PromptServer(HTTPServer):
    def thread_target(self) -> None:
        assert self.server is not None, "it was started"
        self.server.serve_forever(LOOKS_EVERY_S)


@contextmanager
def http_server() -> Generator[HTTPServer, None, None]:
    """A server on a free port of this machine."""
    with _PromptServer(host="127.0.0.1") as running:
        yield running

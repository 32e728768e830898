"""The process of an MCP server that a command starts: a transport for the SDK that reports how the process ended.

    SDK ── requests ─▶ standard input ──▶ process ─▶ exit code
    SDK ◀─ messages ── standard output ◀─┘    └────▶ standard error (`Stderr`)

The transport of the SDK ends only when standard output ends. A child of the process can hold it open after the process
has exited; every request would then wait for its timeout. The SDK transport also logs a traceback for each line that is
not a message, and drops a malformed answer, so that the request waits for its timeout as well.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import threading
from asyncio.subprocess import PIPE, Process, SubprocessStreamProtocol
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import TYPE_CHECKING, Final, TextIO, cast

from pointsman.deadlines import wait_uninterrupted
from pointsman.json_meter import excess_of
from pointsman.platforms import need_posix
from pointsman.values import Json

if TYPE_CHECKING:
    from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
    from mcp.client._transport import TransportStreams
    from mcp.shared.message import SessionMessage


CHARS_MAX: Final = 2_000


class Stderr:
    """The last `CHARS_MAX` characters that one process wrote to its standard error."""

    def __init__(self, mask: Callable[[str], str]) -> None:
        """`mask` removes secrets from a line. It is applied before the beginning of the text is cut off."""
        self._mask = mask
        self._text = ""
        reading, writing = os.pipe()
        self.file: TextIO = os.fdopen(writing, "w", encoding="utf-8")
        """The writable end, passed to the process."""
        self._thread = threading.Thread(target=self._read, args=(reading,), daemon=True, name="mcp-stderr")
        self._thread.start()

    def tail(self) -> str:
        """Return the last characters received so far."""
        return self._text.strip()

    def close(self) -> None:
        """Close the writable end of this process. The reading thread ends once the child has exited."""
        self.file.close()

    def settle(self) -> None:
        """Close, and wait up to `SETTLES_S` for output that the process wrote as it ended."""
        self.close()
        self._thread.join(SETTLES_S)

    def _read(self, reading: int) -> None:
        with os.fdopen(reading, encoding="utf-8", errors="replace") as lines:
            for line in lines:
                self._text = (self._text + self._mask(line))[-CHARS_MAX:]


CHUNK: Final = 65_536
LINE_BYTES_MAX: Final = 64_000_000
"""Longer messages end the connection; results of tools are limited to far less."""
SETTLES_S: Final = 1.0
"""How long the exit code may take to arrive after the end of standard output, or the rest of the output after the
exit."""
FLUSH_S: Final = 0.5
GRACE_S: Final = 2.0
"""How long the process may take to exit after its standard input is closed, and again after SIGTERM."""
NOISE_CHARS_MAX: Final = 200
MALFORMED: Final = "pointsman:malformed-answer"
"""The `data` of an error that stands for an answer that is not JSON-RPC."""
NOT_JSON_RPC: Final = "its answer is not a JSON-RPC result or error"
PARSE_ERROR: Final = -32700


class ServerProcess:
    """One process of an MCP server, from start to exit."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], mask: Callable[[str], str]) -> None:
        """`mask` removes secrets from the output of the process."""
        self._command = command
        self._env = env
        self._mask = mask
        self._exited = asyncio.Event()
        self._transport: asyncio.SubprocessTransport | None = None
        self._stopping = False
        self.stderr = Stderr(mask)
        self.exit_code: int | None = None
        """None: the process has not exited, or the engine stopped it."""
        self.end: str = ""
        """How the connection ended; empty: it is still open, or the engine ended it."""
        self.noise_lines = 0
        """Lines of standard output that are not messages."""
        self.noise = ""
        """The first of these lines, masked and shortened to `NOISE_CHARS_MAX`."""

    @asynccontextmanager
    async def transport(self) -> AsyncGenerator[TransportStreams]:
        """Start the process; on exit, stop it and its children. Raises `OSError`, `ValueError`."""
        import anyio
        from mcp.shared.message import SessionMessage

        try:
            process = await self._start()
        finally:
            self.stderr.close()
        assert process.stdin is not None
        incoming, received = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        sent, outgoing = anyio.create_memory_object_stream[SessionMessage](0)
        broken = asyncio.Event()
        reading = asyncio.create_task(self._read(process, incoming))
        writing = asyncio.create_task(_write(process.stdin, outgoing, broken))
        watching = asyncio.create_task(self._watch(reading, broken, incoming))
        try:
            yield received, sent
        finally:
            self._stopping = True
            sent.close()
            try:
                await asyncio.wait([writing], timeout=FLUSH_S)
                for task in (watching, reading, writing):
                    task.cancel()
                await asyncio.gather(watching, reading, writing, return_exceptions=True)
                await self._stop(process)
            finally:
                await self._kill(process)
                for stream in (incoming, received, sent, outgoing):
                    stream.close()

    async def _start(self) -> Process:
        need_posix("An MCP server that is started as a process", instead="Name its `url` in the settings.")
        from mcp.client.stdio import get_default_environment

        loop = asyncio.get_running_loop()
        transport, protocol = await loop.subprocess_exec(
            lambda: _Protocol(loop, self._note_exit),
            *self._command,
            env=get_default_environment() | dict(self._env),
            stdin=PIPE,
            stdout=PIPE,
            stderr=self.stderr.file,
            start_new_session=True,
        )
        self._transport = transport
        return Process(transport, protocol, loop)

    def _note_exit(self, code: int | None) -> None:
        if not self._stopping:
            self.exit_code = code
        self._exited.set()

    async def _read(self, process: Process, incoming: MemoryObjectSendStream[SessionMessage | Exception]) -> None:
        assert process.stdout is not None
        line = bytearray()
        while chunk := await process.stdout.read(CHUNK):
            *ended, rest = chunk.split(b"\n")
            for part in ended:
                line += part
                if excess := excess_of(bytes(line)):
                    self.end = f"it wrote a message that {excess}"
                    return
                message = self._message(bytes(line))
                line.clear()
                if message is not None:
                    await incoming.send(message)
            line += rest
            if len(line) > LINE_BYTES_MAX:
                self.end = f"it wrote a message of more than {LINE_BYTES_MAX} bytes"
                return

    def _message(self, line: bytes) -> SessionMessage | None:
        """Return the message of a line, or None. A line that is neither a message nor an answer is counted as noise."""
        from mcp.shared.message import SessionMessage
        from mcp.types import ErrorData, JSONRPCError, jsonrpc_message_adapter

        try:
            return SessionMessage(jsonrpc_message_adapter.validate_json(line, by_name=False))
        except ValueError:
            request_id = _answered(line)
        if request_id is not None:
            error = ErrorData(code=PARSE_ERROR, message=NOT_JSON_RPC, data=MALFORMED)
            return SessionMessage(JSONRPCError(jsonrpc="2.0", id=request_id, error=error))
        if line.strip():
            if not self.noise_lines:
                self.noise = self._mask(line.decode(errors="replace").strip())[:NOISE_CHARS_MAX]
            self.noise_lines += 1
        return None

    async def _watch(
        self,
        reading: asyncio.Task[None],
        broken: asyncio.Event,
        incoming: MemoryObjectSendStream[SessionMessage | Exception],
    ) -> None:
        """End the connection when the process exits or closes its standard input or output."""
        exited = asyncio.create_task(self._exited.wait())
        breaking = asyncio.create_task(broken.wait())
        try:
            await asyncio.wait([reading, exited, breaking], return_when=asyncio.FIRST_COMPLETED)
            await asyncio.wait([reading, exited], timeout=SETTLES_S)
            await asyncio.to_thread(self.stderr.settle)
            self.end = self.end or self._how(reading)
        finally:
            for task in (reading, exited, breaking):
                task.cancel()
            incoming.close()

    def _how(self, reading: asyncio.Task[None]) -> str:
        code = self.exit_code
        if code is None:
            return f"it closed its standard {'output' if reading.done() else 'input'}"
        if code >= 0:
            return f"its command exited with code {code}"
        with suppress(ValueError):
            return f"its command was ended by the signal {signal.Signals(-code).name}"
        return f"its command was ended by the signal {-code}"

    async def _stop(self, process: Process) -> None:
        """Stop the process and its children: close its input, then send SIGTERM, then SIGKILL."""
        assert process.stdin is not None
        draining = asyncio.create_task(_drain(process))
        try:
            process.stdin.close()
            # A process that ended the connection by itself gets the shorter time.
            if not await self._exits(SETTLES_S if self.end else GRACE_S):
                _signal(process.pid, signal.SIGTERM)
                if not await self._exits(GRACE_S):
                    await self._kill(process)
            _signal(process.pid, signal.SIGTERM)
        finally:
            draining.cancel()

    async def _kill(self, process: Process) -> None:
        """Kill the process and its children if it has not exited, and wait for its end, also if this task is cancelled
        again."""
        assert sys.platform != "win32"  # `_start` refuses it.
        if not self._exited.is_set():
            _signal(process.pid, signal.SIGKILL)
            await wait_uninterrupted(lambda: self._exits(GRACE_S))
        assert self._transport is not None
        self._transport.close()

    async def _exits(self, within_s: float) -> bool:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._exited.wait(), within_s)
        return self._exited.is_set()


class _Protocol(SubprocessStreamProtocol):
    """A subprocess protocol that reports the exit. `Process.wait` also waits for the pipes, which children can hold."""

    def __init__(self, loop: asyncio.AbstractEventLoop, exited: Callable[[int | None], None]) -> None:
        super().__init__(limit=CHUNK, loop=loop)
        self._note_exit = exited

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self._process = cast("asyncio.SubprocessTransport", transport)

    def process_exited(self) -> None:
        super().process_exited()
        self._note_exit(self._process.get_returncode())


async def _write(
    stdin: asyncio.StreamWriter, outgoing: MemoryObjectReceiveStream[SessionMessage], broken: asyncio.Event
) -> None:
    """Write the messages of the SDK. After the pipe breaks, drop them: `_watch` reports the end."""
    async for sent in outgoing:
        if not broken.is_set():
            try:
                stdin.write(sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await stdin.drain()
            except OSError:
                broken.set()


async def _drain(process: Process) -> None:
    """Read and drop the remaining output, so that a full pipe does not keep the process from exiting."""
    assert process.stdout is not None
    while await process.stdout.read(CHUNK):
        pass


def _signal(group: int, number: signal.Signals) -> None:
    assert sys.platform != "win32"  # As in `_kill`.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)


def _answered(line: bytes) -> int | str | None:
    """Return the id of the request that a malformed line answers; None: the line is not an answer."""
    try:
        message = cast("Json", json.loads(line))
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or "method" in message:
        return None
    request_id = message.get("id")
    return request_id if isinstance(request_id, int | str) and not isinstance(request_id, bool) else None

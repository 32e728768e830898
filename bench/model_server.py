"""Loopback server of models with canned replies: `python -m bench.model_server --rounds N`.

For benchmarks of agents. The first line on standard output is the address to use as `base_url`. The server decides by
the request alone, so it serves any number of agents at once: a conversation with fewer than N tool results receives a
call of the first tool that the request offers, with arguments that fit the tool's schema; then it receives the final
text. It serves

    POST /v1/chat/completions     whole or streamed (`stream`)
    POST /v1/responses            whole or streamed
    POST /v1/messages             whole or streamed, the API of Anthropic
    GET  /v1/statistics           {"requests", "bytes", "connections", "cpu_s"} since the start

`running()` starts the server in a process of its own and returns its address, for use inside benchmarks.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

Body: TypeAlias = dict[str, object]

ENGINE_TOOLS: Final = frozenset({"router", "end", "final_result"})
"""Tools that Pointsman adds to requests."""
WORDS: Final = 20
_NO_ARGUMENTS: Final[Body] = {"arguments": ""}
_NO_CONTENT: Final[Body] = {"content": []}
_END: Final = b"\r\n\r\n"


class Canned(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration of the replies."""

    rounds: int = 1
    """Tool results after which the conversation gets its final text."""
    calls: int = 1
    """Tool calls per round."""
    words: int = WORDS
    """Words of the final text, each an event of its own in a stream."""
    word_s: float = 0.0
    """Pause before each word of a stream."""


class Property(msgspec.Struct, frozen=True):
    """Schema of one parameter of a tool."""

    type: str = "string"


class Parameters(msgspec.Struct, frozen=True):
    """Schema of a tool's parameters."""

    properties: dict[str, Property] = {}
    required: list[str] = []


class Offered(msgspec.Struct):
    """A tool of a request. The chat wire nests it in `function`."""

    name: str = ""
    parameters: Parameters = Parameters()
    input_schema: Parameters | None = None
    """The name of `parameters` in the messages wire."""
    function: Offered | None = None


class Block(msgspec.Struct):
    """A part of a message of the messages wire."""

    type: str = ""


class Turn(msgspec.Struct):
    """A message of the chat or messages wire, or an item of the Responses wire."""

    role: str = ""
    type: str = ""
    content: str | list[Block] | None = None

    @property
    def results(self) -> int:
        """Tool results in it."""
        if self.role == "tool" or self.type == "function_call_output":
            return 1
        return sum(part.type == "tool_result" for part in self.content) if isinstance(self.content, list) else 0


class Conversation(msgspec.Struct):
    """The part of a request, of either wire, that decides its reply."""

    model: str
    messages: list[Turn] = []
    input: list[Turn] | str = ""
    tools: list[Offered] = []
    stream: bool = False

    @property
    def results(self) -> int:
        """Tool results received so far."""
        turns = [*self.messages, *(self.input if isinstance(self.input, list) else ())]
        return sum(turn.results for turn in turns)

    @property
    def tool(self) -> Offered:
        offered = (one.function or one for one in self.tools)
        return next((one for one in offered if one.name not in ENGINE_TOOLS), Offered())

    def arguments(self, number: int) -> str:
        """Return arguments that fit the schema: the number for each required property."""
        parameters = self.tool.input_schema or self.tool.parameters
        samples: dict[str, object] = {"integer": number, "number": number, "boolean": True, "array": [], "object": {}}
        given = {
            name: samples.get(parameters.properties.get(name, Property()).type, f"number {number}")
            for name in parameters.required
        }
        return msgspec.json.encode(given).decode()


class Answers:
    """Encodes replies, whole or as events."""

    def __init__(self, canned: Canned) -> None:
        self._canned = canned
        self._text = " ".join(f"word{number}" for number in range(canned.words))

    def calls(self, asked: Conversation) -> list[tuple[str, str]]:
        """Return id and arguments of the calls of this round; none: the text is due."""
        if not asked.tool.name or asked.results >= self._canned.rounds * self._canned.calls:
            return []
        numbers = range(asked.results + 1, asked.results + self._canned.calls + 1)
        return [(f"call_{number}", asked.arguments(number)) for number in numbers]

    def chat(self, asked: Conversation, size: int) -> Body:
        message: Body = {"role": "assistant", "content": None}
        if calls := self.calls(asked):
            message["tool_calls"] = [
                {"id": name, "type": "function", "function": {"name": asked.tool.name, "arguments": arguments}}
                for name, arguments in calls
            ]
        else:
            message["content"] = self._text
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if calls else "stop"}
        usage = _chat_usage(size, self._canned.words)
        return {**_head(asked, "chat.completion"), "choices": [choice], "usage": usage}

    def chat_events(self, asked: Conversation, size: int) -> Iterator[bytes]:
        head = _head(asked, "chat.completion.chunk")

        def event(delta: Body, finish: str | None = None) -> bytes:
            return _event({**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

        calls = self.calls(asked)
        for index, (name, arguments) in enumerate(calls):
            function = {"name": asked.tool.name, "arguments": ""}
            yield event({"tool_calls": [{"index": index, "id": name, "type": "function", "function": function}]})
            yield event({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]})
        for word in () if calls else self._words():
            yield event({"role": "assistant", "content": word})
        yield event({}, "tool_calls" if calls else "stop")
        yield _event({**head, "choices": [], "usage": _chat_usage(size, self._canned.words)})
        yield b"data: [DONE]\n\n"

    def response(self, asked: Conversation, size: int) -> Body:
        head = {**_response_head(asked), "status": "completed"}
        return {**head, "output": self._items(asked), "usage": _usage(size, self._canned.words)}

    def _items(self, asked: Conversation) -> list[Body]:
        calls: list[Body] = [
            {
                "type": "function_call",
                "id": f"fc_{name}",
                "call_id": name,
                "name": asked.tool.name,
                "arguments": arguments,
                "status": "completed",
            }
            for name, arguments in self.calls(asked)
        ]
        return calls or [{"type": "message", "id": "m1", "role": "assistant", "content": [self._part()]}]

    def _part(self) -> Body:
        return {"type": "output_text", "text": self._text, "annotations": [], "logprobs": []}

    def response_events(self, asked: Conversation, size: int) -> Iterator[bytes]:
        numbers = count()

        def event(kind: str, fields: Body) -> bytes:
            body = {"type": kind, "sequence_number": next(numbers), **fields}
            return f"event: {kind}\n".encode() + _event(body)

        yield event("response.created", {"response": {**_response_head(asked), "status": "in_progress", "output": []}})
        for at, item in enumerate(self._items(asked)):
            place: Body = {"output_index": at, "item_id": item["id"]}
            is_call = item["type"] == "function_call"
            opened: Body = {**item, "status": "in_progress", **(_NO_ARGUMENTS if is_call else _NO_CONTENT)}
            yield event("response.output_item.added", {"output_index": at, "item": opened})
            if is_call:
                arguments = item["arguments"]
                yield event("response.function_call_arguments.delta", {**place, "delta": arguments})
                yield event("response.function_call_arguments.done", {**place, "arguments": arguments})
            else:
                place["content_index"] = 0
                yield event("response.content_part.added", {**place, "part": {**self._part(), "text": ""}})
                for word in self._words():
                    yield event("response.output_text.delta", {**place, "delta": word, "logprobs": []})
                yield event("response.output_text.done", {**place, "text": self._text, "logprobs": []})
                yield event("response.content_part.done", {**place, "part": self._part()})
            yield event("response.output_item.done", {"output_index": at, "item": item})
        yield event("response.completed", {"response": self.response(asked, size)})

    def message(self, asked: Conversation, size: int) -> Body:
        calls = self.calls(asked)
        content = [
            {"type": "tool_use", "id": name, "name": asked.tool.name, "input": msgspec.json.decode(arguments)}
            for name, arguments in calls
        ]
        usage: Body = {"input_tokens": size // 4, "output_tokens": self._canned.words}
        head: Body = {"id": "msg_1", "type": "message", "role": "assistant", "model": asked.model, "usage": usage}
        stop: Body = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
        return {**head, **stop, "content": content or [{"type": "text", "text": self._text}]}

    def message_events(self, asked: Conversation, size: int) -> Iterator[bytes]:
        def event(kind: str, **fields: object) -> bytes:
            return f"event: {kind}\n".encode() + _event({"type": kind, **fields})

        message = self.message(asked, size)
        yield event("message_start", message={**message, **_NO_CONTENT, "stop_reason": None})
        calls = self.calls(asked)
        for index, (name, arguments) in enumerate(calls):
            block: dict[str, object] = {"type": "tool_use", "id": name, "name": asked.tool.name, "input": {}}
            yield event("content_block_start", index=index, content_block=block)
            yield event(
                "content_block_delta", index=index, delta={"type": "input_json_delta", "partial_json": arguments}
            )
            yield event("content_block_stop", index=index)
        if not calls:
            yield event("content_block_start", index=0, content_block={"type": "text", "text": ""})
            for word in self._words():
                yield event("content_block_delta", index=0, delta={"type": "text_delta", "text": word})
            yield event("content_block_stop", index=0)
        end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
        yield event("message_delta", delta=end, usage={"output_tokens": self._canned.words})
        yield event("message_stop")

    def _words(self) -> Iterator[str]:
        for at, word in enumerate(self._text.split(" ")):
            yield word if at == 0 else f" {word}"


_decode = msgspec.json.Decoder(Conversation).decode


def _head(asked: Conversation, kind: str) -> Body:
    return {"id": "chatcmpl-1", "object": kind, "created": 0, "model": asked.model}


def _response_head(asked: Conversation) -> Body:
    head = {"id": "resp_1", "object": "response", "created_at": 0, "model": asked.model}
    return {**head, "parallel_tool_calls": True, "tool_choice": "auto", "tools": []}


def _chat_usage(size: int, words: int) -> Body:
    tokens = size // 4
    return {
        "prompt_tokens": tokens,
        "completion_tokens": words,
        "total_tokens": tokens + words,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


def _usage(size: int, words: int) -> Body:
    tokens = size // 4
    return {
        "input_tokens": tokens,
        "output_tokens": words,
        "total_tokens": tokens + words,
        "input_tokens_details": {"cached_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 0},
    }


def _event(body: object) -> bytes:
    return b"data: " + msgspec.json.encode(body) + b"\n\n"


class OpenAIServer:
    """Serves connections until the process ends; connections stay open between requests."""

    def __init__(self, canned: Canned) -> None:
        self._canned = canned
        self._answers = Answers(canned)
        self._requests = 0
        self._bytes = 0
        self._connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections += 1
        try:
            while True:
                head = (await reader.readuntil(_END)).lower()
                size = int(head.partition(b"content-length:")[2].split(b"\r\n", 1)[0] or b"0")
                body = await reader.readexactly(size) if size else b""
                await self._answer(head.split(b" ", 2)[1], body, writer)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async def _answer(self, path: bytes, body: bytes, writer: asyncio.StreamWriter) -> None:
        if path.endswith(b"/statistics"):
            found = {"requests": self._requests, "bytes": self._bytes, "connections": self._connections}
            writer.write(_whole(msgspec.json.encode({**found, "cpu_s": time.process_time()})))
            return
        self._requests += 1
        self._bytes += len(body)
        asked = _decode(body)
        answers, size = self._answers, len(body)
        match path.rpartition(b"/")[2]:
            case b"responses":
                whole, events = answers.response, answers.response_events
            case b"messages":
                whole, events = answers.message, answers.message_events
            case _:
                whole, events = answers.chat, answers.chat_events
        if asked.stream:
            await self._stream(events(asked, size), writer)
        else:
            writer.write(_whole(msgspec.json.encode(whole(asked, size))))
        await writer.drain()

    async def _stream(self, events: Iterator[bytes], writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n")
        for event in events:
            if self._canned.word_s:
                await asyncio.sleep(self._canned.word_s)
            writer.write(b"%x\r\n%b\r\n" % (len(event), event))
            if self._canned.word_s:
                await writer.drain()
        writer.write(b"0\r\n\r\n")


def _whole(body: bytes) -> bytes:
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


@contextmanager
def running(*, rounds: int, calls: int = 1, words: int = WORDS, word_ms: float = 0.0) -> Generator[str]:
    """Run the server in a process of its own while inside. Returns its address."""
    options = {"--rounds": rounds, "--calls": calls, "--words": words, "--word-ms": word_ms}
    command = [sys.executable, "-m", "bench.model_server", *(str(part) for pair in options.items() for part in pair)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[1]) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().strip()
            assert address, "the server ended before it printed its address"
            yield address
        finally:
            process.terminate()


async def serve_forever(canned: Canned, port: int) -> None:
    """Serve on the loopback interface and print the address."""
    server = await asyncio.start_server(OpenAIServer(canned).serve, "127.0.0.1", port, limit=2**26, backlog=1_000)
    print(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1", flush=True)
    async with server:
        await server.serve_forever()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.model_server", description=__doc__)
    parser.add_argument("--rounds", type=int, default=10, help="tool results until the final text (10)")
    parser.add_argument("--calls", type=int, default=1, help="tool calls per round (1)")
    parser.add_argument("--words", type=int, default=WORDS, help=f"words of the final text ({WORDS})")
    parser.add_argument("--word-ms", type=float, default=0.0, help="pause before each event of a stream, in ms (0)")
    parser.add_argument("--port", type=int, default=0, help="port; 0: any free one")
    options = parser.parse_args()
    canned = Canned(rounds=options.rounds, calls=options.calls, words=options.words, word_s=options.word_ms / 1000)
    asyncio.run(serve_forever(canned, options.port))


if __name__ == "__main__":
    main()

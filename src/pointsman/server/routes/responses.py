"""Responses API of OpenAI: workflows as models.

    created · in_progress · ┬ reasoning: progress texts, until the message begins ┬ · completed
                            ├ message: all text of the answer                     │   or failed
                            └ function_call: each call of a client tool           ┘

Output items are built by the same code with and without a stream; without one, their events are discarded.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Final, Literal, NotRequired, TypeAlias, cast

from fastapi import Header, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError
from typing_extensions import TypedDict

from pointsman.chat.adapter import ChatRequest, StreamedAnswer
from pointsman.chat.formatting import EXECUTION, ClientToolCall, MessagesInvalid
from pointsman.chat.verbs import ConversationVerbs
from pointsman.errors import PointsmanError, sentences
from pointsman.server.context import CallerSession, CurrentServer, ServerContext
from pointsman.server.operation import Operations
from pointsman.server.problems import JsonReply
from pointsman.server.routes.openai import API_VERSION, with_event_stream, with_openai_errors
from pointsman.server.schemas.answers import EXECUTION_ID, answers, example
from pointsman.server.schemas.requests import BoundedBody, JsonValue
from pointsman.server.streaming.sse import BEAT, EventStream, server_sent
from pointsman.values import ExecutionId, Json, JsonObject, json_of

router = Operations(prefix=f"/{API_VERSION}", tags=["openai"])


class OpenAiResponse(TypedDict):
    """A response. With `stream` it is sent as events."""

    id: str
    object: Literal["response"]
    created_at: int
    completed_at: NotRequired[int]
    status: Literal["in_progress", "completed", "failed"]
    model: str
    output: list[Json]
    usage: NotRequired[JsonObject]
    scripted: NotRequired[bool]
    """True: the scripted model answered; its text is made up."""
    instructions: str | None
    previous_response_id: str | None
    conversation: JsonObject | None
    metadata: dict[str, str]
    background: bool
    error: JsonObject | None
    incomplete_details: JsonObject | None
    parallel_tool_calls: bool
    store: bool
    text: JsonObject
    tool_choice: str
    tools: list[Json]
    truncation: str


ResponseEvent: TypeAlias = tuple[str, JsonObject]
"""Type and members of an event."""


@dataclass(frozen=True, slots=True)
class TextItemFormat:
    """Members and event names of one type of text item."""

    item: JsonObject
    mark: str
    """Prefix of its id."""
    parts: str
    """Member that has its parts, of which there is one."""
    part: JsonObject
    place: str
    part_event: str
    text_event: str
    more: JsonObject
    """Further members of its text events."""


MESSAGE: Final = TextItemFormat(
    item={"type": "message", "role": "assistant", "status": "in_progress"},
    mark="msg",
    parts="content",
    part={"type": "output_text", "annotations": [], "logprobs": []},
    place="content_index",
    part_event="response.content_part",
    text_event="response.output_text",
    more={"logprobs": []},
)
THOUGHT: Final = TextItemFormat(
    item={"type": "reasoning"},
    mark="rs",
    parts="summary",
    part={"type": "summary_text"},
    place="summary_index",
    part_event="response.reasoning_summary_part",
    text_event="response.reasoning_summary_text",
    more={},
)


@dataclass(slots=True)
class TextItem:
    """Unfinished text item."""

    shape: TextItemFormat
    id: str
    index: int
    text: str = ""
    held: str = ""
    """Trailing white space, sent only when more text follows, so that no text ends with it."""

    def item(self, *, is_done: bool) -> JsonObject:
        shape = self.shape
        status: JsonObject = {"status": "completed"} if is_done and "status" in shape.item else {}
        return {"id": self.id, **shape.item, **status, shape.parts: [self.part()] if is_done else []}

    def part(self) -> JsonObject:
        return {**self.shape.part, "text": self.text}

    def where(self) -> JsonObject:
        return {"item_id": self.id, "output_index": self.index, self.shape.place: 0}


@dataclass(slots=True)
class ResponseBuilder:
    """Response under construction."""

    dialogue: StreamedAnswer
    envelope: OpenAiResponse
    """The response as it begins."""
    now: Callable[[], float]
    output: list[Json] = field(default_factory=list["Json"])
    _growing: TextItem | None = None
    _spoke: bool = False

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Yield the encoded events. A failure after the first one is reported in the last one."""
        number = 0
        async for entry in self._events():
            if entry is None:
                yield BEAT
                continue
            kind, members = entry
            yield server_sent(kind, {"type": kind, "sequence_number": number, **members}, "")
            number += 1

    async def whole(self) -> OpenAiResponse:
        """Return the complete response. Raises what the dialogue raises."""
        async for piece in self.dialogue.pieces():
            deque(self._on_delta(piece.kind, piece.text), maxlen=0)
        deque(self._ended(), maxlen=0)
        return self._completed()

    async def _events(self) -> AsyncGenerator[ResponseEvent | None, None]:
        """Yield the events; None: a heartbeat is due."""
        yield "response.created", {"response": json_of(self._as("in_progress"))}
        yield "response.in_progress", {"response": json_of(self._as("in_progress"))}
        try:
            async for piece in self.dialogue.pieces():
                if piece.kind == "silence":
                    yield None
                for event in self._on_delta(piece.kind, piece.text):
                    yield event
        except PointsmanError as why:
            error: JsonObject = {"code": "server_error", "message": sentences(str(why), why.hint)}
            failed: OpenAiResponse = {**self._as("failed"), "error": error}
            yield "response.failed", {"response": json_of(failed)}
            return
        for event in self._ended():
            yield event
        yield "response.completed", {"response": json_of(self._completed())}

    def _on_delta(self, kind: str, text: str) -> Iterator[ResponseEvent]:
        if kind == "words":
            self._spoke = True
            yield from self._grown(MESSAGE, text)
        elif kind == "thought" and not self._spoke:
            yield from self._grown(THOUGHT, text)

    def _grown(self, shape: TextItemFormat, text: str) -> Iterator[ResponseEvent]:
        growing = self._growing
        if growing is not None and growing.shape is not shape:
            yield from self._finished(growing)
            growing = None
        text = text.lstrip() if growing is None else growing.held + text
        fresh = text.rstrip()
        if growing is None and fresh:
            growing = self._growing = self._new(shape)
            yield from _opened(growing)
        if growing is None:
            return
        growing.held = text[len(fresh) :]
        if fresh:
            growing.text += fresh
            yield f"{shape.text_event}.delta", {**growing.where(), "delta": fresh, **shape.more}

    def _new(self, shape: TextItemFormat) -> TextItem:
        index = len(self.output)
        return TextItem(shape, f"{shape.mark}_{self.dialogue.execution.id}_{index}", index)

    def _finished(self, growing: TextItem) -> Iterator[ResponseEvent]:
        shape, item = growing.shape, growing.item(is_done=True)
        self._growing = None
        self.output.append(item)
        yield f"{shape.text_event}.done", {**growing.where(), "text": growing.text, **shape.more}
        yield f"{shape.part_event}.done", {**growing.where(), "part": growing.part()}
        yield "response.output_item.done", {"output_index": growing.index, "item": item}

    def _ended(self) -> Iterator[ResponseEvent]:
        """Finish the open item; add an empty message if there is neither a message nor a client call; add the calls."""
        growing = self._growing
        if growing is not None:
            yield from self._finished(growing)
        if not self.dialogue.calls and (growing is None or growing.shape is not MESSAGE):
            silent = self._new(MESSAGE)
            yield from _opened(silent)
            yield from self._finished(silent)
        for call in self.dialogue.calls:
            yield from self._called(call)

    def _called(self, call: ClientToolCall) -> Iterator[ResponseEvent]:
        index = len(self.output)
        where: JsonObject = {"item_id": f"fc_{call.id}", "output_index": index}
        item: JsonObject = {"id": f"fc_{call.id}", "type": "function_call", "call_id": call.id, "name": call.name}
        started: JsonObject = {**item, "arguments": "", "status": "in_progress"}
        done: JsonObject = {**item, "arguments": call.arguments, "status": "completed"}
        self.output.append(done)
        yield "response.output_item.added", {"output_index": index, "item": started}
        yield "response.function_call_arguments.delta", {**where, "delta": call.arguments}
        yield "response.function_call_arguments.done", {**where, "name": call.name, "arguments": call.arguments}
        yield "response.output_item.done", {"output_index": index, "item": done}

    def _as(self, status: Literal["in_progress", "completed", "failed"]) -> OpenAiResponse:
        """Return the response in its present state."""
        response: OpenAiResponse = {**self.envelope, "status": status, "output": [*self.output]}
        if self.dialogue.is_scripted:
            response["scripted"] = True
        return response

    def _completed(self) -> OpenAiResponse:
        used = self.dialogue.usage
        usage: JsonObject = {
            "input_tokens": used.input,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": used.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": used.input + used.output,
        }
        return {**self._as("completed"), "completed_at": int(self.now()), "usage": usage}


def _opened(growing: TextItem) -> Iterator[ResponseEvent]:
    shape, item = growing.shape, growing.item(is_done=False)
    yield "response.output_item.added", {"output_index": growing.index, "item": item}
    yield f"{shape.part_event}.added", {**growing.where(), "part": growing.part()}


TEXTS: Final = frozenset({"input_text", "output_text", "text"})
"""Types of content parts that are text."""


def messages_in(input: str | Sequence[JsonObject]) -> list[JsonObject]:
    """Convert the input to chat messages; a plain text is a user message.

    Raises `MessagesInvalid` for items other than messages, function calls and their outputs, and reasoning.
    """
    if isinstance(input, str):
        return [{"role": "user", "content": input}]
    return [message for item in input for message in _messages_of(item)]


def _messages_of(item: JsonObject) -> Iterator[JsonObject]:
    match item.get("type") or "message":
        case "message":
            yield {"role": str(item.get("role", "")), "content": _content(item.get("content"))}
        case "function_call":
            yield {"role": "assistant", "content": None}
        case "function_call_output":
            called, result = item.get("call_id", ""), _content(item.get("output"))
            yield {"role": "tool", "tool_call_id": called, "content": result}
        case "reasoning":  # Progress texts of earlier answers are ignored.
            return
        case kind:
            hint = "Send messages, function calls and function call outputs."
            raise MessagesInvalid(f"the input contains an item of type {str(kind)[:100]!r}", hint=hint)


def _content(content: Json) -> Json:
    return [_part(part) for part in content] if isinstance(content, list) else content


def _part(part: Json) -> Json:
    if isinstance(part, dict) and part.get("type") in TEXTS:
        return {"type": "text", "text": part.get("text")}
    return part


Name = Annotated[str, Field(max_length=64)]
Value = Annotated[str, Field(max_length=512)]
RESPONSE_ID: Final = re.compile(f"resp_({EXECUTION})")
EVENTS: Final = (
    'event: response.output_text.delta\ndata: {"type": "response.output_text.delta", "sequence_number": 4,'
    f' "item_id": "msg_{EXECUTION_ID}_0", "output_index": 0, "content_index": 0, "delta": "Hello.", "logprobs": []}}'
    "\n\n"
)
REQUEST_EXAMPLE: Final[JsonObject] = {"model": "talk", "input": "Hello"}
MADE: Final[OpenAiResponse] = {
    "id": f"resp_{EXECUTION_ID}",
    "object": "response",
    "created_at": 1_763_700_000,
    "status": "completed",
    "model": "talk",
    "output": [
        {
            "id": f"msg_{EXECUTION_ID}_0",
            "type": "message",
            "role": "assistant",
            "status": "completed",
            "content": [{"type": "output_text", "text": "Hello.", "annotations": [], "logprobs": []}],
        }
    ],
    "usage": {"input_tokens": 12, "output_tokens": 3, "total_tokens": 15},
    "completed_at": 1_763_700_002,
    "instructions": None,
    "previous_response_id": None,
    "conversation": None,
    "metadata": {},
    "background": False,
    "error": None,
    "incomplete_details": None,
    "parallel_tool_calls": True,
    "store": True,
    "text": {"format": {"type": "text"}},
    "tool_choice": "auto",
    "tools": [],
    "truncation": "disabled",
}


class ConversationName(BaseModel):
    """A conversation by its name."""

    model_config = ConfigDict(extra="ignore")
    id: str = Field(min_length=1, max_length=200)


def _objects(value: object) -> object:
    """Refuse a list at its first item that is not an object."""
    for at, item in enumerate(cast("list[object]", value)) if isinstance(value, list) else ():
        if not isinstance(item, dict):
            raise PydanticCustomError("dict_type", "item {at} must be an object", {"at": at})
    return cast("object", value)


class ResponsesBody(BoundedBody):
    """A request as OpenAI describes it; other members are ignored."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"examples": [REQUEST_EXAMPLE]})
    model: str = Field(min_length=1, max_length=300, description="The id of a workflow.")
    input: str | Annotated[list[dict[str, JsonValue]], Field(max_length=10_000), BeforeValidator(_objects)] = Field(
        description="The message of the user, or the whole conversation as items."
    )
    instructions: str | None = Field(
        default=None,
        max_length=1_000_000,
        description="Returned in the response and otherwise ignored: a workflow has its own prompts.",
    )
    previous_response_id: str | None = Field(
        default=None, max_length=200, description="The response that `input` continues or answers."
    )
    conversation: str | ConversationName | None = Field(
        default=None,
        description="The conversation is stored under this name; `session_id` in `metadata` has the same effect.",
    )
    stream: bool | None = Field(default=None, description="Stream the events of the response.")
    metadata: dict[Name, Value] | None = Field(default=None, max_length=16, description="Returned in the response.")


example(OpenAiResponse, MADE)


@router.post(
    "/responses",
    verb=ConversationVerbs.begin,
    responses=with_event_stream(
        with_openai_errors(
            answers(
                OpenAiResponse,
                "unknown-workflow",
                "input-invalid",
                "messages-invalid",
                "not-text",
                409,
                429,
                502,
                503,
                body=True,
            )
        ),
        EVENTS,
    ),
    summary="Create a response",
)
async def respond(
    server: CurrentServer,
    caller_session: CallerSession,
    body: ResponsesBody,
    x_session_id: Annotated[
        str | None, Header(max_length=200, description="The conversation is stored under this name.")
    ] = None,
) -> Response:
    """Send the last item of `input` to the workflow. If a gate of the conversation is open, the item is its answer.

    With `stream` the answer is sent as OpenAI's events, numbered by `sequence_number`.
    """
    session = _session_of(body) or x_session_id
    chat = ChatRequest(body.model, messages_in(cast("str | list[JsonObject]", body.input)), session, _previous(body))
    if not body.stream:
        builder = _builder(server, body, session, await caller_session.conversations.begin(chat))
        return JsonReply(await builder.whole())
    stream = server.take_stream(caller_session.caller)
    try:
        builder = _builder(server, body, session, await caller_session.conversations.begin(chat))
    except BaseException:
        stream.leave()
        raise
    return EventStream(builder.events(), stream)


def _session_of(body: ResponsesBody) -> str | None:
    match body.conversation:
        case ConversationName(id=name) | str(name):
            return name
        case None:
            return (body.metadata or {}).get("session_id")


def _previous(body: ResponsesBody) -> ExecutionId | None:
    if body.previous_response_id is None:
        return None
    match = RESPONSE_ID.fullmatch(body.previous_response_id)
    if match is None:
        why = f"this server made no response with the id {body.previous_response_id!r}"
        raise MessagesInvalid(why, hint="Send the id unchanged.")
    return ExecutionId(match[1])


def _builder(
    server: ServerContext, body: ResponsesBody, session: str | None, dialogue: StreamedAnswer
) -> ResponseBuilder:
    envelope: OpenAiResponse = {
        "id": f"resp_{dialogue.execution.id}",
        "object": "response",
        "created_at": int(server.app.clock.now()),
        "status": "in_progress",
        "model": body.model,
        "output": [],
        "instructions": body.instructions,
        "previous_response_id": body.previous_response_id,
        "conversation": None if session is None else {"id": session},
        "metadata": {**(body.metadata or {})},
        "background": False,
        "error": None,
        "incomplete_details": None,
        "parallel_tool_calls": True,
        "store": True,
        "text": {"format": {"type": "text"}},
        "tool_choice": "auto",
        "tools": [],
        "truncation": "disabled",
    }
    return ResponseBuilder(dialogue, envelope, server.app.clock.now)

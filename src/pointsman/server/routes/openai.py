"""Chat Completions API of OpenAI: workflows as models; and the errors of all paths under `/v1` in its format."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, Final, Literal, NotRequired, cast

import msgspec
from fastapi import Header, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field
from pydantic_core import PydanticCustomError
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from typing_extensions import TypedDict

from pointsman.chat.adapter import ChatRequest, StreamedAnswer
from pointsman.chat.formatting import Calls
from pointsman.chat.verbs import ConversationVerbs
from pointsman.chat.workflows import ChatWorkflowView
from pointsman.errors import PointsmanError, sentences
from pointsman.server import problems
from pointsman.server.context import CallerSession, CurrentServer
from pointsman.server.operation import Operations
from pointsman.server.problems import JsonReply
from pointsman.server.routes.parameters import Id
from pointsman.server.schemas.answers import EXECUTION_ID, Described, answers, example
from pointsman.server.schemas.requests import BoundedBody, JsonValue, with_null_marks
from pointsman.server.streaming.sse import BEAT, MEDIA_TYPE, EventStream
from pointsman.values import Json, JsonObject, json_of

API_VERSION: Final = "v1"
"""First path segment of these operations."""
router = Operations(prefix=f"/{API_VERSION}", tags=["openai"])


TYPES: Final = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
OF_THE_BODY: Final = frozenset({"content-type", "content-length"})
"""Headers that describe the replaced body, and are not kept."""
SHAPE: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["error"],
    "additionalProperties": False,
    "properties": {
        "error": {
            "type": "object",
            "required": ["message", "type", "param", "code"],
            "additionalProperties": False,
            "properties": {
                "message": {"type": "string"},
                "type": {
                    "enum": [
                        "authentication_error",
                        "invalid_request_error",
                        "permission_error",
                        "rate_limit_error",
                        "server_error",
                    ]
                },
                "param": {"type": "null"},
                "code": {"type": "string"},
            },
        }
    },
}
EVENT: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["data"],
    "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
}
"""Schema of an event: `data` is JSON; after the last chunk of a chat completion it is `[DONE]`."""


def error_body(status: int, code: str, detail: str, hint: str) -> JsonObject:
    """Return the body of an error."""
    kind = TYPES.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return {"error": {"message": sentences(detail, hint), "type": kind, "param": None, "code": code}}


def with_openai_errors(described: Described) -> Described:
    """Return documented responses with errors in the format of OpenAI."""
    return {status: _in_chat(int(status), value) for status, value in described.items()}


def with_event_stream(described: Described, example: str) -> Described:
    """Add an event stream to the documented response of status 200."""
    content = {**described[200]["content"], MEDIA_TYPE: {"schema": EVENT, "example": example}}
    return described | {200: {**described[200], "content": content}}


def _in_chat(status: int, one: dict[str, Any]) -> dict[str, Any]:
    if status < HTTPStatus.BAD_REQUEST:
        return one
    example = with_null_marks(error_body(status, "a-code", "The error.", "The hint."))
    content = {"application/json": {"schema": SHAPE, "example": example}}
    return {"description": one["description"], "content": content}


class OpenAiErrorMiddleware:
    """ASGI middleware that converts every problem document under `/v1` to an error of OpenAI."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or str(scope["path"]).split("/")[1:2] != [API_VERSION]:
            await self._app(scope, receive, send)
            return
        start: Message | None = None
        sent_body = b""

        async def retold(message: Message) -> None:
            """Collect a problem document until it is complete, then convert it; pass on all other messages."""
            nonlocal start, sent_body
            if message["type"] == "http.response.start" and _is_problem(message):
                start = message
            elif start is None:
                await send(message)
            else:
                sent_body += message.get("body", b"")
                if not message.get("more_body"):
                    await openai_error(int(start["status"]), Headers(raw=start["headers"]), sent_body)(
                        scope, receive, send
                    )

        await self._app(scope, receive, retold)


def openai_error(status: int, headers: Headers, problem: bytes) -> JsonReply:
    """Convert a problem document to an error of OpenAI."""
    fields = msgspec.json.decode(problem)
    kept_headers = {name: value for name, value in headers.items() if name not in OF_THE_BODY}
    if status not in (HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.SERVICE_UNAVAILABLE):
        kept_headers["x-should-retry"] = "false"  # Otherwise the clients of OpenAI retry twice.
    reply = error_body(status, fields["code"], fields["detail"], fields.get("hint", ""))
    return JsonReply(reply, status=status, headers=kept_headers)


def _is_problem(start: Message) -> bool:
    return Headers(raw=start["headers"]).get("content-type", "") == problems.MEDIA_TYPE


class ScriptedMark(TypedDict):
    """Members of every answer and chunk of the scripted model; `system_fingerprint` is part of the protocol."""

    system_fingerprint: str
    scripted: bool


SCRIPTED_MARK: Final[ScriptedMark] = {"system_fingerprint": "scripted", "scripted": True}
CHUNK: Final = "chat.completion.chunk"
DONE: Final = b"data: [DONE]\n\n"
CHAT: Final[JsonObject] = {"model": "talk", "messages": [{"role": "user", "content": "Hello"}]}
MODEL: Final[OpenAiModel] = {"id": "talk", "object": "model", "created": 1_763_700_000, "owned_by": "ada"}
COMPLETION: Final[ChatCompletion] = {
    "id": f"chatcmpl-{EXECUTION_ID}",
    "object": "chat.completion",
    "created": 1_763_700_000,
    "model": "talk",
    "choices": [{"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 12, "completion_tokens": 3, "total_tokens": 15},
}
CHUNKS: Final = (
    f'data: {{"id": "chatcmpl-{EXECUTION_ID}", "object": "{CHUNK}", "created": 1763700000, "model": "talk",'
    ' "choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": null}]}\n\ndata: [DONE]\n\n'
)


class ChatMessage(BaseModel):
    """A message of the conversation."""

    model_config = ConfigDict(extra="allow")
    role: str = Field(max_length=40)
    content: JsonValue = None


def _one_answer(value: object) -> object:
    """Refuse a request for several answers: an execution has one output."""
    if isinstance(value, int) and not isinstance(value, bool) and value != 1:
        raise PydanticCustomError("one_answer", "a workflow gives one answer: leave `n` out, or send 1")
    return value


class ChatBody(BoundedBody):
    """A request as OpenAI describes it; other members are ignored."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"examples": [CHAT]})
    model: str = Field(min_length=1, max_length=300, description="The id of a workflow.")
    messages: Annotated[list[ChatMessage], FailFast()] = Field(min_length=1, max_length=10_000)
    n: Annotated[int | None, BeforeValidator(_one_answer)] = Field(
        default=None, ge=1, le=1, description="Number of answers: a workflow gives one."
    )
    stream: bool = False
    stream_options: dict[str, JsonValue] | None = Field(
        default=None, description="`include_usage`: send the usage in a last chunk."
    )
    metadata: dict[str, JsonValue] | None = Field(
        default=None, description="`session_id`: the conversation is stored under this name."
    )


class OpenAiModel(TypedDict):
    """A workflow as a model."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class OpenAiModels(TypedDict):
    """The workflows that the caller can chat with, as models."""

    object: Literal["list"]
    data: list[OpenAiModel]


class ChatCompletion(TypedDict):
    """A chat completion. With `stream` it is sent in chunks, as server-sent events."""

    id: str
    object: Literal["chat.completion"]
    created: int
    model: str
    choices: list[Json]
    usage: JsonObject
    system_fingerprint: NotRequired[str]
    """`scripted`: the scripted model answered."""
    scripted: NotRequired[bool]
    """True: the scripted model answered; its text is made up."""


example(OpenAiModel, MODEL)
example(OpenAiModels, {"object": "list", "data": [MODEL]})
example(ChatCompletion, COMPLETION)


@router.get(
    "/models",
    verb=ConversationVerbs.models,
    responses=with_openai_errors(answers(OpenAiModels)),
    summary="List workflows as models",
)
async def models(session: CallerSession) -> Response:
    """Return the workflows that the caller may see and chat with, as models, without those whose owners switched it
    off."""
    models: OpenAiModels = {"object": "list", "data": [_model(one) for one in await session.conversations.models()]}
    return JsonReply(models)


@router.get(
    "/models/{id}",
    verb=ConversationVerbs.model,
    responses=with_openai_errors(answers(OpenAiModel, "unknown-workflow")),
    summary="Read a workflow as a model",
)
async def model(session: CallerSession, id: Id) -> Response:
    """Return one of the models that `/v1/models` lists."""
    return JsonReply(_model(await session.conversations.model(id)))


@router.post(
    "/chat/completions",
    verb=ConversationVerbs.begin,
    responses=with_event_stream(
        with_openai_errors(
            answers(
                ChatCompletion,
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
        CHUNKS,
    ),
    summary="Create a chat completion",
)
async def complete(
    server: CurrentServer,
    session: CallerSession,
    body: ChatBody,
    x_session_id: Annotated[
        str | None, Header(max_length=200, description="The conversation is stored under this name.")
    ] = None,
) -> Response:
    """Send the last message to the workflow. If a gate of the conversation is open, the message is its answer."""
    conversation = (body.metadata or {}).get("session_id") or x_session_id
    messages = [cast("JsonObject", message.model_dump()) for message in body.messages]
    request = ChatRequest(body.model, messages, None if conversation is None else str(conversation))
    if body.stream:
        stream = server.take_stream(session.caller)
        try:
            written = _Written(await session.conversations.begin(request), body.model, int(server.app.clock.now()))
        except BaseException:
            stream.leave()
            raise
        with_usage = bool((body.stream_options or {}).get("include_usage"))
        return EventStream(written.chunks(with_usage=with_usage), stream)
    dialogue = await session.conversations.begin(request)
    written = _Written(dialogue, body.model, int(server.app.clock.now()))
    async for _ in dialogue.pieces():
        pass
    return JsonReply(written.whole())


@dataclass(frozen=True, slots=True)
class _Written:
    """Chat completion of a dialogue."""

    dialogue: StreamedAnswer
    model: str
    created: int

    def whole(self) -> ChatCompletion:
        message: JsonObject = {"role": "assistant", "content": self.dialogue.text or None}
        if self.dialogue.calls:
            message["tool_calls"] = _calls(self.dialogue.calls)
        choice: JsonObject = {"index": 0, "message": message, "finish_reason": self._finish, "logprobs": None}
        completion: ChatCompletion = {
            "id": self._id,
            "object": "chat.completion",
            "created": self.created,
            "model": self.model,
            "choices": [choice],
            "usage": self._usage,
        }
        return {**completion, **SCRIPTED_MARK} if self.dialogue.is_scripted else completion

    async def chunks(self, *, with_usage: bool) -> AsyncGenerator[bytes, None]:
        """Yield the stream; a failure after its first chunk is sent as a chunk with an error."""
        yield self._delta({"role": "assistant", "content": ""})
        try:
            async for piece in self.dialogue.pieces():
                match piece.kind:
                    case "words":
                        yield self._delta({"content": piece.text})
                    case "thought":
                        yield self._delta({"reasoning_content": piece.text})
                    case "silence":
                        yield BEAT
        except PointsmanError as why:
            yield _event(error_body(problems.status_of(why), why.code, str(why), why.hint))
            yield DONE
            return
        if self.dialogue.calls:
            calls = [{"index": n, **cast("JsonObject", call)} for n, call in enumerate(_calls(self.dialogue.calls))]
            yield self._delta({"tool_calls": [*calls]})
        yield self._delta({}, finish=self._finish)
        if with_usage:
            yield _event({**self._chunk([]), "usage": self._usage})
        yield DONE

    @property
    def _id(self) -> str:
        return f"chatcmpl-{self.dialogue.execution.id}"

    @property
    def _finish(self) -> str:
        return "tool_calls" if self.dialogue.calls else "stop"

    @property
    def _usage(self) -> JsonObject:
        used = self.dialogue.usage
        return {
            "prompt_tokens": used.input,
            "completion_tokens": used.output,
            "total_tokens": used.input + used.output,
        }

    def _delta(self, delta: JsonObject, *, finish: str | None = None) -> bytes:
        return _event(self._chunk([{"index": 0, "delta": delta, "finish_reason": finish}]))

    def _chunk(self, choices: list[Json]) -> JsonObject:
        chunk: JsonObject = {
            "id": self._id,
            "object": CHUNK,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }
        return {**chunk, **json_of(SCRIPTED_MARK)} if self.dialogue.is_scripted else chunk


def _calls(calls: Calls) -> list[Json]:
    return [
        {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}
        for call in calls
    ]


def _model(entry: ChatWorkflowView) -> OpenAiModel:
    return {
        "id": entry["id"],
        "object": "model",
        "created": int(entry["createdAt"] or 0),
        "owned_by": entry["author"] or "pointsman",
    }


def _event(chunk: JsonObject) -> bytes:
    return b"data: " + msgspec.json.encode(chunk) + b"\n\n"

"""Chat Completions API of OpenAI: workflows as models."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from typing import Annotated, Final, cast

import msgspec
from fastapi import Header, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, FailFast, Field
from pydantic_core import PydanticCustomError

from pointsman.auth.subjects import UnknownWorkflow
from pointsman.chat.adapter import ChatRequest, Dialogue
from pointsman.chat.formatting import Calls
from pointsman.chat.verbs import ConversationVerbs
from pointsman.errors import PointsmanError
from pointsman.server import problems
from pointsman.server.context import CallerSession, CurrentServer
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.openai_errors import DOOR, also_streamed, error_told, in_chat
from pointsman.server.routes.parameters import Id
from pointsman.server.routes.response_docs import answers
from pointsman.server.schemas.error_examples import EXECUTION_ID
from pointsman.server.schemas.requests import BoundedBody, JsonValue
from pointsman.server.streaming.sse import BEAT, EventStream
from pointsman.values import Json, JsonObject

SCRIPTED_MARK: Final[JsonObject] = {"system_fingerprint": "scripted", "scripted": True}
"""Members of every answer and chunk of the scripted model; `system_fingerprint` is part of the protocol."""
CHUNK: Final = "chat.completion.chunk"
DONE: Final = b"data: [DONE]\n\n"
CHAT: Final[JsonObject] = {"model": "talk", "messages": [{"role": "user", "content": "Hello"}]}
MODEL: Final[JsonObject] = {"id": "talk", "object": "model", "created": 1_763_700_000, "owned_by": "ada"}
COMPLETION: Final[JsonObject] = {
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

router = Operations(prefix=f"/{DOOR}", tags=["openai"])


class ChatMessage(BaseModel):
    """What somebody said."""

    model_config = ConfigDict(extra="allow")
    role: str = Field(max_length=40)
    content: JsonValue = None


def _one_answer(value: object) -> object:
    """Refuse a request for several answers: an execution has one output."""
    if isinstance(value, int) and not isinstance(value, bool) and value != 1:
        raise PydanticCustomError("one_answer", "a workflow gives one answer: leave `n` out, or send 1")
    return value


class ChatBody(BoundedBody):
    """A request as OpenAI describes it; what is not here is not looked at."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"examples": [CHAT]})
    model: str = Field(min_length=1, max_length=300, description="The id of a workflow.")
    messages: Annotated[list[ChatMessage], FailFast()] = Field(min_length=1, max_length=10_000)
    n: Annotated[int | None, BeforeValidator(_one_answer)] = Field(
        default=None, ge=1, le=1, description="Number of answers: a workflow gives one."
    )
    stream: bool = False
    stream_options: dict[str, JsonValue] | None = Field(default=None, description="`include_usage`.")
    metadata: dict[str, JsonValue] | None = Field(
        default=None, description="`session_id`: the conversation is kept under this name."
    )


class ModelAnswer(BaseModel):
    """A workflow as a model."""

    model_config = ConfigDict(json_schema_extra={"examples": [MODEL]})
    id: str
    object: str
    created: int
    owned_by: str


class ModelList(BaseModel):
    """Models."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"object": "list", "data": [MODEL]}]})
    object: str
    data: list[ModelAnswer]


class Completion(BaseModel):
    """An answer. With `stream` it comes in chunks, as server-sent events."""

    model_config = ConfigDict(json_schema_extra={"examples": [COMPLETION]})
    id: str
    object: str
    created: int
    model: str
    choices: list[dict[str, JsonValue]]
    usage: dict[str, JsonValue]
    system_fingerprint: str | None = Field(default=None, description="`scripted`: the scripted model answered.")
    scripted: bool | None = Field(default=None, description="True: the scripted model answered; its words are made up.")


@router.get(
    "/models", verb=ConversationVerbs.models, responses=in_chat(answers(ModelList)), summary="List workflows as models"
)
async def models(session: CallerSession) -> Response:
    """Return the conversational workflows that the caller may see, as models."""
    found = [_model(one) for one in await session.conversations.models()]
    return JsonReply({"object": "list", "data": found})


@router.get(
    "/models/{id}",
    verb=ConversationVerbs.workflows,
    responses=in_chat(answers(ModelAnswer, "unknown-workflow")),
    summary="Read a workflow as a model",
)
async def model(session: CallerSession, id: Id) -> Response:
    """Return one of the models that `/v1/models` lists."""
    for one in (await session.conversations.workflows(ids=[id], limit=1))["workflows"]:
        return JsonReply(_model(one))
    raise UnknownWorkflow(f"there is no model {id!r} here", hint="GET /v1/models lists those you may see.")


@router.post(
    "/chat/completions",
    verb=ConversationVerbs.begin,
    responses=also_streamed(
        in_chat(
            answers(
                Completion,
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
    summary="Talk to a workflow",
)
async def complete(
    desk: CurrentServer,
    session: CallerSession,
    body: ChatBody,
    x_session_id: Annotated[
        str | None, Header(max_length=200, description="The conversation is kept under this name.")
    ] = None,
) -> Response:
    """Send the last message to the workflow. If a gate of the conversation is open, the message is its answer."""
    kept = (body.metadata or {}).get("session_id") or x_session_id
    messages = [cast("JsonObject", one.model_dump()) for one in body.messages]
    asked = ChatRequest(body.model, messages, None if kept is None else str(kept))
    if body.stream:
        seat = desk.take_stream(session.caller)
        try:
            written = _Written(await session.conversations.begin(asked), body.model, int(desk.app.clock.now()))
        except BaseException:
            seat.leave()
            raise
        with_usage = bool((body.stream_options or {}).get("include_usage"))
        return EventStream(written.chunks(with_usage=with_usage), seat)
    dialogue = await session.conversations.begin(asked)
    written = _Written(dialogue, body.model, int(desk.app.clock.now()))
    async for _ in dialogue.pieces():
        pass
    return JsonReply(written.whole())


@dataclass(frozen=True, slots=True)
class _Written:
    """Chat completion of a dialogue."""

    dialogue: Dialogue
    model: str
    created: int

    def whole(self) -> JsonObject:
        message: JsonObject = {"role": "assistant", "content": self.dialogue.text or None}
        if self.dialogue.calls:
            message["tool_calls"] = _calls(self.dialogue.calls)
        choice: JsonObject = {"index": 0, "message": message, "finish_reason": self._finish, "logprobs": None}
        return {**self._envelope("chat.completion", [choice]), "usage": self._usage}

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
            yield _event(error_told(problems.status_of(why), why.code, str(why), why.hint))
            yield DONE
            return
        if self.dialogue.calls:
            calls = [{"index": n, **cast("JsonObject", one)} for n, one in enumerate(_calls(self.dialogue.calls))]
            yield self._delta({"tool_calls": [*calls]})
        yield self._delta({}, finish=self._finish)
        if with_usage:
            yield _event({**self._envelope(CHUNK, []), "usage": self._usage})
        yield DONE

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
        return _event(self._envelope(CHUNK, [{"index": 0, "delta": delta, "finish_reason": finish}]))

    def _envelope(self, kind: str, choices: list[Json]) -> JsonObject:
        said: JsonObject = {
            "id": f"chatcmpl-{self.dialogue.execution.id}",
            "object": kind,
            "created": self.created,
            "model": self.model,
            "choices": choices,
        }
        return said | SCRIPTED_MARK if self.dialogue.is_scripted else said


def _calls(calls: Calls) -> list[Json]:
    return [
        {"id": one.id, "type": "function", "function": {"name": one.name, "arguments": one.arguments}} for one in calls
    ]


def _model(entry: Mapping[str, object]) -> dict[str, object]:
    return {
        "id": entry["id"],
        "object": "model",
        "created": int(cast("float", entry["createdAt"] or 0)),
        "owned_by": entry["author"] or "pointsman",
    }


def _event(said: JsonObject) -> bytes:
    return b"data: " + msgspec.json.encode(said) + b"\n\n"

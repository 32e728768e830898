"""Responses API of OpenAI: workflows as models."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Final, cast

from fastapi import Header, Response
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from pydantic_core import PydanticCustomError

from pointsman.chat.adapter import ChatRequest, Dialogue
from pointsman.chat.formatting import EXECUTION, MessagesInvalid
from pointsman.chat.verbs import ConversationVerbs
from pointsman.server.context import CallerSession, CurrentServer, ServerContext
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.openai_errors import DOOR, also_streamed, in_chat
from pointsman.server.routes.response_docs import answers
from pointsman.server.routes.response_events import Telling
from pointsman.server.schemas.error_examples import EXECUTION_ID
from pointsman.server.schemas.requests import BoundedBody, JsonValue
from pointsman.server.streaming.sse import EventStream
from pointsman.values import ExecutionId, Json, JsonObject

TEXTS: Final = frozenset({"input_text", "output_text", "text"})
"""Types of content parts that are text."""


def messages_in(said: str | Sequence[JsonObject]) -> list[JsonObject]:
    """Convert the input to chat messages; a plain text is a user message.

    Raises `MessagesInvalid` for items other than messages, function calls and their outputs, and reasoning.
    """
    if isinstance(said, str):
        return [{"role": "user", "content": said}]
    return [message for item in said for message in _messages_of(item)]


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
            hint = "It takes messages, calls of functions and their outputs."
            raise MessagesInvalid(f"an item of the input is {str(kind)[:100]!r}", hint=hint)


def _content(content: Json) -> Json:
    return [_part(one) for one in content] if isinstance(content, list) else content


def _part(part: Json) -> Json:
    if isinstance(part, dict) and part.get("type") in TEXTS:
        return {"type": "text", "text": part.get("text")}
    return part


router = Operations(prefix=f"/{DOOR}", tags=["openai"])

Name = Annotated[str, Field(max_length=64)]
Value = Annotated[str, Field(max_length=512)]
RESPONSE_ID: Final = re.compile(f"resp_({EXECUTION})")
EVENTS: Final = (
    'event: response.output_text.delta\ndata: {"type": "response.output_text.delta", "sequence_number": 4,'
    f' "item_id": "msg_{EXECUTION_ID}_0", "output_index": 0, "content_index": 0, "delta": "Hello.", "logprobs": []}}'
    "\n\n"
)
SAID: Final[JsonObject] = {"model": "talk", "input": "Hello"}
MADE: Final[JsonObject] = {
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
    """A request as OpenAI describes it; what is not here is not looked at."""

    model_config = ConfigDict(extra="ignore", json_schema_extra={"examples": [SAID]})
    model: str = Field(min_length=1, max_length=300, description="The id of a workflow.")
    input: str | Annotated[list[dict[str, JsonValue]], Field(max_length=10_000), BeforeValidator(_objects)] = Field(
        description="What the user says; or all that was said, as items."
    )
    instructions: str | None = Field(
        default=None, max_length=1_000_000, description="Told back: a workflow has its own prompts."
    )
    previous_response_id: str | None = Field(
        default=None, max_length=200, description="The response that `input` goes on from, or answers."
    )
    conversation: str | ConversationName | None = Field(
        default=None, description="The conversation is kept under this name; so with `session_id` in `metadata`."
    )
    stream: bool | None = Field(default=None, description="Its events as they come.")
    metadata: dict[Name, Value] | None = Field(default=None, max_length=16, description="Told back.")


class ResponseAnswer(BaseModel):
    """A response. With `stream` it comes in events."""

    model_config = ConfigDict(json_schema_extra={"examples": [MADE]})
    id: str
    object: str
    created_at: int
    status: str
    model: str
    output: list[dict[str, JsonValue]]
    usage: dict[str, JsonValue]
    scripted: bool | None = Field(default=None, description="True: the scripted model answered; its words are made up.")


@router.post(
    "/responses",
    verb=ConversationVerbs.begin,
    responses=also_streamed(
        in_chat(
            answers(
                ResponseAnswer,
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
    summary="Talk to a workflow, in responses",
)
async def respond(
    desk: CurrentServer,
    caller_session: CallerSession,
    body: ResponsesBody,
    x_session_id: Annotated[
        str | None, Header(max_length=200, description="The conversation is kept under this name.")
    ] = None,
) -> Response:
    """Send the last item of `input` to the workflow. If a gate of the conversation is open, the item is its answer.

    With `stream` the answer is sent as OpenAI's events, numbered by `sequence_number`.
    """
    session = _session_of(body) or x_session_id
    asked = ChatRequest(body.model, messages_in(cast("str | list[JsonObject]", body.input)), session, _previous(body))
    if not body.stream:
        telling = _telling(desk, body, session, await caller_session.conversations.begin(asked))
        return JsonReply(await telling.whole())
    seat = desk.take_stream(caller_session.caller)
    try:
        telling = _telling(desk, body, session, await caller_session.conversations.begin(asked))
    except BaseException:
        seat.leave()
        raise
    return EventStream(telling.events(), seat)


def _session_of(body: ResponsesBody) -> str | None:
    match body.conversation:
        case ConversationName(id=name) | str(name):
            return name
        case None:
            return (body.metadata or {}).get("session_id")


def _previous(body: ResponsesBody) -> ExecutionId | None:
    if body.previous_response_id is None:
        return None
    found = RESPONSE_ID.fullmatch(body.previous_response_id)
    if found is None:
        why = f"{body.previous_response_id!r} is the id of no response that was made here"
        raise MessagesInvalid(why, hint="Send it as it came.")
    return ExecutionId(found[1])


def _telling(desk: ServerContext, body: ResponsesBody, session: str | None, dialogue: Dialogue) -> Telling:
    envelope: JsonObject = {
        "id": f"resp_{dialogue.execution.id}",
        "object": "response",
        "created_at": int(desk.app.clock.now()),
        "model": body.model,
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
    return Telling(dialogue, envelope, desk.app.clock.now)

"""A dialogue as a response of OpenAI's Responses: its items, and the events that tell how they came.

    created · in_progress · ┬ reasoning: what happens meanwhile, until somebody speaks ┬ · completed
                            ├ message: all that is said                                │   or failed
                            └ function_call: each call for the client                  ┘

Whole or streamed, the items are made the same way: the events of what is not streamed are told nobody.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pointsman.chat.adapter import Dialogue
from pointsman.chat.formatting import HandedOut
from pointsman.errors import PointsmanError
from pointsman.server.sse import BEAT, server_sent
from pointsman.values import Json, JsonObject

Told: TypeAlias = tuple[str, JsonObject]
"""The type of an event, and its members."""


@dataclass(frozen=True, slots=True)
class Shape:
    """An item that grows."""

    item: JsonObject
    mark: str
    """Its id begins so."""
    parts: str
    """The member with its parts; there is one."""
    part: JsonObject
    place: str
    part_event: str
    text_event: str
    more: JsonObject
    """What else events of text have."""


MESSAGE: Final = Shape(
    item={"type": "message", "role": "assistant", "status": "in_progress"},
    mark="msg",
    parts="content",
    part={"type": "output_text", "annotations": [], "logprobs": []},
    place="content_index",
    part_event="response.content_part",
    text_event="response.output_text",
    more={"logprobs": []},
)
THOUGHT: Final = Shape(
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
class Growing:
    """An item of text that is not finished."""

    shape: Shape
    id: str
    index: int
    text: str = ""
    held: str = ""
    """Space that nothing has followed yet: no text ends with space."""

    def item(self, *, is_done: bool) -> JsonObject:
        shape = self.shape
        status: JsonObject = {"status": "completed"} if is_done and "status" in shape.item else {}
        return {"id": self.id, **shape.item, **status, shape.parts: [self.part()] if is_done else []}

    def part(self) -> JsonObject:
        return {**self.shape.part, "text": self.text}

    def where(self) -> JsonObject:
        return {"item_id": self.id, "output_index": self.index, self.shape.place: 0}


@dataclass(slots=True)
class Telling:
    """One response as it comes."""

    dialogue: Dialogue
    envelope: JsonObject
    """What is known of it from the start."""
    now: Callable[[], float]
    output: list[Json] = field(default_factory=list["Json"])
    _growing: Growing | None = None
    _spoke: bool = False

    async def events(self) -> AsyncGenerator[bytes, None]:
        """As they are sent. What fails after the first one is told in the last one."""
        number = 0
        async for told in self._told():
            if told is None:
                yield BEAT
                continue
            kind, members = told
            yield server_sent(kind, {"type": kind, "sequence_number": number, **members}, "")
            number += 1

    async def whole(self) -> JsonObject:
        """The response when it is there. Raises what the dialogue does."""
        async for piece in self.dialogue.pieces():
            deque(self._heard(piece.kind, piece.text), maxlen=0)
        deque(self._ended(), maxlen=0)
        return self._completed()

    async def _told(self) -> AsyncGenerator[Told | None, None]:
        """None: nothing happened for a while."""
        yield "response.created", {"response": self._as("in_progress")}
        yield "response.in_progress", {"response": self._as("in_progress")}
        try:
            async for piece in self.dialogue.pieces():
                if piece.kind == "silence":
                    yield None
                for told in self._heard(piece.kind, piece.text):
                    yield told
        except PointsmanError as why:
            error: JsonObject = {"code": "server_error", "message": f"{why} {why.hint}".strip()}
            yield "response.failed", {"response": self._as("failed", error=error)}
            return
        for told in self._ended():
            yield told
        yield "response.completed", {"response": self._completed()}

    def _heard(self, kind: str, text: str) -> Iterator[Told]:
        if kind == "words":
            self._spoke = True
            yield from self._grown(MESSAGE, text)
        elif kind == "thought" and not self._spoke:
            yield from self._grown(THOUGHT, text)

    def _grown(self, shape: Shape, text: str) -> Iterator[Told]:
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

    def _new(self, shape: Shape) -> Growing:
        index = len(self.output)
        return Growing(shape, f"{shape.mark}_{self.dialogue.execution.id}_{index}", index)

    def _finished(self, growing: Growing) -> Iterator[Told]:
        shape, item = growing.shape, growing.item(is_done=True)
        self._growing = None
        self.output.append(item)
        yield f"{shape.text_event}.done", {**growing.where(), "text": growing.text, **shape.more}
        yield f"{shape.part_event}.done", {**growing.where(), "part": growing.part()}
        yield "response.output_item.done", {"output_index": growing.index, "item": item}

    def _ended(self) -> Iterator[Told]:
        """Somebody always says something, if only nothing, where no call is handed out."""
        growing = self._growing
        if growing is not None:
            yield from self._finished(growing)
        if not self.dialogue.calls and (growing is None or growing.shape is not MESSAGE):
            silent = self._new(MESSAGE)
            yield from _opened(silent)
            yield from self._finished(silent)
        for call in self.dialogue.calls:
            yield from self._called(call)

    def _called(self, call: HandedOut) -> Iterator[Told]:
        index = len(self.output)
        where: JsonObject = {"item_id": f"fc_{call.id}", "output_index": index}
        item: JsonObject = {"id": f"fc_{call.id}", "type": "function_call", "call_id": call.id, "name": call.name}
        begun: JsonObject = {**item, "arguments": "", "status": "in_progress"}
        done: JsonObject = {**item, "arguments": call.arguments, "status": "completed"}
        self.output.append(done)
        yield "response.output_item.added", {"output_index": index, "item": begun}
        yield "response.function_call_arguments.delta", {**where, "delta": call.arguments}
        yield "response.function_call_arguments.done", {**where, "name": call.name, "arguments": call.arguments}
        yield "response.output_item.done", {"output_index": index, "item": done}

    def _as(self, status: str, **more: Json) -> JsonObject:
        """The response as it is now."""
        mark: JsonObject = {"scripted": True} if self.dialogue.is_scripted else {}
        return {**self.envelope, **mark, "status": status, "output": [*self.output], **more}

    def _completed(self) -> JsonObject:
        used = self.dialogue.usage
        usage: JsonObject = {
            "input_tokens": used.input,
            "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
            "output_tokens": used.output,
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": used.input + used.output,
        }
        return self._as("completed", completed_at=int(self.now()), usage=usage)


def _opened(growing: Growing) -> Iterator[Told]:
    shape, item = growing.shape, growing.item(is_done=False)
    yield "response.output_item.added", {"output_index": growing.index, "item": item}
    yield f"{shape.part_event}.added", {**growing.where(), "part": growing.part()}

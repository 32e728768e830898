"""Dialogue as a response of the Responses API of OpenAI: its output items, and the events that build them.

    created · in_progress · ┬ reasoning: progress texts, until the message begins ┬ · completed
                            ├ message: all text of the answer                     │   or failed
                            └ function_call: each call of a client tool           ┘

Items are built by the same code with and without a stream; without one, the events are discarded.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from pointsman.chat.adapter import Dialogue
from pointsman.chat.formatting import HandedOut
from pointsman.errors import PointsmanError, sentences
from pointsman.server.streaming.sse import BEAT, server_sent
from pointsman.values import Json, JsonObject

Told: TypeAlias = tuple[str, JsonObject]
"""Type and members of an event."""


@dataclass(frozen=True, slots=True)
class Shape:
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
    """Unfinished text item."""

    shape: Shape
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
class Telling:
    """Response under construction."""

    dialogue: Dialogue
    envelope: JsonObject
    """Members that are known from the start."""
    now: Callable[[], float]
    output: list[Json] = field(default_factory=list["Json"])
    _growing: Growing | None = None
    _spoke: bool = False

    async def events(self) -> AsyncGenerator[bytes, None]:
        """Yield the encoded events. A failure after the first one is reported in the last one."""
        number = 0
        async for told in self._told():
            if told is None:
                yield BEAT
                continue
            kind, members = told
            yield server_sent(kind, {"type": kind, "sequence_number": number, **members}, "")
            number += 1

    async def whole(self) -> JsonObject:
        """Return the complete response. Raises what the dialogue raises."""
        async for piece in self.dialogue.pieces():
            deque(self._heard(piece.kind, piece.text), maxlen=0)
        deque(self._ended(), maxlen=0)
        return self._completed()

    async def _told(self) -> AsyncGenerator[Told | None, None]:
        """Yield the events; None: a heartbeat is due."""
        yield "response.created", {"response": self._as("in_progress")}
        yield "response.in_progress", {"response": self._as("in_progress")}
        try:
            async for piece in self.dialogue.pieces():
                if piece.kind == "silence":
                    yield None
                for told in self._heard(piece.kind, piece.text):
                    yield told
        except PointsmanError as why:
            error: JsonObject = {"code": "server_error", "message": sentences(str(why), why.hint)}
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
        """Return the response in its present state."""
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

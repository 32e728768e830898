"""Chat adapter: presents a workflow as a conversation partner to clients that only exchange messages.

    messages ─▶ the last one is ─┬ a user's, and the message before it is a gate's question ─▶ the answer of that gate
                                 ├ a user's ─▶ a new turn: an execution
                                 └ results of calls ─▶ of the client-tool gate that requested them
                                        │
                                        ▼ until the execution waits or ends
                        text · or a question (a gate) · or calls for the client

A question ends with a reference that rendered Markdown does not show, and ids of calls are references too. Clients send
previous messages back, so an answer finds its gate although the client knows no execution.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar, Literal, NamedTuple
from weakref import finalize, ref

from pointsman.auth.callers import Caller
from pointsman.auth.policy import must_own_session, must_see, must_see_workflow
from pointsman.auth.subjects import InputInvalid, is_conversational
from pointsman.chat.formatting import (
    Calls,
    MessagesInvalid,
    Reference,
    answer_in,
    call_of,
    calls_at,
    digest_in,
    gate_mark,
    history_of,
    output_text,
    question,
    reference_in,
    result_of,
    spoken_messages,
    text_of,
    with_reference,
)
from pointsman.context import AppContext
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.engine.decide.human_task_answers import RETURN, AnswerInvalid
from pointsman.engine.decide.human_tasks import GateChangedMeanwhile
from pointsman.engine.digests import SHORT_CHARS
from pointsman.engine.events.steps import StepStarted, StepSucceeded
from pointsman.engine.steps import Step
from pointsman.errors import CallerError, PointsmanError
from pointsman.executions.children import OpenGate
from pointsman.executions.inputs import text_field
from pointsman.executions.opening import open_execution, open_turn
from pointsman.executions.public_events import HEARTBEAT_S
from pointsman.executions.start import start_as
from pointsman.ports import Row
from pointsman.runtime.dependencies import Committed, Delta
from pointsman.values import ExecutionId, Json, JsonObject
from pointsman.workflows.definitions import source_of_saved
from pointsman.workflows.document_work import DOCUMENTS

if TYPE_CHECKING:
    from pointsman.executions.execution import Execution


class AnswerFailed(PointsmanError):
    """The execution that should have answered failed; nothing of the turn stays in its conversation."""

    code: ClassVar[str] = "answer-failed"


class NotText(CallerError):
    """The input of the workflow is more than a text, so it cannot be used as a conversation partner."""

    code: ClassVar[str] = "not-text"


@dataclass(frozen=True, slots=True)
class ChatRequest:
    """A request of a chat client."""

    workflow: str
    messages: Sequence[JsonObject]
    """All messages as the client has them; the last one is new."""
    session: str | None = None
    """The conversation is stored under this name; only the last message of the client counts."""
    previous: ExecutionId | None = None
    """The turn that precedes this one: its question is answered, or its conversation is continued."""


class ChatDelta(NamedTuple):
    """A piece of a streamed answer."""

    kind: Literal["words", "thought", "silence"]
    text: str


class AnswerUsage(NamedTuple):
    """Tokens of one answer."""

    input: int
    output: int


class ChatListener:
    """Listener to rows and deltas from now on; of one execution, once `only` is set. It ends with `leave`, or when it
    is garbage collected: clients may disconnect before their answer begins."""

    def __init__(self, app: AppContext, only: ExecutionId | None = None) -> None:
        self.only = only
        self.queue: asyncio.Queue[tuple[ExecutionId, Row | Delta] | None] = asyncio.Queue()
        reference = ref(self)

        def on_update(update: Committed | Delta) -> None:
            listener = reference()
            if listener is not None and listener.only in (None, update.execution):
                listener.queue.put_nowait((update.execution, update if isinstance(update, Delta) else update.row))

        self.leave = finalize(self, app.feed.watch(on_update))


@dataclass(slots=True)
class StreamedAnswer:
    """One answer, while it is produced."""

    execution: Execution
    is_spoken: bool
    """Whether the text of its agents is the answer; otherwise the output of the execution is."""
    hidden: frozenset[str]
    """Nodes whose text is hidden from users."""
    listener: ChatListener
    before: AnswerUsage
    note: str = ""
    """Text that precedes the answer."""
    asks: bool = True
    """Whether an answer that is not complete ends with the question or the state of the execution."""
    words: list[str] = field(default_factory=list[str])
    calls: Calls = ()
    _speaking: dict[Step, str] = field(default_factory=dict[Step, str])
    _last: str = ""

    @property
    def text(self) -> str:
        return "".join(self.words).strip()

    @property
    def is_scripted(self) -> bool:
        """Whether the scripted model answers."""
        return self.execution.is_scripted

    @property
    def usage(self) -> AnswerUsage:
        """The tokens of this answer."""
        now = usage_of(self.execution)
        return AnswerUsage(now.input - self.before.input, now.output - self.before.output)

    async def pieces(self) -> AsyncIterator[ChatDelta]:
        """Yield the answer in pieces; `text`, `calls` and `usage` are complete afterwards. Raises `AnswerFailed`."""
        if self.note:
            yield self._words_delta(self.note + "\n\n")
        going = asyncio.ensure_future(self.execution.settled())
        going.add_done_callback(lambda _: self.listener.queue.put_nowait(None))
        try:
            while True:
                try:
                    async with asyncio.timeout(HEARTBEAT_S):
                        received = await self.listener.queue.get()
                except TimeoutError:
                    yield ChatDelta("silence", "")
                    continue
                if received is None:
                    break
                if received[0] == self.execution.id:
                    for piece in self._pieces_of(received[1]):
                        yield piece
            await going
        finally:
            self.listener.leave()
            going.cancel()
        for text in await self._outcome():
            yield self._words_delta(text)

    def _words_delta(self, text: str) -> ChatDelta:
        self.words.append(text)
        return ChatDelta("words", text)

    def _pieces_of(self, update: Row | Delta) -> Iterator[ChatDelta]:
        if isinstance(update, Delta):
            if update.step.node not in self.hidden and update.delta.get("kind") == "text":
                text = str(update.delta["text"])
                self._speaking[update.step] = self._speaking.get(update.step, "") + text
                yield self._words_delta(text) if self.is_spoken else ChatDelta("thought", text)
            return
        for event in update.events:
            match event:
                case StepStarted(step=step) if step.node in self.execution.names and step.node not in self.hidden:
                    yield ChatDelta("thought", f"{self.execution.names[step.node]} …\n")
                case StepSucceeded(step=step) if spoken_text := self._speaking.pop(step, "").strip():
                    self._last = spoken_text
                    yield self._words_delta("\n\n") if self.is_spoken else ChatDelta("thought", "\n")
                case _:
                    pass

    async def _outcome(self) -> list[str]:
        """Return the texts that end the answer: a question, the output, or the state of the execution."""
        gate = next(iter(self.execution.gates), None)
        if gate is not None and gate.at.gate is not None and self.asks:
            if gate.at.gate.about == "client":
                self.calls = calls_at(self.execution.id, gate)
                return []
            return [question(self.execution.id, gate)]
        state, status = self.execution.state, self.execution.status
        if status == "completed":
            text = "" if state.outcome.output is None else output_text(state.outcome.output)
            return [text] if text.strip() and text.strip() != self._last else []
        if status == "failed" and state.outcome.failure is not None:
            raise AnswerFailed(
                f"[{state.outcome.failure.code}] {state.outcome.failure.message}", hint=state.outcome.failure.hint
            )
        if not self.asks:
            return []
        awaited = ", ".join(repr(at.event) for at in state.steps.values() if at.event is not None)
        return [with_reference(self.execution.id, f"It waits for {awaited}." if awaited else f"It is {status}.")]


async def begin(app: AppContext, caller: Caller, request: ChatRequest) -> StreamedAnswer:
    """Process the last message. It is durable on return, and the answer can be streamed.

    Raises `UnknownWorkflow`, `NotAllowed`, `NotText`, `MessagesInvalid`, and the errors of answers to gates.
    """
    await must_see_workflow(app, caller, request.workflow)
    if request.session is not None:
        await must_own_session(app, caller, request.session)
    source = await source_of_saved(app, request.workflow)
    definition = await app[DOCUMENTS].here(lambda: source.definition, chars=source.chars, of=source.digest)
    if request.previous is not None:
        await _must_know(app, caller, request)
    if not request.messages:
        raise MessagesInvalid(
            "the request contains no messages", hint="Send at least one message; the last one goes to the workflow."
        )
    return await _begun(app, caller, request, definition)


@contextmanager
def _listening(app: AppContext, only: ExecutionId | None = None) -> Generator[ChatListener]:
    """Listen from here on. If the block raises, the listener is removed."""
    listener = ChatListener(app, only)
    try:
        yield listener
    except BaseException:
        listener.leave()
        raise


async def _must_know(app: AppContext, caller: Caller, request: ChatRequest) -> None:
    if request.session is not None:
        raise MessagesInvalid(
            f"{request.previous!r} and the conversation {request.session!r} are different conversations",
            hint="Send one of them.",
        )
    await must_see(app, caller, str(request.previous))


async def _begun(
    app: AppContext, caller: Caller, request: ChatRequest, definition: WorkflowDefinition
) -> StreamedAnswer:
    last = request.messages[-1]
    if last.get("role") == "tool":
        return await _returned(app, caller, request, definition)
    if last.get("role") != "user":
        raise MessagesInvalid(
            f"the last message has the role {last.get('role')!r}",
            hint="The last message must be of the user or of a tool.",
        )
    under_way = await _under_way(app, caller, request)
    if under_way is not None:
        execution, gate = under_way
        questions = [message for message in request.messages if message.get("role") == "assistant"][-1:]
        with _listening(app, execution.id) as listener:
            dialogue = _dialogue(execution, definition, listener)
            await _answer(caller, dialogue, gate, text_of(last), digest=digest_in(questions[0]) if questions else "")
        return dialogue
    return await start_turn(app, caller, request, definition, trigger={"kind": "chat", "by": caller.name})


async def _under_way(app: AppContext, caller: Caller, request: ChatRequest) -> tuple[Execution, OpenGate] | None:
    """Return the turn that is in progress and its open gate."""
    replies = [message for message in request.messages if message.get("role") == "assistant"][-1:]
    name = reference_in(replies[0]) if replies else request.previous
    if name is None and request.session is not None:
        name = await open_turn(app.runtime, request.session)
    if name is None:
        return None
    await must_see(app, caller, name)
    execution = await open_execution(app, name)
    await execution.settled()
    gate = next(iter(execution.gates), None)
    return None if gate is None else (execution, gate)


async def start_turn(
    app: AppContext,
    caller: Caller,
    request: ChatRequest,
    definition: WorkflowDefinition,
    *,
    trigger: JsonObject,
    key: str | None = None,
) -> StreamedAnswer:
    """Start an execution for the last message. Raises `NotText`, and the errors of `start_as`."""
    try:
        field = text_field(definition, definition.input_schema)
    except InputInvalid as why:
        raise NotText(f"{definition.id!r} does not accept a text as its input", hint=why.hint) from None
    start_input: JsonObject = {field: text_of(request.messages[-1])}
    if is_conversational(definition) and request.session is None:
        before = [] if request.previous is None else await _said_in(app, request.previous)
        start_input["messages"] = before + history_of(request.messages)
    with _listening(app) as listener:
        execution = await start_as(
            app, caller, request.workflow, start_input, session=request.session, key=key, trigger=trigger
        )
    listener.only = execution.id
    dialogue = _dialogue(execution, definition, listener)
    dialogue.before = AnswerUsage(0, 0)  # The execution may have answered by now.
    return dialogue


async def _said_in(app: AppContext, turn: ExecutionId) -> list[Json]:
    """Return all messages up to the end of a turn. Several requests may continue the same turn, independently of each
    other."""
    state = (await open_execution(app, turn)).state
    if state.status != "completed":
        raise MessagesInvalid(f"{turn!r} is {state.status}", hint="Continue from a completed turn.")
    return spoken_messages(state.root.data.root.get("messages"))


async def _answer(caller: Caller, dialogue: StreamedAnswer, gate: OpenGate, text: str, *, digest: str) -> None:
    """Answer the gate that the question showed. If the gate has changed meanwhile, the question is asked again.

    `digest` is the digest in the question, if the client sent it back. Without it the version that the person saw is
    unknown.
    """
    answer = answer_in(gate, text)
    if answer is None:
        dialogue.note = f"{text[:200]!r} is not a valid answer to this gate."
        return
    open_gate = gate.at.gate
    digest = answer.digest or digest
    if open_gate is not None and open_gate.changed and not digest:
        example = f'{{"action": "{answer.action}", "digest": "{open_gate.digest[:SHORT_CHARS]}"}}'
        dialogue.note = f"The gate has changed since it was read. To answer its present state, send `{example}`."
        return
    answerable = dialogue.execution.asking(gate)
    try:
        await answerable.answer(
            gate.id,
            answer.action,
            answer.data,
            comment=answer.comment,
            by=caller.name,
            groups=caller.groups,
            digest=digest,
        )
    except (GateChangedMeanwhile, AnswerInvalid) as why:
        dialogue.note = " ".join(part for part in (f"{why}.", why.hint) if part)


async def _returned(
    app: AppContext, caller: Caller, request: ChatRequest, definition: WorkflowDefinition
) -> StreamedAnswer:
    """Return the tool results at the end of the messages to their gate. Results that were already returned have no
    effect."""
    results: dict[Reference, Json] = {}
    for message in reversed(request.messages):
        if message.get("role") != "tool":
            break
        results.setdefault(call_of(str(message.get("tool_call_id", ""))), result_of(message))
    gates = {(call.execution, call.mark) for call in results}
    if len(gates) > 1:
        raise MessagesInvalid(
            "the results belong to calls of different answers", hint="Send results for the calls of one answer only."
        )
    ((name, mark),) = gates
    await must_see(app, caller, name)
    execution = await open_execution(app, name)
    await execution.settled()
    with _listening(app, name) as listener:
        dialogue = _dialogue(execution, definition, listener)
        gate = next((gate for gate in execution.gates if gate_mark(gate) == mark), None)
        if gate is not None:
            data: JsonObject = {call.number: result for call, result in results.items()}
            answerable = execution.asking(gate)
            await answerable.answer(gate.id, RETURN, data, by=caller.name, groups=caller.groups)
    return dialogue


def _dialogue(execution: Execution, definition: WorkflowDefinition, listener: ChatListener) -> StreamedAnswer:
    hidden = frozenset(node.id for node in definition.nodes if node.chat_visible is False)
    return StreamedAnswer(execution, is_conversational(definition), hidden, listener, usage_of(execution))


def usage_of(execution: Execution) -> AnswerUsage:
    """Return the tokens of the execution so far."""
    total = execution.state.usage
    return AnswerUsage(total.input_tokens, total.output_tokens)

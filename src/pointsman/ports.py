"""Ports: Protocols of what the engine needs from its environment. Their docstrings are the contracts; the
implementations are in higher layers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from operator import is_
from typing import Any, Literal, Protocol, TypeAlias

from msgspec import Struct

from pointsman.engine.actions import WorkSpec
from pointsman.engine.causes import Cause
from pointsman.engine.commands import Execute
from pointsman.engine.events.steps import Event
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall, ToolCallsProposed, Usage, WorkDone, WorkFailed
from pointsman.redaction import Redaction
from pointsman.values import ExecutionId, Json, JsonObject, NodeId


class Row(Struct, frozen=True, gc=False):
    """One decision: the events that one report caused. `seq` counts from 1 without gaps per execution."""

    seq: int
    at: float
    """Unix seconds."""
    events: tuple[Event, ...]
    cause: Cause | None = None
    """The report; None in rows from before causes were stored."""


class Journal(Protocol):
    """Append-only storage of executions, and the only source of truth."""

    async def append(self, execution: ExecutionId, *rows: Row) -> None:
        """Make consecutive rows durable, all or none. Raises `JournalMoved` unless the first is the last one + 1."""
        ...

    def read(self, execution: ExecutionId, *, after: int = 0) -> AsyncIterator[Row]:
        """Yield the committed rows with `seq > after`, in order, including those committed during the iteration."""
        ...

    async def last(self, execution: ExecutionId) -> int:
        """Return the last committed `seq`; 0 for an unknown execution."""
        ...


class Clock(Protocol):
    """Source of time, which tests can control."""

    def now(self) -> float:
        """Unix seconds."""
        ...

    async def sleep_until(self, at: float) -> None:
        """Return at or after `at` (unix seconds)."""
        ...


EffectKind: TypeAlias = Literal["model", "tool"]


class Effects(Protocol):
    """Records the external calls within one attempt of a step, so that none is paid twice."""

    def recorded(self, number: int, *, kind: EffectKind | None = None, request: str = "") -> Json | None:
        """Return the result that effect `number` (1, 2, …; in the order of the step's requests) had before a crash;
        None if it has not been performed.

        Raises `EffectMismatch` if another effect was recorded under that number: another kind, or another `request`
        (any text that identifies the request).
        """
        ...

    def record(
        self, number: int, kind: EffectKind, value: Json, *, request: str = "", later: bool = False
    ) -> Awaitable[None]:
        """Record the result of effect `number`. Durable on return.

        `later`: at the latest it becomes durable together with the report of the attempt, in one commit. `flush` must
        then precede the next external call, and no other call of the attempt may be in flight.
        """
        ...

    def flush(self) -> Awaitable[None]:
        """Return when all recorded results are durable."""
        ...

    def refusal(self, kind: Literal["model", "tool"], usage: Usage, *, calls: int = 1) -> Failure | None:
        """Return why an attempt with this usage, which it reports, may make no further calls; None if it may."""
        ...


class ExecutionPort(Protocol):
    """The access of an executor to the execution it works for."""

    @property
    def execution(self) -> ExecutionId: ...

    @property
    def node(self) -> NodeId: ...

    @property
    def revision(self) -> str:
        """The saved revision it runs, `id@number`; empty for a document that is not saved."""
        ...

    @property
    def effects(self) -> Effects: ...

    async def use(self, what: str, *, most: int | None = None) -> int | None:
        """Count a use of something that the execution may use `most` times, and return the number of uses before it.

        None: there were `most` already, nothing is counted. The count is stored with the effects: it includes uses by
        other processes, and a fork begins with the uses by the attempts that it contains.
        """
        ...

    def waiting_for_store(self) -> AbstractContextManager[None]:
        """Return a block that waits for the store: its time does not count for the deadline of the attempt."""
        ...

    def tries_again(self, failure: Failure | None) -> None:
        """Record the failure after which the attempt tries again by itself; None: it succeeded. If the attempt times
        out meanwhile, its failure carries this one."""
        ...

    def leaves(self, failure: Failure) -> bool:
        """Return whether an attempt that fails because this process lacks `failure.needs` is left to a worker that has
        it. Such a failure is reported as that of the attempt; models do not receive it."""
        ...

    def delta(self, delta: JsonObject) -> None:
        """Publish live output (a token of text, a tool call). It is not stored or resent, and may be dropped."""
        ...


class Executor(Protocol):
    """Performs one attempt of one kind of work. May be called twice for the same attempt."""

    def execute(
        self, command: Execute, spec: WorkSpec, run: ExecutionPort
    ) -> Coroutine[Any, Any, WorkDone | WorkFailed | ToolCallsProposed]:
        """Perform the attempt and report. Return failures; raise only on bugs and cancellation."""
        ...


class ReasoningEffort(Struct, frozen=True, kw_only=True, rename="camel"):
    """How much a model may think before it answers. A model that does not support a part of it ignores that part."""

    enabled: bool | None = None
    level: str | None = None
    """`minimal`, `low`, `medium` or `high`."""
    budget: int | None = None
    """Maximum tokens of thought; -1 leaves it to the model."""
    thoughts: bool | None = None
    """False: the thoughts are not shown."""
    chat_template_kwargs: JsonObject | None = None
    """For the chat templates of local models."""


class EncodedMessages:
    """The messages of one conversation as a provider's format has them, kept between the requests of an attempt.

    Messages are identified by their objects, so they must not be changed in place.
    """

    __slots__ = ("_ends", "_messages", "_owner", "joined")

    def __init__(self) -> None:
        self._owner: object = None
        self._messages: list[Json] = []
        self._ends: list[int] = []
        self.joined = bytearray()
        """The encoded messages with what precedes each."""

    @property
    def last(self) -> Json:
        """The last message; None: there is none."""
        return self._messages[-1] if self._messages else None

    def begin(self, messages: Sequence[Json], owner: object) -> int:
        """Keep the leading messages that are the same as before, and return their number. `owner` is the format."""
        same = len(self._messages) if owner is self._owner else 0
        if same > len(messages) or not all(map(is_, self._messages[:same], messages)):
            pairs = zip(self._messages, messages, strict=False)
            same = next((at for at, (one, other) in enumerate(pairs) if one is not other), min(same, len(messages)))
        if same < len(self._messages):
            del self._messages[same:], self._ends[same:]
            del self.joined[self._ends[-1] if self._ends else 0 :]
        self._owner = owner
        return same

    def add(self, message: Json, encoded: bytes, *, first: bytes = b"", between: bytes = b",") -> None:
        """Append the next message. It is left out if its encoding is empty.

        `first` precedes it at the beginning of the conversation, `between` elsewhere.
        """
        if encoded:
            self.joined += between if self.joined else first
            self.joined += encoded
        self._messages.append(message)
        self._ends.append(len(self.joined))


class ModelRequest(Struct, frozen=True, kw_only=True):
    """One call of a model, provider-neutral. Messages are role/content objects (see `models.transcript`)."""

    model: str
    """`provider:name`, `scripted`, or empty for the default."""
    system: str = ""
    messages: tuple[Json, ...] | list[Json] = ()
    tools: tuple[ToolSpec, ...] = ()
    output_schema: JsonObject | None = None
    """When set, the answer must be JSON of this schema."""
    temperature: float | None = None
    max_tokens: int | None = None
    key_index: int | None = None
    thinking: ReasoningEffort | None = None
    purpose: str = "generation"
    fallback: tuple[str, ...] = ()
    """Models to try in order if this one cannot answer; empty: those of the settings."""
    timeout_s: float | None = None
    """Maximum time of one exchange, without the wait for a key."""
    hints: Mapping[str, Json] = {}
    """Origin of the call (`node`, `agent`, `round`, `routes`) for scripts, logs and accounting; not sent to the
    provider."""
    run: ExecutionPort | None = None
    """The attempt that asks; None: the call is not part of an execution."""
    encoded: EncodedMessages | None = None
    """Keeps the encoded messages for the next request of the same conversation; None: there is no next one."""


class ModelReply(Struct, frozen=True, kw_only=True):
    """Answer of a model."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    model: str = ""
    """The model that actually answered."""
    raw: Json = None
    """The provider's own message, if it must be sent back later (signed thinking)."""
    key: int | None = None
    """The number of the provider's key that was used; None if it has none."""
    provider: str = ""
    """The provider's name in the settings; empty if it was not recorded."""
    warnings: tuple[str, ...] = ()
    """Warnings about how the answer was obtained."""
    took_s: float | None = None
    """Seconds from the request to the end of the answer; None if they were not measured."""


class ToolSpec(Struct, frozen=True, kw_only=True):
    """A tool as a model sees it: name, description, JSON Schema of its parameters (an object)."""

    name: str
    description: str
    parameters: JsonObject
    side: Literal["server", "client"] = "server"
    """`client` tools do not run here: the caller of the API returns their results."""
    idempotent: bool = False
    requires_approval: bool = False
    timeout_s: float | None = None
    """How long the caller has to return the result of a `client` tool."""
    bytes_max: int | None = None
    """Maximum size of a result of a `client` tool, as JSON."""
    workflow: str = ""
    """The saved workflow that performs it as a sub-workflow; empty if none does."""
    memory: str = ""
    """The operation on an agent's memory that it performs; empty if none."""
    keeps: bool = False
    """Its arguments are stored where people read them: no secret is put into them."""
    stands_in: bool = False
    """A placeholder for a tool that is not registered: a run with the scripted model offers it, and its calls fail."""
    scripted: bool = False
    """A script answers its calls: its results are made up."""
    off: str = ""
    """Why it cannot be called here, and what would change that; empty if it can."""


class Models(Protocol):
    """Client of models."""

    async def ask(self, request: ModelRequest, *, on_text: TextCallback | None = None) -> ModelReply:
        """Call a model. `on_text` receives text and thoughts as they stream. Raises `ModelFailed` (carries a
        `Failure`)."""
        ...


class Thought(str):
    """A piece of a model's reasoning before its answer."""

    __slots__ = ()


class TextCallback(Protocol):
    def __call__(self, text: str, /) -> None:
        """Receive a piece of the answer, or a `Thought`."""
        ...


class Tools(Protocol):
    """Registry that finds and calls tools by name."""

    def find(self, name: str) -> ToolSpec | None: ...

    async def prepare(self, names: Iterable[str]) -> None:
        """Load the tools of these names before `find`, if they come from servers. Never raises."""
        ...

    def call(self, call: ToolCall, *, key: str, run: ExecutionPort | None = None) -> Coroutine[Any, Any, Json]:
        """Call a tool with valid arguments. `key` is the idempotency key. Raises `ToolFailed` (carries a `Failure`)."""
        ...


class SecretRule(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where documents may send a secret. Without hosts and tools: nowhere."""

    hosts: tuple[str, ...] = ()
    """Hosts that http nodes may send it to: `api.example.com`, `*.example.com`, `http://localhost:8080`."""
    tools: tuple[str, ...] = ()
    """Patterns of tools whose parameters may name it."""
    workflows: tuple[str, ...] = ()
    """Saved workflows that may use it, by id or `id@revision`. Empty: any."""
    groups: tuple[str, ...] = ()
    """Only saved workflows whose `allowedGroups` are all among these may use it. Empty: any."""


class KnownSecrets(Protocol):
    """Values of handles (`secret.NAME`). They are read at the last moment, and never recorded."""

    async def refresh(self) -> None:
        """Load changed secrets before one is read. Cheap."""
        ...

    def secret(self, name: str) -> str | None:
        """Return a secret; None if there is none of that name. Raises `OperatorError` for one that cannot be read."""
        ...

    def rule(self, name: str) -> SecretRule:
        """Return where documents may send a secret."""
        ...


class Secrets(KnownSecrets, Protocol):
    """Secrets for documents, with their rules and redaction."""

    @property
    def is_fresh(self) -> bool:
        """Return whether `refresh` would read nothing now."""
        ...

    async def refusal(self, name: str, revision: str) -> str:
        """Return why a document may not use a secret; empty if it may. `revision` is its saved revision, else empty."""
        ...

    @property
    def redaction(self) -> Redaction:
        """The redaction of every secret known now."""
        ...


MemoryOperation: TypeAlias = Literal["set", "append", "delete"]


class Quota(Struct, frozen=True):
    """Limits of the memory of one owner."""

    keys: int
    value_bytes: int
    """Maximum size of one value, as JSON."""
    earlier: int = 0
    """How many former values of a key are kept."""


class ChangeAuthor(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Author of a change of memory: a step of an execution, or a person. Fields that do not apply are empty."""

    execution: str = ""
    workflow: str = ""
    node: str = ""
    agent: str = ""
    """The entry of `agents` that the node names."""
    tool: str = ""
    """The memory tool that an agent called."""
    person: str = ""
    """The person, if no execution made the change."""
    entrance: str = ""
    """How the person was authenticated: `key`, `login`, `shell` …"""


class MemoryChange(Struct, frozen=True, kw_only=True):
    """A change of one remembered value. A value that expired before `at` counts as missing."""

    scope: str
    namespace: str
    """The owner of the memory."""
    key: str
    operation: MemoryOperation
    value: Json = None
    at: float
    """Now, in unix seconds."""
    expires: float | None = None
    """None: never. Each append to a list sets the expiry of the whole list."""
    quota: Quota
    by: ChangeAuthor | None = None
    """None: the engine itself, whose changes have no recorded author."""


class ChangeId(Struct, frozen=True):
    """Identifier of a change: a repeated change with the same id returns the first answer and has no effect."""

    execution: ExecutionId
    name: str


class Memory(Protocol):
    """Values that outlive a step: by scope, namespace (the owner) and key."""

    async def get(self, scope: str, namespace: str, key: str, *, at: float = 0.0) -> Json | None:
        """Return the value, unless it expired before `at`."""
        ...

    async def put(self, scope: str, namespace: str, key: str, value: Json | None) -> None:
        """Store a value for ever; None deletes it."""
        ...

    async def search(
        self, scope: str, namespace: str, text: str, *, limit: int = 10, within: str = "", at: float = 0.0
    ) -> list[tuple[str, Json]]:
        """Return values that share words with the text, the best match first; only keys that begin with `within`."""
        ...


class MemoryMatches(Struct, frozen=True):
    """Result of a memory search, the best match first."""

    values: list[tuple[str, Json]]
    warnings: tuple[str, ...] = ()
    """Warnings about how the values were found."""
    usage: Usage | None = None
    """Usage of the embedding model; None if it was not called."""


class Meaning(Protocol):
    """Search of remembered values by their meaning."""

    def changed(self, scope: str, namespace: str) -> None:
        """Schedule the indexing of changed values of this owner. Never fails."""
        ...

    async def search(
        self, scope: str, namespace: str, text: str, *, limit: int, within: str = "", at: float = 0.0
    ) -> MemoryMatches:
        """Return values as `Memory.search` does, including those with a similar meaning."""
        ...


class ChangingMemory(Memory, Protocol):
    """Memory with concurrent writers: no change is lost or made twice."""

    async def change(self, change: MemoryChange, *, once: ChangeId | None = None) -> Json:
        """Make the change. Return the value that was set, the whole list, or whether there was something to delete.

        Change and answer are stored in one transaction. Raises `MemoryNotAList`, `MemoryFull`.
        """
        ...

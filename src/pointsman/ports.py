"""What we ask of the world: small Protocols whose docstrings are the contracts. Implementations live above."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Literal, Protocol, TypeAlias

from msgspec import Struct

from pointsman.engine.actions import WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.events.steps import Event
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall, ToolCallsProposed, Usage, WorkDone, WorkFailed
from pointsman.redaction import Redaction
from pointsman.values import ExecutionId, Json, JsonObject


class Row(Struct, frozen=True, gc=False):
    """One decision: the events that one report caused. `seq` counts from 1 without gaps per execution."""

    seq: int
    at: float
    """Unix seconds."""
    events: tuple[Event, ...]


class Journal(Protocol):
    """Append-only memory of executions. The only truth."""

    async def append(self, execution: ExecutionId, row: Row) -> None:
        """Make the row durable. Raises `JournalMoved` unless `row.seq` is the last one + 1; then nothing is written."""
        ...

    def read(self, execution: ExecutionId, *, after: int = 0) -> AsyncIterator[Row]:
        """The committed rows with `seq > after`, in order. Ends at the last one committed when it gets there."""
        ...

    async def last(self, execution: ExecutionId) -> int:
        """The last committed `seq`; 0 for an execution nobody has heard of."""
        ...


class Clock(Protocol):
    """Time, so that tests own it."""

    def now(self) -> float:
        """Unix seconds."""
        ...

    async def sleep_until(self, at: float) -> None:
        """Return at or after `at` (unix seconds)."""
        ...


EffectKind: TypeAlias = Literal["model", "tool"]


class Effects(Protocol):
    """Remembers what must not be paid twice inside one attempt of a step."""

    def recorded(self, number: int, *, kind: EffectKind | None = None, request: str = "") -> Json | None:
        """What effect `number` (1, 2, …; in the order the step asks) answered before a crash; None: not done yet.

        Raises `EffectMismatch` where something else was asked under that number: another kind, or another `request`
        (any text that tells one request from another).
        """
        ...

    async def record(self, number: int, kind: EffectKind, value: Json, *, request: str = "") -> None:
        """Remember the answer of effect `number`."""
        ...

    def refusal(self, kind: Literal["model", "tool"], spent: Usage, *, calls: int = 1) -> Failure | None:
        """Why no further calls may be made by an attempt that has spent so much; it reports that. None: they may."""
        ...


class ExecutionPort(Protocol):
    """What an executor may know of, and say to, the execution it works for."""

    @property
    def execution(self) -> ExecutionId: ...

    @property
    def revision(self) -> str:
        """The saved revision it runs, `id@number`; empty: a document that is not saved."""
        ...

    @property
    def effects(self) -> Effects: ...

    async def notes(self, topic: str) -> dict[int, Json]:
        """What the execution has noted under a topic, by number. It is kept with its effects and outlives processes."""
        ...

    async def note(self, topic: str, number: int, value: Json) -> None:
        """Note something for the rest of the execution."""
        ...

    def leaves(self, failure: Failure) -> bool:
        """Whether an attempt that fails for want of `failure.needs` is left to a worker that has it. Such a failure is
        reported as that of the attempt: no model is told of it."""
        ...

    def delta(self, command: Execute, delta: JsonObject) -> None:
        """Show something live (a token of text, a tool call). Never stored, never resumed, may be dropped."""
        ...


class Executor(Protocol):
    """Performs one attempt of one kind of work. May be called twice for the same attempt."""

    async def execute(
        self, command: Execute, spec: WorkSpec, run: ExecutionPort
    ) -> WorkDone | WorkFailed | ToolCallsProposed:
        """Do it and report. Return failures; raise only on bugs and cancellation."""
        ...


class ReasoningEffort(Struct, frozen=True, kw_only=True, rename="camel"):
    """How much a model may think before it answers. Models that cannot heed what they can of it."""

    enabled: bool | None = None
    level: str | None = None
    """`minimal`, `low`, `medium` or `high`."""
    budget: int | None = None
    """Most tokens of thought; -1 leaves it to the model."""
    thoughts: bool | None = None
    """False: the thoughts are not shown."""
    chat_template_kwargs: JsonObject | None = None
    """For the chat templates of local models."""


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
    """Models to ask instead where this one cannot answer, in order; empty: those of the installation."""
    timeout_s: float | None = None
    """Most time of one exchange. Waiting for its turn does not count."""
    hints: Mapping[str, Json] = {}
    """Where the call comes from (`node`, `agent`, `round`, `routes`): for scripts, logs, accounting; not sent."""


class ModelReply(Struct, frozen=True, kw_only=True):
    """What a model answered."""

    text: str = ""
    tool_calls: tuple[ToolCall, ...] = ()
    usage: Usage = Usage()
    model: str = ""
    """The model that really answered."""
    raw: Json = None
    """The provider's own message where it must be echoed (signed thinking)."""
    key: int | None = None
    """Which of the provider's keys paid; None: it has none."""
    provider: str = ""
    """Who was asked, as the settings name it; empty: it was not kept."""
    warnings: tuple[str, ...] = ()
    """What people should know of how it was come by."""


class ToolSpec(Struct, frozen=True, kw_only=True):
    """A tool as a model sees it: name, description, JSON Schema of its parameters (an object)."""

    name: str
    description: str
    parameters: JsonObject
    side: Literal["server", "client"] = "server"
    """`client` tools are not run here: the caller is asked what came of their calls."""
    idempotent: bool = False
    requires_approval: bool = False
    timeout_s: float | None = None
    """How long the caller has for a call of a `client` tool."""
    bytes_max: int | None = None
    """What a result of a `client` tool may have, as JSON."""
    workflow: str = ""
    """The saved workflow that carries it out as a sub-workflow; empty: none does."""
    memory: str = ""
    """The operation on an agent's memory that it is; empty: none."""
    keeps: bool = False
    """What it is given is kept here, where people read it: no secret is put into its arguments."""
    stands_in: bool = False
    """Nobody registered it: a run with the scripted model offers it, and its calls fail."""
    scripted: bool = False
    """A script answers its calls: its results are made up."""
    off: str = ""
    """Why it cannot be called here, and what would change that; empty: it can."""


class Models(Protocol):
    """Speaks to models."""

    async def ask(self, request: ModelRequest, *, on_text: Hear | None = None) -> ModelReply:
        """One call. `on_text` hears text and thoughts as they stream. Raises `ModelFailed` (carries a `Failure`)."""
        ...


class Thought(str):
    """What a model says to itself before it answers."""

    __slots__ = ()


class Hear(Protocol):
    def __call__(self, text: str, /) -> None:
        """A piece of the answer, or a `Thought`."""
        ...


class Tools(Protocol):
    """Finds and calls tools by name."""

    def find(self, name: str) -> ToolSpec | None: ...

    async def prepare(self, names: Iterable[str]) -> None:
        """Before `find`: get to know the tools of these names, where others have to be asked for them. Never raises."""
        ...

    async def call(self, call: ToolCall, *, key: str, run: ExecutionPort | None = None) -> Json:
        """Call it with valid arguments. `key` is the idempotency key. Raises `ToolFailed` (carries a `Failure`)."""
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
    """What handles (`secret.NAME`) stand for. Asked at the last moment, and never recorded."""

    async def refresh(self) -> None:
        """Before any is asked for: look whether they have changed. Cheap."""
        ...

    def secret(self, name: str) -> str | None:
        """The secret of that name; None: there is none. Raises `OperatorError` for one that cannot be read."""
        ...

    def rule(self, name: str) -> SecretRule:
        """Where documents may send it."""
        ...


class Secrets(KnownSecrets, Protocol):
    """The same for documents: who may use them, and how they are masked."""

    async def refusal(self, name: str, revision: str) -> str:
        """Why a document may not use it; empty: it may. `revision`: the saved revision it is, else empty."""
        ...

    @property
    def redaction(self) -> Redaction:
        """Masks every secret that is known now."""
        ...


MemoryOperation: TypeAlias = Literal["set", "append", "delete"]


class Quota(Struct, frozen=True):
    """How much one owner may remember."""

    keys: int
    value_bytes: int
    """Of one value, as JSON."""
    earlier: int = 0
    """How many values that a key had before are kept."""


class ChangeAuthor(Struct, frozen=True, kw_only=True, omit_defaults=True, rename="camel"):
    """Who changes what is remembered: a step of an execution, or somebody. What does not apply is empty."""

    execution: str = ""
    workflow: str = ""
    node: str = ""
    agent: str = ""
    """The agent of `agents` that the node names."""
    tool: str = ""
    """The memory tool that an agent called."""
    person: str = ""
    """Whoever said it, where no execution did."""
    entrance: str = ""
    """How they were let in: `key`, `login`, `shell` …"""


class MemoryChange(Struct, frozen=True, kw_only=True):
    """A change of one remembered value. What had expired by `at` counts as not there."""

    scope: str
    namespace: str
    """Whose memory it is."""
    key: str
    operation: MemoryOperation
    value: Json = None
    at: float
    """Now, in unix seconds."""
    expires: float | None = None
    """None: never. A list that is appended to gets a new time with each item."""
    quota: Quota
    by: ChangeAuthor | None = None
    """None: the engine itself, of which no trace is kept."""


class ChangeId(Struct, frozen=True):
    """What a change is known by: asked for again under it, it is answered and not made again."""

    execution: ExecutionId
    name: str


class Memory(Protocol):
    """Values that outlive a step: by scope, namespace (whose they are) and key."""

    async def get(self, scope: str, namespace: str, key: str, *, at: float = 0.0) -> Json | None:
        """What is remembered, unless it had expired by `at`."""
        ...

    async def put(self, scope: str, namespace: str, key: str, value: Json | None) -> None:
        """Store for ever; None deletes."""
        ...

    async def search(
        self, scope: str, namespace: str, text: str, *, limit: int = 10, within: str = "", at: float = 0.0
    ) -> list[tuple[str, Json]]:
        """What shares words with the text, the best first; only keys that begin with `within`."""
        ...


class Found(Struct, frozen=True):
    """What was found in a memory, the best first."""

    values: list[tuple[str, Json]]
    warnings: tuple[str, ...] = ()
    """What people should know of how it was found."""
    usage: Usage | None = None
    """What it took to know what was meant; None: nobody was asked."""


class Meaning(Protocol):
    """Finds remembered values by what they mean."""

    def changed(self, scope: str, namespace: str) -> None:
        """Something was remembered there: see to it, later, that it is found. Never fails."""
        ...

    async def search(
        self, scope: str, namespace: str, text: str, *, limit: int, within: str = "", at: float = 0.0
    ) -> Found:
        """As `Memory.search`, of what means something like the text, or shares words with it."""
        ...


class ChangingMemory(Memory, Protocol):
    """Memory that several may change at once: nothing is lost, and nothing is done twice."""

    async def change(self, change: MemoryChange, *, once: ChangeId | None = None) -> Json:
        """Make the change; the value that was set, the whole list, or whether there was something to delete.

        Change and answer are kept in one transaction. Raises `MemoryNotAList`, `MemoryFull`.
        """
        ...

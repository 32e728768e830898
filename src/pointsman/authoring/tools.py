"""Verbs as tools for agents in workflows, MCP clients and the assistant: one table, each verb with its schema.

A tool's arguments are a struct, and models receive its schema. Errors that the caller can correct are returned, not
raised: `{"error": {code, message, hint}, "problems": […]}`.

Agents have these tools if the operator's settings give them a role (`authoring`). An agent acts in the name of the
person who started its execution. Its permissions are the intersection of those of this person, of the authors of its
workflow and of its description, and of the setting, as they are at the moment of the call. Each change is in the audit
log. Verbs that destroy something require a person's approval.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from typing import Annotated, Any, Final, Generic, Literal, TypeAlias, TypeVar, cast, get_args

import msgspec
from msgspec import Meta, Struct

from pointsman.auth.callers import Caller, NotAllowed, Role
from pointsman.auth.verbs import Acting, VerbRule, rule_of, tool_target
from pointsman.authoring.edits import document_of
from pointsman.authoring.operations import read_operations
from pointsman.authoring.verbs import AuthoringVerbs
from pointsman.context import AppContext
from pointsman.definition.problems import Problem
from pointsman.errors import PointsmanError
from pointsman.executions.authority import attempt_at_work
from pointsman.executions.execution import Execution, OwnershipLost
from pointsman.executions.start import acting_for, state_of
from pointsman.executions.verbs import ExecutionVerbs
from pointsman.ports import ToolSpec
from pointsman.runtime.children import NestedTooDeep
from pointsman.tools.registry import ToolRegistry
from pointsman.tools.tool import ToolContext, ToolLimits
from pointsman.values import Json, JsonObject, JsonView, json_of
from pointsman.workflows.verbs import WorkflowVerbs

ProgressListener = Callable[[JsonObject], None]
"""Receives events while a verb waits."""
Dialect = Literal["native", "rows", "graph", "steps", "plan"]

KEY: Final = "authoring"


DEPTH_MAX: Final = 3
"""Depth to which agents may run workflows whose agents run workflows."""


class Workbench:
    """The verbs of one caller."""

    def __init__(
        self, app: AppContext, caller: Caller, *, depth: int = 0, via: str = "", target: str = "", origin: str = ""
    ) -> None:
        """`depth`: length of the chain of executions, each started by an agent of the one before, that led here. `via`,
        `target`, `origin`: see `Acting`."""
        self.app = app
        self.caller = caller
        self.depth = depth
        self.acting = Acting(app, caller, via=via, target=target, origin=origin)

    @property
    def executions(self) -> ExecutionVerbs:
        return ExecutionVerbs(self.acting)

    @property
    def workflows(self) -> WorkflowVerbs:
        return WorkflowVerbs(self.acting)

    @property
    def authoring(self) -> AuthoringVerbs:
        return AuthoringVerbs(self.acting)

    async def start(self, workflow: str, input: Json, *, session: str | None = None, key: str = "") -> Execution:
        """Start an execution as the caller; repeated calls with one `key` return the same execution."""
        if self.depth > DEPTH_MAX:
            raise NestedTooDeep(
                f"{workflow!r} is not run: agents have run workflows of agents {DEPTH_MAX} deep",
                hint="Answer with what you have.",
            )
        trigger: JsonObject = {"kind": KEY, "by": self.caller.name, **({"depth": self.depth} if self.depth else {})}
        under = f"{KEY}|{key}" if key else None
        return await self.executions.start(workflow, input, session=session, key=under, trigger=trigger)

    async def watched(self, execution: Execution, listener: ProgressListener) -> JsonObject:
        """Wait until the execution ends, pauses or waits for a person, and return its state. `listener` gets all its
        events. If another process takes the execution over, return its state at that time."""
        with suppress(OwnershipLost):
            async for event in execution.journal():
                listener(event)
            await execution.settled()
        return _outcome_of(json_of(await self.executions.view(execution)))

    async def execution(self, execution: str) -> JsonObject:
        """Return the state of an execution."""
        return _outcome_of(json_of(await self.executions.read(execution)))

    async def cancel(self, execution: str, reason: str = "") -> JsonObject:
        """Cancel an execution permanently."""
        cancelled = await self.executions.cancel(execution, reason=reason)
        return _outcome_of(json_of(await self.executions.view(cancelled)))


def _outcome_of(view: JsonObject) -> JsonObject:
    """Return the part of an execution view that a designer needs."""
    keys = ("executionId", "workflowId", "status", "output", "scripted", "waiting", "errors", "path", "usage")
    waits = ("waitingFor", "awaiting", "timers")
    return {key: view[key] for key in (*keys, *waits) if key in view and (key in keys or view[key])}


A = TypeVar("A", bound=Struct)
Effect: TypeAlias = Literal["reads", "changes", "destroys"]

WorkflowRef: TypeAlias = Annotated[
    str, Meta(description="`id`, `id@revision` or `id@version`.", min_length=1, max_length=300)
]
WorkflowName: TypeAlias = Annotated[str, Meta(description="The id of a saved workflow.", min_length=1, max_length=300)]
ExecutionRef: TypeAlias = Annotated[str, Meta(description="The id of an execution.", min_length=1, max_length=100)]
AuthorDocument: TypeAlias = Annotated[
    dict[str, Any] | str, Meta(description="The workflow: an object, or its text in JSON or YAML.")
]


class Arguments(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, rename="camel", omit_defaults=True):
    """Base of the arguments of a tool."""


class NoArguments(Arguments, frozen=True):
    """No arguments."""


class WorkflowArguments(Arguments, frozen=True):
    workflow: WorkflowRef


class CheckArguments(Arguments, frozen=True):
    document: AuthorDocument
    dialect: Dialect | None = None


class SaveArguments(Arguments, frozen=True):
    document: AuthorDocument
    dialect: Dialect | None = None
    draft: Annotated[bool, Meta(description="Save it although it has errors; it cannot be run then.")] = False


class EditArguments(Arguments, frozen=True):
    workflow: WorkflowName
    operations: Annotated[
        list[Any],
        Meta(
            description="add_node, remove_node, change_node, rename_node, move_node, connect, disconnect, change_edge, "
            "change_workflow, order_nodes, order_edges: each an object with its `op`. All are applied, or none."
        ),
    ]
    apply: Annotated[bool, Meta(description="Save the changes; otherwise only return them and the problems.")] = False
    revision: Annotated[int | None, Meta(description="Apply only to this revision.")] = None


class DesignArguments(Arguments, frozen=True):
    words: Annotated[str, Meta(description="Description of the workflow.", min_length=1, max_length=20_000)]
    id: Annotated[str, Meta(description="The id of the workflow.", max_length=200)] = ""
    save: Annotated[bool, Meta(description="Save the workflow if it has no errors.")] = False


class CompareArguments(Arguments, frozen=True):
    workflow: WorkflowName
    since: Annotated[int | None, Meta(description="A revision; absent: the previous one.")] = None
    to: Annotated[int | None, Meta(description="A revision; absent: the latest.")] = None


class RollbackArguments(Arguments, frozen=True):
    workflow: WorkflowName
    revision: Annotated[int, Meta(description="The revision whose document is restored.", ge=1)]


class StartArguments(Arguments, frozen=True):
    workflow: WorkflowRef
    input: Annotated[Any, Meta(description="The input, as the workflow's `input` schema describes it.")] = None
    session_id: Annotated[str, Meta(description="The conversation of this turn.", max_length=200)] | None = None
    wait: Annotated[bool, Meta(description="Wait until it ends or waits for a person; otherwise return its id.")] = True


class ExecutionArguments(Arguments, frozen=True):
    execution_id: ExecutionRef


class AnswerArguments(Arguments, frozen=True):
    execution_id: ExecutionRef
    gate: Annotated[str, Meta(description="The gate's id, or its node's if that has one open gate.", min_length=1)]
    action: Annotated[str, Meta(description="One of the gate's options.", min_length=1)]
    data: Any = None
    comment: Annotated[str, Meta(max_length=10_000)] = ""
    digest: Annotated[
        str, Meta(description="The gate's `digest` from the last read: an answer to another state is refused.")
    ] = ""
    wait: Annotated[bool, Meta(description="Wait until it ends or waits again.")] = True


class ResumeArguments(Arguments, frozen=True):
    execution_id: ExecutionRef
    wait: Annotated[bool, Meta(description="Wait until it ends or waits again.")] = True


class CancelArguments(Arguments, frozen=True):
    execution_id: ExecutionRef
    reason: Annotated[str, Meta(max_length=1000)] = ""


@dataclass(frozen=True, slots=True)
class VerbCall:
    """One call: the caller's workbench, a listener for events, and the idempotency key."""

    bench: Workbench
    listener: ProgressListener
    key: str = ""
    began: Callable[[str], None] = lambda _: None
    """Receives the id of the execution that the call waits for."""


HINTS: Final = {
    "unknown-workflow": "`list_workflows` lists the workflows that you may see.",
    "wrong-status": "`get_execution` returns its state.",
    "unknown-execution": "`run_workflow` returns the ids of executions that it starts.",
}
"""Hints for callers who have these tools, but neither HTTP routes nor the CLI."""

Does: TypeAlias = Callable[[VerbCall, A], Awaitable[JsonView]]


@dataclass(frozen=True, slots=True)
class Verb(Generic[A]):
    """A verb of the library, as a tool."""

    name: str
    says: str
    takes: type[A]
    does: Does[A]
    rule: VerbRule
    """The rule of the domain's verb that it calls, which checks the role and writes the audit entry."""
    effect: Effect = "reads"

    @property
    def role(self) -> Role:
        """The lowest role that may call it."""
        return self.rule.role

    @property
    def schema(self) -> JsonObject:
        """The JSON Schema of its arguments."""
        return _schema(self.takes)

    async def call(self, call: VerbCall, arguments: JsonObject) -> JsonView:
        """Perform a call. Errors that the caller can correct are returned, not raised."""
        try:
            call.bench.caller.must_have(self.rule.role, self.rule.what)  # Before its arguments are read.
            request = msgspec.convert(arguments, self.takes)
        except msgspec.ValidationError as why:
            await call.bench.acting.record_refusal(self.rule, "arguments-invalid")
            return _error("arguments-invalid", str(why), f"Parameters: {_named(self.schema)}.")
        except PointsmanError as why:
            await call.bench.acting.record_refusal(self.rule, why.code)
            return error_of(why)
        try:
            return await self.does(call, request)
        except PointsmanError as why:
            await call.bench.acting.record_refusal(self.rule, why.code)
            return error_of(why)


def error_of(why: PointsmanError) -> JsonObject:
    """Return an error as a tool's answer."""
    problems = cast("tuple[Problem, ...]", getattr(why, "problems", ()))
    values: list[Json] = [json_of(problem.to_json()) for problem in problems]
    return _error(why.code, str(why), HINTS.get(why.code, why.hint), values)


def _error(code: str, message: str, hint: str = "", problems: Sequence[Json] = ()) -> JsonObject:
    reply: JsonObject = {"error": {"code": code, "message": message, "hint": hint}}
    return {**reply, "problems": [*problems]} if problems else reply


@cache
def _schema(struct: type[Struct]) -> JsonObject:
    """Return a struct's JSON Schema, with its only definition inlined."""
    made = cast("JsonObject", msgspec.json.schema(struct))
    (own,) = cast("dict[str, JsonObject]", made["$defs"]).values()
    return {key: value for key, value in own.items() if key not in ("title", "description")}


def _named(schema: JsonObject) -> str:
    """Return the names of the arguments, for an error message."""
    fields, required = cast("JsonObject", schema["properties"]), cast("list[Json]", schema.get("required", []))
    return ", ".join(f"{name} (required)" if name in required else name for name in fields) or "no arguments"


async def _list(call: VerbCall, request: NoArguments) -> JsonView:
    return {"workflows": (await call.bench.workflows.list(include_disabled=True))["workflows"]}


async def _get(call: VerbCall, request: WorkflowArguments) -> JsonView:
    return await call.bench.authoring.describe(request.workflow)


async def _check(call: VerbCall, request: CheckArguments) -> JsonView:
    return await call.bench.workflows.check(document_of(request.document, dialect=request.dialect))


async def _save(call: VerbCall, request: SaveArguments) -> JsonView:
    source = document_of(request.document, dialect=request.dialect)
    saved = await call.bench.workflows.save(source, draft=request.draft)
    return {**saved, **await call.bench.authoring.described(source)}


async def _edit(call: VerbCall, request: EditArguments) -> JsonView:
    operations = read_operations(request.operations)
    return await call.bench.authoring.edit(request.workflow, operations, apply=request.apply, revision=request.revision)


async def _design(call: VerbCall, request: DesignArguments) -> JsonView:
    return await call.bench.authoring.design(request.words, name=request.id, save=request.save)


async def _delete(call: VerbCall, request: WorkflowArguments) -> JsonView:
    await call.bench.workflows.delete(request.workflow)
    return {"deleted": request.workflow}


async def _versions(call: VerbCall, request: WorkflowArguments) -> JsonView:
    return {"versions": (await call.bench.workflows.versions(request.workflow))["workflows"]}


async def _diff(call: VerbCall, request: CompareArguments) -> JsonView:
    return await call.bench.authoring.compare(request.workflow, request.since, request.to)


async def _rollback(call: VerbCall, request: RollbackArguments) -> JsonView:
    return await call.bench.authoring.restore(request.workflow, request.revision)


async def _run(call: VerbCall, request: StartArguments) -> JsonView:
    execution = await call.bench.start(request.workflow, request.input, session=request.session_id, key=call.key)
    if not request.wait:
        return {"executionId": execution.id, "status": execution.status}
    call.began(execution.id)
    return await call.bench.watched(execution, call.listener)


async def _look(call: VerbCall, request: ExecutionArguments) -> JsonView:
    return await call.bench.execution(request.execution_id)


async def _answer(call: VerbCall, request: AnswerArguments) -> JsonView:
    execution = await call.bench.executions.answer(
        request.execution_id, request.gate, request.action, request.data, comment=request.comment, digest=request.digest
    )
    if not request.wait:
        return {"executionId": execution.id, "status": execution.status}
    return await call.bench.watched(execution, call.listener)


async def _resume(call: VerbCall, request: ResumeArguments) -> JsonView:
    execution = await call.bench.executions.resume(request.execution_id)
    if not request.wait:
        return {"executionId": execution.id, "status": execution.status}
    return await call.bench.watched(execution, call.listener)


async def _cancel(call: VerbCall, request: CancelArguments) -> JsonView:
    return await call.bench.cancel(request.execution_id, request.reason)


def _tool(
    verb: Callable[..., object], name: str, says: str, takes: type[A], does: Does[A], effect: Effect = "reads"
) -> Verb[A]:
    """Return the tool of a domain's verb, whose role it has."""
    return Verb(name, says, takes, does, rule_of(verb), effect)


VERBS: Final[tuple[Verb[Any], ...]] = (
    _tool(WorkflowVerbs.list, "list_workflows", "List the saved workflows.", NoArguments, _list),
    _tool(
        AuthoringVerbs.describe,
        "get_workflow",
        "Read a saved workflow: its document, a diagram (Mermaid), its problems.",
        WorkflowArguments,
        _get,
    ),
    _tool(
        WorkflowVerbs.check,
        "check_workflow",
        "List all problems of a workflow, with positions and hints. Saves nothing.",
        CheckArguments,
        _check,
    ),
    _tool(WorkflowVerbs.save, "save_workflow", "Save a workflow as a new revision.", SaveArguments, _save, "changes"),
    _tool(
        AuthoringVerbs.design,
        "design_workflow",
        "Let the configured model design a workflow.",
        DesignArguments,
        _design,
        "changes",
    ),
    _tool(
        AuthoringVerbs.edit,
        "edit_workflow",
        "Change a workflow by operations; returns the changes and problems.",
        EditArguments,
        _edit,
        "changes",
    ),
    _tool(WorkflowVerbs.delete, "delete_workflow", "Delete a saved workflow.", WorkflowArguments, _delete, "destroys"),
    _tool(
        WorkflowVerbs.versions,
        "workflow_versions",
        "List all revisions of a saved workflow.",
        WorkflowArguments,
        _versions,
    ),
    _tool(
        AuthoringVerbs.compare,
        "diff_workflow",
        "Compare two revisions of a workflow, as operations.",
        CompareArguments,
        _diff,
    ),
    _tool(
        AuthoringVerbs.restore,
        "rollback_workflow",
        "Save an old revision as the latest one.",
        RollbackArguments,
        _rollback,
        "changes",
    ),
    _tool(
        ExecutionVerbs.start,
        "run_workflow",
        "Run a workflow until it ends or waits for a person.",
        StartArguments,
        _run,
        "changes",
    ),
    _tool(
        ExecutionVerbs.read,
        "get_execution",
        "Read the state of an execution: status, output, what it waits for.",
        ExecutionArguments,
        _look,
    ),
    _tool(
        ExecutionVerbs.answer,
        "answer_gate",
        "Answer an open gate of an execution.",
        AnswerArguments,
        _answer,
        "changes",
    ),
    _tool(
        ExecutionVerbs.resume,
        "resume_execution",
        "Resume an execution that is paused, stopped or interrupted.",
        ResumeArguments,
        _resume,
        "changes",
    ),
    _tool(
        ExecutionVerbs.cancel,
        "cancel_execution",
        "Cancel an execution permanently.",
        CancelArguments,
        _cancel,
        "destroys",
    ),
)


def verbs() -> dict[str, Verb[Any]]:
    """Return the verbs by name."""
    return {verb.name: verb for verb in VERBS}


ROLES: Final[tuple[Role, ...]] = get_args(Role)


class AgentVerb:
    """A verb as a tool."""

    def __init__(self, context: Callable[[], AppContext], verb: Verb[Any], role: Role) -> None:
        self._context = context
        self._verb = verb
        self._role: Role = role
        self.name = verb.name
        self.limits = ToolLimits()

    @property
    def spec(self) -> ToolSpec:
        verb = self._verb
        return ToolSpec(
            name=verb.name,
            description=verb.says,
            parameters=verb.schema,
            idempotent=verb.effect == "reads" or verb.name == "run_workflow",
            requires_approval=verb.effect == "destroys",
            keeps=True,
            bytes_max=self.limits.output_bytes_max,
        )

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Perform the verb for the people of the execution. A call repeated after a crash returns the run already
        started."""
        bench = await self._bench(context.execution, f"agent {self.name}", tool_target(arguments))
        call = VerbCall(bench=bench, listener=lambda _: None, key=context.idempotency_key)
        return json_of(await self._verb.call(call, arguments))

    async def _bench(self, execution: str, via: str, target: str) -> Workbench:
        """Return the workbench of the people for whom the execution acts, with their present permissions, limited to
        the role that the settings give agents."""
        if not execution:
            message = f"{self.name!r} acts for the person who started an execution, but the call has none"
            raise NotAllowed(message, hint="Call it in a workflow.")
        app = self._context()
        state = await state_of(app, execution)
        attempt = attempt_at_work()
        node = attempt.node if attempt is not None and attempt.execution == execution else ""
        caller = await acting_for(app, execution, node=node, cap=self._role)
        trigger = state.setup.options.get("trigger")
        depth = trigger.get("depth") if isinstance(trigger, dict) and trigger.get("kind") == KEY else None
        deeper = (depth if isinstance(depth, int) else 0) + 1
        return Workbench(app, caller, depth=deeper, via=via, target=target, origin=execution)


def offer_verbs(tools: ToolRegistry, context: Callable[[], AppContext], role: Role) -> None:
    """Register the verbs that `role` allows as tools. `context` returns the open application."""
    for verb in VERBS:
        if ROLES.index(role) >= ROLES.index(verb.role):
            tools.add_builtin(AgentVerb(context, verb, role))

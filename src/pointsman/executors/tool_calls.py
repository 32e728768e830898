"""Tool calls as one attempt sees them: approvals, the engine's own tools, and memory tools.

    call ─▶ needs approval, or is carried out elsewhere? ─ no ─▶ make it
                   └─ yes ─▶ verdict? ─ none ─▶ stop here: `CallsNeedApproval`, the attempt is performed again later
                                └─ approved ─▶ make it, maybe with other arguments ┴ rejected, returned ─▶ no call

Approvals are checked where calls are made, so that no executor can omit the check.

The engine offers `router`, `end` and `final_result` to models, but never runs them and never leaves them pending. There
are three ways to set `next`: a field of the structured output, a call of `router`, a field of plain JSON. `end` means
`next = END`. Nothing else counts, in particular no word of a text.

Memory tools: the node determines which memory a call may reach, never the model alone.

    node: scopes [session, user] ─▶ offered: `scope` is one of these ─▶ call ─▶ the same command as of a memory node
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

from msgspec.structs import replace

from pointsman.definition.json_schema import JsonSchema
from pointsman.engine.actions import CallVerdict, ProposedCall, WorkSpec
from pointsman.engine.commands import Execute
from pointsman.engine.digests import is_about
from pointsman.engine.failures import Failure
from pointsman.engine.reports import ToolCall, ToolCallsProposed
from pointsman.models.repair import read_whole
from pointsman.ports import Tools, ToolSpec
from pointsman.tools.tool import CORRECT_ARGUMENTS, ToolFailed
from pointsman.values import END, Json, JsonObject, NodeId


class CallsNeedApproval(Exception):
    """Not a failure: stops the attempt before calls that a person must approve."""

    def __init__(self, calls: tuple[ProposedCall, ...]) -> None:
        super().__init__(f"{len(calls)} calls need approval")
        self.calls = calls

    def report(self, command: Execute) -> ToolCallsProposed:
        """Return the executor's report for the engine."""
        return ToolCallsProposed(step=command.step, attempt=command.attempt, calls=self.calls)


class Returned(NamedTuple):
    """The result of a call that was carried out elsewhere."""

    result: Json


def is_deferred(tool: ToolSpec | None) -> bool:
    """Return whether calls of the tool need approval, or are carried out by the caller or a sub-workflow."""
    return tool is not None and (tool.requires_approval or tool.side == "client" or bool(tool.workflow))


class Approvals:
    """The verdicts about the calls of one attempt, by effect number."""

    def __init__(self, command: Execute, tools: Tools) -> None:
        self._tools = tools
        self._verdicts: dict[int, CallVerdict] = {verdict.number: verdict for verdict in command.verdicts}
        self._wrong: dict[int, Failure] = {}

    def must_cover(self, numbered: list[tuple[int, ToolCall]]) -> None:
        """Raise `CallsNeedApproval` with all calls that have no verdict yet; then with all calls without a result that
        the caller carries out, then with those that sub-workflows carry out."""
        registered = [
            (number, call, tool) for number, call in numbered if (tool := self._tools.find(call.name)) is not None
        ]
        unapproved = tuple(
            ProposedCall(
                number=number,
                name=call.name,
                arguments=call.arguments,
                description=tool.description,
                parameters=tool.parameters,
            )
            for number, call, tool in registered
            if tool.requires_approval and self._verdict(number, call) is None
        )
        if unapproved:
            raise CallsNeedApproval(unapproved)
        elsewhere = [
            _elsewhere(number, approved, tool)
            for number, call, tool in registered
            if (tool.side == "client" or tool.workflow)
            and not self._has_result(number, call)
            and self._fits(number, approved := self._as_approved(number, call), tool)
        ]
        for wants in ("result", "workflow"):
            if pending := tuple(one for one in elsewhere if one.wants == wants):
                raise CallsNeedApproval(pending)

    def _fits(self, number: int, call: ToolCall, tool: ToolSpec) -> bool:
        """Return whether the arguments fit the tool's parameters, so that the caller need not check them."""
        wrong = JsonSchema(tool.parameters).correction(call.arguments)
        if wrong:
            message = f"arguments of {call.name!r}: {wrong}"
            self._wrong[number] = Failure(code="tool-arguments", message=message, hint=CORRECT_ARGUMENTS)
        return not wrong

    def _verdict(self, number: int, call: ToolCall) -> CallVerdict | None:
        """Return the verdict about exactly this call: approval of another call with the same number does not count."""
        verdict = self._verdicts.get(number)
        return verdict if verdict is not None and is_about(verdict, call.name, call.arguments) else None

    def _has_result(self, number: int, call: ToolCall) -> bool:
        verdict = self._verdict(number, call)
        return verdict is not None and (verdict.returned or not verdict.approved)

    def _as_approved(self, number: int, call: ToolCall) -> ToolCall:
        """Return the call with the arguments that a person substituted, if any."""
        verdict = self._verdict(number, call)
        return call if verdict is None or verdict.arguments is None else replace(call, arguments=verdict.arguments)

    def decided(self, number: int, call: ToolCall) -> ToolCall | Returned | Failure:
        """Return the call to make, its result from elsewhere, or the failure if it must not be made."""
        if number in self._wrong:
            return self._wrong[number]
        verdict = self._verdict(number, call)
        if verdict is None:
            return call
        if verdict.returned:
            return Returned(verdict.result)
        if not verdict.approved:
            return self._failure(call, verdict)
        return self._as_approved(number, call)

    def _failure(self, call: ToolCall, verdict: CallVerdict) -> Failure:
        reason = f": {verdict.reason}" if verdict.reason else ""
        if not verdict.code:
            return Failure(code="call-rejected", message=f"a person rejected this call of {call.name!r}{reason}")
        tool = self._tools.find(call.name)
        performer = "the caller" if tool is None or not tool.workflow else f"the workflow {tool.workflow!r}"
        return Failure(code=verdict.code, message=f"{performer} did not carry out {call.name!r}{reason}")


def _elsewhere(number: int, call: ToolCall, tool: ToolSpec) -> ProposedCall:
    """Return the proposal of a call that the caller or a sub-workflow carries out."""
    return ProposedCall(
        number=number,
        name=call.name,
        arguments=call.arguments,
        description=tool.description,
        wants="workflow" if tool.workflow else "result",
        workflow=tool.workflow,
        timeout_s=tool.timeout_s,
        bytes_max=tool.bytes_max,
    )


ROUTER: Final = "router"
END_TOOL: Final = "end"
FINAL: Final = "final_result"

_TO_ROUTE: Final = (
    "When your part is done, choose who goes on: call the tool `router` with `next` set to one of {labels}. "
    "Text alone does not choose. Do not give the same task to the same one again without new information."
)
_TO_ROUTE_BY_FIELD: Final = "Set `next` in your answer to who goes on: one of {labels}."
_TO_END: Final = "This is a conversation. When it is over and nothing is left to do, answer and call the tool `end`."
_TO_FINISH: Final = "Give your final answer by calling the tool `final_result`."


class Injected(NamedTuple):
    """Tools and texts that the engine adds to a request."""

    tools: tuple[ToolSpec, ...]
    text: str
    """For the system prompt."""
    schema: JsonObject | None
    """The output schema, if it is part of the request itself and not of `final_result`."""


class Intercepted(NamedTuple):
    """The calls of one reply, with the engine's own taken out."""

    others: tuple[ToolCall, ...]
    next: str | None
    """The label chosen by `router` or `end`; the last one counts."""
    final: ToolCall | None
    misrouted: bool
    """`router` was called without `next`."""


def injected(spec: WorkSpec, schema: JsonObject | None, *, has_tools: bool) -> Injected:
    """Return the tools and texts that an agent is offered beside its own tools."""
    tools: list[ToolSpec] = []
    texts: list[str] = []
    labels = ", ".join(f"`{label}`" for label in spec.routes) + (" (`END`: all is done)" if END in spec.routes else "")
    if spec.routes and _has_next(schema):
        texts.append(_TO_ROUTE_BY_FIELD.format(labels=labels))
    elif spec.routes:
        tools.append(_router(spec.routes))
        texts.append(_TO_ROUTE.format(labels=labels))
    if spec.conversational:
        tools.append(ToolSpec(name=END_TOOL, description="End the conversation.", parameters=_object({})))
        texts.append(_TO_END)
    # Several providers use only one of tools and schema in a request: with tools, the schema becomes a tool.
    by_tool = schema is not None and (has_tools or bool(tools))
    if schema is not None and by_tool:
        tools.append(ToolSpec(name=FINAL, description="Give the final answer.", parameters=_as_parameters(schema)))
        texts.append(_TO_FINISH)
    return Injected(tuple(tools), "\n".join(texts), None if by_tool else schema)


def intercepted(calls: Iterable[ToolCall]) -> Intercepted:
    """Take the engine's own calls out of a reply."""
    others: list[ToolCall] = []
    label: str | None = None
    final: ToolCall | None = None
    misrouted = False
    for call in calls:
        match call.name:
            case "end":
                label = END
            case "router":
                target = call.arguments.get("next")
                if isinstance(target, str) and target:
                    label = target
                else:
                    misrouted = True
            case "final_result":
                final = call
            case _:
                others.append(call)
    return Intercepted(tuple(others), label, final, misrouted and label is None)


def final_value(call: ToolCall, schema: JsonObject) -> Json:
    """Return the answer in a call of `final_result`."""
    return call.arguments if _is_object(schema) else call.arguments.get("value")


def next_of(value: Json) -> str | None:
    """Return the label in a structured answer."""
    target = value.get("next") if isinstance(value, dict) else None
    return target if isinstance(target, str) and target else None


def next_in_text(text: str) -> str | None:
    """Return the label in an answer that as a whole is a JSON object."""
    whole = read_whole(text)
    return None if whole is None else next_of(whole.value)


def _router(labels: tuple[str, ...]) -> ToolSpec:
    legal: list[Json] = [*labels]
    parameters = _object({"next": {"type": "string", "enum": legal}})
    return ToolSpec(name=ROUTER, description="Choose who goes on.", parameters=parameters)


def _object(properties: JsonObject) -> JsonObject:
    required: list[Json] = [*properties]
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}


def _as_parameters(schema: JsonObject) -> JsonObject:
    """Return tool parameters, which must be an object: another schema is wrapped, with its definitions at the root."""
    if _is_object(schema):
        return schema
    definitions = {key: schema[key] for key in ("$defs", "definitions") if key in schema}
    return {**_object({"value": {key: part for key, part in schema.items() if key not in definitions}}), **definitions}


def _is_object(schema: JsonObject) -> bool:
    return schema.get("type") == "object" or ("type" not in schema and "properties" in schema)


def _has_next(schema: JsonObject | None) -> bool:
    properties = {} if schema is None else schema.get("properties")
    return isinstance(properties, dict) and "next" in properties


DEFAULT_SCOPES: Final = ("session",)
"""Default scopes of an agent."""

_BELONGS: Final = {
    "execution": "this task alone",
    "session": "this conversation",
    "user": "the person you work for, in all conversations",
    "workflow": "everybody who uses this workflow",
    "shared": "everybody",
}


def offered(tool: ToolSpec, scopes: Sequence[str]) -> ToolSpec:
    """Return the tool for an agent with these scopes: if there are several, `scope` becomes a parameter."""
    if len(scopes) == 1:
        return tool
    properties = tool.parameters.get("properties")
    required = tool.parameters.get("required")
    assert isinstance(properties, dict)
    assert isinstance(required, list)
    whose = "; ".join(f"{scope}: {_BELONGS[scope]}" for scope in scopes)
    scope_names: list[Json] = [*scopes]
    scope: JsonObject = {"type": "string", "enum": scope_names, "description": f"Whose memory. {whose}."}
    parameters = {**tool.parameters, "properties": {"scope": scope, **properties}, "required": ["scope", *required]}
    return replace(tool, parameters=parameters)


def memory_command(command: Execute, call: ToolCall, tool: ToolSpec, number: int) -> Execute:
    """Return the equivalent command of a memory node. Raises `ToolFailed` for arguments that do not fit, and for nodes
    other than agents."""
    memory = command.input.get("memory")
    if not isinstance(memory, dict) or not isinstance(scopes := memory.get("scopes"), list):
        message = f"nobody knows whose memory {call.name!r} means here"
        hint = "Memory tools are for nodes of the type agent; others use a memory node."
        raise ToolFailed(Failure(code="memory-no-owner", message=message, hint=hint))
    scope_names = [str(scope) for scope in scopes]
    if wrong := JsonSchema(offered(tool, scope_names).parameters).correction(call.arguments):
        message = f"arguments of {call.name!r}: {wrong}"
        raise ToolFailed(Failure(code="tool-arguments", message=message, hint=CORRECT_ARGUMENTS))
    memory_input: JsonObject = {
        **call.arguments,
        "scope": call.arguments.get("scope", scope_names[0]),
        "operation": tool.memory,
        "session": memory.get("session"),
        "user": memory.get("user"),
        "namespace": memory.get("namespace"),
    }
    # For the memory, each call is a step of its own: two deliberate writes are two, and a write that a crash or a retry
    # repeats is one.
    step = replace(command.step, node=NodeId(f"{command.step.node} call {number}"))
    return replace(command, step=step, input=memory_input)

"""Design of a workflow, or of a change, from words: a model drafts, the check reports errors, the model corrects them.

    words ─▶ model ─▶ answer ─ read ─▶ workflow, or operations ─ check ─┬─ no errors ─▶ done
               ▲                                                        │
               └──────────── every error, with its hint ◀───────────────┘   at most `ROUNDS_MAX` rounds

The conversation also ends when a round has the same errors as an earlier one. The result contains all rounds; nothing
is saved here. The model's answer is untrusted: it is read and checked like any document.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import ClassVar, Final, Generic, NamedTuple, TypeVar, cast

import msgspec
from typing_extensions import TypedDict

from pointsman.auth.callers import LOCAL, Caller
from pointsman.auth.policy import sees_tool
from pointsman.authoring.edits import Edited, document_of, edit, native_of
from pointsman.authoring.operations import AnyOperation, OperationRefused, read_operations
from pointsman.context import AppContext
from pointsman.definition.model.nodes import CONFIG_OF
from pointsman.definition.model.schema import native_schema
from pointsman.definition.problems import Problem, ProblemView, error
from pointsman.engine.reports import Usage
from pointsman.errors import OperatorError, sentences
from pointsman.executions.views import SCRIPTED, UsageView, WarningView, usage_view
from pointsman.models.repair import read_json
from pointsman.models.transcript import assistant_message, user_message
from pointsman.models.transport import is_scripted
from pointsman.ports import ModelRequest
from pointsman.values import Json, JsonObject
from pointsman.workflows.definitions import check
from pointsman.workflows.document_work import DOCUMENTS
from pointsman.workflows.models import models_for
from pointsman.workflows.sources import Workflow

VERDICTS: Final = {
    True: "(That was accepted.)\n\n",
    False: "(That was refused: the workflow is without it.)\n\n",
    None: "",
}


class RoundView(TypedDict):
    """One answer of the model, and its problems."""

    round: int
    model: str
    ok: bool
    """Whether its result has no errors."""
    answer: str
    problems: list[ProblemView]
    usage: UsageView
    scripted: bool
    """Whether the scripted model answered: its answer is made up."""


@dataclass(frozen=True, slots=True)
class Round:
    """One answer of the model, and its problems."""

    number: int
    model: str
    answer: str
    problems: tuple[Problem, ...]
    usage: Usage = field(default_factory=Usage)

    @property
    def ok(self) -> bool:
        return not any(problem.severity == "error" for problem in self.problems)

    def to_json(self) -> RoundView:
        return {
            "round": self.number,
            "model": self.model,
            "ok": self.ok,
            "answer": self.answer,
            "problems": [problem.to_json() for problem in self.problems],
            "usage": usage_view(self.usage),
            "scripted": self.usage.scripted,
        }


class Evidence(TypedDict):
    """How a model made a result."""

    rounds: list[RoundView]
    """Each answer of the model, and its problems."""
    scripted: bool
    """Whether the scripted model answered: the result is made up, no provider was asked."""
    warnings: list[WarningView]
    """`scripted-answers` if `scripted`."""


def evidence_of(rounds: Sequence[Round]) -> Evidence:
    """Return the rounds of a design, with the warning if the scripted model made it up."""
    scripted = any(one.usage.scripted for one in rounds)
    return {
        "rounds": [one.to_json() for one in rounds],
        "scripted": scripted,
        "warnings": [SCRIPTED] if scripted else [],
    }


class EarlierRequest(NamedTuple):
    """An earlier request of the same conversation, and its result."""

    words: str
    answer: str
    """The model's answer of the last round."""
    accepted: bool | None = None
    """Whether the author accepted the result; None: unknown."""


def conversation_messages(earlier: Sequence[EarlierRequest], words: str, *, name: str) -> list[Json]:
    """Return the conversation up to the present request as messages. `name`: the name of the assistant."""
    messages: list[JsonObject] = []
    verdict = ""
    for one in earlier:
        messages.append({"role": "user", "content": verdict + one.words})
        messages.append({"role": "assistant", "content": one.answer, "name": name})
        verdict = VERDICTS[one.accepted]
    return [*messages, {"role": "user", "content": verdict + words}]


T = TypeVar("T")

PURPOSE: Final = "design"
ROUNDS_MAX: Final = 5
TIMEOUT_S: Final = 180.0
"""Time limit of one answer."""
ANSWER_CHARS_MAX: Final = 200_000
NODES_MAX: Final = 200
"""Limit of what a person would review."""
PROBLEMS_SHOWN_MAX: Final = 20
"""Problems reported to the model in one round."""


class DesignModelMissing(OperatorError):
    """No model can design: only the scripted one is available, and it has no script for this."""

    code: ClassVar[str] = "design-model-missing"


RoundListener = Callable[[Round], None]


@dataclass(frozen=True, slots=True)
class DesignDraft(Generic[T]):
    """The result of reading an answer; None: it cannot be read."""

    made: T | None
    problems: tuple[Problem, ...]


@dataclass(frozen=True, slots=True)
class Designed(Generic[T]):
    """The result of a design: the last readable answer, and every round."""

    made: T | None
    rounds: tuple[Round, ...]

    @property
    def ok(self) -> bool:
        """Whether the result has no errors."""
        return self.made is not None and self.rounds[-1].ok


Read = Callable[[str], Awaitable[DesignDraft[T]]]


async def design(
    app: AppContext,
    words: str,
    *,
    caller: Caller = LOCAL,
    name: str = "",
    earlier: Sequence[EarlierRequest] = (),
    listener: RoundListener = lambda _: None,
) -> Designed[Workflow]:
    """Return a workflow that a model designs from the caller's words. `name`: the id that it gets.

    Raises `DesignModelMissing`, `ModelFailed`.
    """
    await app.tools.prepare_all()

    async def read(answer: str) -> DesignDraft[Workflow]:
        value = read_json(answer)
        if value is not None and isinstance(value.value, dict):
            source = document_of({**value.value, "id": name} if name else value.value)
        else:
            source = Workflow(answer, name=name)
        checked = await check(app, source, reader=caller)
        many = source.outline.node_count
        if many > NODES_MAX:
            far = error(
                "too-many-nodes", "/nodes", f"it has {many} nodes", hint=f"Design at most {NODES_MAX} nodes at once."
            )
            return DesignDraft(None, (far,))
        return DesignDraft(source if source.outline.head is not None else None, checked.problems)

    briefing = await design_briefing(app, caller)
    return await _converse(app, briefing, conversation_messages(earlier, words, name=PURPOSE), read, listener)


async def edit_by_words(
    app: AppContext,
    source: Workflow,
    words: str,
    *,
    caller: Caller = LOCAL,
    earlier: Sequence[EarlierRequest] = (),
    listener: RoundListener = lambda _: None,
) -> Designed[Edited]:
    """Return a change that a model designs from words, as operations. Raises the errors of `design`, and
    `WorkflowInvalid`."""
    await app.tools.prepare_all()
    document = await app[DOCUMENTS].run(native_of, source, by=caller.name, chars=source.chars)

    async def read(answer: str) -> DesignDraft[Edited]:
        document = read_json(answer)
        value = None if document is None else document.value
        listed: Json = value.get("operations") if isinstance(value, dict) else value
        try:
            made = await edit(app, source, read_operations(listed), reader=caller)
        except OperationRefused as why:
            return DesignDraft(None, (error(why.code, "", str(why), hint=why.hint),))
        return DesignDraft(made, made.new)

    briefing = await edit_briefing(app, caller, document)
    return await _converse(app, briefing, conversation_messages(earlier, words, name=PURPOSE), read, listener)


async def _converse(
    app: AppContext, briefing: str, messages: list[Json], read: Read[T], listener: RoundListener
) -> Designed[T]:
    services = app.services
    models = models_for(app.settings, model=services.model, script=services.script, connected=services.models.connected)
    await models.refresh()
    rounds: list[Round] = []
    result: T | None = None
    met: set[frozenset[str]] = set()
    try:
        for number in range(1, ROUNDS_MAX + 1):
            request = ModelRequest(
                model="",
                system=briefing,
                messages=[*messages],
                purpose=PURPOSE,
                timeout_s=TIMEOUT_S,
                hints={"round": number, "call": number},
            )
            _must_be_able(app, models.names_for(request))
            reply = await models.ask(request)
            attempt = await _read(read, reply.text)
            result = attempt.made if attempt.made is not None else result
            rounds.append(Round(number, reply.model, reply.text[:ANSWER_CHARS_MAX], attempt.problems, reply.usage))
            listener(rounds[-1])
            errors = frozenset(problem.message for problem in attempt.problems if problem.severity == "error")
            if not errors or errors in met:
                break
            met.add(errors)
            messages += [assistant_message(reply, name=PURPOSE), user_message(problems_message(attempt.problems))]
    finally:
        await models.close()
    return Designed(result, tuple(rounds))


async def _read(read: Read[T], answer: str) -> DesignDraft[T]:
    if len(answer) > ANSWER_CHARS_MAX:
        long = error(
            "too-large", "", f"the answer has {len(answer)} characters", hint=f"At most {ANSWER_CHARS_MAX} characters."
        )
        return DesignDraft(None, (long,))
    return await read(answer)


def _must_be_able(app: AppContext, names: tuple[str, ...]) -> None:
    if is_scripted(names[0]) and (app.services.script is None or not app.services.script.rules):
        raise DesignModelMissing(
            "only the scripted model is available, and it cannot design workflows",
            hint="Use a model (--model, or `model` in pointsman.toml), or a script with rules for `purpose: "
            f"{PURPOSE}`.",
        )


def problems_message(problems: tuple[Problem, ...]) -> str:
    """Return the message with problems that the model must correct: errors first, each with its position and hint."""
    ordered = sorted(problems, key=lambda one: one.severity != "error")[:PROBLEMS_SHOWN_MAX]
    lines = [f"- {one.severity} at {one.pointer or 'the top'}: {sentences(one.message, one.hint)}" for one in ordered]
    return "The check says:\n" + "\n".join(lines) + "\n\nMend every error and answer with the whole JSON again."


TOOLS_MAX: Final = 100
SAYS_CHARS_MAX: Final = 160
CHANGES: Final = (
    'You change workflows of Pointsman. Answer with one JSON object {"operations": [...]} and nothing else. They are '
    "applied in order, all or none, to the workflow below. Change no more than you are asked to."
)


async def design_briefing(app: AppContext, caller: Caller) -> str:
    """Return the system prompt for the design of a whole workflow."""
    return "\n\n".join(
        (
            "You design workflows for Pointsman. Answer with one JSON object, the workflow, and nothing else.",
            GUIDE,
            _fields(),
            await _catalogue(app, caller),
        )
    )


async def edit_briefing(app: AppContext, caller: Caller, document: JsonObject) -> str:
    """Return the system prompt for a change of a workflow."""
    return "\n\n".join(
        (
            CHANGES,
            GUIDE,
            _operations(),
            _fields(),
            await _catalogue(app, caller),
            f"The workflow is now:\n{msgspec.json.encode(document).decode()}",
        )
    )


@cache
def _fields() -> str:
    """Return the keys of each type's `config`; `!` marks required ones."""
    definitions = cast("dict[str, JsonObject]", native_schema()["$defs"])
    lines: list[str] = []
    for kind, model in CONFIG_OF.items():
        shape = definitions[model.__name__]
        properties, required = shape.get("properties"), shape.get("required")
        keys = [*properties] if isinstance(properties, dict) else []
        must = required if isinstance(required, list) else []
        lines.append(f"- {kind}: " + (", ".join(f"{key}!" if key in must else key for key in keys) or "nothing"))
    return "All keys of `config` by type (`!`: required):\n" + "\n".join(lines)


@cache
def _operations() -> str:
    lines: list[str] = []
    for operation in cast("tuple[type[msgspec.Struct], ...]", AnyOperation.__args__):
        fields = msgspec.structs.fields(operation)
        keys = ", ".join(f"{field.encode_name}!" if field.required else field.encode_name for field in fields)
        says = " ".join((operation.__doc__ or "").split())
        lines.append(f'- {{"op": "{operation.__struct_config__.tag}", {keys}}}: {says}')
    return (
        "Operations (`!`: required). Edges are named by id or `source->target`; `set` and `remove` use JSON pointers "
        'into the thing, as in {"set": {"/config/prompt": "Hi"}}:\n' + "\n".join(lines)
    )


async def _catalogue(app: AppContext, caller: Caller) -> str:
    """Return the tools that a model may name. Tools that the caller may not see are omitted, because a model may repeat
    what its prompt contains."""
    lines: list[str] = []
    for name in app.tools.names():
        spec = app.tools.find(name)
        if spec is not None and not spec.off and await sees_tool(app, caller, name):
            says = " ".join(spec.description.split())[:SAYS_CHARS_MAX]
            lines.append(f"- {name}({', '.join(_parameters(spec.parameters))}): {says}")
        if len(lines) == TOOLS_MAX:
            break
    return "Tools:\n" + ("\n".join(lines) or "- none: use agents without tools")


def _parameters(schema: JsonObject) -> list[str]:
    properties: Json = schema.get("properties")
    return [*properties] if isinstance(properties, dict) else []


GUIDE: Final = """\
A workflow is a JSON object (or YAML): {"pointsman": 1, "id", "name", "input", "state", "nodes": [...], "edges": [...]}.

`input` is the JSON Schema of what callers give; its fields are read by their names. Nodes do work, edges say what
comes next. Execution begins at the `start` node, else at the node no edge leads to, else at `entry`.

A node is {"id", "type", "inputs"?, "outputs"?, "config"}. `outputs` maps a name in the state to an expression over
`result`: {"draft": "result"} lets later nodes read `draft`. The latest result of a node is also `nodes.<id>`.

Types and what their `config` has:
- start, end: {}
- agent: {"prompt": "Write about {topic}.", "system"?, "tools"?: [names], "outputSchema"?: JSON Schema}. In prompts
  {name} puts in a value. With outputSchema `result` is JSON; without it `result` is the text.
- tool: {"tool": name, "parameters": {...}}; texts in parameters are templates too.
- transform: {"operations": [{"set": "path", "value": ...}, {"evaluate": "expression", "to": "path"}]}
- decision: {"branches"?...}; simplest is a node left by edges with conditions.
- human: {"message": "Good? {draft}", "options": [{"value": "approve"}, {"value": "redo"}]}; edges listen by label.
- parallel: its plain edges are branches; each ends at one join: {"type": "join"}. With {"items": "expression",
  "as": "x"} the one branch runs for every item.
- loop: {"while": "expression", "maxIterations": 5}: an edge with "mark": "body" leads into its rounds, whose last
  node leads back to the loop; an edge with "mark": "exit" leads on.
- workflow: {"workflow": id} runs another saved workflow. wait: {"duration": "1h"}. http, code, memory: see the schema.

An edge is {"source", "target", "condition"?}. `target` may be "END". Conditions: {"type": "expression", "expression":
"score > 3"}, {"type": "label", "label": "approve"} (what a human chose), {"type": "default"} (when no other was),
{"type": "error"} (the node failed).

Rules: every id once; every edge leads between nodes that exist; every value that is read is written before on every
way; cycles need a way out; name only tools that are in the catalogue.

Example:
{"pointsman": 1, "id": "press-note", "name": "Press note",
 "input": {"type": "object", "properties": {"topic": {"type": "string"}}, "required": ["topic"]},
 "nodes": [
  {"id": "draft", "type": "agent", "config": {"prompt": "Write a press note about {topic}."},
   "outputs": {"note": "result"}},
  {"id": "review", "type": "human", "config": {"message": "Send it? {note}",
   "options": [{"value": "approve"}, {"value": "redo"}]}},
  {"id": "done", "type": "end", "config": {}}],
 "edges": [
  {"source": "draft", "target": "review"},
  {"source": "review", "target": "done", "condition": {"type": "label", "label": "approve"}},
  {"source": "review", "target": "draft", "condition": {"type": "label", "label": "redo"}}],
 "entry": "draft", "output": {"note": "note"}}
"""

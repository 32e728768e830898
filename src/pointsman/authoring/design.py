"""Design of a workflow, or of a change, from words: a model drafts, the check reports errors, the model corrects them.

    words ─▶ model ─▶ answer ─ read ─▶ workflow, or operations ─ check ─┬─ no errors ─▶ done
               ▲                                                        │
               └──────────── every error, with its hint ◀───────────────┘   at most `ROUNDS_MAX` rounds

The conversation also ends when a round has the same errors as an earlier one. The result contains all rounds; nothing
is saved here. The model's answer is untrusted: it is read and checked like any document.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, Final, Generic, TypeVar

from pointsman.auth.callers import LOCAL, Caller
from pointsman.authoring.briefing import design_briefing, edit_briefing
from pointsman.authoring.conversation_history import Earlier, Round, told
from pointsman.authoring.edits import Edited, edit, native_of
from pointsman.authoring.operations import OperationRefused, read_operations
from pointsman.authoring.texts import document_of
from pointsman.context import AppContext
from pointsman.definition.problems import Problem, error
from pointsman.errors import OperatorError, sentences
from pointsman.models.repair import read_json
from pointsman.models.transcript import assistant_message, user_message
from pointsman.models.transport import is_scripted
from pointsman.ports import ModelRequest
from pointsman.values import Json
from pointsman.workflows.definitions import check
from pointsman.workflows.document_work import DOCUMENTS
from pointsman.workflows.models import models_for
from pointsman.workflows.sources import Workflow

T = TypeVar("T")

PURPOSE: Final = "design"
ROUNDS_MAX: Final = 5
TIMEOUT_S: Final = 180.0
"""Time limit of one answer."""
ANSWER_CHARS_MAX: Final = 200_000
NODES_MAX: Final = 200
"""Limit of what a person would review."""
TOLD_MAX: Final = 20
"""Problems reported to the model in one round."""


class NoDesigner(OperatorError):
    """No model can design: only the scripted one is available, and it has no script for this."""

    code: ClassVar[str] = "no-designer"


Hear = Callable[[Round], None]


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
    earlier: Sequence[Earlier] = (),
    hear: Hear = lambda _: None,
) -> Designed[Workflow]:
    """Return a workflow that a model designs from the caller's words. `name`: the id that it gets.

    Raises `NoDesigner`, `ModelFailed`.
    """
    await app.tools.prepare_all()

    async def read(answer: str) -> DesignDraft[Workflow]:
        found = read_json(answer)
        if found is not None and isinstance(found.value, dict):
            source = document_of({**found.value, "id": name} if name else found.value)
        else:
            source = Workflow(answer, name=name)
        checked = await check(app, source, reader=caller)
        many = source.outline.node_count
        if many > NODES_MAX:
            far = error("too-many-nodes", "/nodes", f"it has {many} nodes", hint=f"Design at most {NODES_MAX} at once.")
            return DesignDraft(None, (far,))
        return DesignDraft(source if source.outline.head is not None else None, checked.problems)

    briefing = await design_briefing(app, caller)
    return await _converse(app, briefing, told(earlier, words, name=PURPOSE), read, hear)


async def edit_by_words(
    app: AppContext,
    source: Workflow,
    words: str,
    *,
    caller: Caller = LOCAL,
    earlier: Sequence[Earlier] = (),
    hear: Hear = lambda _: None,
) -> Designed[Edited]:
    """Return a change that a model designs from words, as operations. Raises the errors of `design`, and
    `WorkflowInvalid`."""
    await app.tools.prepare_all()
    document = await app[DOCUMENTS].run(native_of, source, by=caller.name, chars=source.chars)

    async def read(answer: str) -> DesignDraft[Edited]:
        found = read_json(answer)
        value = None if found is None else found.value
        listed: Json = value.get("operations") if isinstance(value, dict) else value
        try:
            made = await edit(app, source, read_operations(listed), reader=caller)
        except OperationRefused as why:
            return DesignDraft(None, (error(why.code, "", str(why), hint=why.hint),))
        return DesignDraft(made, made.new)

    briefing = await edit_briefing(app, caller, document)
    return await _converse(app, briefing, told(earlier, words, name=PURPOSE), read, hear)


async def _converse(app: AppContext, briefing: str, said: list[Json], read: Read[T], hear: Hear) -> Designed[T]:
    models = models_for(app.settings, model=app.services.model, script=app.services.script)
    rounds: list[Round] = []
    made: T | None = None
    met: set[frozenset[str]] = set()
    try:
        for number in range(1, ROUNDS_MAX + 1):
            request = ModelRequest(
                model="",
                system=briefing,
                messages=[*said],
                purpose=PURPOSE,
                timeout_s=TIMEOUT_S,
                hints={"round": number, "call": number},
            )
            _must_be_able(app, models.names_for(request))
            reply = await models.ask(request)
            attempt = await _read(read, reply.text)
            made = attempt.made if attempt.made is not None else made
            rounds.append(Round(number, reply.model, reply.text[:ANSWER_CHARS_MAX], attempt.problems, reply.usage))
            hear(rounds[-1])
            errors = frozenset(one.message for one in attempt.problems if one.severity == "error")
            if not errors or errors in met:
                break
            met.add(errors)
            said += [assistant_message(reply, name=PURPOSE), user_message(complaint(attempt.problems))]
    finally:
        await models.close()
    return Designed(made, tuple(rounds))


async def _read(read: Read[T], answer: str) -> DesignDraft[T]:
    if len(answer) > ANSWER_CHARS_MAX:
        long = error("too-large", "", f"the answer has {len(answer)} characters", hint=f"{ANSWER_CHARS_MAX} at most.")
        return DesignDraft(None, (long,))
    return await read(answer)


def _must_be_able(app: AppContext, names: tuple[str, ...]) -> None:
    if is_scripted(names[0]) and (app.services.script is None or not app.services.script.rules):
        raise NoDesigner(
            "only the scripted model is here, and it designs nothing by itself",
            hint="Name a model (--model, or `model` in pointsman.toml), or give a script with rules for "
            f"`purpose: {PURPOSE}`.",
        )


def complaint(problems: tuple[Problem, ...]) -> str:
    """Return the message with problems that the model must correct: errors first, each with its position and hint."""
    ordered = sorted(problems, key=lambda one: one.severity != "error")[:TOLD_MAX]
    lines = [f"- {one.severity} at {one.pointer or 'the top'}: {sentences(one.message, one.hint)}" for one in ordered]
    return "The check says:\n" + "\n".join(lines) + "\n\nMend every error and answer with the whole JSON again."

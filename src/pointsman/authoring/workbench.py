"""The library as a designer uses it: what a caller may see is looked at, changed, saved, taken back and tried.

Every verb answers JSON that a person or a model can act on: the ids and revisions it is about, and every problem with
its place and what mends it. Faces and tools call these verbs and add nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final, Literal

from pointsman.auth.callers import Caller, Role
from pointsman.auth.policy import must_see, must_see_workflow, visible
from pointsman.auth.redaction import redactor_for
from pointsman.authoring.comparison import operations_between
from pointsman.authoring.edits import Edited, edit, native_of
from pointsman.authoring.operations import AnyOperation, written_operations
from pointsman.context import AppContext
from pointsman.definition.problems import problems_to_json
from pointsman.errors import AuthorError, CallerError
from pointsman.executions.execution import Execution, TakenOver
from pointsman.executions.family_view import seen
from pointsman.executions.opening import open_execution, reach_execution
from pointsman.executions.redaction_levels import view_told
from pointsman.executions.start import start_as
from pointsman.values import Json, JsonObject, WorkflowId
from pointsman.workflows.conversion import converted
from pointsman.workflows.definitions import check, outlined, source_of_saved
from pointsman.workflows.document_work import DOCUMENTS
from pointsman.workflows.library import LIBRARY
from pointsman.workflows.revisions import RevisionMoved, diff_revisions, list_workflows, old_revision
from pointsman.workflows.saving import delete_as, save_as
from pointsman.workflows.sources import Workflow, invalid

if TYPE_CHECKING:
    from pointsman.authoring.conversation_history import Earlier
    from pointsman.authoring.design import Round

Hear = Callable[[JsonObject], None]
"""Hears what happens meanwhile."""
Dialect = Literal["native", "rows", "graph", "steps", "plan"]

KEY: Final = "authoring"


DEPTH_MAX: Final = 3
"""Agents that run workflows whose agents run workflows …"""


class AgentsNestedTooDeep(CallerError):
    """Agents ran workflows whose agents ran workflows, too often."""

    code: ClassVar[str] = "nested-too-deep"


class DesignFailed(CallerError):
    """A model was asked for a change of a workflow, and none came of what it answered."""

    code: ClassVar[str] = "design-failed"


class Workbench:
    """One caller at the library of one installation."""

    def __init__(self, app: AppContext, caller: Caller, *, depth: int = 0) -> None:
        """`depth`: how many executions, each begun by an agent of the one before, led here."""
        self.app = app
        self.caller = caller
        self.depth = depth

    def must(self, role: Role, what: str) -> None:
        """Raises `NotAllowed`."""
        self.caller.must_have(role, what)

    async def see(self, workflow: str) -> None:
        """Raises `UnknownWorkflow`, `NotAllowed`."""
        await must_see_workflow(self.app, self.caller, workflow)

    async def list(self) -> list[JsonObject]:
        """The latest revision of each saved workflow that the caller may see."""
        entries = await list_workflows(self.app, include_disabled=True)
        return [entry for entry in entries if await visible(self.app, self.caller, str(entry["id"]))]

    async def get(self, workflow: str) -> JsonObject:
        """A saved workflow as its author wrote it, how it looks, and its problems."""
        await self.see(workflow)
        source = await source_of_saved(self.app, workflow)
        revision = (await self.app[LIBRARY].found(workflow)).revision
        described = await self._described(source)
        return {"id": source.head.id, "revision": revision, **described}

    async def check(self, source: Workflow) -> JsonObject:
        """All problems of a document. Nothing is saved."""
        checked = await check(self.app, source, reader=self.caller)
        return problems_to_json(checked.problems, dialect=checked.dialect)

    async def save(self, source: Workflow, *, draft: bool = False) -> JsonObject:
        """A new revision. Raises `WorkflowInvalid` where it has errors and is no draft."""
        self.must("editor", "save workflows")
        saved = await save_as(self.app, self.caller, source, draft=draft)
        said = {"id": saved.draft.id, "revision": saved.revision, "digest": saved.digest}
        return {**said, **await self._described(source)}

    async def edit(
        self,
        workflow: str,
        operations: Sequence[AnyOperation],
        *,
        apply: bool = False,
        revision: int | None = None,
        draft: bool = False,
        text: str | None = None,
        native: bool = False,
    ) -> JsonObject:
        """A saved workflow changed: shown, and with `apply` saved. Only over `revision`, where one is named.

        With `text` the operations are applied to that document instead of the saved one; with `native` the answer has
        what it reads as. Raises `OperationRefused`, `RevisionMoved`, and `WorkflowInvalid` where the text cannot be
        read, or it would be saved with errors.
        """
        await self.see(workflow)
        source, known = await self._at(workflow, revision, text)
        edited = await edit(self.app, source, operations, reader=self.caller)
        said = await self.keep(edited, known, apply=apply, draft=draft)
        return {**said, "native": edited.native} if native else said

    async def keep(self, edited: Edited, revision: int, *, apply: bool, draft: bool) -> JsonObject:
        """What was changed, and, with `apply`, saved over the revision it was made from."""
        head = edited.source.outline.head
        said = {"id": edited.source.name if head is None else head.id, "revision": revision, **edited.to_json()}
        if not apply:
            return {**said, "applied": False}
        self.must("editor", "save workflows")
        saved = await save_as(self.app, self.caller, edited.source, draft=draft, after=revision)
        return {**said, "revision": saved.revision, "digest": saved.digest, "applied": True}

    async def _at(self, workflow: str, revision: int | None, text: str | None = None) -> tuple[Workflow, int]:
        """The saved one, or `text` instead of it. Raises `RevisionMoved` where the latest revision is another one."""
        name = workflow.partition("@")[0]
        latest = (await self.app[LIBRARY].found(name)).revision
        if revision is not None and revision != latest:
            raise RevisionMoved(f"{name!r} is at revision {latest} now", hint="Read it again, and change that.")
        source = await source_of_saved(self.app, workflow)
        return (source if text is None else await self._instead_of(source, text)), latest

    async def source(self, workflow: str) -> tuple[Workflow, int]:
        """A saved workflow that the caller may see, and its latest revision."""
        await self.see(workflow)
        return await self._at(workflow, None)

    async def design(
        self,
        words: str,
        *,
        name: str = "",
        save: bool = False,
        earlier: Sequence[Earlier] = (),
        hear: Callable[[Round], None] = lambda _: None,
    ) -> JsonObject:
        """A workflow that a model makes of words, with its rounds; with `save` saved, if it has no errors.

        `earlier`: what was said before in the same conversation. Raises `NoDesigner`, `ModelFailed`.
        """
        from pointsman.authoring.design import design  # It loads the models.

        self.must("editor", "design workflows")
        designed = await design(self.app, words, caller=self.caller, name=name, earlier=earlier, hear=hear)
        rounds: list[Json] = [one.to_json() for one in designed.rounds]
        if designed.made is None:
            problems = designed.rounds[-1].to_json()["problems"]
            return {"ok": False, "saved": False, "document": None, "text": "", "problems": problems, "rounds": rounds}
        source = designed.made
        described = await self._described(source)
        said: JsonObject = {"id": source.head.id, "saved": False, **described, "rounds": rounds}
        if not (save and designed.ok):
            return said
        saved = await save_as(self.app, self.caller, source)
        return {**said, "saved": True, "revision": saved.revision, "digest": saved.digest}

    async def edit_by_words(
        self,
        workflow: str,
        words: str,
        *,
        on: Sequence[AnyOperation] = (),
        apply: bool = False,
        revision: int | None = None,
        earlier: Sequence[Earlier] = (),
        hear: Callable[[Round], None] = lambda _: None,
        text: str | None = None,
    ) -> JsonObject:
        """A change that a model makes of words: shown, and with `apply` saved, if it brings no new error.

        `on`: changes that are made first and not part of what is told; `text`, `earlier`: as for `edit` and `design`.
        Raises `DesignFailed` where no operations came of it.
        """
        from pointsman.authoring.design import edit_by_words  # As above.

        self.must("editor", "change workflows")
        await self.see(workflow)
        source, known = await self._at(workflow, revision, text)
        if on:
            source = (await edit(self.app, source, on, reader=self.caller)).source
        designed = await edit_by_words(self.app, source, words, caller=self.caller, earlier=earlier, hear=hear)
        rounds: list[Json] = [one.to_json() for one in designed.rounds]
        if designed.made is None:
            raise DesignFailed(
                f"in {len(rounds)} rounds no change of {workflow!r} came of it: {_first(designed.rounds[-1])}",
                hint="Say it in other words, or give the operations.",
            )
        kept = await self.keep(designed.made, known, apply=apply and designed.ok, draft=not designed.made.ok)
        return {**kept, "rounds": rounds}

    async def delete(self, workflow: str) -> JsonObject:
        """Hide it. Executions keep the revision they run; saving it again brings it back."""
        self.must("editor", "delete workflows")
        await delete_as(self.app, self.caller, workflow)
        return {"deleted": workflow}

    async def versions(self, workflow: str) -> list[JsonObject]:
        """All revisions, newest first."""
        await self.see(workflow)
        return await list_workflows(self.app, workflow)

    async def diff(self, workflow: str, old: int | None = None, new: int | None = None) -> JsonObject:
        """Two revisions (absent: the latest two): the operations from one to the other, and their texts by line."""
        await self.see(workflow)
        lines = await diff_revisions(self.app, workflow, old, new, by=self.caller.name)
        to = new if new is not None else (await self._at(workflow, None))[1]
        since = old if old is not None else await self._before(workflow, to)
        before, after = [await source_of_saved(self.app, f"{workflow}@{one}") for one in (since, to)]
        by, chars = self.caller.name, before.chars + after.chars
        changes = await self.app[DOCUMENTS].run(changes_between, before, after, by=by, chars=chars)
        return {"from": since, "to": to, "changes": changes, "lines": lines}

    async def _before(self, workflow: str, revision: int) -> int:
        known = [entry.revision for entry in await self.app.store.workflows.list(WorkflowId(workflow))]
        return max((one for one in known if one < revision), default=revision)

    async def rollback(self, workflow: str, revision: int) -> JsonObject:
        """A new revision that says what an old one said."""
        self.must("editor", "save workflows")
        await self.see(workflow)
        source = await old_revision(self.app, workflow, revision)
        saved = await save_as(self.app, self.caller, source, draft=True)
        return {"id": workflow, "revision": saved.revision, "digest": saved.digest, "of": revision}

    # Trying it -----------------------------------------------------------------------------------------------------

    async def start(self, workflow: str, input: Json, *, session: str | None = None, key: str = "") -> Execution:
        """Begin an execution as the caller; under one `key` the same one."""
        self.must("operator", "run workflows")
        if self.depth > DEPTH_MAX:
            raise AgentsNestedTooDeep(
                f"{workflow!r} is not run: agents have run workflows of agents {DEPTH_MAX} deep",
                hint="Answer with what you have.",
            )
        trigger: JsonObject = {"kind": KEY, "by": self.caller.name, **({"depth": self.depth} if self.depth else {})}
        under = f"{KEY}|{key}" if key else None
        return await start_as(self.app, self.caller, workflow, input, session=session, key=under, trigger=trigger)

    async def watched(self, execution: Execution, hear: Hear) -> JsonObject:
        """Wait until nothing more happens here by itself; `hear` is shown its events, from the first. How it stands,
        also where another process goes on with it."""
        with suppress(TakenOver):
            async for event in execution.events():
                hear(event)
            await execution.settled()
        return self._outcome(await execution.view())

    async def execution(self, execution: str) -> JsonObject:
        """How it stands."""
        await must_see(self.app, self.caller, execution)
        return self._outcome((await seen(self.app.runtime, self.app.settings, execution))[1])

    async def answer(
        self, execution: str, gate: str, action: str, data: Json = None, comment: str = "", *, digest: str = ""
    ) -> Execution:
        """Answer an open gate as the caller."""
        self.must("operator", "answer gates")
        await must_see(self.app, self.caller, execution)
        found = await open_execution(self.app, execution)
        by, groups = self.caller.name, self.caller.groups
        await found.answer(gate, action, data, comment=comment, by=by, groups=groups, digest=digest)
        return found

    async def resume(self, execution: str) -> Execution:
        """Let an execution go on that is paused, stopped or interrupted."""
        self.must("operator", "resume executions")
        await must_see(self.app, self.caller, execution)
        found = await open_execution(self.app, execution)
        await found.resume(by=self.caller.name)
        return found

    async def cancel(self, execution: str, reason: str = "") -> JsonObject:
        """Stop it for good."""
        self.must("operator", "cancel executions")
        await must_see(self.app, self.caller, execution)
        found = await reach_execution(self.app, execution)
        await found.cancel(reason=reason, by=self.caller.name)
        return self._outcome(await found.view())

    def _outcome(self, view: JsonObject) -> JsonObject:
        """Return how an execution stands, as much as its level of observability allows, without secrets."""
        return _outcome_of(view_told(view, redactor_for(self.app.settings), keeps=("output", "waiting")))

    async def _described(self, source: Workflow) -> JsonObject:
        checked = await check(self.app, source, reader=self.caller)
        shown = await self.app[DOCUMENTS].run(shown_of, source, by=self.caller.name, chars=source.chars)
        problems: list[Json] = [problem.to_json() for problem in checked.problems]
        return {**shown, "ok": checked.ok, "problems": problems}

    async def _instead_of(self, source: Workflow, text: str) -> Workflow:
        """Another text of the same workflow. Raises `WorkflowInvalid` where it cannot be read, else `AuthorError`."""
        name = (await outlined(self.app[DOCUMENTS], source, by=self.caller.name)).given_id
        found = Workflow(text, name=str(name))
        outline = await outlined(self.app[DOCUMENTS], found, by=self.caller.name)
        if not outline.is_workflow:
            raise invalid(outline.problems)
        if outline.given_id != name:
            raise AuthorError(f"the document is of {outline.given_id!r}, not of {name!r}", hint="Correct its `id`.")
        return found


def shown_of(source: Workflow) -> JsonObject:
    """Job: a document as it is shown."""
    return {
        "document": source.original,
        "text": source.document.text,
        "dialect": source.read.dialect,
        "mermaid": converted(source, "mermaid").text if source.read.workflow is not None else "",
    }


def changes_between(before: Workflow, after: Workflow) -> list[Json]:
    """Job: the operations that lead from one document to another."""
    return written_operations(operations_between(native_of(before), native_of(after)))


def _first(one: Round) -> str:
    return next((problem.message for problem in one.problems), "nothing was wrong")


def _outcome_of(view: JsonObject) -> JsonObject:
    """What a designer wants to know of an execution."""
    keys = ("executionId", "workflowId", "status", "output", "scripted", "waiting", "errors", "path", "usage")
    return {key: view[key] for key in keys if key in view}

"""Workbench of one caller: view, change, save, restore and run the workflows that the caller may see.

Every verb returns JSON that a person or a model can use: the ids and revisions concerned, and every problem with its
position and hint. Faces and tools call these verbs and add nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import ClassVar, Final, Literal, NotRequired

from typing_extensions import TypedDict

from pointsman.auth.callers import Caller, Role
from pointsman.auth.policy import must_see, must_see_workflow, visible
from pointsman.auth.redaction import redactor_for
from pointsman.auth.verbs import Acting
from pointsman.authoring.comparison import operations_between
from pointsman.authoring.conversation_history import Earlier, Evidence, Round, RoundView, evidence_of
from pointsman.authoring.edits import Edited, EditView, edit, native_of
from pointsman.authoring.operations import AnyOperation, written_operations
from pointsman.context import AppContext
from pointsman.definition.problems import CheckReport, ProblemView, check_report
from pointsman.errors import AuthorError, CallerError
from pointsman.executions.execution import Execution, TakenOver
from pointsman.executions.family_view import seen
from pointsman.executions.opening import open_execution
from pointsman.executions.redaction_levels import view_told
from pointsman.executions.start import start_as
from pointsman.executions.verbs import ExecutionVerbs
from pointsman.runtime.children import NestedTooDeep
from pointsman.values import Json, JsonObject, WorkflowId
from pointsman.workflows.conversion import converted
from pointsman.workflows.definitions import check, outlined, source_of_saved
from pointsman.workflows.document_work import DOCUMENTS
from pointsman.workflows.library import LIBRARY
from pointsman.workflows.revisions import (
    RevisionMoved,
    SavedRevision,
    WorkflowEntryView,
    diff_revisions,
    list_workflows,
    old_revision,
    saved_view,
)
from pointsman.workflows.saving import delete_as, save_as
from pointsman.workflows.sources import Workflow, invalid

Hear = Callable[[JsonObject], None]
"""Receives events while a verb waits."""
Dialect = Literal["native", "rows", "graph", "steps", "plan"]

KEY: Final = "authoring"


DEPTH_MAX: Final = 3
"""Depth to which agents may run workflows whose agents run workflows."""


class DesignFailed(CallerError):
    """A model was asked for a change of a workflow, and none of its answers contained one."""

    code: ClassVar[str] = "design-failed"


class DocumentDescription(TypedDict):
    """A document, a diagram of it, and its problems."""

    document: Json
    text: str
    """As its author wrote it."""
    dialect: str | None
    mermaid: str
    """Empty: the document cannot be read."""
    ok: bool
    """Whether it has no errors."""
    problems: list[ProblemView]


class DescribedRevision(DocumentDescription):
    """A saved revision with its document."""

    id: str
    revision: int


class SavedDescription(DescribedRevision):
    """A revision that was saved."""

    digest: str


class DesignedWorkflow(Evidence):
    """The workflow that a model made of words."""

    id: NotRequired[str]
    ok: bool
    """Whether it has no errors."""
    saved: bool
    document: Json
    text: str
    dialect: NotRequired[str | None]
    mermaid: NotRequired[str]
    problems: list[ProblemView]
    revision: NotRequired[int]
    """The revision that was saved."""
    digest: NotRequired[str]


class EditedWorkflow(EditView):
    """What a change makes of a workflow."""

    id: str
    revision: int
    """The revision from which it was made or, if `applied`, the new one."""
    applied: bool
    digest: NotRequired[str]
    rounds: NotRequired[list[RoundView]]
    """Each answer of the model, if a model made the change."""
    scripted: NotRequired[bool]
    """Whether the scripted model answered: the change is made up, no provider was asked."""
    warnings: NotRequired[list[JsonObject]]
    """`scripted-answers` if `scripted`."""
    native: NotRequired[Json]
    """In the native dialect, if requested."""


_EarlierRevision = TypedDict("_EarlierRevision", {"from": int})  # A class cannot have a key that is a keyword.


class RevisionComparison(_EarlierRevision):
    """What two revisions differ in."""

    to: int
    changes: list[JsonObject]
    """Operations that lead from the one to the other."""
    lines: str
    """The line differences of the authors' texts."""


class RestoredRevision(SavedRevision):
    """A revision that has the document of an earlier one."""

    of: int
    """The earlier revision."""


class Workbench:
    """The library of one installation with the permissions of one caller."""

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

    def must(self, role: Role, what: str) -> None:
        """Raise `NotAllowed` if the caller's role is lower."""
        self.caller.must_have(role, what)

    async def see(self, workflow: str) -> None:
        """Raise `UnknownWorkflow` or `NotAllowed` if the caller may not see the workflow."""
        await must_see_workflow(self.app, self.caller, workflow)

    async def list(self) -> list[WorkflowEntryView]:
        """Return the latest revision of each workflow that the caller may see."""
        entries = await list_workflows(self.app, include_disabled=True)
        return [entry for entry in entries if await visible(self.app, self.caller, str(entry["id"]))]

    async def get(self, workflow: str) -> DescribedRevision:
        """Return a saved workflow as its author wrote it, with a diagram and its problems."""
        await self.see(workflow)
        source = await source_of_saved(self.app, workflow)
        revision = (await self.app[LIBRARY].found(workflow)).revision
        described = await self._described(source)
        return {"id": source.head.id, "revision": revision, **described}

    async def check(self, source: Workflow) -> CheckReport:
        """Return all problems of a document. Nothing is saved."""
        checked = await check(self.app, source, reader=self.caller)
        return check_report(checked.problems, dialect=checked.dialect)

    async def save(self, source: Workflow, *, draft: bool = False) -> SavedDescription:
        """Save a new revision. Raises `WorkflowInvalid` for a document with errors that is not a draft."""
        self.must("editor", "save workflows")
        saved = await save_as(self.app, self.caller, source, draft=draft)
        return {**saved_view(saved), **await self._described(source)}

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
    ) -> EditedWorkflow:
        """Change a saved workflow, and save it with `apply`. `revision`: the revision that it must be at.

        With `text` the operations are applied to that document instead of the saved one; with `native` the answer
        contains the native document. Raises `OperationRefused`, `RevisionMoved`, and `WorkflowInvalid` if the text
        cannot be read or would be saved with errors.
        """
        await self.see(workflow)
        source, known = await self._at(workflow, revision, text)
        edited = await edit(self.app, source, operations, reader=self.caller)
        said = await self.keep(edited, known, apply=apply, draft=draft)
        return {**said, "native": edited.native} if native else said

    async def keep(self, edited: Edited, revision: int, *, apply: bool, draft: bool) -> EditedWorkflow:
        """Return an edit; with `apply` save it over the revision that it was made from."""
        head = edited.source.outline.head
        made: EditedWorkflow = {
            "id": edited.source.name if head is None else head.id,
            "revision": revision,
            "applied": apply,
            **edited.to_json(),
        }
        if not apply:
            return made
        self.must("editor", "save workflows")
        saved = await save_as(self.app, self.caller, edited.source, draft=draft, after=revision)
        return {**made, "revision": saved.revision, "digest": saved.digest}

    async def _at(self, workflow: str, revision: int | None, text: str | None = None) -> tuple[Workflow, int]:
        """Return the saved workflow, or `text` instead of it, and the latest revision. Raises `RevisionMoved` if that
        is not `revision`."""
        name = workflow.partition("@")[0]
        latest = (await self.app[LIBRARY].found(name)).revision
        if revision is not None and revision != latest:
            raise RevisionMoved(f"{name!r} is at revision {latest} now", hint="Read it again, and change that.")
        source = await source_of_saved(self.app, workflow)
        return (source if text is None else await self._instead_of(source, text)), latest

    async def source(self, workflow: str) -> tuple[Workflow, int]:
        """Return a saved workflow that the caller may see, and its latest revision."""
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
    ) -> DesignedWorkflow:
        """Return a workflow that a model designs from words, with its rounds; with `save` save it if it has no errors.

        `earlier`: earlier requests of the same conversation. Raises `NoDesigner`, `ModelFailed`.
        """
        from pointsman.authoring.design import design  # Loads the models.

        self.must("editor", "design workflows")
        designed = await design(self.app, words, caller=self.caller, name=name, earlier=earlier, hear=hear)
        made = evidence_of(designed.rounds)
        if designed.made is None:
            problems = made["rounds"][-1]["problems"]
            return {"ok": False, "saved": False, "document": None, "text": "", "problems": problems, **made}
        source = designed.made
        described = await self._described(source)
        said: DesignedWorkflow = {"id": source.head.id, "saved": False, **described, **made}
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
    ) -> EditedWorkflow:
        """Return a change that a model designs from words; with `apply` save it if it adds no error.

        `on`: operations applied first, which are not part of the reported change; `text`, `earlier`: as in `edit` and
        `design`. Raises `DesignFailed` if no answer contained operations.
        """
        from pointsman.authoring.design import edit_by_words  # Loads the models.

        self.must("editor", "change workflows")
        await self.see(workflow)
        source, known = await self._at(workflow, revision, text)
        if on:
            source = (await edit(self.app, source, on, reader=self.caller)).source
        designed = await edit_by_words(self.app, source, words, caller=self.caller, earlier=earlier, hear=hear)
        if designed.made is None:
            raise DesignFailed(
                f"in {len(designed.rounds)} rounds no change of {workflow!r} came of it: {_first(designed.rounds[-1])}",
                hint="Say it in other words, or give the operations.",
            )
        kept = await self.keep(designed.made, known, apply=apply and designed.ok, draft=not designed.made.ok)
        return {**kept, **evidence_of(designed.rounds)}

    async def delete(self, workflow: str) -> JsonObject:
        """Delete a workflow. Executions keep the revision that they run; saving restores the workflow."""
        self.must("editor", "delete workflows")
        await delete_as(self.app, self.caller, workflow)
        return {"deleted": workflow}

    async def versions(self, workflow: str) -> list[WorkflowEntryView]:
        """Return all revisions, newest first."""
        await self.see(workflow)
        return await list_workflows(self.app, workflow)

    async def diff(self, workflow: str, old: int | None = None, new: int | None = None) -> RevisionComparison:
        """Return the operations and the line differences between two revisions, by default the latest two."""
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

    async def rollback(self, workflow: str, revision: int) -> RestoredRevision:
        """Save a new revision with the document of an old one."""
        self.must("editor", "save workflows")
        await self.see(workflow)
        source = await old_revision(self.app, workflow, revision)
        saved = await save_as(self.app, self.caller, source, draft=True)
        return {"id": workflow, "revision": saved.revision, "digest": saved.digest, "of": revision}

    async def start(self, workflow: str, input: Json, *, session: str | None = None, key: str = "") -> Execution:
        """Start an execution as the caller; repeated calls with one `key` return the same execution."""
        self.must("operator", "run workflows")
        if self.depth > DEPTH_MAX:
            raise NestedTooDeep(
                f"{workflow!r} is not run: agents have run workflows of agents {DEPTH_MAX} deep",
                hint="Answer with what you have.",
            )
        trigger: JsonObject = {"kind": KEY, "by": self.caller.name, **({"depth": self.depth} if self.depth else {})}
        under = f"{KEY}|{key}" if key else None
        return await start_as(self.app, self.caller, workflow, input, session=session, key=under, trigger=trigger)

    async def watched(self, execution: Execution, hear: Hear) -> JsonObject:
        """Wait until the execution ends, pauses or waits for a person, and return its state. `hear` receives all its
        events. If another process takes the execution over, return its state at that time."""
        with suppress(TakenOver):
            async for event in execution.events():
                hear(event)
            await execution.settled()
        return self._outcome(await execution.view())

    async def execution(self, execution: str) -> JsonObject:
        """Return the state of an execution."""
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
        """Resume an execution that is paused, stopped or interrupted."""
        self.must("operator", "resume executions")
        await must_see(self.app, self.caller, execution)
        found = await open_execution(self.app, execution)
        await found.resume(by=self.caller.name)
        return found

    async def cancel(self, execution: str, reason: str = "") -> JsonObject:
        """Cancel an execution permanently."""
        found = await self.executions.cancel(execution, reason=reason)
        return self._outcome(await found.view())

    def _outcome(self, view: JsonObject) -> JsonObject:
        """Return the state of an execution as far as its redaction level allows, without secrets."""
        return _outcome_of(view_told(view, redactor_for(self.app.settings), keeps=("output", "waiting")))

    async def _described(self, source: Workflow) -> DocumentDescription:
        checked = await check(self.app, source, reader=self.caller)
        shown = await self.app[DOCUMENTS].run(shown_of, source, by=self.caller.name, chars=source.chars)
        return {**shown, "ok": checked.ok, "problems": [problem.to_json() for problem in checked.problems]}

    async def _instead_of(self, source: Workflow, text: str) -> Workflow:
        """Return another text of the same workflow. Raises `WorkflowInvalid` if it cannot be read, `AuthorError` if it
        has another id."""
        name = (await outlined(self.app[DOCUMENTS], source, by=self.caller.name)).given_id
        found = Workflow(text, name=str(name))
        outline = await outlined(self.app[DOCUMENTS], found, by=self.caller.name)
        if not outline.is_workflow:
            raise invalid(outline.problems)
        if outline.given_id != name:
            raise AuthorError(f"the document is of {outline.given_id!r}, not of {name!r}", hint="Correct its `id`.")
        return found


class DrawnDocument(TypedDict):
    """A document and its diagram."""

    document: Json
    text: str
    dialect: str | None
    mermaid: str


def shown_of(source: Workflow) -> DrawnDocument:
    """Job: return the JSON that represents a document."""
    return {
        "document": source.original,
        "text": source.document.text,
        "dialect": source.read.dialect,
        "mermaid": converted(source, "mermaid").text if source.read.workflow is not None else "",
    }


def changes_between(before: Workflow, after: Workflow) -> list[JsonObject]:
    """Job: return the operations that lead from one document to another."""
    return written_operations(operations_between(native_of(before), native_of(after)))


def _first(one: Round) -> str:
    return next((problem.message for problem in one.problems), "nothing was wrong")


def _outcome_of(view: JsonObject) -> JsonObject:
    """Return the part of an execution view that a designer needs."""
    keys = ("executionId", "workflowId", "status", "output", "scripted", "waiting", "errors", "path", "usage")
    return {key: view[key] for key in keys if key in view}

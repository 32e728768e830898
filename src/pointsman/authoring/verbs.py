"""Verbs of authoring: design and edit workflows, by words or by operations; compare and restore revisions; try agents.

See `auth.verbs` for how a verb is written. A call that asks a model is recorded in the audit log even if it saves
nothing, because it costs money.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import ClassVar, NotRequired

from typing_extensions import TypedDict

from pointsman.auth.policy import must_see_workflow
from pointsman.auth.verbs import Verbs, verb
from pointsman.authoring.comparison import operations_between
from pointsman.authoring.design import EarlierRequest, Evidence, Round, RoundView, evidence_of
from pointsman.authoring.edits import Edited, EditView, edit, native_of
from pointsman.authoring.operations import AnyOperation, written_operations
from pointsman.authoring.trials import TrialTurn, draft_source, dry_run_draft, is_unsaved, try_agent, try_draft
from pointsman.definition.graph.analysis import GraphView
from pointsman.definition.problems import ProblemView, invalid
from pointsman.errors import AuthorError, CallerError
from pointsman.executions.dry_run import DryRun
from pointsman.executions.execution import Execution
from pointsman.executions.views import WarningView
from pointsman.store.errors import RevisionMoved
from pointsman.values import Json, JsonObject, WorkflowId
from pointsman.workflows.conversion import converted
from pointsman.workflows.definitions import check, outlined, source_of_saved
from pointsman.workflows.document_work import DOCUMENTS
from pointsman.workflows.library import LIBRARY
from pointsman.workflows.revisions import SavedRevision, diff_revisions, old_revision, saved_view
from pointsman.workflows.saving import save_as
from pointsman.workflows.sources import Workflow


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
    warnings: NotRequired[list[WarningView]]
    """`scripted-answers` if `scripted`."""
    native: NotRequired[Json]
    """In the native dialect, if requested."""
    graph: NotRequired[GraphView | None]
    """The regions, if requested; null: the document has structural errors."""


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


def _saved_ids(made: DesignedWorkflow | EditedWorkflow | RestoredRevision) -> Mapping[str, object]:
    """Return the id and the revision of what was saved; empty: nothing."""
    return {"id": made.get("id"), "revision": made.get("revision")} if "digest" in made else {}


def _trial_id(trial: Execution | DryRun) -> Mapping[str, object]:
    return {"executionId": trial.id} if isinstance(trial, Execution) else {}


class AuthoringVerbs(Verbs):
    """Actions of a caller that write workflows and agents."""

    @verb("editor", "write workflows", target=("name",), made=_saved_ids)
    async def design(
        self,
        words: str,
        *,
        name: str = "",
        save: bool = False,
        earlier: Sequence[EarlierRequest] = (),
        listener: Callable[[Round], None] = lambda _: None,
    ) -> DesignedWorkflow:
        """Return a workflow that a model designs from words, with its rounds; with `save` save it if it has no errors.

        `earlier`: earlier requests of the same conversation. Raises `DesignModelMissing`, `ModelFailed`.
        """
        from pointsman.authoring.design import design  # Loads the models.

        designed = await design(self.app, words, caller=self.caller, name=name, earlier=earlier, listener=listener)
        evidence = evidence_of(designed.rounds)
        if designed.made is None:
            problems = evidence["rounds"][-1]["problems"]
            return {"ok": False, "saved": False, "document": None, "text": "", "problems": problems, **evidence}
        source = designed.made
        description = await self.described(source)
        workflow: DesignedWorkflow = {"id": source.head.id, "saved": False, **description, **evidence}
        if not (save and designed.ok):
            return workflow
        saved = await save_as(self.app, self.caller, source)
        return {**workflow, "saved": True, "revision": saved.revision, "digest": saved.digest}

    @verb("editor", "write workflows", target=("workflow",), when="apply", made=_saved_ids)
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
        graph: bool = False,
    ) -> EditedWorkflow:
        """Change a saved workflow, and save it with `apply`. `revision`: the revision that it must be at.

        With `text` the operations are applied to that document instead of the saved one; with `native` the result
        contains the native document, with `graph` its regions. Raises `OperationRefused`, `RevisionMoved`, and
        `WorkflowInvalid` if the text cannot be read or would be saved with errors.
        """
        await must_see_workflow(self.app, self.caller, workflow)
        source, current = await self._at(workflow, revision, text)
        edited = await edit(self.app, source, operations, reader=self.caller)
        made = await self._save_if_applied(edited, current, apply=apply, draft=draft)
        if native:
            made["native"] = edited.native
        if graph:
            made["graph"] = edited.graph
        return made

    @verb("editor", "write workflows", target=("workflow",), made=_saved_ids)
    async def edit_by_words(
        self,
        workflow: str,
        words: str,
        *,
        on: Sequence[AnyOperation] = (),
        apply: bool = False,
        revision: int | None = None,
        earlier: Sequence[EarlierRequest] = (),
        listener: Callable[[Round], None] = lambda _: None,
        text: str | None = None,
    ) -> EditedWorkflow:
        """Return a change that a model designs from words; with `apply` save it if it adds no error.

        `on`: operations applied first, which are not part of the reported change; `text`, `earlier`: as in `edit` and
        `design`. Raises `DesignFailed` if no answer contained operations.
        """
        from pointsman.authoring.design import edit_by_words  # Loads the models.

        await must_see_workflow(self.app, self.caller, workflow)
        source, current = await self._at(workflow, revision, text)
        if on:
            source = (await edit(self.app, source, on, reader=self.caller)).source
        designed = await edit_by_words(self.app, source, words, caller=self.caller, earlier=earlier, listener=listener)
        if designed.made is None:
            raise DesignFailed(
                f"the model could not change {workflow!r} in {len(designed.rounds)} rounds: "
                f"{_first(designed.rounds[-1])}",
                hint="Rephrase the description, or send operations.",
            )
        made = await self._save_if_applied(
            designed.made, current, apply=apply and designed.ok, draft=not designed.made.ok
        )
        return {**made, **evidence_of(designed.rounds)}

    @verb("viewer", "see workflows", audit=False)
    async def compare(self, workflow: str, old: int | None = None, new: int | None = None) -> RevisionComparison:
        """Return the operations and the line differences between two revisions, by default the latest two."""
        await must_see_workflow(self.app, self.caller, workflow)
        lines = await diff_revisions(self.app, workflow, old, new, by=self.caller.name)
        to = new if new is not None else (await self._at(workflow, None))[1]
        since = old if old is not None else await self._before(workflow, to)
        before, after = [await source_of_saved(self.app, f"{workflow}@{one}") for one in (since, to)]
        by, chars = self.caller.name, before.chars + after.chars
        changes = await self.app[DOCUMENTS].run(changes_between, before, after, by=by, chars=chars)
        return {"from": since, "to": to, "changes": changes, "lines": lines}

    @verb("editor", "write workflows", target=("workflow", "revision"), made=_saved_ids)
    async def restore(self, workflow: str, revision: int) -> RestoredRevision:
        """Save a new revision with the document of an old one. Raises `UnknownWorkflow`, `NoSuchRevision`."""
        await must_see_workflow(self.app, self.caller, workflow)
        source = await old_revision(self.app, workflow, revision)
        saved = await save_as(self.app, self.caller, source, draft=True)
        return {**saved_view(saved), "id": workflow, "of": revision}

    @verb("editor", "write workflows", target=("workflow",), unless="dry_run", made=_trial_id)
    async def try_workflow(
        self,
        workflow: str,
        input: Json,
        trial: JsonObject,
        *,
        operations: Sequence[AnyOperation] = (),
        document: Json = None,
        model: str | None = None,
        dry_run: bool = False,
    ) -> Execution | DryRun:
        """Start a partial run of a workflow as it is being written, see `trials`. `trial`: see
        `executions.start.trial_of`. `dry_run`: only return its path and its estimated cost. With a `document` the
        workflow need not be saved.

        Raises `UnknownWorkflow`, `OperationRefused`, `PartialRunInvalid`, `WorkflowInvalid`, `TooManyRequests`.
        """
        if document is None or not await is_unsaved(self.app, self.caller, workflow):
            await must_see_workflow(self.app, self.caller, workflow)
        draft = await draft_source(self.app, self.caller, workflow, operations=operations, document=document)
        if dry_run:
            return await dry_run_draft(self.app, self.caller, draft, input, trial)
        return await try_draft(self.app, self.caller, draft, input, trial, model=model)

    @verb("editor", "write workflows", target=("name",), made=lambda turn: {"executionId": turn.execution.id})
    async def try_agent(
        self,
        name: str,
        message: str,
        *,
        agent: JsonObject | None = None,
        session: str | None = None,
        model: str | None = None,
    ) -> TrialTurn:
        """Send a message to an agent; see `agent_trials.try_agent`."""
        return await try_agent(self.app, self.caller, name, message, agent=agent, session=session, model=model)

    @verb("viewer", "see workflows", audit=False)
    async def describe(self, reference: str) -> DescribedRevision:
        """Return a saved workflow as its author wrote it, with a diagram and its problems. Raises `UnknownWorkflow`."""
        await must_see_workflow(self.app, self.caller, reference)
        source = await source_of_saved(self.app, reference)
        revision = (await self.app[LIBRARY].found(reference)).revision
        return {"id": source.head.id, "revision": revision, **await self.described(source)}

    async def described(self, source: Workflow) -> DocumentDescription:
        """Return a document with its diagram and its problems."""
        checked = await check(self.app, source, reader=self.caller)
        drawn = await self.app[DOCUMENTS].run(drawn_document, source, by=self.caller.name, chars=source.chars)
        return {**drawn, "ok": checked.ok, "problems": [problem.to_json() for problem in checked.problems]}

    async def _save_if_applied(self, edited: Edited, revision: int, *, apply: bool, draft: bool) -> EditedWorkflow:
        """Return an edit; with `apply` save it over the revision that it was made from."""
        head = edited.source.outline.head
        workflow: EditedWorkflow = {
            "id": edited.source.name if head is None else head.id,
            "revision": revision,
            "applied": apply,
            **edited.to_json(),
        }
        if not apply:
            return workflow
        saved = await save_as(self.app, self.caller, edited.source, draft=draft, after=revision)
        return {**workflow, "revision": saved.revision, "digest": saved.digest}

    async def _at(self, workflow: str, revision: int | None, text: str | None = None) -> tuple[Workflow, int]:
        """Return the saved workflow, or `text` instead of it, and the latest revision. Raises `RevisionMoved` if that
        is not `revision`."""
        name = workflow.partition("@")[0]
        latest = (await self.app[LIBRARY].found(name)).revision
        if revision is not None and revision != latest:
            raise RevisionMoved(f"{name!r} is at revision {latest} now", hint="Read it again, and change that.")
        source = await source_of_saved(self.app, workflow)
        return (source if text is None else await self._instead_of(source, text)), latest

    async def _before(self, workflow: str, revision: int) -> int:
        revisions = [entry.revision for entry in await self.app.store.workflows.list(WorkflowId(workflow))]
        return max((one for one in revisions if one < revision), default=revision)

    async def _instead_of(self, source: Workflow, text: str) -> Workflow:
        """Return another text of the same workflow. Raises `WorkflowInvalid` if it cannot be read, `AuthorError` if it
        has another id."""
        name = (await outlined(self.app[DOCUMENTS], source, by=self.caller.name)).given_id
        workflow = Workflow(text, name=str(name))
        outline = await outlined(self.app[DOCUMENTS], workflow, by=self.caller.name)
        if not outline.is_workflow:
            raise invalid(outline.problems)
        if outline.given_id != name:
            raise AuthorError(f"the document is of {outline.given_id!r}, not of {name!r}", hint="Correct its `id`.")
        return workflow


class DrawnDocument(TypedDict):
    """A document and its diagram."""

    document: Json
    text: str
    dialect: str | None
    mermaid: str


def drawn_document(source: Workflow) -> DrawnDocument:
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

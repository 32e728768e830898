"""Verbs of saved workflows and of documents. The rights are those of `auth.policy` and `auth.sharing`.

See `auth.verbs` for how a verb is written. A write takes `match`, the ETag of the version that it may replace.
"""

from __future__ import annotations

import builtins
from collections.abc import Collection, Mapping

import msgspec

from pointsman.auth.policy import id_must_be_free, must_see_workflow, sees_entry, visible
from pointsman.auth.sharing import must_own, sharing_of
from pointsman.auth.verbs import Verbs, verb
from pointsman.definition.problems import check_report
from pointsman.errors import AuthorError
from pointsman.etags import match_etag
from pointsman.paging import page_by, revision_place
from pointsman.ports import ToolSpec
from pointsman.store.errors import RevisionMoved
from pointsman.values import JsonObject
from pointsman.workflows.conversion import ConvertedDocument, converted_for, patched
from pointsman.workflows.definitions import check, outlined, source_of_saved
from pointsman.workflows.document_work import DOCUMENTS
from pointsman.workflows.folders import must_see_folder
from pointsman.workflows.formulas import CheckedFormula, EvaluatedFormula, Formula, check_formula, evaluate_formula
from pointsman.workflows.library import LIBRARY, pipeline_of
from pointsman.workflows.offers import withheld
from pointsman.workflows.revisions import (
    PLACES,
    DocumentCheck,
    PatchedRevision,
    SavedRevision,
    Sort,
    WorkflowEntryView,
    WorkflowRevisions,
    WorkflowView,
    clone_of,
    delete_workflow,
    diff_revisions,
    etag_of_revision,
    fitting,
    list_workflows,
    publish_version,
    saved_view,
    shown_revisions,
    unpublish_version,
)
from pointsman.workflows.saving import save_as
from pointsman.workflows.sources import Workflow
from pointsman.workflows.tools import WorkflowTools
from pointsman.workflows.versions import NamedVersionView, version_view


def _created(saved: SavedRevision) -> Mapping[str, object]:
    return {"id": saved["id"], "revision": saved["revision"]}


class WorkflowVerbs(Verbs):
    """Actions of a caller on saved workflows and with documents."""

    @verb("viewer", "see workflows", audit=False)
    async def tools(self, saved: WorkflowTools) -> builtins.list[ToolSpec]:
        """Return the saved workflows that the caller may run and that are offered as MCP tools. `saved` caches those
        read before."""
        if not self.caller.has("operator"):
            return []
        hidden = await withheld(self.app.store.entries, "mcp")
        specs = [tool.spec for tool in await saved.listed() if tool.spec.workflow not in hidden]
        return [spec for spec in specs if await visible(self.app, self.caller, spec.workflow)]

    @verb("viewer", "see workflows", audit=False)
    async def list(
        self,
        *,
        include_disabled: bool = False,
        built_in: bool | None = None,
        words: str = "",
        tags: Collection[str] = (),
        ids: Collection[str] | None = None,
        folder: str = "",
        sort: Sort = "id",
        backwards: bool = False,
        after: str | None = None,
        limit: int | None = None,
    ) -> WorkflowRevisions:
        """Return a page of the workflows that the caller may see, each with its latest revision; see `list_workflows`
        and `fitting`. No `limit`: all."""

        async def seen(entry: WorkflowEntryView) -> bool:
            return await sees_entry(self.app, self.caller, entry["id"], shown_revisions(entry))

        entries = await list_workflows(self.app, include_disabled=include_disabled, built_in=built_in)
        fitting_entries = fitting(entries, words=words, tags=tags, ids=ids, folder=folder)
        most = len(fitting_entries) if limit is None else limit
        page = await page_by(PLACES[sort], fitting_entries, after=after, limit=most, sees=seen, backwards=backwards)
        return {"workflows": page.entries, "next": page.next}

    @verb("admin", "run documents", audit=False)
    async def ids(self) -> builtins.list[str]:
        """Return the ids of all saved and built-in workflows; for people at the machine."""
        return await self.app[LIBRARY].ids()

    @verb("viewer", "see workflows", audit=False)
    async def pipeline(self) -> str:
        """Return the id of the workflow that the setting `pipeline` names, see `pipeline_of`."""
        return await pipeline_of(self.app)

    @verb("viewer", "see workflows", audit=False)
    async def versions(
        self, workflow: str, *, oldest_first: bool = False, after: str | None = None, limit: int | None = None
    ) -> WorkflowRevisions:
        """Return a page of the revisions of a workflow. Raises `UnknownWorkflow`."""
        await must_see_workflow(self.app, self.caller, workflow)
        entries = await list_workflows(self.app, workflow)
        most = len(entries) if limit is None else limit
        page = await page_by(revision_place, entries, after=after, limit=most, backwards=not oldest_first)
        return {"workflows": page.entries, "next": page.next}

    @verb("viewer", "see workflows", audit=False)
    async def source(self, reference: str) -> Workflow:
        """Return a workflow as its author wrote it. Raises `UnknownWorkflow`."""
        await must_see_workflow(self.app, self.caller, reference)
        return await source_of_saved(self.app, reference)

    @verb("viewer", "see workflows", audit=False)
    async def read(self, reference: str) -> WorkflowView:
        """Return a workflow with its document and problems. Raises `UnknownWorkflow`."""
        await must_see_workflow(self.app, self.caller, reference)
        source = await source_of_saved(self.app, reference)
        entry = await self._entry(reference)
        checked = await check(self.app, source, reader=self.caller)
        await self.app[DOCUMENTS].here(lambda: source.read, chars=source.chars, of=source.digest)
        problems = [problem.to_json() for problem in checked.problems]
        return {**entry, "document": source.original, "text": source.document.text, "problems": problems}

    @verb("viewer", "see workflows", audit=False)
    async def convert_saved(self, reference: str, target: str, *, as_yaml: bool = False) -> ConvertedDocument:
        """Return a workflow in another dialect or as a diagram. Raises `UnknownWorkflow`."""
        await must_see_workflow(self.app, self.caller, reference)
        source = await source_of_saved(self.app, reference)
        made = await converted_for(self.app, source, target, by=self.caller.name, as_yaml=as_yaml)
        return made.to_json(target, as_yaml=as_yaml)

    @verb("viewer", "see workflows", audit=False)
    async def diff(self, workflow: str, old: int | None = None, new: int | None = None) -> str:
        """Return the line differences of two revisions, by default the latest two. Raises `UnknownWorkflow`,
        `NoSuchRevision`."""
        await must_see_workflow(self.app, self.caller, workflow)
        return await diff_revisions(self.app, workflow, old, new, by=self.caller.name)

    @verb("viewer", "check documents", audit=False)
    async def check(self, source: Workflow) -> DocumentCheck:
        """Return the problems of a document, and the workflow that saving it would change. Nothing is saved."""
        checked = await check(self.app, source, reader=self.caller)
        return {
            "id": checked.id,
            "revision": await self._latest_revision(checked.id),
            **check_report(checked.problems, dialect=checked.dialect),
        }

    @verb("viewer", "convert documents", audit=False)
    async def convert(self, source: Workflow, target: str) -> ConvertedDocument:
        """Return a document in another dialect or as a diagram. Nothing is saved."""
        return (await converted_for(self.app, source, target, by=self.caller.name)).to_json(target)

    @verb("viewer", "check formulas", audit=False)
    async def check_formula(self, formula: Formula) -> CheckedFormula:
        """Return the problems of a formula and what it reads."""
        chars = len(formula.text) + _chars_of(formula.schemas)
        return await self.app[DOCUMENTS].run(check_formula, formula, by=self.caller.name, chars=chars)

    @verb("viewer", "evaluate formulas", audit=False)
    async def evaluate_formula(self, formula: Formula, values: JsonObject) -> EvaluatedFormula:
        """Return the value of a formula over `values`, within the limits of the language."""
        chars = len(formula.text) + _chars_of(values)
        return await self.app[DOCUMENTS].run(evaluate_formula, formula, values, by=self.caller.name, chars=chars)

    @verb("editor", "write workflows", made=_created)
    async def save(
        self,
        source: Workflow,
        *,
        draft: bool = False,
        after: int | None = None,
        author: str | None = None,
        folder: str = "",
    ) -> SavedRevision:
        """Save a revision; the caller owns a new workflow, which lies in `folder`. `after`: the revision that the
        workflow must be at (0: it must not exist). `author`: see `Verbs.name_for`. Raises the errors of `save_as`."""
        author = self.name_for(author)
        if folder:
            await must_see_folder(self.app, self.caller, folder)
        self.tries(id=(await outlined(self.app[DOCUMENTS], source, by=self.caller.name)).given_id)
        saved = await save_as(self.app, self.caller, source, author=author, draft=draft, after=after, folder=folder)
        return saved_view(saved)

    @verb("editor", "write workflows", target=("workflow",))
    async def replace(
        self, workflow: str, source: Workflow, *, draft: bool = False, match: str | None = None
    ) -> SavedRevision:
        """Save a new revision of a workflow; executions keep theirs. Raises `UnknownWorkflow`, `RevisionMoved`, and
        `AuthorError` if the document has another id."""
        await must_see_workflow(self.app, self.caller, workflow)
        await outlined(self.app[DOCUMENTS], source, by=self.caller.name)
        if source.head.id != workflow:
            raise AuthorError(f"the document has the id {source.head.id!r}, not {workflow!r}", hint="Correct its `id`.")
        after = await self._matched(workflow, match)
        return saved_view(await save_as(self.app, self.caller, source, draft=draft, after=after))

    @verb("editor", "write workflows", target=("workflow",))
    async def patch(self, workflow: str, changes: JsonObject, *, match: str | None = None) -> PatchedRevision:
        """Apply a JSON merge patch to the metadata of a workflow, see `metadata.patched`."""
        await must_see_workflow(self.app, self.caller, workflow)
        after = await self._matched(workflow, match)
        before = await source_of_saved(self.app, workflow)
        made = await self.app[DOCUMENTS].run(patched, before, changes, by=self.caller.name, chars=before.chars)
        saved = await save_as(self.app, self.caller, made.source, draft=True, after=after)
        return {**saved_view(saved), "losses": made.losses}

    @verb("editor", "write workflows", target=("workflow", "new"), made=_created)
    async def clone(self, workflow: str, new: str, *, author: str | None = None) -> SavedRevision:
        """Save a copy of a workflow under another id in the same folder; the caller owns it. Raises the errors of
        `clone_of` and `save_as`."""
        author = self.name_for(author)
        self.tries(id=new)
        await must_see_workflow(self.app, self.caller, workflow)
        await id_must_be_free(self.app, self.caller, new)
        source = await clone_of(self.app, workflow, new, by=self.caller.name)
        folder = (await sharing_of(self.app, workflow)).folder
        return saved_view(await save_as(self.app, self.caller, source, author=author, draft=True, folder=folder))

    @verb("editor", "write workflows", target=("workflow", "revision", "name"))
    async def publish(
        self, workflow: str, name: str, *, note: str = "", revision: int | None = None
    ) -> NamedVersionView:
        """Name a revision (None: the newest) and let it run by id; see `publish_version` for the errors."""
        await must_see_workflow(self.app, self.caller, workflow)
        whole = workflow.partition("@")[0]
        wanted = (await self.app[LIBRARY].found(workflow)).revision if revision is None else revision
        return version_view(await publish_version(self.app, self.caller, whole, wanted, name=name, note=note))

    @verb("editor", "write workflows", target=("workflow",))
    async def unpublish(self, workflow: str) -> None:
        """Let the newest revision run by id again; names stay. Raises `UnknownWorkflow`."""
        await must_see_workflow(self.app, self.caller, workflow)
        await unpublish_version(self.app, workflow.partition("@")[0])

    @verb("editor", "write workflows", target=("workflow",))
    async def delete(self, workflow: str, *, match: str | None = None) -> None:
        """Delete a workflow: its owner or an admin may. Executions keep their revision; saving restores the workflow.

        Raises `UnknownWorkflow`, `NotAllowed`, `RevisionMoved`."""
        await must_see_workflow(self.app, self.caller, workflow)
        after = await self._matched(workflow, match)
        if (await sharing_of(self.app, workflow)).owner:
            await must_own(self.app, self.caller, workflow.partition("@")[0], "delete it")
        await delete_workflow(self.app, workflow, after=after)

    async def _entry(self, reference: str) -> WorkflowEntryView:
        revision = (await self.app[LIBRARY].found(reference)).revision
        entries = await list_workflows(self.app, reference.partition("@")[0])
        return next(entry for entry in entries if entry["revision"] == revision)

    async def _latest_revision(self, workflow: str | None) -> int | None:
        """Return the latest revision of a workflow id; None: there is none, or the caller may not see it."""
        if workflow is None or not workflow.isprintable():
            return None
        saved = await self.app[LIBRARY].workflows.find(workflow)
        return saved.revision if saved is not None and await visible(self.app, self.caller, saved.draft.id) else None

    async def _matched(self, workflow: str, match: str | None) -> int | None:
        """Return the revision that a write must replace; None: any. Raises `RevisionMoved`."""
        if match is None:
            return None
        entry = await self._entry(workflow)
        revision = entry["revision"]
        return match_etag(match, etag_of_revision(entry), revision, RevisionMoved.of(workflow, revision))


def _chars_of(value: object) -> int:
    return len(msgspec.json.encode(value))

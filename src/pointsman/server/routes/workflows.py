"""Operations on saved workflows: list, read, check, write, delete, compare."""

from __future__ import annotations

from typing import Annotated, Final, Literal

import msgspec
from fastapi import Query, Request, Response
from pydantic import Field

from pointsman.app import Workflow
from pointsman.auth.callers import Caller
from pointsman.auth.policy import must_see_workflow, sees_entry, visible
from pointsman.definition.problems import check_report
from pointsman.errors import AuthorError
from pointsman.etags import held
from pointsman.executions.lists import ExecutionEntry
from pointsman.executions.pages import with_last
from pointsman.paging import page_by, revision_place
from pointsman.server.context import CurrentCaller, CurrentServer, ServerContext
from pointsman.server.json_responses import JsonReply
from pointsman.server.operation import Operations
from pointsman.server.routes.parameters import ETAG, After, Dialect, Draft, Editor, Id, IfMatch, IfNew, Limit, Order
from pointsman.server.routes.response_docs import Described, answers, raw_body, refusals, text_answer
from pointsman.server.schemas.requests import Answer, CheckBody, CloneBody, PatchBody, sample
from pointsman.server.schemas.responses import (
    ENTRY,
    WORKFLOW,
    WorkflowEntryAnswer,
)
from pointsman.server.schemas.views import example, reference_to
from pointsman.values import JsonObject, json_of
from pointsman.workflows.catalogue import PLACES, Sort, fitting
from pointsman.workflows.conversion import ConvertedDocument, converted_for
from pointsman.workflows.document_work import DOCUMENTS
from pointsman.workflows.metadata import patched
from pointsman.workflows.revisions import (
    DocumentCheck,
    PatchedRevision,
    RevisionMoved,
    SavedRevision,
    WorkflowEntryView,
    WorkflowRevisions,
    WorkflowView,
    WrittenWorkflow,
    diff_revisions,
    etag_of_revision,
    list_workflows,
    saved_view,
)
from pointsman.workflows.saving import clone_as, delete_as, save_as

example(WorkflowRevisions, {"workflows": [WORKFLOW], "next": None})
example(SavedRevision, {"id": "letter", "revision": 2, "digest": "9f86d081884c7d65"})
example(PatchedRevision, {"id": "letter", "revision": 3, "digest": "9f86d081884c7d65", "losses": ["comments, …"]})
example(
    WorkflowView,
    {
        **WORKFLOW,
        "document": {"pointsman": 1, "id": "letter", "nodes": [{"id": "write", "type": "agent"}]},
        "text": "pointsman: 1\nid: letter\nnodes: [{id: write, type: agent}]\n",
        "problems": [],
    },
)
example(WrittenWorkflow, {"document": {"pointsman": 1, "id": "letter", "nodes": []}, "losses": []})
example(ConvertedDocument, {"text": "flowchart TD\n  write --> review\n", "document": None, "losses": []})
example(
    DocumentCheck,
    {
        "ok": False,
        "dialect": "native",
        "id": "letter",
        "revision": 2,
        "problems": [
            {
                "code": "unknown-target",
                "severity": "error",
                "pointer": "/edges/0/target",
                "line": 9,
                "column": 12,
                "message": "an edge leads to 'sned', which does not exist",
                "hint": "Known nodes: write, send.",
                "fix": None,
            }
        ],
    },
)


class CatalogueEntryAnswer(WorkflowEntryAnswer):
    """A saved workflow in the list of all."""

    etag: str = Field(description=ETAG)
    last_execution: ExecutionEntry | None = Field(
        default=None, description="With `last`: the one that began last, of those that the caller sees."
    )


class CataloguePage(Answer):
    """Saved workflows, without their documents."""

    model_config = sample(
        workflows=[{**json_of(WORKFLOW), "etag": '"2-9f86d081884c7d65"', "lastExecution": ENTRY}], next=None
    )
    workflows: list[CatalogueEntryAnswer]
    next: str | None = Field(default=None, description="The `after` of the next page; null: this was the last.")


router = Operations(prefix="/api/workflows", tags=["workflows"])

Target = Literal["native", "rows", "graph", "steps", "mermaid", "bpmn"]

IDS_MAX: Final = 200
EXAMPLE: Final = "pointsman: 1\nid: hello\nnodes: [{id: say, type: agent, config: {prompt: Say hello}}]\n"
EXAMPLE_OBJECT: Final[JsonObject] = {
    "pointsman": 1,
    "id": "hello",
    "nodes": [{"id": "say", "type": "agent", "config": {"prompt": "Say hello"}}],
}
DIFFERENCE: Final = "--- letter@1\n+++ letter@2\n@@ -4 +4 @@\n-    prompt: one\n+    prompt: two\n"
DOCUMENT: Final = raw_body(
    {
        "application/yaml": ({"anyOf": [{"type": "object"}, {"type": "string"}]}, EXAMPLE),
        "application/json": ({"type": "object"}, EXAMPLE_OBJECT),
    }
)
"""The YAML body is an object for clients that encode YAML, and a string for clients that send a file unchanged."""
MEDIA: Final = {"mermaid": "text/vnd.mermaid; charset=utf-8", "bpmn": "application/xml"}

READ: Final[Described] = {
    200: {
        "description": "With `dialect`: the document in it and what it cannot say, or the picture as text.",
        "content": {
            "application/json": {"schema": {"anyOf": [reference_to(WorkflowView), reference_to(WrittenWorkflow)]}},
            "text/vnd.mermaid": {"schema": {"type": "string"}, "example": "flowchart TD\n  write --> review\n"},
            "application/xml": {"schema": {"type": "string"}, "example": "<definitions>…</definitions>"},
        },
    }
}


@router.get("", responses=answers(CataloguePage), summary="List workflows")
async def list_(
    *,
    desk: CurrentServer,
    caller: CurrentCaller,
    disabled: Annotated[bool, Query(description="Those that are switched off too.")] = False,
    built_in: Annotated[bool | None, Query(alias="builtIn", description="Only those, or only the others.")] = None,
    search: Annotated[
        str, Query(max_length=200, description="Only those with all these words in id, name, description or tags.")
    ] = "",
    tag: Annotated[list[str] | None, Query(max_length=20, description="Only those with all these tags.")] = None,
    id: Annotated[list[str] | None, Query(max_length=IDS_MAX, description="Only these.")] = None,
    sort: Annotated[
        Sort, Query(description="By `id` (the built-in ones last), by `name`, or by when they were `saved`.")
    ] = "id",
    order: Order = "asc",
    last: Annotated[bool, Query(description="Each with its last execution.")] = False,
    after: After = None,
    limit: Limit = 200,
) -> Response:
    """The latest revision of each that the caller may see, without its document. A page begins where the one before
    ended, whatever was saved or deleted meanwhile; it must be asked for with the same `sort` and `order`."""

    async def seen(entry: WorkflowEntryView) -> bool:
        return await sees_entry(desk.app.context, caller, entry)

    entries = await list_workflows(desk.app.context, include_disabled=disabled, built_in=built_in)
    found = fitting(entries, words=search, tags=tag or (), ids=id)
    page = await page_by(PLACES[sort], found, after=after, limit=limit, sees=seen, backwards=order == "desc")
    marked: list[JsonObject] = [{**json_of(one), "etag": etag_of_revision(one)} for one in page.entries]
    told = await with_last(desk.app.context, caller, marked) if last else marked
    return JsonReply({"workflows": [*told], "next": page.next})


@router.post(
    "",
    responses=answers(
        SavedRevision,
        "workflow-invalid",
        "revision-moved",
        "webhook-taken",
        "id-taken",
        "built-in-workflow",
        status=201,
        body=True,
    ),
    status_code=201,
    summary="Save a workflow",
    openapi_extra=DOCUMENT,
)
async def create(
    *,
    desk: CurrentServer,
    caller: Editor,
    request: Request,
    draft: Draft = False,
    dialect: Dialect = None,
    if_new: IfNew = None,
) -> Response:
    """The body is the document, in any dialect, as JSON or YAML. The same document again is the same revision."""
    source = Workflow(await request.body(), dialect=dialect)
    return await _save(desk, caller, source, draft=draft, status=201, after=0 if if_new else None)


@router.post(
    "/check", responses=answers(DocumentCheck, "document-too-expensive", body=True), summary="Check a document"
)
async def check(desk: CurrentServer, caller: CurrentCaller, body: CheckBody) -> Response:
    """All its problems, with their places, and what saving it would go on top of. Nothing is saved."""
    given = body.document
    text = given if isinstance(given, str) else msgspec.json.encode(given)
    checked = await desk.app.check(Workflow(text, dialect=body.dialect), reader=caller)
    report: DocumentCheck = {
        "id": checked.id,
        "revision": await _known(desk, caller, checked.id),
        **check_report(checked.problems, dialect=checked.dialect),
    }
    return JsonReply(report)


@router.get("/{id}", responses=READ | refusals("unknown-workflow", "document-too-expensive"), summary="Read a workflow")
async def read(
    desk: CurrentServer,
    caller: CurrentCaller,
    id: Id,
    dialect: Annotated[Target | None, Query(description="Written in this dialect, or drawn.")] = None,
) -> Response:
    """With its document as its author wrote it, and what is wrong with it."""
    await must_see_workflow(desk.app.context, caller, id)
    source = await desk.app.source(id)
    if dialect is not None:
        written = await converted_for(desk.app.context, source, dialect, by=caller.name)
        if dialect in MEDIA:
            return Response(written.text, media_type=MEDIA[dialect])
        made: WrittenWorkflow = {
            "document": msgspec.json.decode(written.text),
            "losses": [loss.to_json() for loss in written.losses],
        }
        return JsonReply(made)
    entry = await _entry(desk, id)
    checked = await desk.app.check(source, reader=caller)
    problems = [problem.to_json() for problem in checked.problems]
    await desk.app.context[DOCUMENTS].here(lambda: source.read, chars=source.chars, of=source.digest)
    view: WorkflowView = {**entry, "document": source.original, "text": source.document.text, "problems": problems}
    return JsonReply(view, headers={"etag": etag_of_revision(entry)})


@router.put(
    "/{id}",
    responses=answers(
        SavedRevision, "unknown-workflow", "revision-moved", "workflow-invalid", "built-in-workflow", body=True
    ),
    summary="Replace a workflow",
    openapi_extra=DOCUMENT,
)
async def replace(
    *,
    desk: CurrentServer,
    caller: Editor,
    request: Request,
    id: Id,
    draft: Draft = False,
    dialect: Dialect = None,
    if_match: IfMatch = None,
) -> Response:
    """A new revision; executions keep the one they began with. With `If-Match` only over the revision that was read."""
    await must_see_workflow(desk.app.context, caller, id)
    source = Workflow(await request.body(), name=id, dialect=dialect)
    await desk.app.outline(source, by=caller.name)
    if source.head.id != id:
        raise AuthorError(f"the document is of {source.head.id!r}, not of {id!r}", hint="Correct its `id`.")
    return await _save(desk, caller, source, draft=draft, status=200, after=await _matched(desk, id, if_match))


@router.patch(
    "/{id}",
    responses=answers(
        PatchedRevision, "unknown-workflow", "revision-moved", "workflow-invalid", "field-not-patched", body=True
    ),
    summary="Change what is said about a workflow",
)
async def patch(desk: CurrentServer, caller: Editor, id: Id, body: PatchBody, if_match: IfMatch = None) -> Response:
    """A JSON merge patch of its name, description, version, tags, status and metadata, and of whether it is enabled: a
    member that is null is taken out. Nodes and edges are not patched. A new revision, as with PUT. What it does not
    keep of the author's text is named in `losses`."""
    await must_see_workflow(desk.app.context, caller, id)
    after = await _matched(desk, id, if_match)
    said = body.model_dump(by_alias=True, exclude_unset=True)
    before = await desk.app.source(id)
    made = await desk.app.context[DOCUMENTS].run(patched, before, said, by=caller.name, chars=before.chars)
    saved = saved_view(await save_as(desk.app.context, caller, made.source, draft=True, after=after))
    view: PatchedRevision = {**saved, "losses": made.losses}
    return _saved(view, status=200)


@router.post(
    "/{id}/clone",
    responses=answers(
        SavedRevision,
        "unknown-workflow",
        "workflow-exists",
        "id-taken",
        "built-in-workflow",
        "workflow-invalid",
        status=201,
        body=True,
    ),
    status_code=201,
    summary="Clone a workflow",
)
async def clone(desk: CurrentServer, caller: Editor, id: Id, body: CloneBody) -> Response:
    """Save it once more under an id of its own, as its author wrote it: a built-in one to change it, or a saved one."""
    return _saved(saved_view(await clone_as(desk.app.context, caller, id, body.id)), status=201)


@router.delete(
    "/{id}",
    status_code=204,
    responses=refusals("unknown-workflow", "built-in-workflow", "revision-moved"),
    summary="Delete a workflow",
)
async def delete(desk: CurrentServer, caller: Editor, id: Id, if_match: IfMatch = None) -> Response:
    """Hide it. Executions keep the revision they run; saving it again brings it back."""
    await must_see_workflow(desk.app.context, caller, id)
    await delete_as(desk.app.context, caller, id, after=await _matched(desk, id, if_match))
    return Response(status_code=204)


@router.get("/{id}/versions", responses=answers(WorkflowRevisions, "unknown-workflow"), summary="List revisions")
async def versions(
    *,
    desk: CurrentServer,
    caller: CurrentCaller,
    id: Id,
    order: Order = "desc",
    after: After = None,
    limit: Limit = 200,
) -> Response:
    """The revisions of a workflow, newest first unless `order` says otherwise."""
    await must_see_workflow(desk.app.context, caller, id)
    entries = await list_workflows(desk.app.context, id)
    page = await page_by(revision_place, entries, after=after, limit=limit, backwards=order == "desc")
    return JsonReply({"workflows": [*page.entries], "next": page.next})


@router.get(
    "/{id}/diff",
    responses=text_answer("text/x-diff", DIFFERENCE)
    | refusals("unknown-workflow", "no-such-revision", "document-too-expensive"),
    summary="Compare two revisions",
    response_class=Response,
)
async def diff(
    desk: CurrentServer,
    caller: CurrentCaller,
    id: Id,
    old: Annotated[int | None, Query(alias="from", ge=1, le=2**53, description="The older revision.")] = None,
    new: Annotated[int | None, Query(alias="to", ge=1, le=2**53, description="The newer revision.")] = None,
) -> Response:
    """Line by line; the latest two where none is named."""
    await must_see_workflow(desk.app.context, caller, id)
    return Response(
        await diff_revisions(desk.app.context, id, old, new, by=caller.name), media_type="text/x-diff; charset=utf-8"
    )


async def _save(
    desk: ServerContext, caller: Caller, source: Workflow, *, draft: bool, status: int, after: int | None = None
) -> Response:
    return _saved(saved_view(await save_as(desk.app.context, caller, source, draft=draft, after=after)), status=status)


def _saved(saved: SavedRevision, *, status: int) -> Response:
    headers = {"etag": etag_of_revision(saved), "location": f"/api/workflows/{saved['id']}"}
    return JsonReply(saved, status=status, headers=headers)


async def _entry(desk: ServerContext, id: str) -> WorkflowEntryView:
    name, _, _ = id.partition("@")
    revision = (await desk.app.library.found(id)).revision
    return next(entry for entry in await list_workflows(desk.app.context, name) if entry["revision"] == revision)


async def _known(desk: ServerContext, caller: Caller, id: str | None) -> int | None:
    """Return the latest revision of a workflow id; None: there is none, or the caller may not see it."""
    found = await desk.app.library.workflows.find(id) if id is not None and id.isprintable() else None
    return found.revision if found is not None and await visible(desk.app.context, caller, found.draft.id) else None


async def _matched(desk: ServerContext, id: str, if_match: str | None) -> int | None:
    """Return the revision that the write must replace; None: any. Raises `RevisionMoved`."""
    if if_match is None:
        return None
    known = await _entry(desk, id)
    now = known["revision"]
    return held(if_match, etag_of_revision(known), now, RevisionMoved.of(id, now))

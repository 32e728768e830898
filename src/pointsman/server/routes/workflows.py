"""Operations on workflows: list, read, check, write, delete, compare; convert, dry-run and partly run drafts."""

from __future__ import annotations

from typing import Annotated, Final, Literal, NotRequired

import msgspec
from fastapi import Query, Request, Response
from pydantic import Field
from typing_extensions import TypedDict

from pointsman.app import Workflow
from pointsman.authoring.operations import read_operations
from pointsman.authoring.verbs import AuthoringVerbs
from pointsman.executions.dry_run import DryRun, DryRunView, dry_view
from pointsman.executions.lists import ExecutionEntry
from pointsman.executions.opening import GivenAnswer
from pointsman.executions.start import trial_of
from pointsman.executions.verbs import ExecutionVerbs
from pointsman.executions.views import StartedExecution
from pointsman.server.context import CallerSession
from pointsman.server.operation import Operations
from pointsman.server.problems import JsonReply
from pointsman.server.routes.executions import started
from pointsman.server.routes.parameters import PATH_CHARS_MAX, After, Dialect, Draft, Id, IfMatch, IfNew, Limit, Order
from pointsman.server.schemas.answers import (
    ENTRY,
    VERSION,
    WORKFLOW,
    Described,
    answers,
    example,
    raw_body,
    reference_to,
    refusals,
    text_answer,
)
from pointsman.server.schemas.requests import (
    Body,
    CheckBody,
    CloneBody,
    ConvertBody,
    DryRunBody,
    JsonValue,
    PatchBody,
    PublishBody,
    sample,
)
from pointsman.values import JsonObject
from pointsman.workflows.conversion import ConvertedDocument
from pointsman.workflows.revisions import (
    DocumentCheck,
    PatchedRevision,
    SavedRevision,
    Sort,
    WorkflowEntryView,
    WorkflowRevisions,
    WorkflowView,
    WrittenWorkflow,
    etag_of_revision,
)
from pointsman.workflows.verbs import WorkflowVerbs
from pointsman.workflows.versions import NamedVersionView

router = Operations(prefix="/api/workflows", tags=["workflows"])


class CatalogueEntry(WorkflowEntryView):
    """A saved workflow in the list of all."""

    etag: str
    """ETag of its latest revision, for `If-Match`."""
    lastExecution: NotRequired[ExecutionEntry | None]  # noqa: N815 - a key of JSON
    """With `last`: the latest execution that the caller may see."""


class CataloguePage(TypedDict):
    """Saved workflows, without their documents."""

    workflows: list[CatalogueEntry]
    next: str | None
    """The `after` of the next page; null: this is the last page."""


example(
    CataloguePage,
    {"workflows": [{**WORKFLOW, "etag": '"2-9f86d081884c7d65"', "lastExecution": ENTRY}], "next": None},
)


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
YAML_MEDIA: Final = "application/yaml"
MEDIA: Final = {"mermaid": "text/vnd.mermaid; charset=utf-8", "bpmn": "application/xml"}

READ: Final[Described] = {
    200: {
        "description": "With `dialect`: the document in that dialect with the losses, or the diagram or YAML as text.",
        "content": {
            "application/json": {"schema": {"anyOf": [reference_to(WorkflowView), reference_to(WrittenWorkflow)]}},
            "text/vnd.mermaid": {"schema": {"type": "string"}, "example": "flowchart TD\n  write --> review\n"},
            "application/xml": {"schema": {"type": "string"}, "example": "<definitions>…</definitions>"},
            YAML_MEDIA: {"schema": {"type": "string"}, "example": EXAMPLE},
        },
    }
}


@router.get("", verb=WorkflowVerbs.list, responses=answers(CataloguePage), summary="List workflows")
async def list_(
    *,
    session: CallerSession,
    disabled: Annotated[bool, Query(description="Include disabled workflows.")] = False,
    built_in: Annotated[
        bool | None, Query(alias="builtIn", description="Only built-in workflows, or only saved ones.")
    ] = None,
    search: Annotated[
        str, Query(max_length=200, description="Only workflows with all these words in id, name, description or tags.")
    ] = "",
    tag: Annotated[list[str] | None, Query(max_length=20, description="Only workflows with all these tags.")] = None,
    id: Annotated[list[str] | None, Query(max_length=IDS_MAX, description="Only workflows with these ids.")] = None,
    folder: Annotated[
        str, Query(max_length=PATH_CHARS_MAX, description="Only workflows in this folder and the folders in it.")
    ] = "",
    sort: Annotated[
        Sort,
        Query(
            description="Sort by `id` (built-in workflows last), by `name`, or by time of the last change (`saved`)."
        ),
    ] = "id",
    order: Order = "asc",
    last: Annotated[bool, Query(description="Include the latest execution of each workflow.")] = False,
    after: After = None,
    limit: Limit = 200,
) -> Response:
    """The latest revision of each workflow that the caller may see, without its document.

    A page continues where the previous one ended, even if workflows were saved or deleted in between; request it with
    the same `sort` and `order`.
    """
    page = await session.workflows.list(
        include_disabled=disabled,
        built_in=built_in,
        words=search,
        tags=tag or (),
        ids=id,
        folder=folder,
        sort=sort,
        backwards=order == "desc",
        after=after,
        limit=limit,
    )
    entries: list[CatalogueEntry] = [{**workflow, "etag": etag_of_revision(workflow)} for workflow in page["workflows"]]
    for entry in entries if last else ():
        entry["lastExecution"] = await session.executions.last_of(entry["id"])
    catalogue: CataloguePage = {"workflows": entries, "next": page["next"]}
    return JsonReply(catalogue)


@router.post(
    "",
    verb=WorkflowVerbs.save,
    responses=answers(
        SavedRevision,
        "workflow-invalid",
        "revision-moved",
        "webhook-taken",
        "id-taken",
        "built-in-workflow",
        "unknown-folder",
        status=201,
        body=True,
    ),
    status_code=201,
    summary="Save a workflow",
    openapi_extra=DOCUMENT,
)
async def create(
    *,
    session: CallerSession,
    request: Request,
    draft: Draft = False,
    dialect: Dialect = None,
    folder: Annotated[str, Query(max_length=PATH_CHARS_MAX, description="Where a new workflow lies.")] = "",
    if_new: IfNew = None,
) -> Response:
    """The body is the document, in any dialect, as JSON or YAML. Saving the same document again creates no revision."""
    source = Workflow(await request.body(), dialect=dialect)
    after = 0 if if_new else None
    return _saved(await session.workflows.save(source, draft=draft, after=after, folder=folder), status=201)


@router.post(
    "/check",
    verb=WorkflowVerbs.check,
    responses=answers(DocumentCheck, "document-too-expensive", body=True),
    summary="Check a document",
)
async def check(session: CallerSession, body: CheckBody) -> Response:
    """All problems with their positions, and the revision on which saving would be based. Nothing is saved."""
    source = body.document
    text = source if isinstance(source, str) else msgspec.json.encode(source)
    return JsonReply(await session.workflows.check(Workflow(text, dialect=body.dialect)))


@router.get(
    "/{id}",
    verb=WorkflowVerbs.read,
    responses=READ | refusals("unknown-workflow", "document-too-expensive"),
    summary="Read a workflow",
)
async def read(
    session: CallerSession,
    id: Id,
    dialect: Annotated[Target | None, Query(description="Return the document in this dialect, or a diagram.")] = None,
    format: Annotated[
        Literal["json", "yaml"], Query(description="With `dialect`: `yaml` returns the document alone, as a text.")
    ] = "json",
) -> Response:
    """A workflow with its document as its author wrote it, and its problems."""
    if dialect is None:
        view = await session.workflows.read(id)
        return JsonReply(view, headers={"etag": etag_of_revision(view)})
    as_yaml = format == "yaml" and dialect not in MEDIA
    written = await session.workflows.convert_saved(id, dialect, as_yaml=as_yaml)
    if as_yaml:
        return Response(written["text"], media_type=YAML_MEDIA)
    if dialect in MEDIA:
        return Response(written["text"], media_type=MEDIA[dialect])
    workflow: WrittenWorkflow = {
        "document": written["document"],
        "losses": written["losses"],
        "graph": written["graph"],
    }
    return JsonReply(workflow)


@router.put(
    "/{id}",
    verb=WorkflowVerbs.replace,
    responses=answers(
        SavedRevision, "unknown-workflow", "revision-moved", "workflow-invalid", "built-in-workflow", body=True
    ),
    summary="Replace a workflow",
    openapi_extra=DOCUMENT,
)
async def replace(
    *,
    session: CallerSession,
    request: Request,
    id: Id,
    draft: Draft = False,
    dialect: Dialect = None,
    if_match: IfMatch = None,
) -> Response:
    """Create a new revision; executions keep the one they started with.

    With `If-Match`, only if the revision that was read is still the latest.
    """
    source = Workflow(await request.body(), name=id, dialect=dialect)
    return _saved(await session.workflows.replace(id, source, draft=draft, match=if_match), status=200)


@router.patch(
    "/{id}",
    verb=WorkflowVerbs.patch,
    responses=answers(
        PatchedRevision, "unknown-workflow", "revision-moved", "workflow-invalid", "field-not-patched", body=True
    ),
    summary="Change metadata of a workflow",
)
async def patch(session: CallerSession, id: Id, body: PatchBody, if_match: IfMatch = None) -> Response:
    """A JSON merge patch of name, description, version, tags, status, metadata and `enabled`:

    null removes a member. Nodes and edges cannot be patched. Creates a new revision, like PUT. `losses` names parts of
    the author's text that are not preserved.
    """
    changes = body.model_dump(by_alias=True, exclude_unset=True)
    return _saved(await session.workflows.patch(id, changes, match=if_match), status=200)


@router.post(
    "/{id}/clone",
    verb=WorkflowVerbs.clone,
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
async def clone(session: CallerSession, id: Id, body: CloneBody) -> Response:
    """Save a copy under another id, as its author wrote it: of a built-in workflow, to change it, or of a saved one."""
    return _saved(await session.workflows.clone(id, body.id), status=201)


@router.delete(
    "/{id}",
    verb=WorkflowVerbs.delete,
    status_code=204,
    responses=refusals("unknown-workflow", "built-in-workflow", "revision-moved"),
    summary="Delete a workflow",
)
async def delete(session: CallerSession, id: Id, if_match: IfMatch = None) -> Response:
    """Hide the workflow. Executions keep their revision; saving the workflow again restores it."""
    await session.workflows.delete(id, match=if_match)
    return Response(status_code=204)


@router.get(
    "/{id}/versions",
    verb=WorkflowVerbs.versions,
    responses=answers(WorkflowRevisions, "unknown-workflow"),
    summary="List revisions",
)
async def versions(
    *, session: CallerSession, id: Id, order: Order = "desc", after: After = None, limit: Limit = 200
) -> Response:
    """Revisions of a workflow, newest first unless `order` is `asc`."""
    return JsonReply(await session.workflows.versions(id, oldest_first=order == "asc", after=after, limit=limit))


@router.put(
    "/{id}/published",
    verb=WorkflowVerbs.publish,
    responses=answers(
        NamedVersionView,
        "unknown-workflow",
        "no-such-revision",
        "version-invalid",
        "version-name-taken",
        "workflow-invalid",
        "workflow-disabled",
        "webhook-taken",
        "built-in-workflow",
        body=True,
    ),
    summary="Publish a version",
)
async def publish(session: CallerSession, id: Id, body: PublishBody) -> Response:
    """Name a revision. From now on it runs by id: for starts, triggers, forms, tools and other workflows.

    Later revisions are drafts until one of them is published. A revision that has a name gets the new one; so an
    earlier version is published again by its revision. Executions keep theirs.
    """
    return JsonReply(await session.workflows.publish(id, body.name, note=body.note, revision=body.revision))


@router.delete(
    "/{id}/published",
    verb=WorkflowVerbs.unpublish,
    status_code=204,
    responses=refusals("unknown-workflow"),
    summary="Unpublish a version",
)
async def unpublish(session: CallerSession, id: Id) -> Response:
    """Let the newest revision run by id again. The names of versions stay."""
    await session.workflows.unpublish(id)
    return Response(status_code=204)


@router.get(
    "/{id}/diff",
    verb=WorkflowVerbs.diff,
    responses=text_answer("text/x-diff", DIFFERENCE)
    | refusals("unknown-workflow", "no-such-revision", "document-too-expensive"),
    summary="Compare two revisions",
    response_class=Response,
)
async def diff(
    session: CallerSession,
    id: Id,
    old: Annotated[int | None, Query(alias="from", ge=1, le=2**53, description="The older revision.")] = None,
    new: Annotated[int | None, Query(alias="to", ge=1, le=2**53, description="The newer revision.")] = None,
) -> Response:
    """The differences line by line; without revisions, between the latest two."""
    return Response(await session.workflows.diff(id, old, new), media_type="text/x-diff; charset=utf-8")


def _saved(saved: SavedRevision, *, status: int) -> Response:
    headers = {"etag": etag_of_revision(saved), "location": f"/api/workflows/{saved['id']}"}
    return JsonReply(saved, status=status, headers=headers)


NODES_MAX: Final = 2000
STEPS_MAX: Final = 10_000


class TrialBody(Body):
    """A partial run or a run of an unsaved document."""

    model_config = sample(input={"goal": "tides"}, pinned={"write": {"text": "Dear all, …"}}, until=["review"])
    operations: list[JsonValue] | None = Field(
        default=None, max_length=2000, description="Unsaved operations: the run uses the workflow with these changes."
    )
    document: JsonValue = Field(
        default=None,
        description="A whole document with the same id, to run instead of the saved one, which need not exist.",
    )
    input: JsonValue = Field(
        default=None, description="The input, as the workflow's `input` schema describes it; with `node`, the data."
    )
    pinned: dict[str, JsonValue] = Field(
        default_factory=dict,
        max_length=STEPS_MAX,
        description="Mocks: node, or one step of it (`each[1.0]/draft#1`) -> the result to use instead of running it.",
    )
    until: list[str] = Field(
        default_factory=list[str], max_length=NODES_MAX, description="Run only what leads to these nodes."
    )
    breakpoints: list[str] = Field(
        default_factory=list[str], max_length=NODES_MAX, description="Breakpoints: pause before these nodes."
    )
    node: str | None = Field(default=None, max_length=300, description="Run only this node, with `input` as the data.")
    given: JsonValue = Field(default=None, description="The value that reaches `node`.")
    model: str | None = Field(default=None, min_length=1, max_length=200, description="The model of all agents.")
    dry_run: bool = Field(default=False, description="Only estimate: call nothing and store nothing.")


@router.post(
    "/{id}/try",
    verb=AuthoringVerbs.try_workflow,
    responses=answers(DryRunView)
    | answers(
        StartedExecution,
        "unknown-workflow",
        "input-invalid",
        "workflow-invalid",
        "workflow-disabled",
        "operation-refused",
        "partial-run-invalid",
        "model-override",
        503,
        status=202,
        body=True,
    ),
    status_code=202,
    summary="Test a workflow",
)
async def try_(session: CallerSession, id: Id, body: TrialBody) -> Response:
    """Start a partial run or a run of unsaved changes, as an execution that can be streamed like any other.

    Lists omit it unless partial runs are requested. With `dryRun`, return the expected path, past breakpoints, and its
    estimated cost.
    """
    trial = trial_of(
        pinned=body.pinned, until=body.until, breakpoints=body.breakpoints, node=body.node, given=body.given
    )
    execution = await session.authoring.try_workflow(
        id,
        body.input,
        trial,
        operations=read_operations(body.operations) if body.operations else (),
        document=body.document,
        model=body.model,
        dry_run=body.dry_run,
    )
    if isinstance(execution, DryRun):
        return JsonReply(dry_view(execution))
    return await started(session, execution, wait=False)


@router.post(
    "/convert",
    verb=WorkflowVerbs.convert,
    responses=answers(ConvertedDocument, "workflow-invalid", body=True),
    summary="Convert a document",
)
async def convert(session: CallerSession, body: ConvertBody) -> Response:
    """Return the document in another dialect, or as a diagram. Nothing is saved."""
    source = body.document
    text = source if isinstance(source, str) else msgspec.json.encode(source)
    return JsonReply(await session.workflows.convert(Workflow(text, dialect=body.dialect), body.to))


@router.post(
    "/{id}/dry-run",
    verb=ExecutionVerbs.dry_run,
    responses=answers(
        DryRunView, "unknown-workflow", "workflow-invalid", "input-invalid", "workflow-disabled", body=True
    ),
    summary="Estimate an execution",
)
async def dry_run(session: CallerSession, id: Id, body: DryRunBody) -> Response:
    """Return the path that an execution would take, its calls and its cost. Nothing is called or stored."""
    given_answers = [GivenAnswer(answer.node, answer.action, answer.data) for answer in body.answers]
    return JsonReply(dry_view(await session.executions.dry_run(id, body.input, answers=given_answers)))


example(NamedVersionView, VERSION)
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
example(
    WrittenWorkflow,
    {
        "document": {"pointsman": 1, "id": "letter", "nodes": []},
        "losses": [],
        "graph": {"regions": [], "implied": []},
    },
)
example(
    ConvertedDocument,
    {"text": "flowchart TD\n  write --> review\n", "document": None, "losses": [], "graph": None},
)
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

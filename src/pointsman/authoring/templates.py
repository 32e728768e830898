"""Templates: shipped workflows to start from, each with a script and a sample input, so that it can be tried offline.

`examples/templates.yaml` lists them; the documents and scripts are those of the examples and the cookbook.
"""

from __future__ import annotations

from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from msgspec import Struct, convert
from typing_extensions import TypedDict

from pointsman.auth.policy import id_must_be_free
from pointsman.auth.verbs import Verbs, verb
from pointsman.context import AppContext
from pointsman.definition.graph.analysis import GraphView, graph_view
from pointsman.definition.problems import did_you_mean
from pointsman.definition.reading.documents import read_document
from pointsman.errors import CallerError
from pointsman.executions.dry_run import DryRun, scripted_run
from pointsman.values import Json, JsonObject
from pointsman.workflows.builtin import examples_directory, is_built_in, read_only, with_id
from pointsman.workflows.document_work import DOCUMENTS, beside
from pointsman.workflows.library import LIBRARY
from pointsman.workflows.revisions import SavedRevision, WorkflowExists, saved_view
from pointsman.workflows.saving import save_as
from pointsman.workflows.scripts import load_script, script_text
from pointsman.workflows.sources import Workflow

if TYPE_CHECKING:
    from collections.abc import Mapping

    from pointsman.auth.callers import Caller

INDEX = "templates.yaml"
READ_CHARS = 200_000
"""Reading all templates costs about as much as a document of this length."""


class UnknownTemplate(CallerError):
    """There is no template with this id."""

    code: ClassVar[str] = "unknown-template"


class WorkflowTemplate(Struct, frozen=True, dict=True):
    """A shipped workflow, with what the gallery shows of it."""

    id: str
    workflow: str
    """Path of the document below the examples; its script is `script.yaml` in the same folder."""
    name: dict[str, str]
    """Language -> text; so is `description`."""
    description: dict[str, str]
    tags: tuple[str, ...]
    input: JsonObject
    """A sample input, which the script answers."""
    needs: tuple[str, ...] = ()
    """Ids of the templates whose workflows it calls."""
    pinned: dict[str, Json] = {}
    """Node -> its result in a trial: nodes that call a service or run code."""

    @cached_property
    def path(self) -> Path:
        return examples_directory() / self.workflow

    @property
    def script_path(self) -> Path:
        return self.path.with_name("script.yaml")

    @cached_property
    def source(self) -> Workflow:
        return Workflow.load(self.path)

    @property
    def page(self) -> str | None:
        """Address of its page in the documentation site; None: it has none of its own."""
        folder = Path(self.workflow).parent
        return f"/docs/cookbook/{folder.name}/" if folder.parent.name == "cookbook" else None


class TemplateNode(TypedDict):
    """A node of the picture of a template."""

    id: str
    type: str
    name: Json


class TemplateEdge(TypedDict):
    """An edge of the picture of a template."""

    source: str
    target: str


class TemplateView(TypedDict):
    """A template in the gallery, with its graph."""

    id: str
    name: dict[str, str]
    """Language -> text."""
    description: dict[str, str]
    """Language -> text."""
    tags: list[str]
    needs: list[str]
    """Templates whose workflows it calls; `use` saves them too."""
    page: str | None
    """Address of its page in the documentation."""
    entry: str | None
    nodes: list[TemplateNode]
    edges: list[TemplateEdge]
    graph: GraphView


class TemplateList(TypedDict):
    """The templates of the gallery."""

    templates: list[TemplateView]


class TemplateDetail(TemplateView):
    """A template with its document, its script and a sample input."""

    text: str
    """The document, as its author wrote it."""
    script: str
    """The answers of the scripted model and of scripted tools, as YAML."""
    input: JsonObject
    """A sample input, which the script answers."""
    inputSchema: JsonObject | None
    """The JSON Schema of the input; null: it takes any."""


@cache
def templates() -> Mapping[str, WorkflowTemplate]:
    """Return the templates by id, in the order of the gallery. Raises `ExamplesMissing`."""
    path = examples_directory() / INDEX
    listed = convert(read_document(path.read_bytes(), name=path.name).value, list[WorkflowTemplate])
    return {one.id: one for one in listed}


def template(name: str) -> WorkflowTemplate:
    """Return a template by its id. Raises `UnknownTemplate`."""
    found = templates().get(name)
    if found is None:
        hint = did_you_mean(name, templates()) or "`pointsman templates list` lists them."
        raise UnknownTemplate(f"there is no template {name!r}", hint=hint)
    return found


@cache
def template_view(one: str) -> TemplateView:
    """Return a template as the gallery shows it."""
    found = template(one)
    definition = found.source.definition
    document = definition.to_document()
    nodes, edges = document.get("nodes"), document.get("edges")
    return {
        "id": found.id,
        "name": found.name,
        "description": found.description,
        "tags": [*found.tags],
        "needs": [*found.needs],
        "page": found.page,
        "entry": definition.entry,
        "nodes": convert([_only(node, ("id", "type", "name")) for node in _list(nodes)], list[TemplateNode]),
        "edges": convert([_only(edge, ("source", "target")) for edge in _list(edges)], list[TemplateEdge]),
        "graph": graph_view(definition),
    }


def _list(value: Json) -> list[JsonObject]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _only(value: JsonObject, keys: tuple[str, ...]) -> JsonObject:
    return {key: value.get(key) for key in keys}


async def try_template(app: AppContext, one: WorkflowTemplate, input: Json, *, by: str) -> DryRun:
    """Run a template with its script in an app of its own that keeps nothing and calls nothing outside."""
    called = [template(name).source for name in one.needs]
    script = load_script(one.script_path)
    return await scripted_run(app, one.source, input, script, called=called, pinned=one.pinned, by=by)


async def use_template(app: AppContext, caller: Caller, one: WorkflowTemplate, new: str | None) -> SavedRevision:
    """Save a copy of a template, which belongs to the caller, and the templates that it calls if they are not saved.

    `new`: the id of the copy; None: that of the template, with a number if it is taken. Raises `WorkflowExists`,
    `BuiltIn`.
    """
    for needed in one.needs:
        if await app[LIBRARY].workflows.find(needed) is None:
            await use_template(app, caller, template(needed), needed)
    name = new or await _free_id(app, one.id)
    await id_must_be_free(app, caller, name)
    if is_built_in(name):
        raise read_only(name)
    if await app[LIBRARY].workflows.find(name) is not None:
        raise WorkflowExists(f"the workflow {name!r} already exists", hint="Choose another id for the copy.")
    source = await app[DOCUMENTS].run(with_id, one.source, name, by=caller.name, chars=one.source.chars)
    return saved_view(await save_as(app, caller, source, draft=True))


async def _free_id(app: AppContext, wanted: str) -> str:
    number, name = 1, wanted
    while await app[LIBRARY].workflows.find(name) is not None:
        number += 1
        name = f"{wanted}-{number}"
    return name


def _created(saved: SavedRevision) -> Mapping[str, object]:
    return {"id": saved["id"], "revision": saved["revision"]}


class TemplateVerbs(Verbs):
    """Actions of a caller with templates."""

    @verb("viewer", "see templates", audit=False)
    async def list(self) -> TemplateList:
        """Return all templates, in the order of the gallery."""
        return {"templates": await beside(READ_CHARS, lambda: [template_view(one) for one in templates()])}

    @verb("viewer", "see templates", audit=False)
    async def read(self, name: str) -> TemplateDetail:
        """Return a template with its document and script. Raises `UnknownTemplate`."""
        one = template(name)
        return {
            **await beside(READ_CHARS, lambda: template_view(name)),
            "text": one.source.document.text,
            "script": script_text(one.script_path),
            "input": one.input,
            "inputSchema": one.source.definition.input_schema,
        }

    @verb("operator", "run workflows", audit=False)
    async def try_out(self, name: str, input: Json = None) -> DryRun:
        """Run a template with its script, by default with its sample input. Nothing is called or stored."""
        one = template(name)
        return await try_template(self.app, one, one.input if input is None else input, by=self.caller.name)

    @verb("editor", "write workflows", target=("name", "new"), made=_created)
    async def use(self, name: str, new: str | None = None) -> SavedRevision:
        """Save a copy of a template; the caller owns it. See `use_template`."""
        self.tries(id=new)
        return await use_template(self.app, self.caller, template(name), new)

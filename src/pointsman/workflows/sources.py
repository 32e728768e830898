"""A workflow as its author wrote it: the text, the definition read from it, the positions of problems, the outline.

The outline has the facts that an installation needs before it checks or saves a document. Its size hardly depends on
the size of the document, so that a worker process can read the document and send only the outline.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from os import PathLike, fspath
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, TypeAlias, Unpack, cast

import msgspec
from typing_extensions import TypeVar

from pointsman.arguments import checks_arguments
from pointsman.caches import BoundedCache
from pointsman.definition.model.work import WorkflowCallConfig
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.model.workflow import WorkflowDefinition as Definition
from pointsman.definition.problems import Problem, invalid, limited, sort_problems
from pointsman.definition.reading.documents import BYTES_MAX, Document, read_document
from pointsman.definition.text_locations import Kind, text_locations_of
from pointsman.dialects.detect import ReadDocument, read_workflow
from pointsman.errors import CallerError
from pointsman.json_conversion import JsonType, NotJson, TypeUnsupported, as_json
from pointsman.store.records import WorkflowDraft
from pointsman.values import Instant, Json, JsonObject, WorkflowId
from pointsman.workflows.builder import CodePlaces, WorkflowBuilder
from pointsman.workflows.models import model_uses
from pointsman.workflows.variables import variables_in

if TYPE_CHECKING:
    from pointsman.workflows.node_options import WorkflowOptions

ENDINGS: Final = (".json", ".jsonc", ".yaml", ".yml", ".md")
"""Endings of names of files."""
ACCEPTED: Final = "Pass a `Workflow`, a dict, the path of a file, or the id of a saved workflow."
INPUT: Final = "input"
"""The key of native documents that describes the input."""
CACHED_CHARS_MAX: Final = 4_000_000
"""Sum over all cached documents. A longer document is read again by every start."""
CACHED_CHARS_EACH: Final = 20_000
"""Added to each document, so that at most 200 are cached."""


class FileUnreadable(CallerError):
    """A file that the caller named cannot be read."""

    code: ClassVar[str] = "file-unreadable"


class WorkflowUnusable(CallerError):
    """The caller passed something that cannot be read as a workflow."""

    code: ClassVar[str] = "workflow-unusable"


In = TypeVar("In", default=object)
Out = TypeVar("Out", default=Json)
NewIn = TypeVar("NewIn")
NewOut = TypeVar("NewOut")


@checks_arguments
class Workflow(Generic[In, Out]):
    """A workflow document in any dialect; immutable. `In` and `Out` are the Python types of input and output.

    It is read when its content is first needed. Pickling it sends its text, without Python types.
    """

    __argument_hint__: ClassVar[str] = (
        "`Workflow.load(path)` reads a file, `Workflow.parse(text)` a text, `Workflow.of(…)` a dict or a builder."
    )

    def __init__(self, text: bytes | str, *, name: str = "", dialect: str | None = None) -> None:
        self._text = text
        self.name = name
        self.said_dialect = dialect
        self._places = CodePlaces()
        self._outline: Outline | None = None
        self.input_type: JsonType[In] | None = None
        """None: the input is not checked against a Python type."""
        self.output_type: JsonType[Out] | None = None
        """None: the output is JSON."""

    def typed(self, input: type[NewIn], output: type[NewOut]) -> Workflow[NewIn, NewOut]:
        """Return the workflow with Python types of its input and output: pydantic models, dataclasses or TypedDicts.

        If the document does not describe its input, the schema of `input` becomes a part of it, so that every face
        checks and documents inputs. A document of another dialect is converted to the native format for that.

        Raises `TypeUnsupported`.
        """
        named = repr(self.name) if self.name else "of this document"
        json_type = JsonType(input, what=f"the input of the workflow {named}")
        typed = cast("Workflow[NewIn, NewOut]", _with_input(self, json_type))
        typed._places = self._places
        typed.input_type, typed.output_type = json_type, JsonType(output, what=f"the output of the workflow {named}")
        return typed

    @classmethod
    def load(cls, path: str | PathLike[str], *, dialect: str | None = None) -> Workflow:
        """Read a file: JSON, JSON with comments, or YAML, in any dialect. Raises `FileUnreadable`."""
        file = Path(path)
        try:
            with file.open("rb") as stream:
                data = stream.read(BYTES_MAX + 1)
        except OSError as why:
            raise FileUnreadable(
                f"{fspath(path)!r} cannot be read: {why.strerror}", hint="Check the name of the file."
            ) from None
        return Workflow.parse(data, name=file.name.split(".")[0], dialect=dialect)

    @classmethod
    def parse(cls, data: bytes | str, *, name: str = "", dialect: str | None = None) -> Workflow:
        """Read a text. Raises `UnknownDialect`."""
        workflow = Workflow(data, name=name, dialect=dialect)
        _ = workflow.read
        return workflow

    @classmethod
    def of(cls, document: JsonObject | WorkflowBuilder, *, name: str = "", dialect: str | None = None) -> Workflow:
        """Return the workflow of a document that is already parsed, or that a builder has built so far."""
        if isinstance(document, WorkflowBuilder):
            built = Workflow.parse(msgspec.json.encode(document.to_dict()), name=document.id, dialect="native")
            built._places = document.places
            return built
        return Workflow.parse(msgspec.json.encode(document), name=name, dialect=dialect)

    @staticmethod
    def build(id: str, **options: Unpack[WorkflowOptions]) -> WorkflowBuilder:
        """Return a builder, with one method for each type of nodes. `start`, `run` and `Workflow.of` take it.

        Raises `WorkflowInvalid`, with the line of the call, for options that are wrong.
        """
        return WorkflowBuilder(id, **options)

    def __reduce__(self) -> tuple[Callable[..., Workflow], tuple[bytes | str, str, str | None]]:
        return _unread, (self._text, self.name, self.said_dialect)

    @property
    def data(self) -> bytes:
        """The text as bytes."""
        return self._text.encode("utf-8", "surrogatepass") if isinstance(self._text, str) else self._text

    @property
    def chars(self) -> int:
        """Length of the text."""
        return len(self._text)

    @cached_property
    def read(self) -> ReadDocument:
        """The result of reading. The first access reads the document."""
        document = read_document(self._text, name=self.name)
        return read_workflow(document, dialect=self.said_dialect, name=self.name)

    @property
    def outline(self) -> Outline:
        """Facts about the document, without its nodes."""
        if self._outline is None:
            self._outline = outline_of(self.read)
        return self._outline

    @property
    def is_outlined(self) -> bool:
        """Whether `outline` is available without reading the document."""
        return self._outline is not None

    def outlined(self, outline: Outline) -> None:
        """Set the outline that another process made."""
        self._outline = outline

    @cached_property
    def digest(self) -> str:
        """Hash of the text, the name and the requested dialect."""
        return sha256(f"{self.name}\n{self.said_dialect}\n".encode() + self.data).hexdigest()

    @property
    def document(self) -> Document:
        return self.read.document

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Problems found on reading; `Pointsman.check` finds more."""
        return self.located(self.outline.problems)

    def located(self, problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
        """Return problems of this document; of one that is built in code, with the file and line of each."""
        return self._places.located(problems)

    @property
    def head(self) -> Definition:
        """The definition without nodes, edges and agents. Raises `WorkflowInvalid` if it cannot be read."""
        if self.outline.head is None:
            raise invalid(self.problems)
        return self.outline.head

    @property
    def definition(self) -> Definition:
        """The definition. Raises `WorkflowInvalid` if it cannot be read."""
        if self.read.workflow is None:
            raise invalid(self.located(self.read.problems))
        return self.read.workflow

    @property
    def unreadable(self) -> bool:
        """Whether nothing could be read: not text, neither JSON nor YAML, or too large."""
        return self.document.value is None and not self.document.is_readable

    @property
    def calls(self) -> bool:
        """Whether the document calls sub-workflows, which only a store can resolve."""
        return self.outline.calls

    def _repr_markdown_(self) -> str:
        """Return the picture that notebooks show."""
        from pointsman.dialects.export.mermaid import draw  # Deferred: only notebooks draw workflows.

        return f"```mermaid\n{draw(self.definition)}```\n"

    @property
    def original(self) -> Json:
        """The author's document as data."""
        return self.read.document.value


def _with_input(source: Workflow[Any, Any], json_type: JsonType[Any]) -> Workflow[Any, Any]:
    """Return a copy of the workflow that describes its input. Raises `TypeUnsupported` for inputs without fields."""
    schema = json_type.schema
    if schema.get("type") != "object":
        raise TypeUnsupported(
            f"the type {json_type.name!r} of {json_type.what} is not an object with fields",
            hint="Use a pydantic model, a dataclass or a TypedDict.",
        )
    unchanged = Workflow[Any, Any](source.data, name=source.name, dialect=source.said_dialect)
    workflow = source.read.workflow
    if workflow is None or workflow.input_schema is not None:
        return unchanged
    document: JsonObject = {**workflow.to_document(), INPUT: schema}
    if source.read.dialect == "native" and isinstance(source.original, dict):
        document = {**source.original, INPUT: schema}
        # The positions of problems stay those of the author's text.
        for text in _texts_with(source.document.text, schema):
            parsed = Workflow[Any, Any](text, name=source.name, dialect=source.said_dialect)
            if parsed.original == document:
                return parsed
    return Workflow.of(document, name=source.name)


def _texts_with(text: str, schema: JsonObject) -> Iterator[str]:
    """Yield a JSON text and a YAML text with the schema at their ends; one that is wrong reads as another document."""
    written, body = msgspec.json.encode(schema).decode(), text.rstrip()
    yield f'{body.removesuffix("}").rstrip()}, "{INPUT}": {written}}}'
    yield f"{body}\n{INPUT}: {written}\n"


AnyWorkflow: TypeAlias = Workflow[Any, Any]
WorkflowLike: TypeAlias = AnyWorkflow | WorkflowBuilder | Mapping[str, Json] | PathLike[str] | str
Untyped: TypeAlias = Workflow | WorkflowBuilder | Mapping[str, Json] | PathLike[str] | str
"""What can be started: a workflow, a builder, a document as data, the path of a file, or the id of a saved workflow."""


def workflow_from(workflow: WorkflowLike) -> AnyWorkflow | str:
    """Return the workflow to start, or the id of a saved one. A text that ends like a file name or contains `/` is a
    path. Raises `FileUnreadable`, `UnknownDialect`, `WorkflowUnusable`."""
    match workflow:
        case Workflow():
            return workflow
        case WorkflowBuilder():
            return Workflow.of(workflow)
        case str() if not is_file_name(workflow):
            return workflow
        case str() | PathLike():
            return Workflow.load(workflow)
        case Mapping():
            try:
                return Workflow.of(cast("JsonObject", as_json(workflow, what="the document", path="document")))
            except NotJson as why:
                raise WorkflowUnusable(str(why), hint=why.hint) from why
    # Callers without a type checker may pass anything.
    raise WorkflowUnusable(f"a {type(workflow).__name__!r} object is not a workflow", hint=ACCEPTED)


def is_file_name(text: str) -> bool:
    """Return whether a text names a file, and not a saved workflow."""
    return text.endswith(ENDINGS) or "/" in text or "\\" in text


def _unread(data: bytes | str, name: str, dialect: str | None) -> Workflow:
    return Workflow(data, name=name, dialect=dialect)


def draft_of(workflow: Workflow, language: str) -> WorkflowDraft:
    """Job: return the saved form of a workflow, the author's document and the native one, without author and time."""
    definition = workflow.definition
    return WorkflowDraft(
        id=WorkflowId(definition.id),
        name=definition.name.in_(language) if definition.name is not None else definition.id,
        version=definition.version or "",
        dialect=workflow.read.dialect or "native",
        text=workflow.document.text,
        native=definition.to_document(),
        created=Instant(0),
        author="",
    )


def source_of(draft: WorkflowDraft) -> Workflow:
    """Return a saved workflow as its author wrote it. Revisions are immutable, so the last ones are cached."""
    key = (draft.text, draft.id, draft.dialect)
    source = _cached.get(key)
    if source is None:
        source = _unread(*key)
        _cached.put(key, source)
    return source


_cached: Final = BoundedCache[tuple[str, str, str], Workflow](
    CACHED_CHARS_MAX, lambda found: found.chars + CACHED_CHARS_EACH
)


@dataclass(frozen=True, slots=True)
class Outline:
    """Facts about a document, without its nodes."""

    head: WorkflowDefinition | None
    """The workflow without nodes, edges and agents; None: the document cannot be read."""
    problems: tuple[Problem, ...]
    """Problems found on reading, up to the limit of the list."""
    dialect: str | None
    given_id: Json = None
    """The id in the document, even if its structure has errors."""
    is_workflow: bool = False
    """Whether the document reads as a workflow, possibly with structural errors."""
    node_count: int = 0
    calls: bool = False
    """Whether nodes call sub-workflows."""
    names: dict[Kind, tuple[str, ...]] | None = None
    """Kind -> the different names in the document."""
    variables: frozenset[str] = frozenset()
    """Variables that the document names."""
    own_agents: frozenset[str] = frozenset()
    """Names of agents that the document describes itself."""

    def named(self, kind: Kind) -> tuple[str, ...]:
        return () if self.names is None else self.names.get(kind, ())


_NAMED: Final[tuple[Kind, ...]] = ("agent", "tool", "workflow", "model")


def outline_of(read: ReadDocument) -> Outline:
    """Return the outline of a document."""
    problems = sort_problems(limited(read.problems))
    workflow = read.workflow
    imported = read.imported
    document_id = None if imported is None else imported.document.get("id")
    if workflow is None:
        return Outline(None, problems, read.dialect, document_id, imported is not None)
    names: dict[Kind, dict[str, None]] = {kind: {} for kind in _NAMED}
    for location in text_locations_of(workflow):
        if location.kind in names:
            names[location.kind].setdefault(location.text)
    for use in model_uses(workflow, {}):
        names["model"].update(dict.fromkeys((use.model, *use.fallback)))
    return Outline(
        head=workflow.model_copy(update={"nodes": (), "edges": (), "agents": None}),
        problems=problems,
        dialect=read.dialect,
        given_id=document_id,
        is_workflow=True,
        node_count=len(workflow.nodes),
        calls=any(isinstance(node.config, WorkflowCallConfig) for node in workflow.nodes),
        names={kind: tuple(name) for kind, name in names.items()},
        variables=frozenset(name for _, name in variables_in(workflow.to_document())),
        own_agents=frozenset(workflow.agents or ()),
    )

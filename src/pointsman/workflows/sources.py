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
from typing import Any, ClassVar, Final, Generic, TypeAlias, cast

import msgspec
from typing_extensions import TypeVar

from pointsman.caches import BoundedCache
from pointsman.definition.model.work import WorkflowCallConfig
from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.model.workflow import WorkflowDefinition as Definition
from pointsman.definition.problems import Problem, limited, sort_problems
from pointsman.definition.reading.documents import BYTES_MAX, Document, read_document
from pointsman.definition.text_locations import Kind, sites_of
from pointsman.dialects.detect import ReadDocument, read_workflow
from pointsman.errors import AuthorError, CallerError
from pointsman.json_conversion import JsonType, NotJson, TypeUnusable, as_json
from pointsman.store.records import WorkflowDraft
from pointsman.values import Instant, Json, JsonObject, WorkflowId
from pointsman.workflows.models import model_uses
from pointsman.workflows.variables import variables_in

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


class WorkflowInvalid(AuthorError):
    """The workflow has errors; `problems` lists all of them."""

    code: ClassVar[str] = "workflow-invalid"

    def __init__(self, message: str, *, problems: tuple[Problem, ...], hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.problems = problems


In = TypeVar("In", default=object)
Out = TypeVar("Out", default=Json)
NewIn = TypeVar("NewIn")
NewOut = TypeVar("NewOut")


class Workflow(Generic[In, Out]):
    """A workflow document in any dialect; immutable. `In` and `Out` are the Python types of input and output.

    It is read when its content is first needed. Pickling it sends its text, without Python types.
    """

    def __init__(self, text: bytes | str, *, name: str = "", dialect: str | None = None) -> None:
        self._text = text
        self.name = name
        self.said_dialect = dialect
        self._outline: Outline | None = None
        self.input_type: JsonType[In] | None = None
        """None: the input is not checked against a Python type."""
        self.output_type: JsonType[Out] | None = None
        """None: the output is JSON."""

    def typed(self, input: type[NewIn], output: type[NewOut]) -> Workflow[NewIn, NewOut]:
        """Return the workflow with Python types of its input and output: pydantic models, dataclasses or TypedDicts.

        If the document does not describe its input, the schema of `input` becomes a part of it, so that every face
        checks and documents inputs. A document of another dialect is converted to the native format for that.

        Raises `TypeUnusable`.
        """
        named = repr(self.name) if self.name else "of this document"
        taken = JsonType(input, what=f"the input of the workflow {named}")
        typed = cast("Workflow[NewIn, NewOut]", _with_input(self, taken))
        typed.input_type, typed.output_type = taken, JsonType(output, what=f"the output of the workflow {named}")
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
        found = Workflow(data, name=name, dialect=dialect)
        _ = found.read
        return found

    @classmethod
    def of(cls, document: JsonObject, *, name: str = "", dialect: str | None = None) -> Workflow:
        """Return the workflow of a document that is already parsed."""
        return Workflow.parse(msgspec.json.encode(document), name=name, dialect=dialect)

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
        return self.outline.problems

    @property
    def head(self) -> Definition:
        """The definition without nodes, edges and agents. Raises `WorkflowInvalid` if it cannot be read."""
        if self.outline.head is None:
            raise invalid(self.outline.problems)
        return self.outline.head

    @property
    def definition(self) -> Definition:
        """The definition. Raises `WorkflowInvalid` if it cannot be read."""
        if self.read.workflow is None:
            raise invalid(self.read.problems)
        return self.read.workflow

    @property
    def unreadable(self) -> bool:
        """Whether nothing could be read: not text, neither JSON nor YAML, or too large."""
        return self.document.value is None and not self.document.is_readable

    @property
    def calls(self) -> bool:
        """Whether the document calls sub-workflows, which only a store can resolve."""
        return self.outline.calls

    @property
    def original(self) -> Json:
        """The author's document as data."""
        return self.read.document.value


def _with_input(source: Workflow[Any, Any], given: JsonType[Any]) -> Workflow[Any, Any]:
    """Return a copy of the workflow that describes its input. Raises `TypeUnusable` if the input is not an object."""
    schema = given.schema
    if schema.get("type") != "object":
        raise TypeUnusable(
            f"the type {given.name!r} of {given.what} is not an object with fields",
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
            found = Workflow[Any, Any](text, name=source.name, dialect=source.said_dialect)
            if found.original == document:
                return found
    return Workflow.of(document, name=source.name)


def _texts_with(text: str, schema: JsonObject) -> Iterator[str]:
    """Yield a JSON text and a YAML text with the schema at their ends; one that is wrong reads as another document."""
    written, body = msgspec.json.encode(schema).decode(), text.rstrip()
    yield f'{body.removesuffix("}").rstrip()}, "{INPUT}": {written}}}'
    yield f"{body}\n{INPUT}: {written}\n"


AnyWorkflow: TypeAlias = Workflow[Any, Any]
WorkflowLike: TypeAlias = AnyWorkflow | Mapping[str, Json] | PathLike[str] | str
Untyped: TypeAlias = Workflow | Mapping[str, Json] | PathLike[str] | str
"""What can be started: a workflow, a document as data, the path of a file, or the id of a saved workflow."""


def workflow_from(given: WorkflowLike) -> AnyWorkflow | str:
    """Return the workflow to start, or the id of a saved one. A text that ends like a file name or contains `/` is a
    path. Raises `FileUnreadable`, `UnknownDialect`, `WorkflowUnusable`."""
    match given:
        case Workflow():
            return given
        case str() if not is_file_name(given):
            return given
        case str() | PathLike():
            return Workflow.load(given)
        case Mapping():
            try:
                return Workflow.of(cast("JsonObject", as_json(given, what="the document", path="document")))
            except NotJson as why:
                raise WorkflowUnusable(str(why), hint=why.hint) from why
    # Callers without a type checker may pass anything.
    raise WorkflowUnusable(f"a {type(given).__name__!r} object is not a workflow", hint=ACCEPTED)


def is_file_name(text: str) -> bool:
    """Return whether a text names a file, and not a saved workflow."""
    return text.endswith(ENDINGS) or "/" in text or "\\" in text


def _unread(data: bytes | str, name: str, dialect: str | None) -> Workflow:
    return Workflow(data, name=name, dialect=dialect)


def invalid(problems: tuple[Problem, ...]) -> WorkflowInvalid:
    """Return the exception for a workflow that has errors."""
    errors = [problem for problem in problems if problem.severity == "error"]
    first = errors[0]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    place = f"line {first.line}: " if first.line is not None else ""
    return WorkflowInvalid(f"{place}{first.message}{more}", problems=problems, hint=first.hint)


def draft_of(workflow: Workflow, language: str) -> WorkflowDraft:
    """Job: return the saved form of a workflow, the author's document and the native one, without author and time."""
    found = workflow.definition
    return WorkflowDraft(
        id=WorkflowId(found.id),
        name=found.name.in_(language) if found.name is not None else found.id,
        version=found.version or "",
        dialect=workflow.read.dialect or "native",
        text=workflow.document.text,
        native=found.to_document(),
        created=Instant(0),
        author="",
    )


def source_of(draft: WorkflowDraft) -> Workflow:
    """Return a saved workflow as its author wrote it. Revisions are immutable, so the last ones are cached."""
    key = (draft.text, draft.id, draft.dialect)
    found = _cached.get(key)
    if found is None:
        found = _unread(*key)
        _cached.put(key, found)
    return found


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
    for site in sites_of(workflow):
        if site.kind in names:
            names[site.kind].setdefault(site.text)
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
        names={kind: tuple(found) for kind, found in names.items()},
        variables=frozenset(name for _, name in variables_in(workflow.to_document())),
        own_agents=frozenset(workflow.agents or ()),
    )

"""Conversion of a workflow to another dialect or to a diagram, with the losses, and patching of its metadata.

A patch leaves the rest of the document as its author wrote it.
"""

from __future__ import annotations

import io
import json
import re
from dataclasses import dataclass
from typing import ClassVar, Final, NamedTuple, cast

import msgspec
from typing_extensions import TypedDict

from pointsman.context import AppContext
from pointsman.definition.graph.analysis import GraphView, graph_view
from pointsman.definition.model.workflow import WorkflowDefinition as Definition
from pointsman.definition.problems import Problem, ProblemView, invalid
from pointsman.dialects.detect import write_workflow
from pointsman.dialects.shapes import DIALECTS, unwrapped
from pointsman.dialects.writers import yaml_text
from pointsman.errors import AuthorError
from pointsman.values import Json, JsonObject
from pointsman.workflows.document_work import DOCUMENTS
from pointsman.workflows.sources import Workflow

PICTURES: Final = ("mermaid", "bpmn")
TARGETS: Final = (*DIALECTS, *PICTURES)


class ConvertedDocument(TypedDict):
    """A workflow in another dialect or as a diagram, and what that cannot express."""

    text: str
    document: Json
    """The text as JSON; null for a diagram and for YAML."""
    losses: list[ProblemView]
    graph: GraphView | None
    """Regions and implied edges, for a picture; only of the native dialect."""


@dataclass(frozen=True, slots=True)
class Converted:
    """The text, and the parts of the workflow that it lacks, with positions in the author's document."""

    text: str
    losses: tuple[Problem, ...] = ()
    graph: GraphView | None = None

    def to_json(self, target: str, *, as_yaml: bool = False) -> ConvertedDocument:
        document: Json = None if as_yaml or target in PICTURES else msgspec.json.decode(self.text)
        losses = [loss.to_json() for loss in self.losses]
        return {"text": self.text, "document": document, "losses": losses, "graph": self.graph}


def converted(source: Workflow, target: str, *, as_yaml: bool = False) -> Converted:
    """Write a workflow as one of `TARGETS`. YAML in the author's dialect is the author's text, with its comments.
    Raises `WorkflowInvalid` if it cannot be read."""
    workflow = source.definition
    if target == "mermaid":
        from pointsman.dialects.export.mermaid import draw

        return Converted(draw(workflow))
    if target == "bpmn":
        from pointsman.dialects.export.bpmn import write

        drawn = write(workflow)
        return Converted(drawn.text, tuple(source.read.placed(loss) for loss in drawn.losses))
    written = write_workflow(workflow, dialect=target, original=original_of(source, target))
    if as_yaml:
        is_authored = source.document.format == "yaml" and (source.read.dialect or "native") == target
        text = source.document.text if is_authored else yaml_text(written.document)
    else:
        text = json.dumps(written.document, ensure_ascii=False, indent=2)
    graph = graph_view(workflow) if target == "native" else None
    return Converted(text, tuple(source.read.placed(loss) for loss in written.losses), graph)


def _converted_to_yaml(source: Workflow, target: str) -> Converted:
    return converted(source, target, as_yaml=True)


async def converted_for(app: AppContext, source: Workflow, target: str, *, by: str, as_yaml: bool = False) -> Converted:
    """Run `converted` as a job on a caller's document. `by`: the caller."""
    convert = _converted_to_yaml if as_yaml else converted
    return await app[DOCUMENTS].run(convert, source, target, by=by, chars=source.chars)


def original_of(source: Workflow, target: str) -> JsonObject | None:
    """Return the author's document without its envelope, for the writer to update; None: write a new document.

    Only a document in the target dialect is updated. Old forms of the native dialect are replaced by present ones.
    """
    if source.read.dialect != target or not isinstance(source.original, dict):
        return None
    document = unwrapped(source.original)[0].document
    return None if target == "native" and "pointsman" not in document else document


PATCHED: Final = ("name", "description", "version", "enabled", "status", "tags", "metadata")
"""The members of a workflow that a patch may change."""
COMMENT: Final = re.compile(r"(^|\s)#", re.MULTILINE)


class FieldNotPatched(AuthorError):
    """The patch changes a field other than metadata."""

    code: ClassVar[str] = "field-not-patched"


class Patched(NamedTuple):
    """A workflow after a patch."""

    source: Workflow
    losses: list[str]
    """Parts of the author's text that the patch does not preserve."""


def patched(source: Workflow, patch: JsonObject) -> Patched:
    """Job: apply a JSON merge patch (RFC 7386) and return the workflow in its author's dialect and format.

    Comments of a native YAML document stay. Raises `FieldNotPatched`, and `WorkflowInvalid` if the result is not a
    workflow.
    """
    foreign = sorted(patch.keys() - set(PATCHED))
    if foreign:
        raise FieldNotPatched(
            f"a patch cannot change {foreign[0]!r}",
            hint=f"Members that can be changed: {', '.join(PATCHED)}. For others, PUT the document.",
        )
    made, problems = Definition.from_document(merged(source.definition.to_document(), patch))
    if made is None:
        raise invalid(tuple(problems))
    dialect = source.read.dialect or "native"
    original = original_of(source, dialect)
    if dialect == "native" and original is not None:
        text = _native_text(source, original, patch)
    else:
        document = write_workflow(made, dialect=dialect, original=original).document
        text = yaml_text(document) if source.document.format == "yaml" else _json_text(document)
    parsed = Workflow.parse(text, name=source.name, dialect=dialect)
    if parsed.definition.id != source.definition.id:
        raise FieldNotPatched("the id of a workflow is not changed", hint="Save it under another id instead.")
    return Patched(parsed, losses_by_patching(source))


def losses_by_patching(source: Workflow) -> list[str]:
    """Return the parts of the author's text that a patch does not preserve, one sentence each."""
    dialect = source.read.dialect or "native"
    if source.document.format != "yaml":
        return [] if _is_json(source.document.text) else ["comments"]
    if dialect == "native" and original_of(source, dialect) is not None:
        return []
    # A text may contain `#` too; an unnecessary warning is better than a missing one.
    return (
        [f"comments: the document is rewritten in the dialect {dialect!r}"]
        if COMMENT.search(source.document.text)
        else []
    )


def _is_json(text: str) -> bool:
    """Return whether a text is plain JSON, without comments."""
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def merged(target: Json, patch: Json) -> Json:
    """Apply a merge patch (RFC 7386): merge objects by member, delete members for null, replace everything else."""
    if not isinstance(patch, dict):
        return patch
    fields = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            fields.pop(name, None)
        else:
            fields[name] = merged(fields.get(name), value)
    return fields


def _native_text(source: Workflow, original: JsonObject, patch: JsonObject) -> str:
    if source.document.format != "yaml":
        return _json_text(cast(JsonObject, merged(original, patch)))
    from ruamel.yaml import YAML  # Most documents are never patched.

    writer = YAML()
    writer.width = 4096  # Keep the author's line breaks.
    document = cast("dict[str, Json]", writer.load(source.document.text))  # pyright: ignore[reportUnknownMemberType] - ruamel types its result as Any
    for name, value in patch.items():
        if value is None:
            document.pop(name, None)
        else:
            document[name] = merged(document.get(name), value)
    text = io.StringIO()
    writer.dump(document, text)  # pyright: ignore[reportUnknownMemberType] - ruamel types its parameter as Any
    return text.getvalue()


def _json_text(document: JsonObject) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2)

"""Conversion of a workflow to another dialect or to a diagram, with the losses."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from typing import Final

import msgspec
from typing_extensions import TypedDict

from pointsman.context import AppContext
from pointsman.definition.graph.regions import GraphView, graph_view
from pointsman.definition.problems import Problem, ProblemView
from pointsman.dialects.detect import write_workflow
from pointsman.dialects.shapes import DIALECTS, unwrapped
from pointsman.values import Json, JsonObject
from pointsman.workflows.document_work import DOCUMENTS
from pointsman.workflows.sources import Workflow

PICTURES: Final = ("mermaid", "bpmn")
TARGETS: Final = (*DIALECTS, *PICTURES)


class ConvertedDocument(TypedDict):
    """A workflow in another dialect or as a diagram, and what that cannot express."""

    text: str
    document: Json
    """The text as JSON; null for a diagram."""
    losses: list[ProblemView]
    graph: GraphView | None
    """Regions and implied edges, for a picture; only of the native dialect."""


@dataclass(frozen=True, slots=True)
class Converted:
    """The text, and the parts of the workflow that it lacks, with positions in the author's document."""

    text: str
    losses: tuple[Problem, ...] = ()
    graph: GraphView | None = None

    def to_json(self, target: str) -> ConvertedDocument:
        document: Json = None if target in PICTURES else msgspec.json.decode(self.text)
        losses = [loss.to_json() for loss in self.losses]
        return {"text": self.text, "document": document, "losses": losses, "graph": self.graph}


def converted(source: Workflow, target: str, *, as_yaml: bool = False) -> Converted:
    """Write a workflow as one of `TARGETS`. Raises `WorkflowInvalid` if it cannot be read."""
    workflow = source.definition
    if target == "mermaid":
        from pointsman.dialects.export.mermaid import draw

        return Converted(draw(workflow))
    if target == "bpmn":
        from pointsman.dialects.export.bpmn import write

        drawn = write(workflow)
        return Converted(drawn.text, tuple(source.read.placed(loss) for loss in drawn.losses))
    written = write_workflow(workflow, dialect=target, original=original_of(source, target))
    text = yaml_text(written.document) if as_yaml else json.dumps(written.document, ensure_ascii=False, indent=2)
    graph = graph_view(workflow) if target == "native" else None
    return Converted(text, tuple(source.read.placed(loss) for loss in written.losses), graph)


async def converted_for(app: AppContext, source: Workflow, target: str, *, by: str) -> Converted:
    """Run `converted` as a job on a caller's document. `by`: the caller."""
    return await app[DOCUMENTS].run(converted, source, target, by=by, chars=source.chars)


def original_of(source: Workflow, target: str) -> JsonObject | None:
    """Return the author's document without its envelope, for the writer to update; None: write a new document.

    Only a document in the target dialect is updated. Old forms of the native dialect are replaced by present ones.
    """
    if source.read.dialect != target or not isinstance(source.original, dict):
        return None
    document = unwrapped(source.original)[0].document
    return None if target == "native" and "pointsman" not in document else document


def yaml_text(value: JsonObject) -> str:
    """Return a value as YAML, in the order of its keys."""
    from ruamel.yaml import YAML  # Import here: most commands never write YAML.

    writer = YAML()
    writer.default_flow_style = False
    writer.width = 110
    text = io.StringIO()
    writer.dump(value, text)  # pyright: ignore[reportUnknownMemberType] - ruamel does not say what it takes
    return text.getvalue().rstrip("\n")

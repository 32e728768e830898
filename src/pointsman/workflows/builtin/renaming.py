"""Renaming: give a document another id and keep the rest of its text, including comments."""

from __future__ import annotations

import json
from typing import Final

from pointsman.dialects.detect import write_workflow
from pointsman.dialects.shapes import unwrapped
from pointsman.errors import AuthorError
from pointsman.values import JsonObject
from pointsman.workflows.sources import Workflow

ID_KEYS: Final = ("id", "workflowId", "workflow_id")


def with_id(source: Workflow, workflow: str) -> Workflow:
    """Job: replace the id in the text of a document. If the text does not contain it (because it was derived from a
    file name), write the document anew. Raises `WorkflowInvalid` for an unreadable document, `AuthorError` for an
    invalid id."""
    before = source.definition
    for text in _texts(source, str(before.id), workflow):
        found = Workflow.parse(text, name=workflow, dialect=source.read.dialect)
        if found.read.workflow is not None and found.read.workflow == before.model_copy(update={"id": workflow}):
            return found
    document = before.model_copy(update={"id": workflow}).to_document()
    renamed = Workflow.of(document, name=workflow).definition
    original = unwrapped(source.original)[0].document if isinstance(source.original, dict) else None
    written = write_workflow(renamed, dialect=source.read.dialect or "native", original=original)
    return _checked(Workflow.of(written.document, name=workflow, dialect=source.read.dialect), workflow, document)


def _checked(found: Workflow, workflow: str, native: JsonObject) -> Workflow:
    if found.definition.id == workflow:
        return found
    again = Workflow.of(native, name=workflow)  # The dialect has no field for an id.
    if again.definition.id != workflow:
        raise AuthorError(f"{workflow!r} cannot be the id of this document", hint="Take another id.")
    return again


def _texts(source: Workflow, old: str, new: str) -> list[str]:
    """Return variants of the document's text, each with the id replaced at one of the positions where it may be."""
    text, texts = source.document.text, list[str]()
    for pointer in (*(f"/{key}" for key in ID_KEYS), *(f"/workflow/{key}" for key in ID_KEYS)):
        at = source.document.offset(pointer)
        for quote in ("", '"', "'"):
            stands, written = f"{quote}{old}{quote}", json.dumps(new) if quote == '"' else f"{quote}{new}{quote}"
            if text.startswith(stands, at):
                texts.append(text[:at] + written + text[at + len(stands) :])
    return texts

"""Built-in workflows: shipped with the product, listed with the saved ones, read-only; they can be run, called and
cloned.

`builtin:deep_research` is the id of the workflow in `deep_research.yaml`, wherever a workflow is named. No saved
workflow can have an id with this prefix, so that saved and built-in workflows never hide each other. Documents are read
on first use.
"""

from __future__ import annotations

import json
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import ClassVar, Final

from pointsman.dialects.detect import write_workflow
from pointsman.dialects.shapes import unwrapped
from pointsman.errors import AuthorError, CallerError, OperatorError
from pointsman.settings import Settings
from pointsman.store.api import Workflows
from pointsman.store.records import SavedWorkflow, WorkflowDraft, WorkflowEntry, names_in, tags_in
from pointsman.values import JsonObject, WorkflowId
from pointsman.workflows.sources import Workflow, draft_of

BUILT_IN: Final = "builtin:"
TOOLS: Final = ("deep_research", "iterate", "map_reduce")
"""Workflows made for agents to call: tools by these names."""
EXAMPLES: Final = {"agentforge": "agentforge/agentforge.yaml"}
"""Name -> path of the document below the examples."""
NAMES: Final = tuple(sorted((*TOOLS, *EXAMPLES)))
IDS: Final = tuple(BUILT_IN + name for name in NAMES)


class ExamplesMissing(OperatorError):
    """The examples that belong to the package are not installed."""

    code: ClassVar[str] = "examples-missing"


def is_built_in(workflow: str) -> bool:
    """Return whether an id or a reference has the prefix of built-in workflows, known or not."""
    return workflow.startswith(BUILT_IN)


@cache
def shipped(workflow: str) -> Workflow | None:
    """Return the document of a built-in workflow by its id; None: unknown. Raises `ExamplesMissing`."""
    name = workflow.removeprefix(BUILT_IN)
    if not is_built_in(workflow) or name not in NAMES:
        return None
    if name in EXAMPLES:
        return with_id(Workflow.load(examples_directory() / EXAMPLES[name]), workflow)
    return Workflow.load(Path(__file__).with_name(f"{name}.yaml"))


@cache
def examples_directory() -> Path:
    """Return the directory of the examples: in the installed package, else in the source tree. Raises
    `ExamplesMissing`."""
    package = Path(__file__).resolve().parents[2]
    for folder in (package / "examples", package.parents[1] / "examples"):
        if (folder / EXAMPLES["agentforge"]).is_file():
            return folder
    raise ExamplesMissing(
        "the examples are not installed with this package", hint="Reinstall the package with its data files."
    )


REVISION = 1
"""The revision of every built-in workflow. A new version of the product may ship other definitions; executions keep the
one that they started with."""


class BuiltIn(CallerError):
    """Built-in workflows cannot be changed, replaced or deleted."""

    code: ClassVar[str] = "built-in-workflow"


class LibraryWithBuiltIns:
    """The `Workflows` of a store, extended by the built-in workflows. A built-in workflow never hides a saved one."""

    def __init__(self, saved: Workflows, settings: Settings) -> None:
        """`settings` have the language of names in lists."""
        self._saved = saved
        self._settings = settings

    @property
    def _language(self) -> str:
        return self._settings.current.language

    async def save(self, draft: WorkflowDraft, *, after: int | None = None) -> SavedWorkflow:
        """Save as `Workflows.save` does. Raises `BuiltIn`."""
        if is_built_in(draft.id):
            raise read_only(draft.id)
        return await self._saved.save(draft, after=after)

    async def find(self, reference: str) -> SavedWorkflow | None:
        """Find as `Workflows.find` does."""
        if not is_built_in(reference):
            return await self._saved.find(reference)
        workflow, at, which = reference.partition("@")
        built_in = _built_in(workflow, self._language)
        if built_in is None or (at and which not in (str(REVISION), built_in.draft.version)):
            return None
        return built_in

    async def list(self, workflow: WorkflowId | None = None) -> list[WorkflowEntry]:
        """List as `Workflows.list` does: the saved workflows, then the built-in ones."""
        if workflow is None:
            built_in = [_built_in(one, self._language) for one in IDS]
            return [*await self._saved.list(), *(_entry(one) for one in built_in if one is not None)]
        if not is_built_in(workflow):
            return await self._saved.list(workflow)
        built_in_workflow = _built_in(workflow, self._language)
        return [] if built_in_workflow is None else [_entry(built_in_workflow)]

    async def delete(self, workflow: WorkflowId, *, after: int | None = None) -> bool:
        """Delete as `Workflows.delete` does. Raises `BuiltIn`."""
        if workflow in IDS:
            raise read_only(workflow)
        return await self._saved.delete(workflow, after=after)


def read_only(workflow: str) -> BuiltIn:
    """Return the error for an attempt to change a built-in workflow or to use the prefix of their ids."""
    if workflow in IDS:
        hint = (
            f"Clone it and change the clone: pointsman workflows clone {workflow} my-{workflow.removeprefix(BUILT_IN)}"
        )
        return BuiltIn(f"{workflow!r} is built in: it is read-only", hint=hint)
    hint = "Choose another id."
    return BuiltIn(
        f"ids that begin with {BUILT_IN!r} are reserved for built-in workflows, including {workflow!r}", hint=hint
    )


@cache
def _built_in(workflow: str, language: str) -> SavedWorkflow | None:
    source = shipped(workflow)
    if source is None:
        return None
    draft = draft_of(source, language)
    return SavedWorkflow(draft=draft, revision=REVISION, digest=sha256(draft.text.encode()).hexdigest())


def _entry(workflow: SavedWorkflow) -> WorkflowEntry:
    draft = workflow.draft
    return WorkflowEntry(
        id=draft.id,
        revision=workflow.revision,
        name=draft.name,
        version=draft.version,
        dialect=draft.dialect,
        created=draft.created,
        author=draft.author,
        digest=workflow.digest,
        description=draft.native.get("description"),
        tags=tags_in(draft.native.get("tags")),
        names=names_in(draft.native.get("name")),
    )


ID_KEYS: Final = ("id", "workflowId", "workflow_id")


def with_id(source: Workflow, workflow: str) -> Workflow:
    """Job: replace the id in the text of a document. If the text does not contain it (because it was derived from a
    file name), write the document anew. Raises `WorkflowInvalid` for an unreadable document, `AuthorError` for an
    invalid id."""
    before = source.definition
    for text in _texts(source, str(before.id), workflow):
        parsed = Workflow.parse(text, name=workflow, dialect=source.read.dialect)
        if parsed.read.workflow is not None and parsed.read.workflow == before.model_copy(update={"id": workflow}):
            return parsed
    document = before.model_copy(update={"id": workflow}).to_document()
    renamed = Workflow.of(document, name=workflow).definition
    original = unwrapped(source.original)[0].document if isinstance(source.original, dict) else None
    written = write_workflow(renamed, dialect=source.read.dialect or "native", original=original)
    return _checked(Workflow.of(written.document, name=workflow, dialect=source.read.dialect), workflow, document)


def _checked(parsed: Workflow, workflow: str, native: JsonObject) -> Workflow:
    if parsed.definition.id == workflow:
        return parsed
    again = Workflow.of(native, name=workflow)  # The dialect has no field for an id.
    if again.definition.id != workflow:
        raise AuthorError(f"{workflow!r} cannot be the id of this document", hint="Choose another id.")
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

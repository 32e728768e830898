"""A workflow as its author wrote it: the text, what it reads as, and where every problem stands."""

from __future__ import annotations

from functools import lru_cache, partial
from pathlib import Path
from typing import ClassVar, Final

import msgspec

from pointsman.app.aside import aside
from pointsman.definition.documents import BYTES_MAX, Document, read_document
from pointsman.definition.problems import Problem
from pointsman.definition.work import WorkflowCallConfig
from pointsman.definition.workflow import Workflow as Definition
from pointsman.dialects.detect import Read, read_workflow
from pointsman.errors import AuthorError, CallerError
from pointsman.journal.records import WorkflowDraft
from pointsman.values import Instant, Json, JsonObject, WorkflowId

KEPT_MAX: Final = 64
KEPT_CHARS_MAX: Final = 100_000
"""Longer documents are read again each time they are started."""


class FileUnreadable(CallerError):
    """A file that was named cannot be read."""

    code: ClassVar[str] = "file-unreadable"


class WorkflowInvalid(AuthorError):
    """The workflow has errors; `problems` lists all of them."""

    code: ClassVar[str] = "workflow-invalid"

    def __init__(self, message: str, *, problems: tuple[Problem, ...], hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.problems = problems


class Workflow:
    """A workflow document in any dialect. Never changed: what changes it makes another one."""

    def __init__(self, read: Read, *, name: str = "", data: bytes = b"") -> None:
        self.read = read
        self.name = name
        self.data = data

    @classmethod
    def load(cls, path: str | Path, *, dialect: str | None = None) -> Workflow:
        """Read a file: JSON, JSON with comments, or YAML, in any dialect. Raises `FileUnreadable`."""
        file = Path(path)
        try:
            with file.open("rb") as stream:
                data = stream.read(BYTES_MAX + 1)
        except OSError as why:
            raise FileUnreadable(f"{str(path)!r} cannot be read: {why.strerror}", hint="Name a file.") from None
        return cls.parse(data, name=file.name.split(".")[0], dialect=dialect)

    @classmethod
    def parse(cls, data: bytes | str, *, name: str = "", dialect: str | None = None) -> Workflow:
        """Read a text."""
        document = read_document(data, name=name)
        raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
        return cls(read_workflow(document, dialect=dialect, name=name), name=name, data=raw)

    @classmethod
    async def parse_aside(cls, data: bytes | str, *, name: str = "", dialect: str | None = None) -> Workflow:
        """The same beside the event loop, where the text is long enough to be noticed there."""
        return await aside(len(data), partial(cls.parse, data, name=name, dialect=dialect))

    @classmethod
    def of(cls, document: JsonObject, *, name: str = "", dialect: str | None = None) -> Workflow:
        """Take a document that is data already."""
        return cls.parse(msgspec.json.encode(document), name=name, dialect=dialect)

    @property
    def document(self) -> Document:
        return self.read.document

    @property
    def problems(self) -> tuple[Problem, ...]:
        """What reading found; `Pointsman.check` finds more."""
        return self.read.problems

    @property
    def definition(self) -> Definition:
        """What it reads as. Raises `WorkflowInvalid` where it does not."""
        if self.read.workflow is None:
            raise invalid(self.read.problems)
        return self.read.workflow

    @property
    def unreadable(self) -> bool:
        """Nothing could be read of it: no text, no JSON, no YAML, or too much of it."""
        return self.document.value is None and not self.document.is_readable

    @property
    def calls(self) -> bool:
        """Whether it names sub-workflows, which only a store knows."""
        workflow = self.read.workflow
        return workflow is not None and any(isinstance(node.config, WorkflowCallConfig) for node in workflow.nodes)

    @property
    def original(self) -> Json:
        """The author's document as data."""
        return self.read.document.value


def invalid(problems: tuple[Problem, ...]) -> WorkflowInvalid:
    """The exception for a workflow that has errors."""
    errors = [problem for problem in problems if problem.severity == "error"]
    first = errors[0]
    more = f" (and {len(errors) - 1} more)" if len(errors) > 1 else ""
    place = f"line {first.line}: " if first.line is not None else ""
    return WorkflowInvalid(f"{place}{first.message}{more}", problems=problems, hint=first.hint)


def draft_of(workflow: Workflow, language: str, *, at: Instant, author: str) -> WorkflowDraft:
    """What is saved of a workflow: the author's document, and what it reads as."""
    found = workflow.definition
    return WorkflowDraft(
        id=WorkflowId(found.id),
        name=found.name.in_(language) if found.name is not None else found.id,
        version=found.version or "",
        dialect=workflow.read.dialect or "native",
        text=workflow.document.text,
        native=found.to_document(),
        created=at,
        author=author,
    )


def source_of(draft: WorkflowDraft) -> Workflow:
    """A saved workflow as its author wrote it. Revisions never change: those that are started often are read once."""
    read = _read_once if len(draft.text) <= KEPT_CHARS_MAX else _read
    return read(draft.text, draft.id, draft.dialect)


def _read(text: str, name: str, dialect: str) -> Workflow:
    return Workflow.parse(text, name=name, dialect=dialect)


_read_once = lru_cache(maxsize=KEPT_MAX)(_read)

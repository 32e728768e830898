"""Editing of a workflow in its author's format: operations in; the new document and the change in its problems out.

    author's text ─▶ native ─ operations ─▶ native' ─▶ author's dialect ─▶ text'
                                               └─────▶ check ─▶ problems, with the new ones marked

If the author's dialect cannot express a change, the new document is native, and a loss reports this. Unchanged
parts of the text stay as the author wrote them: YAML keeps its comments and quotes, JSON its indentation.
"""

from __future__ import annotations

import io
import json
import re
from collections import Counter
from collections.abc import Iterable, MutableMapping, MutableSequence, Sequence
from dataclasses import dataclass, replace
from typing import Final, cast

import msgspec
from typing_extensions import TypedDict

from pointsman.auth.callers import Caller
from pointsman.authoring.apply import apply_operations
from pointsman.authoring.comparison import operations_between, same
from pointsman.authoring.operations import AnyOperation, written_operations
from pointsman.context import AppContext
from pointsman.definition.graph.analysis import GraphView, graph_view
from pointsman.definition.model.workflow import FORMAT
from pointsman.definition.model.workflow import WorkflowDefinition as Definition
from pointsman.definition.problems import Problem, ProblemView, invalid, warning
from pointsman.definition.reading.documents import Document, read_document
from pointsman.dialects.detect import write_workflow
from pointsman.values import Json, JsonObject
from pointsman.workflows.definitions import ANYBODY, check
from pointsman.workflows.document_work import DOCUMENTS
from pointsman.workflows.sources import Workflow

NATIVE: Final = "native"


class EditView(TypedDict):
    """What a change makes of a workflow."""

    ok: bool
    """Whether the result has no errors."""
    document: Json
    text: str
    """The document as its author wrote it, except for what changed."""
    dialect: str | None
    changes: list[JsonObject]
    """The differences, as operations."""
    problems: list[ProblemView]
    new: list[ProblemView]
    """The problems that the workflow did not have before."""
    gone: list[ProblemView]
    """The problems that the workflow does not have any more."""
    losses: list[ProblemView]
    """What the new text does not keep."""


@dataclass(frozen=True, slots=True)
class Edited:
    """A workflow after operations."""

    source: Workflow
    """The workflow in its author's dialect."""
    document: Json
    text: str
    dialect: str | None
    native: JsonObject
    """The document in the native dialect."""
    graph: GraphView | None
    """None: the document has structural errors."""
    changes: tuple[AnyOperation, ...]
    """The actual differences from the document before, whatever operations were requested."""
    losses: tuple[Problem, ...]
    """Parts of the author's text that were not preserved."""
    problems: tuple[Problem, ...] = ()
    """All problems after the edit."""
    new: tuple[Problem, ...] = ()
    """Problems that the workflow did not have before."""
    gone: tuple[Problem, ...] = ()
    """Problems that the workflow does not have any more."""

    @property
    def ok(self) -> bool:
        """Whether the workflow can run."""
        return not any(problem.severity == "error" for problem in self.problems)

    def to_json(self) -> EditView:
        return {
            "ok": self.ok,
            "document": self.document,
            "text": self.text,
            "dialect": self.dialect,
            "changes": written_operations(self.changes),
            "problems": _listed(self.problems),
            "new": _listed(self.new),
            "gone": _listed(self.gone),
            "losses": _listed(self.losses),
        }


def _listed(problems: Iterable[Problem]) -> list[ProblemView]:
    return [problem.to_json() for problem in problems]


async def edit(
    app: AppContext, source: Workflow, operations: Sequence[AnyOperation], *, reader: Caller = ANYBODY
) -> Edited:
    """Apply operations to a workflow and check it; nothing is saved. Raises `OperationRefused`; `WorkflowInvalid` if
    the source cannot be read."""
    made = await app[DOCUMENTS].run(changed, source, operations, by=reader.name, chars=source.chars)
    was, now = await check(app, source, reader=reader), await check(app, made.source, reader=reader)
    new, solved = _beyond(now.problems, was.problems), _beyond(was.problems, now.problems)
    return replace(made, problems=now.problems, new=new, gone=solved)


def changed(source: Workflow, operations: Sequence[AnyOperation]) -> Edited:
    """Job: apply operations to a document, without checking the result. Raises the errors of `edit`."""
    before = native_of(source)
    after = apply_operations(before, operations)
    made, losses = respelled(source, before, after)
    return Edited(
        source=made,
        document=made.original,
        text=made.document.text,
        dialect=made.read.dialect,
        native=native_of(made),
        graph=None if made.read.workflow is None else graph_view(made.read.workflow),
        changes=operations_between(before, after),
        losses=losses + comments_lost(source.document, made.document),
    )


def native_of(source: Workflow) -> JsonObject:
    """Job: return the native document, even if it has structural errors. Raises `WorkflowInvalid` if it cannot be read
    at all."""
    if source.read.imported is None:
        raise invalid(source.problems)
    return source.read.imported.document


def respelled(source: Workflow, before: JsonObject, after: JsonObject) -> tuple[Workflow, tuple[Problem, ...]]:
    """Return the source with the content `after` instead of `before`, and the losses."""
    if source.read.dialect == NATIVE:
        return _native(source, before, after)
    workflow, _ = Definition.from_document(after)
    losses: tuple[Problem, ...] = ()
    if workflow is not None and isinstance(source.original, dict):
        written = write_workflow(workflow, dialect=source.read.dialect or NATIVE, original=source.original)
        losses = written.losses
        made = _parsed(source, rewritten(source.document, written.document), source.read.dialect)
        if not losses and made.read.workflow == workflow:
            return made, ()
    left = warning(
        "dialect-left",
        "",
        f"the dialect {source.read.dialect!r} cannot express this: the workflow is now written in {NATIVE!r}",
        hint="Save it under another id to keep the previous version beside it.",
    )
    return _parsed(source, _native_text(source, after), NATIVE), (left, *losses)


def comments_lost(before: Document, after: Document) -> tuple[Problem, ...]:
    """Return a warning for a JSON document with comments: changed JSON is written anew, without comments."""
    at = None if before.reading is None else before.reading.comment
    if at is None or before.text == after.text:
        return ()
    line, column = before.line_and_column(at)
    problem = warning(
        "comments-lost",
        "",
        f"the comments of the document are lost, the first one in line {line}",
        hint="The previous revision keeps them. Save the document as YAML to keep comments.",
    )
    return (replace(problem, line=line, column=column),)


def _native(source: Workflow, before: JsonObject, after: JsonObject) -> tuple[Workflow, tuple[Problem, ...]]:
    original = source.original
    if isinstance(original, dict) and _is_of_today(original, before):
        made = _parsed(source, rewritten(source.document, _as_written(original, before, after)), NATIVE)
        if made.read.imported is not None and same(made.read.imported.document, after):
            return made, ()
    older = warning(
        "rewritten-today",
        "",
        "deprecated names and wrappers of the document were replaced by present ones",
        hint="The previous revision keeps them.",
    )
    return _parsed(source, _native_text(source, after), NATIVE), (older,)


def _is_of_today(original: JsonObject, read: JsonObject) -> bool:
    """Return whether the reader kept everything that a native document contains and only added defaults."""
    return all(key in read and _is_kept(value, read[key]) for key, value in original.items())


def _is_kept(value: Json, read: Json) -> bool:
    if isinstance(value, dict) and isinstance(read, dict):
        return _is_of_today(value, read)
    return same(value, read)


def _as_written(original: JsonObject, before: JsonObject, after: JsonObject) -> JsonObject:
    """Return `after` in the author's order of keys, without the defaults that the reader added to the original."""
    result: JsonObject = {}
    for key in [*(key for key in original if key in after), *(key for key in after if key not in original)]:
        was, now, written = before.get(key), after[key], original.get(key)
        if isinstance(was, dict) and isinstance(now, dict) and isinstance(written, dict | None):
            inner = _as_written(written or {}, was, now)
            if inner or key in original or not was:
                result[key] = inner
        elif key in original or key not in before or not same(was, now):
            result[key] = now
    return result


def _native_text(source: Workflow, document: JsonObject) -> str:
    contents = {"pointsman": FORMAT, **document}
    if source.document.format == "yaml":
        return plain_yaml(contents)
    return json.dumps(contents, ensure_ascii=False, indent=INDENT) + "\n"


def _parsed(source: Workflow, text: str, dialect: str | None) -> Workflow:
    return Workflow.parse(text, name=source.name, dialect=dialect)


def _beyond(problems: Iterable[Problem], others: Iterable[Problem]) -> tuple[Problem, ...]:
    """Return the problems that are not among the others. Compares messages, since positions change."""
    counts = Counter(map(_identity_of, others))
    beyond: list[Problem] = []
    for problem in problems:
        if counts[_identity_of(problem)] > 0:
            counts[_identity_of(problem)] -= 1
        else:
            beyond.append(problem)
    return tuple(beyond)


def _identity_of(problem: Problem) -> tuple[str, str, str]:
    return problem.code, problem.severity, problem.message


INDENT: Final = 2
WIDTH: Final = 100_000
"""Line width so large that no line is folded."""
_SPACED: Final = re.compile(r'\A\s*\{\s*"[^"]*"\s*:\s')
_INDENTED: Final = re.compile(r"\A\s*\{\r?\n( +|\t+)")


def document_of(source: Json, *, dialect: str | None = None, name: str = "") -> Workflow:
    """Return a workflow given as data, or as text in JSON or YAML. It is not read yet."""
    text = source if isinstance(source, str) else msgspec.json.encode(source)
    return Workflow(text, dialect=dialect, name=name)


def rewritten(document: Document, after: JsonObject) -> str:
    """Return a text of the same format with the content `after`."""
    if same(document.value, after):
        return document.text
    if document.format == "yaml":
        made = _patched(document.text, document.value, after)
        if made is not None and same(read_document(made).value, after):
            return made
        return plain_yaml(after)
    match = _INDENTED.match(document.text)
    if match is None and "\n" not in document.text.strip():
        separators = None if _SPACED.search(document.text) else (",", ":")
        return json.dumps(after, ensure_ascii=False, separators=separators)
    return json.dumps(after, ensure_ascii=False, indent=INDENT if match is None else match[1]) + "\n"


def plain_yaml(value: JsonObject) -> str:
    """Return a value as YAML, in the order of its keys."""
    from pointsman.dialects.writers import yaml_text  # Few texts are YAML.

    return yaml_text(value) + "\n"


def _patched(text: str, before: Json, after: JsonObject) -> str | None:
    """Return the text with the differences applied; None: this text cannot be edited in place."""
    from ruamel.yaml import YAML  # Import only for YAML.
    from ruamel.yaml.error import YAMLError

    yaml = YAML()
    yaml.preserve_quotes = True
    yaml.brace_single_entry_mapping_in_flow_sequence = True
    yaml.width = WIDTH
    if "\n  - " in text:
        yaml.indent(mapping=2, sequence=4, offset=2)
    try:
        tree = cast("object", yaml.load(text))  # pyright: ignore[reportUnknownMemberType] - as above
        _replace_values(tree, before, after)
        made = io.StringIO()
        yaml.dump(tree, made)  # pyright: ignore[reportUnknownMemberType] - as above
    except (YAMLError, ValueError, TypeError, KeyError, IndexError):
        return None
    return made.getvalue()


def _replace_values(tree: object, before: Json, after: Json) -> None:
    """Change only the differing values in place, so that comments around the others stay."""
    if isinstance(before, dict) and isinstance(after, dict):
        _put_members(cast("MutableMapping[str, object]", tree), before, after)
    elif isinstance(before, list) and isinstance(after, list):
        _put_items(cast("MutableSequence[object]", tree), before, after)


def _put_members(tree: MutableMapping[str, object], before: JsonObject, after: JsonObject) -> None:
    for key in [key for key in before if key not in after]:
        del tree[key]
    for key, value in after.items():
        if key in before and _alike(before[key], value):
            _replace_values(tree[key], before[key], value)
        elif key not in before or not same(before[key], value):
            tree[key] = value


def _put_items(tree: MutableSequence[object], before: list[Json], after: list[Json]) -> None:
    """Match items by their ids, else by their values. A new item replaces a removed one at the same position, if they
    are alike."""
    places: dict[str, list[int]] = {}
    for at, item in enumerate(before):
        places.setdefault(_identity(item), []).append(at)
    identities = {_identity(item) for item in after}
    trees = list(tree)
    result: list[object] = []
    for position, value in enumerate(after):
        place = places.get(_identity(value))
        replaces = position < len(before) and _identity(before[position]) not in identities
        at = place.pop(0) if place else position if replaces and _alike(before[position], value) else None
        if at is None:
            result.append(value)
            continue
        _replace_values(trees[at], before[at], value)
        result.append(trees[at] if isinstance(value, dict | list) or same(before[at], value) else value)
    _arrange(tree, trees, result)


def _arrange(tree: MutableSequence[object], trees: list[object], made: list[object]) -> None:
    """Edit item by item if the order stays, so that comments around an item stay with it."""
    placed_ids, there = {id(one) for one in made}, {id(one) for one in trees}
    stay = [one for one in trees if id(one) in placed_ids]
    if [id(one) for one in made if id(one) in there] != [id(one) for one in stay]:
        tree[:] = made
        return
    for at in reversed(range(len(trees))):
        if id(trees[at]) not in placed_ids:
            del tree[at]
    for at, one in enumerate(made):
        if id(one) not in there:
            tree.insert(at, one)


def _identity(value: Json) -> str:
    if isinstance(value, dict):
        for keys in (("id",), ("source", "target"), ("name",)):
            if all(key in value for key in keys):
                return repr([value[key] for key in keys])
    return json.dumps(value, sort_keys=True)


def _alike(one: Json, other: Json) -> bool:
    return (isinstance(one, dict) and isinstance(other, dict)) or (isinstance(one, list) and isinstance(other, list))

"""Patching of a workflow's metadata in its document; the rest of the document stays as its author wrote it."""

from __future__ import annotations

import io
import json
import re
from typing import ClassVar, Final, NamedTuple, cast

from pointsman.definition.model.workflow import WorkflowDefinition as Definition
from pointsman.dialects.detect import write_workflow
from pointsman.errors import AuthorError
from pointsman.values import Json, JsonObject
from pointsman.workflows.conversion import original_of, yaml_text
from pointsman.workflows.sources import Workflow, invalid

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
            f"{foreign[0]!r} is not changed by a patch", hint=f"Of {', '.join(PATCHED)}; for more PUT the document."
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
    found = Workflow.parse(text, name=source.name, dialect=dialect)
    if found.definition.id != source.definition.id:
        raise FieldNotPatched("the id of a workflow is not changed", hint="Save it under another id instead.")
    return Patched(found, lost_by_patching(source))


def lost_by_patching(source: Workflow) -> list[str]:
    """Return the parts of the author's text that a patch does not preserve, one sentence each."""
    dialect = source.read.dialect or "native"
    if source.document.format != "yaml":
        return [] if _is_json(source.document.text) else ["comments"]
    if dialect == "native" and original_of(source, dialect) is not None:
        return []
    # A text may contain `#` too; an unnecessary warning is better than a missing one.
    return [f"comments: the dialect {dialect!r} is written anew"] if COMMENT.search(source.document.text) else []


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
    found = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            found.pop(name, None)
        else:
            found[name] = merged(found.get(name), value)
    return found


def _native_text(source: Workflow, original: JsonObject, patch: JsonObject) -> str:
    if source.document.format != "yaml":
        return _json_text(cast(JsonObject, merged(original, patch)))
    from ruamel.yaml import YAML  # Most documents are never patched.

    writer = YAML()
    writer.width = 4096  # Keep the author's line breaks.
    document = cast("dict[str, Json]", writer.load(source.document.text))  # pyright: ignore[reportUnknownMemberType] - ruamel does not say what it gives
    for name, value in patch.items():
        if value is None:
            document.pop(name, None)
        else:
            document[name] = merged(document.get(name), value)
    text = io.StringIO()
    writer.dump(document, text)  # pyright: ignore[reportUnknownMemberType] - ruamel does not say what it takes
    return text.getvalue()


def _json_text(document: JsonObject) -> str:
    return json.dumps(document, ensure_ascii=False, indent=2)

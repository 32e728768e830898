"""Text of an edited document: unchanged parts stay as the author wrote them.

YAML keeps its comments and quotes, JSON its indentation.
"""

from __future__ import annotations

import io
import json
import re
from collections.abc import MutableMapping, MutableSequence
from typing import Final, cast

import msgspec

from pointsman.authoring.comparison import same
from pointsman.definition.reading.documents import Document, read_document
from pointsman.values import Json, JsonObject
from pointsman.workflows.sources import Workflow

INDENT: Final = 2
WIDTH: Final = 100_000
"""Line width so large that no line is folded."""
_SPACED: Final = re.compile(r'\A\s*\{\s*"[^"]*"\s*:\s')
_INDENTED: Final = re.compile(r"\A\s*\{\r?\n( +|\t+)")


def document_of(given: Json, *, dialect: str | None = None, name: str = "") -> Workflow:
    """Return a workflow given as data, or as text in JSON or YAML. It is not read yet."""
    text = given if isinstance(given, str) else msgspec.json.encode(given)
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
    found = _INDENTED.match(document.text)
    if found is None and "\n" not in document.text.strip():
        separators = None if _SPACED.search(document.text) else (",", ":")
        return json.dumps(after, ensure_ascii=False, separators=separators)
    return json.dumps(after, ensure_ascii=False, indent=INDENT if found is None else found[1]) + "\n"


def plain_yaml(value: JsonObject) -> str:
    """Return a value as YAML, in the order of its keys."""
    from pointsman.workflows.conversion import yaml_text  # Few texts are YAML.

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
        _put(tree, before, after)
        made = io.StringIO()
        yaml.dump(tree, made)  # pyright: ignore[reportUnknownMemberType] - as above
    except (YAMLError, ValueError, TypeError, KeyError, IndexError):
        return None
    return made.getvalue()


def _put(tree: object, before: Json, after: Json) -> None:
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
            _put(tree[key], before[key], value)
        elif key not in before or not same(before[key], value):
            tree[key] = value


def _put_items(tree: MutableSequence[object], before: list[Json], after: list[Json]) -> None:
    """Match items by their ids, else by their values. A new item replaces a removed one at the same position, if they
    are alike."""
    places: dict[str, list[int]] = {}
    for at, item in enumerate(before):
        places.setdefault(_identity(item), []).append(at)
    wanted = {_identity(item) for item in after}
    trees = list(tree)
    made: list[object] = []
    for position, value in enumerate(after):
        found = places.get(_identity(value))
        replaces = position < len(before) and _identity(before[position]) not in wanted
        at = found.pop(0) if found else position if replaces and _alike(before[position], value) else None
        if at is None:
            made.append(value)
            continue
        _put(trees[at], before[at], value)
        made.append(trees[at] if isinstance(value, dict | list) or same(before[at], value) else value)
    _arrange(tree, trees, made)


def _arrange(tree: MutableSequence[object], trees: list[object], made: list[object]) -> None:
    """Edit item by item if the order stays, so that comments around an item stay with it."""
    wanted, there = {id(one) for one in made}, {id(one) for one in trees}
    stay = [one for one in trees if id(one) in wanted]
    if [id(one) for one in made if id(one) in there] != [id(one) for one in stay]:
        tree[:] = made
        return
    for at in reversed(range(len(trees))):
        if id(trees[at]) not in wanted:
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

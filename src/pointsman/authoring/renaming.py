"""Renaming of a node: its id is replaced wherever a workflow refers to it. All other text stays as written.

edges, entry, branches …      the id itself
expressions, JSONPath         nodes.draft, nodeOutputs["draft"], $.outputs.draft
paths and templates           {nodes.draft.text}, {{#if nodes.draft}}
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final

from pointsman.authoring.draft import Draft
from pointsman.authoring.operations import OperationRefused
from pointsman.definition.text_locations import Site, sites_of
from pointsman.expressions.environment import ROOTS
from pointsman.expressions.failures import ExpressionError
from pointsman.expressions.parser import Token, read_tokens
from pointsman.expressions.paths import scan_path
from pointsman.values import Json, JsonObject

WORDS: Final = frozenset(word for word, root in ROOTS.items() if root == "nodes")
"""Names of the root that holds the results of nodes."""
_NAME: Final = re.compile(r"[^\W\d]\w*")
_PATH_NAME: Final = re.compile(r"[^\W\d][\w-]*")
_BRACE: Final = re.compile(r"(?<!\\)(?:\{\{?|\$\{)\s*(?:#\s*\w+\s+)?")
"""Beginning of a template tag."""

_Spelled = Callable[[str], str]


def rename(draft: Draft, old: str, new: str) -> None:
    """Rename a node. Raises `OperationRefused` if the workflow has structural errors, because then the kind of its
    texts is unknown."""
    sites = [*sites_of(draft.workflow())]
    for site in sites:
        _rename_at(draft.document, site, old, new)
    for one in draft.nodes:
        config = one.get("config") if isinstance(one, dict) else None
        handoffs = config.get("handoffs") if isinstance(config, dict) else None
        if isinstance(config, dict) and isinstance(handoffs, list):
            config["handoffs"] = [new if name == old else name for name in handoffs]
    draft.node(old)["id"] = new


def _rename_at(document: JsonObject, site: Site, old: str, new: str) -> None:
    replaced: _Spelled
    match site.kind:
        case "node":
            replaced = lambda text: new if text == old else text  # noqa: E731 - one of four ways to replace
        case "expression" | "jsonpath":
            replaced = partial(in_expression, old=old, new=new)
        case "template" | "parameters":
            replaced = partial(in_template, old=old, new=new)
        case "path":
            replaced = partial(in_path, old=old, new=new)
        case _:
            return
    if not site.writes:
        _replace(document, [str(part) for part in site.parts], replaced)


def _replace(document: JsonObject, parts: list[str], replaced: _Spelled) -> None:
    """Replace the text at a position, or every text in the tree there."""
    here: Json = document
    for part in parts[:-1]:
        here = _inner(here, part)
    last = parts[-1]
    if isinstance(here, dict) and last in here:
        here[last] = _texts(here[last], replaced)
    elif isinstance(here, list) and last.isdigit() and int(last) < len(here):
        here[int(last)] = _texts(here[int(last)], replaced)


def _inner(here: Json, part: str) -> Json:
    if isinstance(here, dict):
        return here.get(part)
    return here[int(part)] if isinstance(here, list) and part.isdigit() and int(part) < len(here) else None


def _texts(value: Json, replaced: _Spelled) -> Json:
    match value:
        case str():
            return replaced(value)
        case list():
            return [_texts(one, replaced) for one in value]
        case dict():
            return {key: _texts(one, replaced) for key, one in value.items()}
        case _:
            return value


def in_expression(text: str, *, old: str, new: str) -> str:
    """Rename in an expression. Invalid expressions stay unchanged; the checker reports them."""
    try:
        tokens = read_tokens(text)
    except ExpressionError:
        return text
    return _spliced(text, [(at, end, _key(new, _NAME)) for at, end in _keys(tokens, old)])


def _keys(tokens: list[Token], old: str) -> Iterator[tuple[int, int]]:
    """Yield the positions of `.draft` or `["draft"]` after a name of the nodes root, including the dot or bracket."""
    for place, token in enumerate(tokens[:-2]):
        before = tokens[place - 1] if place else None
        of_other = before is not None and before.text in (".", "?.") and (place < 2 or tokens[place - 2].text != "$")
        if token.kind != "name" or token.text not in WORDS or of_other:
            continue
        sign, key = tokens[place + 1], tokens[place + 2]
        if sign.text in (".", "?.") and key.kind == "name" and key.text == old:
            yield sign.at, key.end
        elif sign.text == "[" and key.kind == "text" and key.text == old:
            closing = tokens[place + 3]
            if closing.text == "]":
                yield sign.at, closing.end


def in_path(text: str, *, old: str, new: str) -> str:
    found = _path_key(text, 0, old)
    return text if found is None else _spliced(text, [(*found, _key(new, _PATH_NAME))])


def _path_key(text: str, at: int, old: str) -> tuple[int, int] | None:
    """Return the position of the key `old` in the path that begins at `at`; None: it is not a path into nodes with that
    key."""
    scanned = scan_path(text, at)
    keys = () if scanned is None else scanned.keys
    if len(keys) > 1 and keys[0].key in WORDS and keys[1].key == old:
        return keys[1].at, keys[1].end
    return None


def in_template(text: str, *, old: str, new: str) -> str:
    """Rename in every tag and block of a template."""
    found = (_path_key(text, brace.end(), old) for brace in _BRACE.finditer(text))
    return _spliced(text, [(*place, _key(new, _PATH_NAME)) for place in found if place is not None])


def _key(name: str, plain: re.Pattern[str]) -> str:
    """Return a name as a key in a path, with its dot or brackets."""
    return f".{name}" if plain.fullmatch(name) else f"[{json.dumps(name, ensure_ascii=False)}]"


def _spliced(text: str, places: list[tuple[int, int, str]]) -> str:
    made, position = "", 0
    for at, end, new in places:
        made, position = made + text[position:at] + new, end
    return made + text[position:]


def must_be_free(draft: Draft, name: str) -> None:
    """Raise `OperationRefused` if a node has this id."""
    if draft.has(name):
        raise OperationRefused(f"there is a node {name!r} already", hint="Choose another id.")

"""Secrets at the last moment: put in where the document has their handles, and taken out of what comes back.

    document: {key: "Bearer {secret.X}"} ─▶ journal: as written ─▶ the call: the secret ─▶ its answer: *** ─▶ journal

A handle counts only at a place where the document itself has one, and while it is still what the document says there:
what data, models or people write stays text, whatever it looks like.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from copy import deepcopy
from typing import Final, NamedTuple, cast

from msgspec.structs import replace

from pointsman.engine.failures import Failure, failure_by
from pointsman.errors import OperatorError
from pointsman.executors.failures import WorkRefused
from pointsman.expressions.parameters import SecretText
from pointsman.ports import Secrets
from pointsman.values import Json, JsonObject

MASK: Final = "***"


class Revealed(NamedTuple):
    """A tree with its secrets, and those."""

    value: JsonObject
    used: list[str]


async def revealed(tree: JsonObject, texts: Sequence[SecretText], written: Json, secrets: Secrets) -> Revealed:
    """`written`: the tree as the document has it, templates and all. Raises `WorkRefused`: `secret-missing`, or why it
    cannot be read."""
    if not texts:
        return Revealed(tree, [])
    await secrets.refresh()
    used: list[str] = []

    def secret(name: str) -> str:
        try:
            value = secrets.secret(name)
        except OperatorError as why:
            raise WorkRefused(failure_by(why)) from why
        if value is None:
            hint = f"`pointsman secrets set {name}`, or set POINTSMAN_SECRET_{name}."
            message = f"there is no secret {name!r}"
            raise WorkRefused(Failure(code="secret-missing", message=message, hint=hint, needs=f"secret:{name}"))
        used.append(value)
        return value

    found = deepcopy(tree)
    for text in texts:
        if (said := _at(written, text.pointer)) is not None and _at(found, text.pointer) == said:
            _put(found, text.pointer, text.revealed(secret))
    return Revealed(found, used)


def without(value: Json, used: Collection[str]) -> Json:
    """The value, the secrets in its texts hidden."""
    if not used:
        return value
    match value:
        case str():
            return _hidden(value, used)
        case list():
            return [without(one, used) for one in value]
        case dict():
            return {_hidden(key, used): without(one, used) for key, one in value.items()}
        case _:
            return value


def hiding(failure: Failure, used: Collection[str]) -> Failure:
    """The failure without them."""
    if not used:
        return failure
    details = without(failure.details, used)
    return replace(
        failure,
        message=_hidden(failure.message, used),
        hint=_hidden(failure.hint, used),
        details=cast("JsonObject", details),
    )


def _hidden(text: str, used: Collection[str]) -> str:
    for secret in sorted(used, key=len, reverse=True):
        text = text.replace(secret, MASK) if secret else text
    return text


def _at(tree: Json, pointer: Sequence[str | int]) -> str | None:
    """The text at a place; None: there is no such place, or no text."""
    for part in pointer:
        if isinstance(tree, dict) and isinstance(part, str):
            tree = tree.get(part)
        elif isinstance(tree, list) and isinstance(part, int) and part < len(tree):
            tree = tree[part]
        else:
            return None
    return tree if isinstance(tree, str) else None


def _put(tree: Json, pointer: Sequence[str | int], text: str) -> None:
    *way, last = pointer
    for part in way:
        tree = cast("dict[str | int, Json]", tree)[part]
    cast("dict[str | int, Json]", tree)[last] = text

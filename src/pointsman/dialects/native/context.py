"""State of the native dialect's reader: the author's objects, the native ones, and the origin of each value."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Final

from pointsman.definition.model.base import EXTENSION_PREFIX, Model
from pointsman.definition.model.nodes import CONFIG_OF
from pointsman.definition.problems import Problem, did_you_mean, note, pointer_to, warning
from pointsman.values import Json, JsonObject

KEPT: Final = "x-native"
"""Key for fields of older forms of the format that this product does not have: kept and exported, never read."""


@dataclass(slots=True)
class ImportNotes:
    """Native pointer -> author's pointer, and the losses."""

    tolerant: bool
    """Unknown keys are kept with a warning, because older forms of the format allow any key."""
    origin: dict[str, str] = field(default_factory=dict[str, str])
    losses: list[Problem] = field(default_factory=list[Problem])

    def warn(self, code: str, pointer: str, message: str, *, hint: str = "") -> None:
        self.losses.append(warning(code, pointer, message, hint=hint))

    def note(self, code: str, pointer: str, message: str, *, hint: str = "") -> None:
        self.losses.append(note(code, pointer, message, hint=hint))


@dataclass(slots=True)
class Part:
    """One object being converted: fields move from `said` to `made`; both have pointers."""

    said: JsonObject
    made: JsonObject
    author: str
    """Pointer of `said` in the author's document."""
    native: str
    """Pointer of `made` in the native document."""
    notes: ImportNotes

    def take(self, key: str) -> Json:
        return self.said.pop(key, None)

    def put(self, key: str, value: Json, *, said_as: str) -> None:
        """Set a native key, unless the author also set it. `said_as` is a pointer without its first `/`."""
        if key in self.said or key in self.made:
            return
        self.made[key] = value
        self.notes.origin[self.native + pointer_to(key)] = f"{self.author}/{said_as}"

    def rename(self, old: str, new: str, convert: Callable[[Json], Json] = lambda value: value) -> None:
        if old in self.said:
            self.put(new, convert(self.said.pop(old)), said_as=old)

    def renames(self, **pairs: str) -> None:
        for old, new in pairs.items():
            self.rename(old, new)

    def keep_rest(self, known: frozenset[str], *, where: str) -> None:
        """Copy the remaining keys. In tolerant mode, keys that are not native move to `x-native`."""
        odd: JsonObject = {}
        for key, value in self.said.items():
            if self.notes.tolerant and key not in known and not key.startswith(EXTENSION_PREFIX):
                odd[key] = value
                if not key.startswith("_"):
                    hint = did_you_mean(key, known) or "It is kept and exported, but nothing reads it."
                    self.notes.warn(
                        "kept-key", self.author + pointer_to(key), f"{where} has the key {key!r}", hint=hint
                    )
                else:
                    self.notes.note("kept-key", self.author + pointer_to(key), f"{where} keeps the private key {key!r}")
            else:
                self.made[key] = value
        if odd:
            self.made[KEPT] = odd


@dataclass(slots=True)
class NodePart:
    """A node being converted: its own keys, and those of its configuration."""

    node: Part
    config: Part
    kind: str
    id: str


@cache
def config_keys(kind: str) -> frozenset[str]:
    """Return the keys that the configuration of a node type has in documents."""
    model = CONFIG_OF.get(kind)
    return frozenset() if model is None else document_keys(model)


def document_keys(model: type[Model]) -> frozenset[str]:
    """Return the keys that a model has in documents."""
    return frozenset(found.alias or name for name, found in model.model_fields.items())


def literal(value: Json) -> str:
    """Return a JSON value as an expression."""
    return json.dumps(value, ensure_ascii=False)

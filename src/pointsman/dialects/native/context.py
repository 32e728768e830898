"""What the reader of the native dialect writes on: where everything came from, what was said, what is made of it."""

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
"""Where keys go that older spellings of the format have and this product does not: kept, exported, never read."""


@dataclass(slots=True)
class ImportNotes:
    """Native pointer -> author's pointer, and what was lost."""

    tolerant: bool
    """Unknown keys are kept with a warning, as the older spelling allowed any."""
    origin: dict[str, str] = field(default_factory=dict[str, str])
    losses: list[Problem] = field(default_factory=list[Problem])

    def warn(self, code: str, pointer: str, message: str, *, hint: str = "") -> None:
        self.losses.append(warning(code, pointer, message, hint=hint))

    def note(self, code: str, pointer: str, message: str, *, hint: str = "") -> None:
        self.losses.append(note(code, pointer, message, hint=hint))


@dataclass(slots=True)
class Part:
    """One object on its way: `said` shrinks as `made` grows; both know their pointers."""

    said: JsonObject
    made: JsonObject
    author: str
    """Pointer of `said` in the author's document."""
    native: str
    """Pointer of `made` in the native one."""
    notes: ImportNotes

    def take(self, key: str) -> Json:
        return self.said.pop(key, None)

    def put(self, key: str, value: Json, *, said_as: str) -> None:
        """Write a native key, unless the author wrote that one too. `said_as` is a pointer without its first `/`."""
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
        """What is left: native keys as they are; others as they are too, or set aside where that is tolerated."""
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
    """A node on its way: its own keys, and those of its configuration."""

    node: Part
    config: Part
    kind: str
    id: str


@cache
def config_keys(kind: str) -> frozenset[str]:
    """The keys a type's configuration has in documents."""
    model = CONFIG_OF.get(kind)
    return frozenset() if model is None else document_keys(model)


def document_keys(model: type[Model]) -> frozenset[str]:
    """The keys a model has in documents."""
    return frozenset(found.alias or name for name, found in model.model_fields.items())


def literal(value: Json) -> str:
    """A JSON value as an expression."""
    return json.dumps(value, ensure_ascii=False)

"""Shapes: definition files with a size in them, made into documents.

{times: n, of: {id: "n{i}"}}     in a list: n items, `{i}` counted from 0, `{next}` the one after
"{n}"                            the size as a number; inside other text, as text
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final, cast

from msgspec import Struct, convert
from ruamel.yaml import YAML

from pointsman.values import Json, JsonObject

FOLDER: Final = Path(__file__).parent / "shapes"
UNLIMITED: Final = 1_000_000_000
"""Sizes go far beyond the steps that an execution may take by default."""


class Shape(Struct, frozen=True, forbid_unknown_fields=True):
    """One file of the folder."""

    title: str
    counts: str
    """The unit of the size."""
    sizes: dict[str, list[int]]
    """The sizes to measure of the engine alone, by store."""
    quick: dict[str, list[int]]
    workflow: JsonObject
    goal: dict[str, str] = {}
    """Goal of the engine alone in CPU µs per step, by store."""
    public: dict[str, list[int]] = {}
    """The sizes to measure through the public API, by store."""
    public_goal: dict[str, str] = {}
    """Goal through the public API in CPU µs per call of a node function, by store."""
    children: dict[str, JsonObject] = {}
    """Sub-workflows, by the name they are called by."""
    input: JsonObject = {}
    executions: str | int = 1
    """How many run at once."""

    def document(self, size: int) -> JsonObject:
        """The workflow at a size."""
        return without_limit(_object(filled(self.workflow, {"n": size})))

    def child(self, name: str, size: int) -> JsonObject:
        return without_limit(_object(filled(self.children[name], {"n": size})))

    def start(self, size: int) -> JsonObject:
        """The input at a size."""
        return _object(filled(self.input, {"n": size}))

    def at_once(self, size: int) -> int:
        found = filled(self.executions, {"n": size})
        assert isinstance(found, int)
        return found


def read_shapes() -> dict[str, Shape]:
    """All shapes by name, as the files are ordered."""
    read = cast("Callable[[str], object]", YAML(typ="safe").load)  # pyright: ignore[reportUnknownMemberType] - it has no types
    return {path.stem: convert(read(path.read_text("utf-8")), Shape) for path in sorted(FOLDER.glob("*.yaml"))}


def without_limit(document: JsonObject) -> JsonObject:
    config = _object(document.get("config") or {})
    limits = _object(config.get("limits") or {})
    return {**document, "config": {**config, "limits": {"steps": UNLIMITED, **limits}}}


def filled(value: Json, names: Mapping[str, int]) -> Json:
    """The value with its numbers filled in and its repetitions written out."""
    match value:
        case str():
            return _text(value, names)
        case list():
            return [one for part in value for one in _items(part, names)]
        case {"times": times, "of": part}:
            return _repeated(times, part, names)
        case dict():
            return {_key(key, names): filled(part, names) for key, part in value.items()}
        case _:
            return value


def _items(part: Json, names: Mapping[str, int]) -> list[Json]:
    if isinstance(part, dict) and part.keys() == {"times", "of"}:
        return _repeated(part["times"], part["of"], names)
    return [filled(part, names)]


def _repeated(times: Json, part: Json, names: Mapping[str, int]) -> list[Json]:
    if isinstance(times, int):
        count = times
    else:
        name, _, less = str(times).partition(" - ")
        count = names[name] - int(less or 0)
    return [filled(part, {**names, "i": i, "next": i + 1}) for i in range(count)]


def _text(text: str, names: Mapping[str, int]) -> Json:
    for name, number in names.items():
        if text == f"{{{name}}}":
            return number
        text = text.replace(f"{{{name}}}", str(number))
    return text


def _key(key: str, names: Mapping[str, int]) -> str:
    return str(_text(key, names))


def _object(value: Json) -> JsonObject:
    assert isinstance(value, dict)
    return cast(JsonObject, value)

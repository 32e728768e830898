"""Shared parts of the readers of foreign dialects: the author's fields under one name each, and the origin of each
value; and the results of readers and writers: a document, its losses, the origins, its validation.

A reader copies values; the model of the language reports errors in them, at the author's position. Only values without
a native counterpart are validated here (`ForeignReader.count`, `ForeignReader.version`).
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, NamedTuple, Protocol

from pointsman.definition.model.workflow import WorkflowDefinition
from pointsman.definition.problems import Problem, Suggestions, error, note, pointer_parts, pointer_to, warning
from pointsman.expressions.environment import ROOTS
from pointsman.values import Json, JsonObject


@dataclass(frozen=True, slots=True)
class Sources:
    """Native pointer -> author's pointer. A pointer that is not listed is resolved relative to its nearest listed
    ancestor."""

    origin: Mapping[str, str] = field(default_factory=dict[str, str])
    outer: tuple[Sources, ...] = ()
    """Applied one after the other to the result of `origin`: documents inside documents."""

    def author_pointer(self, native_pointer: str) -> str:
        """Return the author's pointer: the longest listed prefix is replaced, the rest is kept."""
        pointer = _nearest(self.origin, native_pointer)
        for sources in self.outer:
            pointer = sources.author_pointer(pointer)
        return pointer

    def within(self, outer: Sources) -> Sources:
        """Return the mapping for a document that is a part of another one."""
        return Sources(self.origin, (*self.outer, outer)) if outer.origin else self


def _nearest(origin: Mapping[str, str], pointer: str) -> str:
    parent, rest = pointer, ""
    while parent not in origin:
        if not parent:
            return pointer
        parent, _, last = parent.rpartition("/")
        rest = f"/{last}{rest}"
    return origin[parent] + rest


@dataclass(frozen=True, slots=True)
class ImportedDocument:
    """A foreign document converted to the native dialect. `losses` have pointers into the author's document."""

    document: JsonObject
    losses: tuple[Problem, ...] = ()
    sources: Sources = Sources()

    def placed(self, problem: Problem) -> Problem:
        """Return a problem of the native document with its pointer into the author's document."""
        return replace(problem, pointer=self.sources.author_pointer(problem.pointer))


@dataclass(frozen=True, slots=True)
class WrittenDocument:
    """A workflow written in a dialect. If there are losses, reading the result gives another workflow."""

    document: JsonObject
    losses: tuple[Problem, ...] = ()


class DialectReader(Protocol):
    def __call__(self, document: JsonObject, *, name: str) -> ImportedDocument:
        """Convert a foreign document to a native one. `name` (of the file) is the id if the document has none."""
        ...


class DialectWriter(Protocol):
    def __call__(self, workflow: WorkflowDefinition, original: JsonObject | None) -> WrittenDocument:
        """Write a workflow in the dialect; `original` is the document that it was read from, if there is one."""
        ...


_NUMBER: Final = re.compile(r"\s*-?[0-9]{1,15}(\.[0-9]{1,15})?\s*")
_WRONG: Final = frozenset({"bad-value", "wrong-type"})
_TRUTH: Final = {"true": True, "false": False}


class Validated(NamedTuple):
    """An imported document after validation by the models."""

    workflow: WorkflowDefinition | None
    imported: ImportedDocument
    """The document with converted values."""
    problems: tuple[Problem, ...]
    """Errors of the models, and a warning for each converted value; native pointers."""


def validated(imported: ImportedDocument) -> Validated:
    """Validate an imported document. Scalars of the wrong type are converted if that makes them valid."""
    workflow, problems = WorkflowDefinition.from_document(imported.document)
    is_ours = "pointsman" in imported.document and imported.document.get("dialect", "native") == "native"
    changes = {} if is_ours else dict(_changes(imported.document, problems))
    if not changes:
        return Validated(workflow, imported, tuple(problems))
    _, left = WorkflowDefinition.from_document(_changed(imported.document, changes))
    for one in left:
        changes.pop(one.pointer, None)
    if not changes:
        return Validated(workflow, imported, tuple(problems))
    document = _changed(imported.document, changes)
    workflow, left = WorkflowDefinition.from_document(document)
    reported = [
        warning(
            "type-converted",
            pointer,
            f"the value is read as {value!r}" if isinstance(value, str) else f"the text is read as {_written(value)}",
            hint="Write this value in the document.",
        )
        for pointer, value in changes.items()
    ]
    return Validated(workflow, replace(imported, document=document), (*left, *reported))


def _changes(document: JsonObject, problems: list[Problem] | tuple[Problem, ...]) -> Iterator[tuple[str, Json]]:
    for problem in problems:
        if problem.code in _WRONG:
            parts = pointer_parts(problem.pointer)
            holder, key = _holder(document, parts) if parts else (None, "")
            if holder is not None and (value := _converted(_value(holder, key))) is not None:
                yield problem.pointer, value


def _converted(value: Json) -> Json:
    """Return the value converted to the other type; None: it cannot be converted."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return str(value)
    if not isinstance(value, str):
        return None
    if _NUMBER.fullmatch(value):
        number = float(value)
        return int(number) if number.is_integer() else number
    return _TRUTH.get(value.strip().lower())


def _changed(document: JsonObject, changes: dict[str, Json]) -> JsonObject:
    made = copy.deepcopy(document)
    for pointer, value in changes.items():
        holder, key = _holder(made, pointer_parts(pointer))
        if isinstance(holder, dict):
            holder[key] = value
        elif isinstance(holder, list):
            holder[int(key)] = value
    return made


def _holder(document: JsonObject, parts: tuple[str, ...]) -> tuple[Json, str]:
    here: Json = document
    for part in parts[:-1]:
        here = _value(here, part)
    return here, parts[-1]


def _value(holder: Json, key: str) -> Json:
    if isinstance(holder, dict):
        return holder.get(key)
    if isinstance(holder, list) and key.isdecimal() and int(key) < len(holder):
        return holder[int(key)]
    return None


def _written(value: Json) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


class FieldWords(dict[str, tuple[str, ...]]):
    """Native name of a field -> its spellings, the preferred one first. Immutable."""

    @cached_property
    def uses(self) -> Mapping[str, tuple[tuple[str, int], ...]]:
        """Spelling -> (native name, position among its spellings), for fields with several spellings."""
        result: dict[str, tuple[tuple[str, int], ...]] = {}
        for name, spellings in self.items():
            for style, word in enumerate(spellings if len(spellings) > 1 else ()):
                result[word] = (*result.get(word, ()), (name, style))
        return result


NO_WORDS: Final = FieldWords()
"""Every field has one spelling: its name."""

_NO_SLUG: Final = re.compile(r"[^a-z0-9]+")
_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_SEMVER: Final = re.compile(r"\d+\.\d+\.\d+([-+].*)?")
_BRACE: Final = re.compile(r"[{\\]")

RESERVED: Final = frozenset(ROOTS)
"""Names with a meaning of their own in expressions; a state field of such a name is read as `state.x`."""


def is_name(text: str) -> bool:
    return _NAME.fullmatch(text) is not None


def member(root: str, key: str) -> str:
    """Return the path of a key below a root: `root.key`, or `root["a key"]` if the key is not a name."""
    quoted = key.replace("\\", "\\\\").replace('"', '\\"')
    return f"{root}.{key}" if is_name(key) else f'{root}["{quoted}"]'


def field_path(name: str) -> str:
    """Return an expression for a field of the state, whatever its name."""
    return name if is_name(name) and name not in RESERVED else member("state", name)


def slug(text: str, *, separator: str = "-") -> str:
    """Return a short id derived from a text; may be empty."""
    return _NO_SLUG.sub(separator, text.lower()).strip(separator)[:60].strip(separator)


def literal_text(text: str) -> str:
    """Return a template that renders to this text."""
    return _BRACE.sub(lambda match: "\\{" if match[0] == "{" else match[0], text)


def key_of(value: Json) -> str:
    """Return a lookup key for an author's id of any type. Only equal texts have equal keys to texts."""
    return value if isinstance(value, str) else f"\0{value!r}"


def object_of(value: Json) -> JsonObject:
    return value if isinstance(value, dict) else {}


def list_of(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def text_of(value: Json) -> str | None:
    """Return the text, or the main language of a localized one; None for any other value and for an empty text."""
    if isinstance(value, dict):
        translations = [text for text in (value.get("en"), *value.values()) if isinstance(text, str)]
        value = translations[0] if translations else None
    return value if isinstance(value, str) and value else None


def number_of(value: Json) -> float | None:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


@dataclass(slots=True)
class Record:
    """An object of the author's document. It records which fields were read, so that the others can be kept."""

    value: JsonObject
    pointer: str
    words: FieldWords
    taken: set[str] = field(default_factory=set[str])
    known: frozenset[str] = frozenset()
    """Further fields that have an effect, although they are also kept as they are."""

    def spellings(self, name: str) -> tuple[str, ...]:
        return self.words.get(name) or (name,)

    def said(self, name: str) -> str:
        """Return the spelling that the author used; the preferred one if the field is absent."""
        spellings = self.spellings(name)
        for word in spellings:
            if self.value.get(word) is not None:
                return word
        return spellings[0]

    def has(self, name: str) -> bool:
        return any(word in self.value for word in self.spellings(name))

    def take(self, name: str) -> Json:
        """Return the field's value; null is the same as absent."""
        self.taken.update(self.spellings(name))
        return self.value.get(self.said(name))

    def at(self, name: str) -> str:
        return self.pointer + pointer_to(self.said(name))

    def left(self) -> JsonObject:
        """Return the fields that were not read."""
        return {key: value for key, value in self.value.items() if key not in self.taken}

    def misspelt(self, suggestions: Suggestions) -> Iterator[tuple[str, str]]:
        """Yield each unread field that is spelled almost like an absent field of this object, and that field."""
        uses = self.words.uses
        fields = {name for word in self.value for name, _ in uses.get(word, ())}
        absent = [
            word
            for word in sorted((self.taken | self.known) - self.value.keys())
            if fields.isdisjoint(name for name, _ in uses.get(word, ()))
        ]
        for key in sorted(self.value.keys() - self.taken - self.known) if absent else ():
            same_style = [word for word in absent if ("_" in word) == ("_" in key)]
            near = suggestions.nearest(key, same_style) or suggestions.nearest(key, absent)
            if near is not None:
                yield key, near

    def contradictions(self) -> Iterable[Problem]:
        """Yield an error for each field that has two spellings with different values."""
        uses, counts = self.words.uses, dict[str, int]()
        for word, value in self.value.items():
            for name, _ in uses.get(word, ()) if value is not None else ():
                counts[name] = counts.get(name, 0) + 1
        twice = {name for name, count in counts.items() if count > 1}
        for name, spellings in self.words.items() if twice else ():
            values = [self.value[word] for word in spellings if name in twice and self.value.get(word) is not None]
            if any(value != values[0] for value in values[1:]):
                both = " and ".join(repr(word) for word in spellings if self.value.get(word) is not None)
                hint = "Keep one of them."
                yield error("conflicting-spellings", self.at(name), f"{both} have different values", hint=hint)


@dataclass(slots=True)
class ForeignReader:
    """State of reading one document: problems and the origin of values. The native parts belong to the reader."""

    dialect: str
    origin: dict[str, str] = field(default_factory=dict[str, str])
    problems: list[Problem] = field(default_factory=list[Problem])
    read: list[Record] = field(default_factory=list[Record])
    """The objects whose unread fields are kept."""

    def put(self, native: JsonObject, at: str, key: str, value: Json, source: str) -> None:
        """Set a native field and record its origin; no effect for null."""
        if value is not None:
            native[key] = value
            self.origin[at + pointer_to(key)] = source

    def move(self, native: JsonObject, at: str, key: str, record: Record, name: str) -> None:
        """Copy the author's field unchanged to its native name."""
        value = record.take(name)
        if value is not None:
            self.put(native, at, key, value, record.at(name))

    def count(self, record: Record, name: str) -> int | None:
        """Read a count that has no native field; None: it is absent, or invalid and reported."""
        value, at = record.take(name), record.at(name)
        if isinstance(value, str) and value.strip().isdecimal():
            value = int(value)
            self.warning("type-converted", at, f"the text is read as {value}", "Write this value in the document.")
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int):
            self.error("wrong-type", at, f"{record.said(name)!r} must be a whole number")
            return None
        if value < 1:
            self.error("out-of-range", at, f"{record.said(name)!r} must be 1 or more")
            return None
        return value

    def version(self, native: JsonObject, head: Record) -> None:
        """Copy the author's version; keep one that is not a semantic version unchanged, with a note."""
        version = head.take("version")
        if version is None or (isinstance(version, str) and _SEMVER.fullmatch(version)):
            self.move(native, "", "version", head, "version")
            return
        self.note(
            "version-not-semantic",
            head.at("version"),
            f"{version!r} is not a semantic version",
            "It is stored, but not used.",
        )
        head.taken.discard(head.said("version"))

    def inside(self, record: Record, name: str, words: FieldWords | None = None) -> Record:
        """Return the object in a field as a record; an empty record if there is none."""
        value = record.take(name)
        if value is not None and not isinstance(value, dict):
            self.error("wrong-type", record.at(name), f"{record.said(name)!r} must be an object")
        inner = Record(object_of(value), record.at(name), words or NO_WORDS)
        self.read.append(inner)
        return inner

    def keep(self, native: JsonObject, at: str, record: Record, **more: Json) -> None:
        """Keep fields without a native counterpart in their part, under `x-<dialect>`."""
        self.problems.extend(record.contradictions())
        self.read.append(record)
        others: JsonObject = {}
        for key, value in (*record.left().items(), *((key, value) for key, value in more.items() if value is not None)):
            (native if key.startswith("x-") else others)[key] = value
        if others:
            native[f"x-{self.dialect}"] = others
            self.origin[at + pointer_to(f"x-{self.dialect}")] = record.pointer

    def error(self, code: str, pointer: str, message: str, hint: str = "", fix: JsonObject | None = None) -> None:
        self.problems.append(error(code, pointer, message, hint=hint, fix=None if fix is None else (fix,)))

    def warning(self, code: str, pointer: str, message: str, hint: str = "", fix: JsonObject | None = None) -> None:
        self.problems.append(warning(code, pointer, message, hint=hint, fix=None if fix is None else (fix,)))

    def note(self, code: str, pointer: str, message: str, hint: str = "") -> None:
        self.problems.append(note(code, pointer, message, hint=hint))

    def _report_misspelt(self) -> None:
        """Report keys that are probably misspelt. Objects with the same keys are compared once."""
        suggestions = Suggestions()
        result: dict[tuple[frozenset[str], ...], list[tuple[str, str]]] = {}
        for record in self.read:
            if record.value.keys() <= record.taken:
                continue
            shape = (frozenset(record.value), frozenset(record.taken), record.known)
            if (keys := result.get(shape)) is None:
                keys = result[shape] = [*record.misspelt(suggestions)]
            for key, near in keys:
                self.warning(
                    "ignored-key",
                    record.pointer + pointer_to(key),
                    f"the key {key!r} has no effect",
                    f"Did you mean {near!r}?",
                )

    def done(self, document: JsonObject) -> ImportedDocument:
        self._report_misspelt()
        return ImportedDocument(document, tuple(self.problems), Sources(self.origin))


def records(value: Json, pointer: str, words: FieldWords, reading: ForeignReader) -> list[Record]:
    """Return the objects of a list; other values are reported and omitted."""
    if value is None:
        return []
    if not isinstance(value, list):
        reading.error("wrong-type", pointer, "must be a list")
        return []
    records: list[Record] = []
    for index, part in enumerate(value):
        if isinstance(part, dict):
            records.append(Record(part, f"{pointer}/{index}", words))
        else:
            reading.error("wrong-type", f"{pointer}/{index}", f"must be an object, not {str(part)[:60]!r}")
    return records


def mixed_spellings(records: Iterable[Record]) -> Problem | None:
    """Return a note if a document mixes several spellings: all are read, one is written."""
    first: dict[int, tuple[str, str]] = {}
    for record in records:
        uses = record.words.uses
        if all(style in first for word in record.value for _, style in uses.get(word, ())):
            continue
        for spellings in record.words.values():
            for style, word in enumerate(spellings):
                if word in record.value and len(spellings) > 1:
                    first.setdefault(style, (word, record.pointer))
    if len(first) < 2:
        return None
    words = " and ".join(repr(word) for word, _ in first.values())
    pointer = list(first.values())[1]
    message = f"mixes two spellings of the dialect ({words})"
    return note("mixed-spellings", pointer[1] + pointer_to(pointer[0]), message, hint="Both are read. Use one.")


def workflow_id(
    record: Record, reading: ForeignReader, native: JsonObject, *, name: str, names: tuple[str, ...]
) -> None:
    """Set the id: the document's own, else one derived from the file's name, else from the title. Deterministic."""
    for field_name in names:
        if record.take(field_name) is not None:
            reading.move(native, "", "id", record, field_name)
            return
    stem = name.replace("\\", "/").rpartition("/")[2].partition(".")[0]
    native["id"] = slug(stem) or slug(text_of(record.value.get("name")) or "") or "workflow"


def agents_of(value: Json, pointer: str, reading: ForeignReader) -> JsonObject | None:
    """Read an `agents` section: rows {id, name, system_prompt, scope, tools}, or native objects keyed by id."""
    if value is None:
        return None
    if not isinstance(value, list):
        reading.origin["/agents"] = pointer
        return value if isinstance(value, dict) else {"agents": value}
    agents: JsonObject = {}
    for index, row in enumerate(value):
        record = Record(object_of(row), f"{pointer}/{index}", AGENT_WORDS)
        agent_id = record.take("id")
        if not isinstance(agent_id, str):
            reading.error("missing-key", record.pointer, "an agent row has no 'id'", "Nodes refer to agents by id.")
            continue
        at = pointer_to("agents", agent_id)
        agent: JsonObject = {}
        reading.origin[at] = record.pointer
        for native, name in AGENT_FIELDS.items():
            reading.move(agent, at, native, record, name)
        reading.keep(agent, at, record)
        agents[agent_id] = agent
    return agents


AGENT_WORDS: Final = FieldWords(
    {
        "systemPrompt": ("systemPrompt", "system_prompt"),
        "maxIterations": ("maxIterations", "max_iterations"),
        "outputSchema": ("outputSchema", "output_schema"),
    }
)
AGENT_FIELDS: Final[Mapping[str, str]] = {
    "system": "systemPrompt",
    "model": "model",
    "tools": "tools",
    "temperature": "temperature",
    "maxIterations": "maxIterations",
    "outputSchema": "outputSchema",
}

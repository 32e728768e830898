"""Document reader: bytes or text in; a JSON value, its problems
and its positions out. Bad input raises no exception."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Literal, NamedTuple, TypeAlias

from pointsman.definition.problems import Problem, error, note, placed, pointer_parts, pointer_to, warning
from pointsman.definition.reading.json_reader import JsonPositions, read_exactly
from pointsman.definition.reading.results import ReadText, Unreadable, ValuePosition, standard
from pointsman.definition.reading.yaml_reader import read_yaml
from pointsman.values import Json

Format: TypeAlias = Literal["json", "jsonc", "yaml"]

BYTES_MAX: Final = 16 * 1024 * 1024
YAML_BYTES_MAX: Final = 2 * 1024 * 1024
"""Size limit for YAML. It takes about fifty times longer to read than JSON: larger documents would look like a hang."""
REPAIRS_MAX: Final = 50
_REPAIR_TEXT_MAX: Final = 1024 * 1024

SKETCH_HINT: Final = (
    "This is a sketch of a schema, not a workflow: '|' lists the possible values, and '...' marks omitted parts. "
    "Choose one value, and write the omitted parts."
)
_BOMS: Final = (
    (b"\xff\xfe\x00\x00", "utf-32-le"),
    (b"\x00\x00\xfe\xff", "utf-32-be"),
    (b"\xef\xbb\xbf", "utf-8"),
    (b"\xff\xfe", "utf-16-le"),
    (b"\xfe\xff", "utf-16-be"),
)
_WITHOUT_BOM: Final = {"000x": "utf-32-be", "x000": "utf-32-le", "0x0x": "utf-16-be", "x0x0": "utf-16-le"}
"""Encoding by the pattern of zeros in the first four bytes: it is unique because a document begins with ASCII."""
_FENCE: Final = re.compile(r"^[ \t]*(```+|~~~+)[ \t]*([\w+-]*)[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.MULTILINE | re.DOTALL)
_DATA_LANGUAGES: Final = ("json", "jsonc", "json5", "yaml", "yml")
_DOCUMENT_START: Final = re.compile(r"""\s*(?:[{\[#]|//|/\*|---|[\w$.-]+[ \t]*:|"|')""")
"""Start of a code block without a language that may be a document: a diagram or a list of steps does not match."""
_SURROGATE: Final = re.compile("[\ud800-\udfff]")
_ESCAPED_SURROGATE: Final = re.compile(r"\\(?:u|U0000)[dD][89a-fA-F]")
"""Escaped half of a surrogate pair, also in the form that YAML has."""
_BINARY: Final = re.compile("[\x00-\x08\x0e-\x1a\x1c-\x1f]")


@dataclass(frozen=True)
class Document:
    """An author's document. `value` is None if it could not be read; then `problems` contain the reason."""

    value: Json
    text: str
    format: Format
    problems: tuple[Problem, ...] = ()
    repaired: str | None = None
    """The text with safe repairs (quotes, commas, escapes), if it was broken and they make it readable."""
    name: str = ""
    reading: ReadText | None = field(default=None, repr=False, compare=False)
    """The positions, if the reader already found them."""

    @property
    def is_readable(self) -> bool:
        return not any(problem.severity == "error" for problem in self.problems)

    def position(self, pointer: str) -> tuple[int, int]:
        """Return line and column (from 1) of the member or item; of the nearest one around it if it does not exist."""
        place = self._place(pointer)
        return self.line_and_column(place.key_offset if place.key_offset >= 0 else place.offset)

    def placed(self, problem: Problem) -> Problem:
        """Return the problem with line and column; a pointer to
        nothing is cut to the nearest existing value around it."""
        if problem.line is not None or not self.text:
            return problem
        pointer = _existing(self.value, problem.pointer)
        line, column = self.position(pointer)
        return replace(problem, pointer=pointer, line=line, column=column)

    def offset(self, pointer: str) -> int:
        """Return the offset in `text` where the value begins; of the nearest one around it if it does not exist."""
        return self._place(pointer).offset

    def _place(self, pointer: str) -> ValuePosition:
        lazy = self._json_places
        if lazy is not None:
            place = lazy.root
        else:
            place = ValuePosition(0) if self.reading is None else self.reading.root
        for depth, part in enumerate(pointer_parts(pointer)):
            parts = place.parts if lazy is None else lazy.parts(place, depth)
            inner = parts.get(part)
            if inner is None and part.isascii() and part.isdigit() and len(part) < 19:
                inner = parts.get(int(part))
            if inner is None:
                break
            place = inner
        return place

    @cached_property
    def _json_places(self) -> JsonPositions | None:
        """The positions of plain JSON; None if the reader already found them or the document is unreadable."""
        return JsonPositions(self.text) if self.reading is None and self.is_readable else None

    @cached_property
    def _lines(self) -> list[int]:
        """Offset where each line begins."""
        return [0, *(match.end() for match in re.finditer(r"\r\n|\r|\n", self.text))]

    def line_and_column(self, offset: int) -> tuple[int, int]:
        """Return line and column of an offset in `text`; both from 1, counted in characters."""
        line = bisect_right(self._lines, offset)
        return line, offset - self._lines[line - 1] + 1


def read_document(data: bytes | str, *, name: str = "") -> Document:
    """Read JSON, JSON with comments, or YAML. Text that begins like JSON but is
    unreadable as such is read as YAML if the file `name` ends in .yaml or .yml."""
    if len(data) > BYTES_MAX:
        message = f"the document has {len(data) // 1_000_000} MB; the maximum is {BYTES_MAX // 1024 // 1024} MiB"
        return _nothing("", "too-large", message, hint="Split it into sub-workflows.", name=name)
    try:
        text = data if isinstance(data, str) else _decode(data)
    except UnicodeDecodeError as why:
        message = f"byte {why.start} is not valid {why.encoding.upper()}"
        return _nothing("", "unreadable", message, hint="Save the file as UTF-8.", name=name)
    text = text.removeprefix("\ufeff")
    if not text.strip():
        return _nothing(text, "empty", "the document is empty", hint="Start from an example.", name=name)
    if match := _BINARY.search(text):
        message = f"the text contains the control character U+{ord(match[0]):04X}; this is not a text file"
        return _nothing(text, "unreadable", message, offset=match.start(), hint="Use a JSON or YAML file.", name=name)
    fenced = _unfenced(text)
    document = _read(text if fenced is None else fenced.text, name=name)
    if fenced is None:
        return document
    if fenced.blocks == 1:
        extracted = note("fenced", "", "the workflow was read from a Markdown code block")
    else:
        message = f"of {fenced.blocks} Markdown code blocks the largest was read, which begins at line {fenced.line}"
        extracted = warning("fenced", "", message, hint="Put the block that is meant into a file of its own.")
    return replace(document, problems=(*document.problems, document.placed(extracted)))


def _existing(value: Json, pointer: str) -> str:
    """Return the longest prefix of the pointer that leads to an existing value."""
    result: list[str | int] = []
    for part in pointer_parts(pointer):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and part.isascii() and part.isdigit() and int(part[:18]) < len(value):
            value = value[int(part[:18])]
        else:
            break
        result.append(part)
    return pointer_to(*result)


def _decode(data: bytes) -> str:
    for bom, encoding in _BOMS:
        if data.startswith(bom):
            return data[len(bom) :].decode(encoding)
    head = data[:4]
    nulls = "".join("0" if byte == 0 else "x" for byte in head)
    return data.decode(_WITHOUT_BOM.get(nulls, "utf-8"))


class _Fenced(NamedTuple):
    """A code block of a Markdown text."""

    text: str
    """The block, with everything else replaced by blanks, so that positions stay correct."""
    line: int
    """Line where it begins."""
    blocks: int
    """Number of blocks that could be a document."""


def _unfenced(text: str) -> _Fenced | None:
    """Return the largest code block of data, the first of several of that length. None without such blocks."""
    if text.lstrip()[:1] in ("{", "[") or ("```" not in text and "~~~" not in text):
        return None
    blocks = [
        match
        for match in _FENCE.finditer(text)
        if match[2].lower() in _DATA_LANGUAGES or (not match[2] and _DOCUMENT_START.match(match[3]))
    ]
    if not blocks:
        return None
    block = max(blocks, key=lambda fence: len(fence[3]))
    before, after = text[: block.start(3)], text[block.end(3) :]
    blanked = re.sub(r"[^\r\n]", " ", before) + block[3] + re.sub(r"[^\r\n]", " ", after)
    return _Fenced(blanked, before.count("\n") + 1, len(blocks))


def _read(text: str, *, name: str) -> Document:
    is_json = text.lstrip()[:1] in ("{", "[", '"') or text.lstrip()[:2] in ("//", "/*")
    if not is_json:
        return _read_as_yaml(text, name=name)
    document = _read_as_json(text, name=name)
    if not document.is_readable and name.lower().endswith((".yaml", ".yml")):
        flow = _read_as_yaml(text, name=name)
        return flow if flow.is_readable else document
    return document


def _read_as_json(text: str, *, name: str) -> Document:
    try:
        value = standard(text)
    except ValueError:
        pass
    else:
        if not _may_have_surrogates(text):
            return Document(value, text, "json", (), None, name)
    try:
        reading = read_exactly(text)
    except Unreadable as why:
        return _unreadable(text, why, "json", name=name, repaired=_repaired(text, why))
    return _finished(text, reading, "json" if reading.is_plain else "jsonc", name=name)


def _read_as_yaml(text: str, *, name: str) -> Document:
    if len(text) > YAML_BYTES_MAX:
        message = f"the YAML document has {len(text) // 1000} kB; the maximum is {YAML_BYTES_MAX // 1024} KiB"
        return _nothing(text, "too-large", message, hint="Write it as JSON: that is read much faster.", name=name)
    try:
        reading = read_yaml(text)
    except Unreadable as why:
        return _unreadable(text, why, "yaml", name=name)
    return _finished(text, reading, "yaml", name=name)


def _finished(text: str, reading: ReadText, form: Format, *, name: str) -> Document:
    document = Document(reading.value, text, form, (), None, name, reading)
    problems: list[Problem] = []
    for path, first, second in reading.duplicates:
        line, column = document.line_and_column(first)
        message = f"the key {str(path[-1])[:60]!r} occurs twice; the first is in line {line}, column {column}"
        problem = error("duplicate-key", pointer_to(*path), message, hint="Keep one of them.")
        problems.append(_placed_at(document, second, problem))
    for path, offset in reading.sketches:
        what = "..." if text.startswith("...", offset) else "|"
        problems.append(
            _placed_at(
                document,
                offset,
                error("schema-sketch", pointer_to(*path), f"{what!r} is not a value", hint=SKETCH_HINT),
            )
        )
    if _may_have_surrogates(text):
        problems.extend(document.placed(problem) for problem in _surrogates(reading.value))
    return replace(document, problems=tuple(problems))


def _placed_at(document: Document, offset: int, problem: Problem) -> Problem:
    line, column = document.line_and_column(offset)
    return placed(problem, line=line, column=column)


def _may_have_surrogates(text: str) -> bool:
    """Return whether the document may contain half of a surrogate pair."""
    return _ESCAPED_SURROGATE.search(text) is not None or _SURROGATE.search(text) is not None


def _surrogates(value: Json) -> Iterator[Problem]:
    """Report texts with half a surrogate pair: they cannot be encoded as UTF-8."""
    waiting: list[tuple[str, Json]] = [("", value)]
    while waiting:
        pointer, here = waiting.pop()
        match here:
            case str() if _SURROGATE.search(here):
                yield error("lone-surrogate", pointer, "a text has half of a surrogate pair", hint="Remove it.")
            case dict():
                bad = [key for key in here if _SURROGATE.search(key)]
                if bad:
                    yield error("lone-surrogate", pointer, "a key has half of a surrogate pair", hint="Remove it.")
                else:
                    waiting.extend((pointer + pointer_to(key), inner) for key, inner in here.items())
            case list():
                waiting.extend((pointer + pointer_to(index), inner) for index, inner in enumerate(here))
            case _:
                pass


def _unreadable(text: str, why: Unreadable, form: Format, *, name: str, repaired: str | None = None) -> Document:
    document = Document(None, text, form, (), repaired, name)
    hint = why.hint
    if repaired is not None:
        hint = f"{hint} A repaired text that can be read is offered.".strip()
    problem = error(why.code, "", why.message, hint=hint)
    return replace(document, problems=(_placed_at(document, min(why.offset, len(text)), problem),))


def _nothing(text: str, code: str, message: str, *, hint: str, name: str, offset: int = 0) -> Document:
    """Return a document without a value, with one problem."""
    document = Document(None, text, "json", (), None, name)
    return replace(document, problems=(_placed_at(document, offset, error(code, "", message, hint=hint)),))


def _repaired(text: str, why: Unreadable) -> str | None:
    """Apply one safe repair after another and return the text; None if that does not make it readable."""
    if len(text) > _REPAIR_TEXT_MAX:
        return None
    for _ in range(REPAIRS_MAX):
        if why.edit is None:
            return None
        text = text[: why.edit.start] + why.edit.new + text[why.edit.end :]
        try:
            read_exactly(text)
        except Unreadable as next_one:
            if next_one.offset < why.offset:
                return None  # the repairs would repeat forever
            why = next_one
        else:
            return text
    return None

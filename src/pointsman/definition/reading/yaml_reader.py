"""Reader of YAML 1.2 for JSON values: `on` and `no` stay text, tags are refused, aliases are bounded.

It builds the value from the parser's events with its own stack: no recursion, exact positions, and no objects of the
library in the result. Aliased parts are shared, not copied; the number of values that copies would make is bounded.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple, Protocol, cast

from pointsman.definition.reading.results import DEPTH_MAX, ReadText, Unreadable, ValuePosition
from pointsman.json_meter import DIGITS_MAX
from pointsman.values import Json, JsonObject

VALUES_MAX: Final = 1_000_000
"""Maximum number of values in a document after its aliases are expanded."""

_INT: Final = re.compile(r"[-+]?\d+")
_BASED: Final = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT: Final = re.compile(r"[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?")
_NOT_NUMBER: Final = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_PLAIN: Final[dict[str, Json]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_MERGE: Final = "<<"
_BREAKS_OF_1_1: Final = re.compile("[\x85\u2028\u2029\ufeff]")
_KINDS: Final = {
    f"{kind}Event": kind
    for kind in ("DocumentStart", "Scalar", "MappingStart", "SequenceStart", "MappingEnd", "SequenceEnd", "Alias")
}


@dataclass(slots=True)
class _AnchoredValue:
    """A finished value with an anchor."""

    value: Json
    size: int
    place: ValuePosition


@dataclass(slots=True)
class _OpenYaml:
    """A list or mapping being read."""

    value: list[Json] | JsonObject
    place: ValuePosition
    anchor: str | None
    key: str | None = None
    """Key of the member being read; None while a key is expected."""
    key_offset: int = -1
    is_merge: bool = False
    """True if the member being read is the value of a merge key."""
    merged: set[str] = field(default_factory=set[str])
    """Keys that came from merge keys: the author's own keys win over them."""
    size: int = 1


class _Event(NamedTuple):
    """One event of the parser. A named tuple for speed: a document has about seventeen for each node."""

    kind: str
    offset: int
    anchor: str | None = None
    tag: str | None = None
    text: str = ""
    is_plain: bool = False


def read_yaml(text: str) -> ReadText:
    """Read one YAML document. Raises `Unreadable` at the first thing that cannot be read."""
    try:
        builder = _built(_fast_events(text))
    except _Refused:
        builder = _built(_exact_events(text))
    if not builder.has_document:
        raise Unreadable("empty", "the document is empty", 0, hint="Begin with 'nodes:' or start from an example.")
    return builder.reading


def _built(events: Iterator[_Event]) -> _Builder:
    """Build the value. The event generators import the libraries,
    so that JSON documents, which are most, never load them."""
    builder = _Builder()
    for event in events:
        builder.take(event)
    return builder


class _Mark(Protocol):
    index: int


class _Foreign(Protocol):
    """The attributes that every event of the library has."""

    start_mark: _Mark | None


class _Parser(Protocol):
    """The only method of the library that is used; the library has no types."""

    def parse(self, text: str, /) -> Iterator[_Foreign]: ...


class _Marked(Protocol):
    """The attributes of the library's errors."""

    context: str | None
    context_mark: _Mark | None
    problem: str | None
    problem_mark: _Mark | None


class _Refused(Exception):
    """The fast parser cannot read this text, or has an error message that differs from that of the exact one."""


def _fast_events(text: str) -> Iterator[_Event]:
    """Return the events of libyaml, which is written in C.

    It implements YAML 1.1, so texts with line breaks that only one of the two versions has are refused. Raises
    `_Refused`.
    """
    try:
        import yaml
        from yaml import CSafeLoader, YAMLError
    except ImportError as why:  # PyYAML was built without libyaml
        raise _Refused from why
    if _BREAKS_OF_1_1.search(text):
        raise _Refused
    parse = cast("Callable[[str, type], Iterator[_Foreign]]", yaml.parse)  # pyright: ignore[reportUnknownMemberType] - half of it is untyped
    try:
        for event in parse(text, CSafeLoader):
            mark, kind = event.start_mark, _KINDS.get(type(event).__name__, "")
            if getattr(event, "tag", None) is not None:
                raise _Refused
            yield _Event(
                kind,
                0 if mark is None else mark.index,
                cast("str | None", getattr(event, "anchor", None)),
                None,
                cast(str, getattr(event, "value", "")),
                is_plain=not getattr(event, "style", "x"),
            )
    except (YAMLError, ValueError) as why:
        raise _Refused from why


def _exact_events(text: str) -> Iterator[_Event]:
    """Return the events of a YAML 1.2 parser with messages that authors understand. It takes fifty times longer."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    brackets: list[int] = []
    try:
        parser = cast("_Parser", YAML(typ="safe", pure=True))
        for event in parser.parse(text):
            mark = event.start_mark
            kind = type(event).__name__.removesuffix("Event")
            if getattr(event, "flow_style", False):
                brackets.append(0 if mark is None else mark.index)
            elif brackets and kind in ("SequenceEnd", "MappingEnd"):
                brackets.pop()
            yield _Event(
                kind=kind,
                offset=0 if mark is None else mark.index,
                anchor=cast("str | None", getattr(event, "anchor", None)),
                tag=_tag_of(getattr(event, "tag", None)),
                text=cast(str, getattr(event, "value", "") or ""),
                is_plain=getattr(event, "style", "x") is None,
            )
    except MarkedYAMLError as why:
        raise _explained(text, cast("_Marked", why), brackets) from why
    except (YAMLError, ValueError, RecursionError) as why:
        # The library raises plain ValueErrors for some broken escapes, and its scanner recurses for flow syntax.
        raise Unreadable("unreadable", str(why).partition("\n")[0] or "this is not valid YAML", 0) from why


def _explained(text: str, why: _Marked, brackets: list[int]) -> Unreadable:
    """Return an error of the library in words for authors. `brackets`: offsets of the open `[` and `{`."""
    problem = why.problem or why.context or "this is not valid YAML"
    at = why.problem_mark or why.context_mark
    offset = 0 if at is None else at.index
    began = offset if why.context_mark is None else why.context_mark.index
    if brackets and ("expected ',' or" in problem or "the node content" in problem):
        return _unclosed(text, problem, offset, brackets[-1])
    hint = ""
    if "mapping values are not allowed" in problem:
        before = text[text.rfind("\n", 0, offset) + 1 : offset].lstrip(" -")
        if ": " in before:
            problem, hint = "a text that contains ': ' has no quotes", "Put the text in quotes."
        else:
            problem = f"the key {before[:60]!r} is not allowed at this position"
            hint = "Indent it like the keys beside it. The line above must be `key: value`, or end with a colon."
    elif "expected <block end>" in problem:
        begins = f"that begins in line {text.count(chr(10), 0, began) + 1}"
        if "<scalar>" in problem:
            problem, hint = "there is further text after a value", "Put the whole value in quotes."
        else:
            kind = "list" if "collection" in (why.context or "") else "object"
            problem = f"this line does not belong to the {kind} {begins}"
            hint = "Indent all entries of a list equally, and all keys of an object."
    elif "expected ':'" in problem:
        offset, problem = began, "this line is neither `key: value` nor a list entry"
        hint = "Indent the further lines of a text, or put the text in quotes."
    elif "end of stream" in problem:
        offset, problem, hint = began, "a quoted text is not closed", "Add the closing quote."
    elif "cannot start any token" in problem:
        if text[offset : offset + 1] == "\t":
            problem, hint = "a tab is used as indentation", "YAML is indented with spaces, never with tabs."
        else:
            problem, hint = f"a text cannot begin with {text[offset : offset + 1]!r}", "Put the text in quotes."
    elif "sequence entries are not allowed" in problem:
        problem, hint = "a list entry is not allowed at this position", "Begin the list on a new line."
    return Unreadable("unreadable", problem, offset, hint=hint)


def _unclosed(text: str, problem: str, offset: int, opened: int) -> Unreadable:
    closing, kind = ("]", "list") if text[opened : opened + 1] == "[" else ("}", "object")
    if "<stream end>" in problem:
        return Unreadable("unreadable", f"the {kind} is not closed", opened, hint=f"Add {closing!r}.")
    line, column = text.count("\n", 0, opened) + 1, opened - text.rfind("\n", 0, opened)
    return Unreadable(
        "unreadable",
        f"a comma or {closing!r} is missing in the {kind} that begins in line {line}, column {column}",
        offset,
        hint=f"Close it with {closing!r}, or separate its entries with commas. Quote texts with commas or brackets.",
    )


def _tag_of(tag: object) -> str | None:
    return None if tag is None or str(tag) == "!" else str(tag)


class _Builder:
    def __init__(self) -> None:
        self.reading = ReadText(is_plain=False)
        self.stack: list[_OpenYaml] = []
        self.anchors: dict[str, _AnchoredValue] = {}
        self.size = 0
        self.has_document = False

    def take(self, event: _Event) -> None:
        if event.tag is not None and event.kind in ("Scalar", "SequenceStart", "MappingStart"):
            raise Unreadable("yaml-tag", f"the tag {event.tag[:60]!r} is not allowed", event.offset, hint="Remove it.")
        match event.kind:
            case "DocumentStart" if self.has_document:
                raise Unreadable(
                    "several-documents", "there is a second document", event.offset, hint="Keep one document."
                )
            case "Scalar":
                self._scalar(event)
            case "MappingStart" | "SequenceStart":
                self._open(event)
            case "MappingEnd" | "SequenceEnd":
                self._close()
            case "Alias":
                self._alias(event)
            case _:
                pass

    def _scalar(self, event: _Event) -> None:
        if self._expects_key():
            self._key(event)
            return
        value = _plain(event) if event.is_plain else event.text
        place = ValuePosition(event.offset)
        self._attach(value, place, size=1, offset=event.offset)
        if event.anchor is not None:
            self.anchors[event.anchor] = _AnchoredValue(value, 1, place)

    def _expects_key(self) -> bool:
        return bool(self.stack) and isinstance(self.stack[-1].value, dict) and self.stack[-1].key is None

    def _key(self, event: _Event) -> None:
        top = self.stack[-1]
        assert isinstance(top.value, dict)
        key = event.text
        top.key, top.key_offset = key, event.offset
        top.is_merge = key == _MERGE and event.is_plain
        if top.is_merge:
            return
        if key in top.value and key not in top.merged:
            path = (*(opened.key or 0 for opened in self.stack[:-1]), key)
            self.reading.duplicates.append((path, top.place.parts[key].key_offset, event.offset))
        top.merged.discard(key)

    def _open(self, event: _Event) -> None:
        if self._expects_key():
            raise Unreadable("unreadable", "a key must be a text", event.offset, hint="Put the key in quotes.")
        if len(self.stack) >= DEPTH_MAX:
            raise Unreadable("too-deep", f"more than {DEPTH_MAX} levels are nested", event.offset, hint="Nest less.")
        value: list[Json] | JsonObject = {} if event.kind == "MappingStart" else []
        self.stack.append(_OpenYaml(value, ValuePosition(event.offset, parts={}), event.anchor))

    def _close(self) -> None:
        done = self.stack.pop()
        if done.anchor is not None:
            self.anchors[done.anchor] = _AnchoredValue(done.value, done.size, done.place)
        self._attach(done.value, done.place, size=done.size, offset=done.place.offset)

    def _alias(self, event: _Event) -> None:
        anchored = self.anchors.get(event.anchor or "")
        if anchored is None:
            raise Unreadable("unreadable", f"the alias *{event.anchor} has no anchor before it", event.offset)
        if self._expects_key():
            raise Unreadable("unreadable", "a key must be a text, not an alias", event.offset)
        self._attach(
            anchored.value,
            ValuePosition(event.offset, parts=anchored.place.parts),
            size=anchored.size,
            offset=event.offset,
        )

    def _attach(self, value: Json, place: ValuePosition, *, size: int, offset: int) -> None:
        if not self.stack:
            self.reading.value, self.reading.root, self.has_document = value, place, True
            return
        top = self.stack[-1]
        top.size += size
        if top.size > VALUES_MAX:
            message = f"its aliases make more than {VALUES_MAX} values of it"
            raise Unreadable("alias-bomb", message, offset, hint="Write the parts out, or remove them.")
        if isinstance(top.value, list):
            top.place.parts[len(top.value)] = place
            top.value.append(value)
            return
        if top.is_merge:
            _merge(top, value, place)
        else:
            place.key_offset = top.key_offset
            top.place.parts[top.key or ""] = place
            top.value[top.key or ""] = value
        top.key, top.is_merge = None, False


def _merge(top: _OpenYaml, value: Json, place: ValuePosition) -> None:
    """Apply `<<`: the first mapping that has a key provides it; the author's own keys win over all of them."""
    assert isinstance(top.value, dict)
    sources = [(value, place)]
    if isinstance(value, list):
        sources = [(source, place.parts[index]) for index, source in enumerate(value)]
    for source, where in sources:
        if not isinstance(source, dict):
            raise Unreadable("unreadable", "a merge key ('<<') needs a mapping", place.offset)
        for key, inner in source.items():
            if key not in top.value:
                top.value[key] = inner
                top.place.parts[key] = where.parts[key]
                top.merged.add(key)


def _short(number: str, event: _Event) -> str:
    """Return the number. Raises `Unreadable` if it has too many digits."""
    if len(number) > DIGITS_MAX:
        message = f"a number has more than {DIGITS_MAX} characters"
        raise Unreadable("number-too-large", message, event.offset, hint="Write it as a text, in quotes.")
    return number


def _plain(event: _Event) -> Json:
    """Return the value of a text without quotes, by the core schema of YAML 1.2."""
    text = event.text
    if text in _PLAIN:
        return _PLAIN[text]
    is_based = _BASED.fullmatch(text) is not None
    if is_based or _INT.fullmatch(text):
        return int(_short(text, event), 0 if is_based else 10)
    if _NOT_NUMBER.fullmatch(text):
        raise Unreadable("not-a-number", f"{text} is not a JSON number", event.offset, hint="Remove the key.")
    if _FLOAT.fullmatch(text):
        number = float(_short(text, event))
        if not math.isfinite(number):
            raise Unreadable("number-too-large", f"{text[:60]} is larger than any number can be", event.offset)
        return number
    return text

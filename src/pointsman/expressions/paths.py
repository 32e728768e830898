"""Data paths: targets of writes, and paths in templates. They contain only keys and no computed parts.

drafts.current_fanout_item    a.b[0].c    a["b c"][-1]    init-coverage.text    $.data.x    state.x
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from pointsman.expressions.environment import ITEM_SEGMENT, NATIVE, Environment, Names
from pointsman.expressions.failures import COMPILED_MAX, SOURCE_CHARS_MAX, BadPath, ExpressionTooLong, NoItem, Spot
from pointsman.expressions.parser import unquote
from pointsman.expressions.syntax_tree import Dollar, Get, Literal, Name, Tree

HEAD: Final = re.compile(r"@?[^\W\d][\w-]*")
SEGMENT: Final = re.compile(
    r"""\.(?P<name>[^\W\d][\w-]*) | \.(?P<place>[0-9]{1,15})(?![\w-])
    | \[[ ]*(?:(?P<index>-?[0-9]{1,15})|(?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'))[ ]*\]""",
    re.VERBOSE,
)


class ItemKey(Enum):
    """Type of `ITEM_KEY`."""

    ITEM_KEY = "current_fanout_item"


ITEM_KEY: Final = ItemKey.ITEM_KEY
"""Segment that stands for the key of this branch's item."""


class ScannedKey(NamedTuple):
    """One key of a path, with its position."""

    key: str | int
    dotted: bool
    at: int
    end: int


class Scanned(NamedTuple):
    """A path as written: its keys, and its end."""

    dollar: bool
    keys: tuple[ScannedKey, ...]
    at: int
    end: int

    def tree(self) -> Tree:
        """Return the path as the tree of an expression."""
        keys = self.keys
        tree: Tree = Dollar(self.at, self.at + 1)
        if not self.dollar:
            first, keys = keys[0], keys[1:]
            tree = Name(str(first.key), first.at, first.end)
        for key in keys:
            tree = Get(tree, Literal(key.key, key.at, key.end), self.at, key.end, key.dotted)
        return tree


def scan_path(source: str, at: int = 0) -> Scanned | None:
    """Return the longest path that starts at `at`, or None."""
    dollar = source.startswith("$", at)
    keys: list[ScannedKey] = []
    position = at + 1
    if not dollar:
        head = HEAD.match(source, at)
        if head is None:
            return None
        keys.append(ScannedKey(head[0], dotted=True, at=at, end=head.end()))
        position = head.end()
    while match := SEGMENT.match(source, position):
        key: str | int = match["name"] or ""
        if match["text"]:
            key = unquote(match["text"], source, position)
        elif number := match["place"] or match["index"]:
            key = int(number)
        keys.append(ScannedKey(key, match["name"] is not None, position, match.end()))
        position = match.end()
    return Scanned(dollar, tuple(keys), at, position)


@dataclass(frozen=True, slots=True)
class Path:
    """A position in the state."""

    text: str
    """The path as the author wrote it."""
    segments: tuple[str | int | ItemKey, ...]
    """Keys from the state down; never empty."""

    def resolve(self, env: Environment) -> tuple[str | int, ...]:
        """Return the keys in this scope. Raises `NoItem` outside of a parallel if the path contains the item's key."""
        if ITEM_KEY not in self.segments:
            return tuple(key for key in self.segments if not isinstance(key, ItemKey))
        item_key = env.item_key
        if item_key is None:
            raise NoItem(
                f"{self.text!r} names the item of a parallel, but no parallel is open here",
                spot=Spot(self.text, 0, len(self.text)),
                hint="Write it inside a branch, or write to a fixed key.",
            )
        return tuple(item_key if isinstance(key, ItemKey) else key for key in self.segments)


@lru_cache(maxsize=COMPILED_MAX)
def compile_path(source: str, *, names: Names = NATIVE) -> Path:
    """Parse a path into the state. A leading `$.`, `state.` or `data.` refers to the state itself. Raises `BadPath`."""
    text = source.strip()
    if len(source) > SOURCE_CHARS_MAX:
        spot = Spot(source, SOURCE_CHARS_MAX, len(source))
        raise ExpressionTooLong(f"a path has at most {SOURCE_CHARS_MAX} characters", spot=spot)
    scanned = scan_path(text)
    stopped = 0 if scanned is None else scanned.end
    if scanned is None or stopped < len(text) or text.startswith("@"):
        raise BadPath(
            f"{source!r} is not a path: unexpected text at column {stopped + 1}",
            spot=Spot(source, min(stopped, max(len(source) - 1, 0)), len(source)),
            hint='Paths look like `drafts.intro`, `items[0].name` or `a["b c"]`.',
        )
    keys = scanned.keys
    # Bare `data` and `$.data` with nothing after them are a field of that name: the whole state cannot be written.
    rooted = bool(keys) and keys[0].key in ("state", "data") and keys[0].key not in names.fields_first
    if not keys or (rooted and len(keys) == 1 and keys[0].key == "state"):
        raise BadPath(
            f"{source!r} is the whole state",
            spot=Spot(source, 0, len(source)),
            hint="Write the path of a field: `state.x`.",
        )
    segments = tuple(ITEM_KEY if key.dotted and key.key == ITEM_SEGMENT else key.key for key in keys)
    if rooted and len(keys) > 1:
        segments = segments[1:]
        if keys[0].key == "state" and len(segments) > 1 and segments[0] == "data" and "data" not in names.declared:
            segments = segments[1:]  # older documents nest the data there
    return Path(text, segments)

"""Tree of an expression as its author wrote it, with unresolved names.

Every node has its position: characters `at` to `end` of the source.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from msgspec import Struct

from pointsman.values import Json


class Literal(Struct, frozen=True):
    """A number, text, true, false or null."""

    value: Json
    at: int
    end: int


class Name(Struct, frozen=True):
    """A bare word: variable, reserved name, state field or setting."""

    name: str
    at: int
    end: int


class Dollar(Struct, frozen=True):
    """`$`, the root. With a key after it, it means the same as the bare key."""

    at: int
    end: int


class Get(Struct, frozen=True):
    """`base.key`, `base["key"]`, `base[3]`, `base[expression]`."""

    base: Tree
    key: Tree
    at: int
    end: int
    dotted: bool = False
    """True if written with a dot: only then can `length` and `current_fanout_item` have their special meaning."""


class Each(Struct, frozen=True):
    """`base.*` or `base[*]`: the rest of the path applies to every element; missing values are left out."""

    base: Tree
    at: int
    end: int


class Slice(Struct, frozen=True):
    """`base[start:stop]` of a list or text."""

    base: Tree
    start: Tree | None
    stop: Tree | None
    at: int
    end: int


class Lambda(Struct, frozen=True):
    """`x => body`, only as an argument."""

    variable: str
    body: Tree
    at: int
    end: int


class FunctionCall(Struct, frozen=True):
    """`name(arguments)`; `receiver.name(arguments)` is the same with the receiver first."""

    name: str
    arguments: tuple[Tree | Lambda, ...]
    at: int
    end: int
    name_at: int


class ListOf(Struct, frozen=True):
    """`[a, b]`."""

    items: tuple[Tree, ...]
    at: int
    end: int


class ObjectOf(Struct, frozen=True):
    """`{a: 1, "b": 2}`."""

    pairs: tuple[tuple[str, Tree], ...]
    at: int
    end: int


class Comprehension(Struct, frozen=True):
    """`[body for variable in source if condition]`."""

    body: Tree
    variable: str
    source: Tree
    condition: Tree | None
    at: int
    end: int


class Prefix(Struct, frozen=True):
    """`not x` (loose), `!x` (tight), `-x`, `+x`. `not` and `!` differ only in precedence."""

    sign: str
    operand: Tree
    at: int
    end: int


class Chain(Struct, frozen=True):
    """Operators of the same strength, left to right: `a + b - c`, `a < b <= c`, `a and b and c`, `a ?? b`.

    Signs are canonical (`&&` is `and`, `===` is `==`, `is not` is `!=`). `a < b < c` means `a < b and b < c`.
    """

    strength: int
    first: Tree
    rest: tuple[tuple[str, Tree], ...]
    at: int
    end: int


class Conditional(Struct, frozen=True):
    """`condition ? yes : no` and `yes if condition else no`."""

    condition: Tree
    yes: Tree
    no: Tree
    at: int
    end: int


Tree: TypeAlias = (
    Literal
    | Name
    | Dollar
    | Get
    | Each
    | Slice
    | FunctionCall
    | ListOf
    | ObjectOf
    | Comprehension
    | Prefix
    | Chain
    | Conditional
)

PathTree: TypeAlias = Name | Dollar | Get | Each
"""Last part of a path. Its start may be any tree: `(a ?? b).c`."""

COALESCE, OR, AND, NOT, COMPARE, ADD, MULTIPLY, UNARY, POSTFIX = range(1, 10)
"""Precedence of operators, loosest first."""


def unwound(tree: Tree) -> tuple[Tree, list[Get | Each]]:
    """Return the start of a path and the parts after it, in reading order."""
    parts: list[Get | Each] = []
    while isinstance(tree, Get | Each):
        parts.append(tree)
        tree = tree.base
    parts.reverse()
    return tree, parts


def rooted(tree: Tree) -> tuple[Tree, list[Get | Each], bool]:
    """Return the same, with `$.name` starting at `name`; and whether the start is in the tree as it is."""
    start, parts = unwound(tree)
    if isinstance(start, Dollar) and parts and (name := literal_key(parts[0])):
        return Name(name, start.at, parts[0].end), parts[1:], False
    return start, parts, True


def literal_key(part: Get | Each) -> str | None:
    """Return the text of a fixed text key; None for any other key."""
    if isinstance(part, Get) and isinstance(part.key, Literal) and isinstance(part.key.value, str):
        return part.key.value
    return None


def inside(tree: Tree) -> Iterator[Tree]:
    """Yield every tree of an expression, itself first, in reading order."""
    waiting: list[Tree | Lambda | None] = [tree]
    while waiting:
        match waiting.pop():
            case None:
                pass
            case Lambda(body=body):
                waiting.append(body)
            case one:
                waiting += reversed(_operands(one) if isinstance(one, Prefix | Chain | Conditional) else _parts(one))
                yield one


def _operands(tree: Prefix | Chain | Conditional) -> tuple[Tree | None, ...]:
    match tree:
        case Prefix():
            return (tree.operand,)
        case Chain():
            return (tree.first, *(operand for _, operand in tree.rest))
        case Conditional():
            return (tree.condition, tree.yes, tree.no)


def _parts(tree: Tree) -> tuple[Tree | Lambda | None, ...]:
    match tree:
        case Get():
            return (tree.base, tree.key)
        case Each():
            return (tree.base,)
        case Slice():
            return (tree.base, tree.start, tree.stop)
        case FunctionCall():
            return tree.arguments
        case ListOf():
            return tree.items
        case ObjectOf():
            return tuple(value for _, value in tree.pairs)
        case Comprehension():
            return (tree.body, tree.source, tree.condition)
        case _:
            return ()


def heads_of(tree: Tree) -> Iterator[tuple[str, ...]]:
    """Yield the names at which the paths of an expression start, each with the fixed key after it, if there is one."""
    for tree_node in inside(tree):
        if isinstance(tree_node, Get | Name):
            start, parts, _ = rooted(tree_node)
            if isinstance(start, Name) and len(parts) < 2:
                keys = [literal_key(part) for part in parts]
                yield (start.name, *(key for key in keys if key is not None))


def builds(tree: Tree) -> bool:
    """Return whether the result may be a list or object that the expression itself builds."""
    match tree:
        case Literal() | Name() | Dollar() | Get():
            return False
        case Conditional():
            return builds(tree.yes) or builds(tree.no)
        case Chain(strength=strength):
            if strength == COMPARE:
                return False
            return strength == ADD or builds(tree.first) or any(builds(operand) for _, operand in tree.rest)
        case Prefix():
            return False
        case _:
            return True

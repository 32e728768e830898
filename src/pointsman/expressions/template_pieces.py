"""The pieces a template is cut into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pointsman.expressions.tree import Chain, PathTree

Spelling: TypeAlias = Literal["single", "double"]
"""`single`: `{x}`. `double`: also `{{x}}`, its blocks, and `${$.path}`."""

Filter: TypeAlias = Literal["", "json", "lines"]


@dataclass(frozen=True, slots=True)
class Words:
    """Text as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Tag:
    """A path whose value is put in."""

    path: PathTree
    filter: Filter
    absent: Literal["fails", "warns", "empty"]
    """What a missing value means: `{x}` fails, `{{x}}` is empty and reported, `{x?}` is empty."""
    at: int
    end: int


@dataclass(frozen=True, slots=True)
class If:
    """`{{#if path}}`, `{{#unless path}}`, `{{#compare path "<" 3}}`, each with an optional `{{else}}`."""

    test: PathTree | Chain
    negated: bool
    then: tuple[Piece, ...]
    otherwise: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """`{{#each path}}`: an element is `this`; `@index`, `@number`, `@key`, `@first`, `@last`; `{{else}}` if none."""

    path: PathTree
    body: tuple[Piece, ...]
    otherwise: tuple[Piece, ...]
    at: int
    end: int


Piece: TypeAlias = Words | Tag | If | Repeat

"""The pieces a template is cut into."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pointsman.expressions.syntax_tree import Dollar, Each, Get, Name, PathTree, Tree

Spelling: TypeAlias = Literal["single", "double"]
"""`single`: `{x}`, `{{x}}` and blocks. `double`: also `${$.path}`, and a text that is nothing but `$.path`."""


@dataclass(frozen=True, slots=True)
class Words:
    """Text as it is."""

    text: str


@dataclass(frozen=True, slots=True)
class Tag:
    """A placeholder: the value of an expression is put in, of a path in most texts."""

    value: Tree
    absent: Literal["fails", "warns", "empty"]
    """What a missing value means: `{x}` fails, `{{x}}` is empty and reported, `{x?}` is empty."""
    at: int
    end: int

    @property
    def path(self) -> PathTree | None:
        """The path, where it is nothing else."""
        return self.value if isinstance(self.value, Name | Dollar | Get | Each) else None


@dataclass(frozen=True, slots=True)
class If:
    """`{{#if condition}}`, `{{#unless condition}}`, `{{#compare path "<" 3}}`, each with an optional `{{else}}`."""

    test: Tree
    negated: bool
    then: tuple[Piece, ...]
    otherwise: tuple[Piece, ...]


@dataclass(frozen=True, slots=True)
class EachBlock:
    """`{{#each path}}`: an element is `this`; `@index`, `@number`, `@key`, `@first`, `@last`; `{{else}}` if none."""

    path: PathTree
    body: tuple[Piece, ...]
    otherwise: tuple[Piece, ...]
    at: int
    end: int


Piece: TypeAlias = Words | Tag | If | EachBlock

"""Pieces of a parsed template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

from pointsman.expressions.syntax_tree import Dollar, Each, Get, Name, PathTree, Tree

Spelling: TypeAlias = Literal["single", "double"]
"""`single`: `{x}`, `{{x}}` and blocks. `double`: also `${$.path}`, and a text that consists only of `$.path`."""


@dataclass(frozen=True, slots=True)
class Words:
    """Literal text."""

    text: str


@dataclass(frozen=True, slots=True)
class Tag:
    """A placeholder for the value of an expression, in most texts a path."""

    value: Tree
    absent: Literal["fails", "warns", "empty"]
    """Meaning of a missing value: `{x}` fails, `{{x}}` is empty and reported, `{x?}` is empty."""
    at: int
    end: int

    @property
    def path(self) -> PathTree | None:
        """The path, if the placeholder consists only of one."""
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
    """`{{#each path}}`: an element is `this`; `@index`, `@number`,
    `@key`, `@first`, `@last`; `{{else}}` if there are none."""

    path: PathTree
    body: tuple[Piece, ...]
    otherwise: tuple[Piece, ...]
    at: int
    end: int


Piece: TypeAlias = Words | Tag | If | EachBlock

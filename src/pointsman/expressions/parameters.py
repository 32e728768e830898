"""Parameters: a JSON tree whose texts are templates, and whose secrets are never data.

A text with `{secret.NAME}` may contain only fixed text and secrets. It is passed on unchanged, and `secrets` lists its
position: the executor fills in exactly the author's secrets, and a value that only looks like one stays text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, TypeAlias

from pointsman.expressions.environment import Environment
from pointsman.expressions.failures import (
    ExpressionError,
    ExpressionFailed,
    ExpressionTooDeep,
    SecretNotAllowed,
    Spot,
)
from pointsman.expressions.limits import DEPTH_MAX
from pointsman.expressions.name_resolution import PathRead
from pointsman.expressions.names import NATIVE, Names
from pointsman.expressions.paths import scan_path
from pointsman.expressions.syntax_tree import Name, Tree, literal_key, unwound
from pointsman.expressions.template_parser import parse_template
from pointsman.expressions.template_pieces import Piece, Spelling, Tag, Words
from pointsman.expressions.templates import Template, compile_template
from pointsman.values import Json

Fill: TypeAlias = Callable[[Environment, "list[str]"], Json]

SECRET: Final = "secret"
_HOST: Final = re.compile(r"https?://[^/?#\\]+[/?#]", re.IGNORECASE)
"""A URL up to the end of its host."""


@dataclass(frozen=True, slots=True)
class SecretText:
    """A text of the tree that needs secrets: `Bearer {secret.TOKEN}`, or just `secret.TOKEN`."""

    pointer: tuple[str | int, ...]
    pieces: tuple[tuple[str, bool], ...]
    """(fixed text, False) or (name of a secret, True), in order."""

    def revealed(self, secret: Callable[[str], str]) -> str:
        """Return the text with its secrets filled in. Call it only when the request is sent."""
        return "".join(secret(text) if hidden else text for text, hidden in self.pieces)


@dataclass(frozen=True, slots=True)
class Parameters:
    """A compiled tree."""

    fill: Fill
    reads: tuple[tuple[str, PathRead], ...]
    """(JSON pointer inside the tree, path that its text reads)."""
    secrets: tuple[SecretText, ...]
    fixed: bool
    """True if no part of it depends on data."""

    def evaluate(self, env: Environment, *, missing: list[str] | None = None) -> Json:
        """Return the tree with its templates filled in. Raises `ExpressionFailed` with the pointer of the text.

        `missing` collects the paths of `{{ }}` that were left empty.
        """
        return self.fill(env, [] if missing is None else missing)


def compile_parameters(value: Json, *, names: Names = NATIVE, spelling: Spelling = "single") -> Parameters:
    """Compile a tree. Raises `ExpressionError` with the pointer of the text."""
    compiler = ParameterCompiler(names, spelling)
    fill = compiler.value(value, ())
    found = tuple(compiler.reads), tuple(compiler.secrets)
    if fill is None:
        return Parameters(lambda env, missing: value, *found, fixed=True)
    return Parameters(fill, *found, fixed=False)


class ParameterCompiler:
    """Compiler of one tree; parts that are the same for every environment are reused, not rebuilt."""

    def __init__(self, names: Names, spelling: Spelling) -> None:
        self.names = names
        self.spelling: Spelling = spelling
        self.reads: list[tuple[str, PathRead]] = []
        self.secrets: list[SecretText] = []

    def value(self, value: Json, at: tuple[str | int, ...]) -> Fill | None:
        """Return the closure that fills in `value`; None if no part of it depends on data."""
        if len(at) > DEPTH_MAX:
            spot = Spot("", 0, 0)
            raise placed(ExpressionTooDeep(f"parameters nest at most {DEPTH_MAX} levels", spot=spot), at)
        match value:
            case str():
                return self.text(value, at)
            case list():
                return self.items(value, at)
            case dict():
                return self.fields(value, at)
            case _:
                return None

    def items(self, value: list[Json], at: tuple[str | int, ...]) -> Fill | None:
        fills = [self.value(part, (*at, index)) for index, part in enumerate(value)]
        if not any(fills):
            return None
        pairs = list(zip(value, fills, strict=True))
        return lambda env, missing: [fill(env, missing) if fill else part for part, fill in pairs]

    def fields(self, value: dict[str, Json], at: tuple[str | int, ...]) -> Fill | None:
        fills = [(key, part, self.value(part, (*at, key))) for key, part in value.items()]
        if not any(fill for _, _, fill in fills):
            return None
        return lambda env, missing: {key: fill(env, missing) if fill else part for key, part, fill in fills}

    def text(self, source: str, at: tuple[str | int, ...]) -> Fill | None:
        try:
            if secret := self.secret(source, at):
                self.secrets.append(secret)
                return None
            template = compile_template(source, names=self.names, spelling=self.spelling)
        except ExpressionError as why:
            raise placed(why, at) from None
        self.reads += [(pointer_text(at), read) for read in template.reads]
        if template.fixed:
            text = template.render(Environment({})).text
            return None if text == source else lambda env, missing: text
        return filled(template, at)

    def secret(self, source: str, at: tuple[str | int, ...]) -> SecretText | None:
        """Return the text as one with secrets, if it contains any."""
        if SECRET not in source:
            return None
        bare = scan_path(source)
        if bare and bare.end == len(source) and (name := self.secret_name(bare.tree())):
            return SecretText(at, ((name, True),))
        pieces = parse_template(source, self.spelling, self.names.declared).pieces
        if not any(self.is_secret(piece) for piece in pieces):
            return None
        parts: list[tuple[str, bool]] = []
        for piece in pieces:
            if isinstance(piece, Words):
                parts.append((piece.text, False))
            elif isinstance(piece, Tag) and (name := self.secret_name(piece.value)):
                parts.append((name, True))
            else:
                raise SecretNotAllowed(
                    "a text with a secret holds no other data",
                    spot=Spot(source, 0, len(source)),
                    hint="Split it: one parameter or header for the secret, another for the data.",
                )
        return SecretText(at, tuple(parts))

    def is_secret(self, piece: Piece) -> bool:
        return isinstance(piece, Tag) and self.secret_name(piece.value) is not None

    def secret_name(self, value: Tree) -> str | None:
        """Return `NAME` of `secret.NAME`."""
        start, parts = unwound(value)
        if isinstance(start, Name) and len(parts) == 1 and self.names.root(start.name) == SECRET:
            return literal_key(parts[0])
        return None


def filled(template: Template, at: tuple[str | int, ...]) -> Fill:
    """Return the closure for one text of the tree; its failures carry the pointer."""

    def fill(env: Environment, missing: list[str]) -> Json:
        try:
            return template.value(env, missing=missing)
        except ExpressionFailed as why:
            why.pointer = pointer_text(at)
            raise

    return fill


def check_address(secret: SecretText, source: str) -> None:
    """Check that the host of a URL contains no secret. The URL may begin with a secret that includes the host.

    A host is cut at the first `/`, converted to lower case and named in messages, which would show part of a secret.
    Raises `SecretNotAllowed`.
    """
    (first, is_hidden), *rest = secret.pieces
    if not is_hidden and _HOST.match(first) is not None:
        return
    if is_hidden and (not rest or (not rest[0][1] and rest[0][0].startswith(("/", "?", "#")))):
        return
    raise placed(
        SecretNotAllowed(
            "no secret may stand in a host",
            spot=Spot(source, 0, len(source)),
            hint="Write the host as text. A secret may stand in the path or the query, or begin the address.",
        ),
        secret.pointer,
    )


def placed(error: ExpressionError, at: tuple[str | int, ...]) -> ExpressionError:
    """Return the error with its position in the tree."""
    error.pointer = pointer_text(at)
    return error


def pointer_text(at: tuple[str | int, ...]) -> str:
    """Return the pointer of RFC 6901."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in at)

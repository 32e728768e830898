"""Templates: text with paths in it, filled in one pass. A value that contains braces stays text.

Write about {goal | upper} from {sources|json}.     double: also `${$.path}`
{{#each sections}}{{@index}}. {{ this.title }}
{{/each}}

Parameters are a JSON tree whose texts are templates, and whose secrets are never data. A text with `{secret.NAME}` may
contain only fixed text and secrets. It is passed on unchanged, and `secrets` lists its position: the executor fills in
exactly the author's secrets, and a value that only looks like one stays text.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from pointsman.expressions.compiler import Compiler
from pointsman.expressions.environment import MISSING, NATIVE, Environment, EvaluationFrame, Names
from pointsman.expressions.failures import (
    DEPTH_MAX,
    TEXT_CHARS_MAX,
    DataTooDeep,
    ExpressionError,
    ExpressionFailed,
    ExpressionTooDeep,
    MissingValue,
    MixedTypes,
    SecretNotAllowed,
    Spot,
    TextTooLong,
)
from pointsman.expressions.functions import ALIASES, shown
from pointsman.expressions.name_resolution import Code, PathRead, Probe
from pointsman.expressions.operators import type_name
from pointsman.expressions.paths import scan_path
from pointsman.expressions.syntax_tree import (
    Dollar,
    Each,
    FunctionCall,
    Get,
    Lambda,
    Name,
    PathTree,
    Tree,
    literal_key,
    unwound,
)
from pointsman.expressions.template_parser import EachBlock, If, Parsed, Piece, Spelling, Tag, Words, parse_template
from pointsman.values import Json

TEMPLATES_MAX: Final = 1_024
GUARDS: Final = frozenset({"default", "exists", "empty"})
"""Functions whose argument may be missing."""
LOOP_NAMES: Final = ("this", "@index", "@number", "@key", "@first", "@last")


class RenderedTemplate(NamedTuple):
    """A filled template."""

    text: str
    missing: tuple[str, ...]
    """Missing paths of `{{ }}`, which were left empty: a warning."""


class RenderBuffer:
    """Output of one rendering so far."""

    __slots__ = ("absent", "chars", "missing", "pieces", "source")

    def __init__(self, source: str) -> None:
        self.source = source
        self.pieces: list[str] = []
        self.chars = 0
        self.missing: list[str] = []
        self.absent: list[Spot] = []

    def write(self, text: str) -> None:
        self.chars += len(text)
        if self.chars > TEXT_CHARS_MAX:
            spot = Spot(self.source, 0, len(self.source))
            raise TextTooLong(f"a text can have at most {TEXT_CHARS_MAX} characters", spot=spot)
        self.pieces.append(text)

    def miss(self, tag: Tag) -> None:
        """Record a missing value, as an error or a warning according to its tag."""
        spot = Spot(self.source, tag.at, tag.end)
        if tag.absent == "fails":
            self.absent.append(spot)
        elif tag.absent == "warns":
            self.missing.append(self.source[tag.at : tag.end])

    def settle(self) -> None:
        """Raise `MissingValue` if required values were missing; the message names all of them."""
        if not self.absent:
            return
        sources = ", ".join(dict.fromkeys(repr(spot.source[spot.at : spot.end]) for spot in self.absent))
        raise MissingValue(
            f"the template uses values that do not exist: {sources}",
            spot=self.absent[0],
            hint="Write {x?} for a value that may be missing, \\{ for a brace that is text.",
        )


Write: TypeAlias = Callable[[EvaluationFrame, RenderBuffer], None]


class Template:
    """A compiled template. Immutable and shareable."""

    def __init__(self, source: str, parsed: Parsed, names: Names) -> None:
        compiler = TemplateCompiler(source, names)
        self.source = source
        self.pieces = pieces = parsed.pieces
        self.literal = parsed.literal
        """Offsets of braces that are text."""
        self._only = pieces[0] if len(pieces) == 1 and isinstance(pieces[0], Tag) else None
        self._probe = None if self._only is None else compiler.value(self._only)
        self._writes = (
            compiler.all(pieces)
            if self._only is None or self._probe is None
            else (compiler.tag(self._only, self._probe),)
        )
        self._slots = compiler.paths.slots
        self.reads: tuple[PathRead, ...] = tuple(dict.fromkeys(compiler.paths.reads))

    @property
    def fixed(self) -> bool:
        """Whether the template has no placeholders: the text is always the same."""
        return not self.reads and all(isinstance(piece, Words) for piece in self.pieces)

    def render(self, env: Environment) -> RenderedTemplate:
        """Fill in the template. Raises `MissingValue` for a missing `{x}`, and `TextTooLong`."""
        page, frame = RenderBuffer(self.source), EvaluationFrame(env, self._slots)
        try:
            for write in self._writes:
                write(frame, page)
        except RecursionError:
            spot = Spot(self.source, 0, len(self.source))
            raise DataTooDeep("a value is nested too deeply to be written as text", spot=spot) from None
        page.settle()
        return RenderedTemplate("".join(page.pieces), tuple(dict.fromkeys(page.missing)))

    def value(self, env: Environment, *, missing: list[str] | None = None) -> Json:
        """Return the text; a template that is exactly one placeholder keeps the type of its value (absent: null).

        `missing` collects the paths that were left empty.
        """
        if self._probe is None or self._only is None:
            rendered = self.render(env)
            if missing is not None:
                missing.extend(rendered.missing)
            return rendered.text
        try:
            value = self._probe(EvaluationFrame(env, self._slots))
        except RecursionError:
            spot = Spot(self.source, 0, len(self.source))
            raise DataTooDeep("a value is nested too deeply for this placeholder", spot=spot) from None
        if value is not MISSING:
            return value
        page = RenderBuffer(self.source)
        page.miss(self._only)
        page.settle()
        if missing is not None:
            missing.extend(page.missing)
        return None


class TemplateCompiler:
    """Compiler of the pieces of one template."""

    def __init__(self, source: str, names: Names) -> None:
        self.source = source
        compiler = Compiler(source, names)
        self.code = compiler.code
        self.paths = compiler.paths

    def all(self, pieces: tuple[Piece, ...]) -> tuple[Write, ...]:
        return tuple(self.piece(piece) for piece in pieces)

    def piece(self, piece: Piece) -> Write:
        match piece:
            case Words(text=text):
                return lambda frame, page: page.write(text)
            case Tag():
                return self.tag(piece, self.value(piece))
            case If():
                return self.condition(piece)
            case EachBlock():
                return self.repeat(piece)

    def probe(self, path: PathTree, *, guarded: bool = False) -> Probe:
        """Return the closure that looks up a path."""
        return self.paths.probe_of(self.paths.place(path, guarded=guarded))

    def value(self, tag: Tag) -> Probe:
        """Return the closure for the value of a placeholder; MISSING if its path has no value."""
        if tag.path is not None:
            return self.probe(tag.path, guarded=tag.absent == "empty")
        base, guarded = piped(tag.value)
        probe = self.probe(base, guarded=guarded or tag.absent == "empty") if base is not None else None
        code: Code = self.code(tag.value)
        if guarded:
            return lambda frame: code(frame)
        if probe is None:
            # An expression returns null if something it reads is missing.
            return lambda frame: MISSING if (value := code(frame)) is None else value
        return lambda frame: MISSING if probe(frame) is MISSING else code(frame)

    def tag(self, tag: Tag, probe: Probe) -> Write:
        spot = Spot(self.source, tag.at, tag.end)

        def write(frame: EvaluationFrame, page: RenderBuffer) -> None:
            value = probe(frame)
            if value is MISSING:
                page.miss(tag)
            else:
                page.write(shown(value, frame, spot))

        return write

    def condition(self, block: If) -> Write:
        holds = self.code(block.test, guarded=True)
        then, otherwise = self.all(block.then), self.all(block.otherwise)
        negated = block.negated

        def write(frame: EvaluationFrame, page: RenderBuffer) -> None:
            for part in then if bool(holds(frame)) is not negated else otherwise:
                part(frame, page)

        return write

    def repeat(self, block: EachBlock) -> Write:
        probe = self.probe(block.path, guarded=True)
        otherwise = self.all(block.otherwise)
        bound = [(name, *self.paths.bind(name)) for name in LOOP_NAMES]
        slots = [slot for _, slot, _ in bound]
        self.paths.inside.append(slots[0])
        body = self.all(block.body)
        self.paths.inside.pop()
        for name, _, outer in bound:
            self.paths.unbind(name, outer)
        spot = Spot(self.source, block.at, block.end)

        def write(frame: EvaluationFrame, page: RenderBuffer) -> None:
            value = probe(frame)
            entries = entries_of(None if value is MISSING else value, spot)
            frame.spend(len(entries), spot)
            for number, (key, element) in enumerate(entries):
                values: tuple[Json, ...] = (element, number, number + 1, key, number == 0, number == len(entries) - 1)
                for slot, part in zip(slots, values, strict=True):
                    frame.slots[slot] = part
                for piece in body:
                    piece(frame, page)
            if not entries:
                for piece in otherwise:
                    piece(frame, page)

        return write


def entries_of(value: Json, spot: Spot) -> list[tuple[Json, Json]]:
    """Return the entries for `each`: elements with their index, fields with their key; empty for null."""
    match value:
        case None:
            return []
        case list():
            return list(enumerate(value))
        case dict():
            return list(value.items())
        case _:
            raise MixedTypes(f"each requires a list or object, not {type_name(value)}", spot=spot)


def piped(tree: Tree) -> tuple[PathTree | None, bool]:
    """Return the path at the start of a chain of pipes, and whether one of its functions accepts a missing value."""
    guarded = False
    while isinstance(tree, FunctionCall) and tree.arguments and not isinstance(first := tree.arguments[0], Lambda):
        guarded = guarded or ALIASES.get(tree.name, tree.name) in GUARDS
        tree = first
    return (tree if isinstance(tree, Name | Dollar | Get | Each) else None), guarded


@lru_cache(maxsize=TEMPLATES_MAX)
def compile_template(source: str, *, names: Names = NATIVE, spelling: Spelling = "single") -> Template:
    """Compile `source`. Raises `ExpressionError` for malformed blocks and for secrets."""
    return Template(source, parse_template(source, spelling, names.declared), names)


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
    uses = tuple(compiler.reads), tuple(compiler.secrets)
    if fill is None:
        return Parameters(lambda env, missing: value, *uses, fixed=True)
    return Parameters(fill, *uses, fixed=False)


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
                    "a text with a secret cannot contain other data",
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
            "a host name cannot contain a secret",
            spot=Spot(source, 0, len(source)),
            hint="Write the host as text. A secret may be in the path or the query, or at the start of the address.",
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

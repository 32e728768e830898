"""Templates: text with paths in it, filled in one pass. A value that contains braces stays text.

Write about {goal | upper} from {sources|json}.     double: also `${$.path}`
{{#each sections}}{{@index}}. {{ this.title }}
{{/each}}
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from pointsman.expressions.compiler import Compiler
from pointsman.expressions.environment import MISSING, Environment, EvaluationFrame
from pointsman.expressions.failures import DataTooDeep, MissingValue, MixedTypes, Spot, TextTooLong
from pointsman.expressions.functions import ALIASES, shown
from pointsman.expressions.limits import TEXT_CHARS_MAX
from pointsman.expressions.name_resolution import PathRead
from pointsman.expressions.names import NATIVE, Names
from pointsman.expressions.operators import type_name
from pointsman.expressions.path_access import Code, Probe
from pointsman.expressions.syntax_tree import Dollar, Each, FunctionCall, Get, Lambda, Name, PathTree, Tree
from pointsman.expressions.template_parser import Parsed, parse_template
from pointsman.expressions.template_pieces import EachBlock, If, Piece, Spelling, Tag, Words
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
            raise TextTooLong(f"a template grows to at most {TEXT_CHARS_MAX} characters", spot=spot)
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
        named = ", ".join(dict.fromkeys(repr(spot.source[spot.at : spot.end]) for spot in self.absent))
        raise MissingValue(
            f"the template names what is not there: {named}",
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
                page.write(shown(value, spot))

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
                known: tuple[Json, ...] = (element, number, number + 1, key, number == 0, number == len(entries) - 1)
                for slot, part in zip(slots, known, strict=True):
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
            raise MixedTypes(f"each wants a list or object, not {type_name(value)}", spot=spot)


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

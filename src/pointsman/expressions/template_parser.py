"""Cuts a template into pieces, in one pass. A brace that does not start a path is text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, cast

from pointsman.expressions.bounds import DEPTH_MAX, TEMPLATE_CHARS_MAX
from pointsman.expressions.failures import BadTemplate, ExpressionTooLong, Spot
from pointsman.expressions.parser import OPERATORS, parse_expression
from pointsman.expressions.paths import scan_path
from pointsman.expressions.template_pieces import Filter, If, Piece, Repeat, Spelling, Tag, Words
from pointsman.expressions.tree import COMPARE, Chain, Dollar, Each, Get, Literal, Name, PathTree, Tree

OPENING: Final = {
    "single": re.compile(r"\\\{|\{+"),
    "double": re.compile(r"\\\{\{?|\$\{(?=\$)|\{+"),
}
BRACES: Final = {"single": 1, "double": 3}
"""How many braces of a run may belong to a tag; those before them are text."""
CLOSING: Final = re.compile(r"(\?)?(?:\|(json|lines))?\}")
CLOSING_DOUBLE: Final = re.compile(r"\s*(?:(\?)\s*)?(?:\|\s*(json|lines)\s*)?\}\}")
BLOCK: Final = re.compile(
    r"""\{\{\s*(?: \# \s* (?P<open>\w+) \s* | / \s* (?P<close>\w+) \s* \}\}
        | (?P<other>else) \s* \}\} | ! [^{}]* \}\} )""",
    re.VERBOSE,
)
END: Final = re.compile(r"\s*\}\}")
SIGN: Final = re.compile(r"""\s*(?P<quote>["'])(?P<sign>===?|!==?|<=?|>=?)(?P=quote)\s*""")
OPERAND: Final = re.compile(r"""-?[0-9][0-9.eE+-]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""")
BLOCKS: Final = frozenset({"if", "unless", "each", "compare"})


@dataclass(slots=True)
class Open:
    """A block that is not closed yet."""

    word: str
    at: int
    end: int
    test: PathTree | Chain | None = None
    then: list[Piece] = field(default_factory=list[Piece])
    otherwise: list[Piece] | None = None

    def add(self, piece: Piece) -> None:
        (self.then if self.otherwise is None else self.otherwise).append(piece)

    def closed(self) -> Piece:
        """The whole block."""
        then, otherwise = tuple(self.then), tuple(self.otherwise or ())
        if self.word == "each":
            return Repeat(cast("PathTree", self.test), then, otherwise, self.at, self.end)
        return If(cast("PathTree | Chain", self.test), self.word == "unless", then, otherwise)


def parse_template(source: str, spelling: Spelling) -> tuple[Piece, ...]:
    """The pieces of `source`. Raises `BadTemplate` for blocks that do not fit together."""
    if len(source) > TEMPLATE_CHARS_MAX:
        spot = Spot(source, TEMPLATE_CHARS_MAX, len(source))
        raise ExpressionTooLong(f"a template has at most {TEMPLATE_CHARS_MAX} characters", spot=spot)
    whole = scan_path(source) if spelling == "double" and source.startswith("$.") else None
    if whole and whole.end == len(source):
        return (Tag(as_path(whole.tree()), "", "warns", 0, len(source)),)
    return TemplateParser(source, spelling).run()


class TemplateParser:
    """One pass over one template; `open` are the blocks around the place it is at, the template itself first."""

    def __init__(self, source: str, spelling: Spelling) -> None:
        self.source = source
        self.opening = OPENING[spelling]
        self.braces = BRACES[spelling]
        self.open = [Open("", 0, 0)]
        self.words: list[str] = []

    def run(self) -> tuple[Piece, ...]:
        position = 0
        while found := self.opening.search(self.source, position):
            self.words.append(self.source[position : found.start()])
            position = self.brace(found[0], found.start())
        self.words.append(self.source[position:])
        self.flush()
        if len(self.open) > 1:
            block = self.open[-1]
            raise self.error(
                f"{{{{#{block.word}}}}} is never closed", block.at, block.end, f"Add {{{{/{block.word}}}}}."
            )
        return tuple(self.open[0].then)

    def brace(self, opening: str, at: int) -> int:
        """Read what starts at a brace; answer where to go on."""
        if opening.startswith("\\"):
            self.words.append(opening[1:])
            return at + len(opening)
        extra = max(len(opening) - self.braces, 0)
        self.words.append(opening[:extra])
        at += extra
        end: int | None = None
        if opening == "${":
            end = self.tag(at, at + 2, CLOSING, absent="warns")
        elif self.braces > 1 and len(opening) > 1:
            end = self.block(at) or self.tag(at, at + 2, CLOSING_DOUBLE) or self.triple(at)
        else:
            end = self.tag(at, at + 1, CLOSING)
        if end is not None:
            return end
        self.words.append(self.source[at])
        return at + 1

    def triple(self, at: int) -> int | None:
        """`{{{x}}}`: the same as `{{x}}`, which never escapes."""
        end = self.tag(at, at + 3, CLOSING_DOUBLE) if self.source.startswith("{{{", at) else None
        return end + 1 if end is not None and self.source.startswith("}", end) else end

    def tag(self, at: int, start: int, closing: re.Pattern[str], absent: str = "") -> int | None:
        if closing is CLOSING_DOUBLE:
            start, absent = self.skip(start), "warns"
        scanned = scan_path(self.source, start)
        found = closing.match(self.source, scanned.end) if scanned else None
        if scanned is None or found is None or (scanned.dollar and not scanned.keys):
            return None
        self.flush()
        missing = "empty" if found[1] else absent or "fails"
        chosen = cast("Filter", found[2] or "")
        self.open[-1].add(Tag(as_path(scanned.tree()), chosen, missing, scanned.at, scanned.end))  # pyright: ignore[reportArgumentType]  # one of three words
        return found.end()

    def block(self, at: int) -> int | None:
        """A block's opening, middle or end, or a comment."""
        found = BLOCK.match(self.source, at)
        if found is None:
            return None
        end, opened = found.end(), None
        if found["open"]:
            opened = self.opened(found["open"], at, end)
            end = opened.end
        start, after = self.line(at, end)
        if start < at:
            self.trim()
        self.flush()
        if opened:
            self.open.append(opened)
        elif found["close"]:
            self.close(found["close"], at, end)
        elif found["other"]:
            self.middle(at, end)
        return after

    def opened(self, word: str, at: int, position: int) -> Open:
        if word not in BLOCKS:
            raise self.error(f"there is no block {word!r}", at, position, f"Blocks are {', '.join(sorted(BLOCKS))}.")
        if len(self.open) > DEPTH_MAX:
            raise self.error(f"blocks nest at most {DEPTH_MAX} levels", at, position)
        scanned = scan_path(self.source, position)
        if scanned is None:
            raise self.error(f"{{{{#{word}}}}} wants a path", at, position, f"{{{{#{word} state.x}}}}")
        test: PathTree | Chain = as_path(scanned.tree())
        end = scanned.end
        if word == "compare":
            test, end = self.comparison(test, at, end)
        closing = END.match(self.source, end)
        if closing is None:
            hint = 'Compare with {{#compare path "<" 3}}.' if word != "compare" else ""
            raise self.error(f"{{{{#{word}}}}} is not closed by '}}}}' here", at, end, hint)
        return Open(word, at, closing.end(), test)

    def comparison(self, left: PathTree, at: int, position: int) -> tuple[Chain, int]:
        """`path "<" literal` as the tree of `path < literal`."""
        sign = SIGN.match(self.source, position)
        operand = OPERAND.match(self.source, sign.end()) if sign else None
        if sign is None:
            raise self.error("expected a comparison in quotes", at, position, '{{#compare path "<" 3}}')
        right: Tree
        if operand:
            right, end = parse_expression(operand[0]), operand.end()
        else:
            scanned = scan_path(self.source, sign.end())
            if scanned is None:
                raise self.error("expected a value to compare with", at, sign.end(), '{{#compare path "<" 3}}')
            right, end = constant(scanned.tree()), scanned.end
        return Chain(COMPARE, left, ((OPERATORS[sign["sign"]][1], right),), left.at, end), end

    def close(self, word: str, at: int, end: int) -> None:
        block = self.open[-1]
        if block.word != word:
            expected = f"{{{{/{block.word}}}}} is open." if block.word else "No block is open."
            raise self.error(f"{{{{/{word}}}}} closes nothing", at, end, expected)
        self.open.pop()
        self.open[-1].add(block.closed())

    def middle(self, at: int, end: int) -> None:
        block = self.open[-1]
        if not block.word or block.otherwise is not None:
            raise self.error("{{else}} stands outside of a block", at, end)
        block.otherwise = []

    def line(self, at: int, end: int) -> tuple[int, int]:
        """A block tag alone on its line takes the line with it, so that blocks leave no empty lines."""
        start, after = at, end
        while start and self.source[start - 1] in " \t":
            start -= 1
        while after < len(self.source) and self.source[after] in " \t\r":
            after += 1
        last = after == len(self.source)
        if (start and self.source[start - 1] != "\n") or not (last or self.source[after] == "\n"):
            return at, end
        return start, after + (not last)

    def trim(self) -> None:
        """Take back the blanks before a tag that is alone on its line."""
        text = "".join(self.words)
        self.words = [text.rstrip(" \t")]

    def skip(self, position: int) -> int:
        while position < len(self.source) and self.source[position] in " \t\n":
            position += 1
        return position

    def flush(self) -> None:
        if text := "".join(self.words):
            self.open[-1].add(Words(text))
        self.words = []

    def error(self, message: str, at: int, end: int, hint: str = "") -> BadTemplate:
        return BadTemplate(message, spot=Spot(self.source, at, end), hint=hint)


def as_path(tree: Tree) -> PathTree:
    """A scanned path is always a path."""
    assert isinstance(tree, Name | Dollar | Get | Each)
    return tree


def constant(tree: Tree) -> Tree:
    """`true`, `false` and `null` are words, not paths."""
    words = {"true": True, "false": False, "null": None}
    if isinstance(tree, Name) and tree.name in words:
        return Literal(words[tree.name], tree.at, tree.end)
    return tree

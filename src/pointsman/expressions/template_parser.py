"""Template parser: splits a template into pieces, in one pass.

{path}  {path?}  {path | upper}       a placeholder: the brace touches the path, pipes name functions
{ path }                              a placeholder if the workflow declares the name, else text
{{ expression }}                      a placeholder: any expression; `{{- x -}}`, `{{~x~}}` remove the blanks around it
{{#if x}} … {{/if}}                   a block
{% if x %}  {# note #}                rejected, with a hint what to write
all other braces                      text, as in JSON and code
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, TypeAlias, cast
from typing import Literal as OneOf

from msgspec import Struct

from pointsman.expressions.environment import ROOTS
from pointsman.expressions.failures import (
    DEPTH_MAX,
    SOURCE_CHARS_MAX,
    TEMPLATE_CHARS_MAX,
    BadTemplate,
    ExpressionError,
    ExpressionTooLong,
    Spot,
)
from pointsman.expressions.functions import ALIASES, FUNCTIONS, SPECIAL
from pointsman.expressions.parser import OPERATORS, parse_expression, parse_pipes
from pointsman.expressions.paths import Scanned, scan_path
from pointsman.expressions.syntax_tree import (
    COMPARE,
    Chain,
    Dollar,
    Each,
    FunctionCall,
    Get,
    Literal,
    Name,
    PathTree,
    Tree,
    inside,
)

Spelling: TypeAlias = OneOf["single", "double"]
"""`single`: `{x}`, `{{x}}` and blocks. `double`: also `${$.path}`, and a text that consists only of `$.path`."""


class Words(Struct, frozen=True):
    """Literal text."""

    text: str


class Tag(Struct, frozen=True):
    """A placeholder for the value of an expression, in most texts a path."""

    value: Tree
    absent: OneOf["fails", "warns", "empty"]
    """Meaning of a missing value: `{x}` fails, `{{x}}` is empty and reported, `{x?}` is empty."""
    at: int
    end: int

    @property
    def path(self) -> PathTree | None:
        """The path, if the placeholder consists only of one."""
        return self.value if isinstance(self.value, Name | Dollar | Get | Each) else None


class If(Struct, frozen=True):
    """`{{#if condition}}`, `{{#unless condition}}`, `{{#compare path "<" 3}}`, each with an optional `{{else}}`."""

    test: Tree
    negated: bool
    then: tuple[Piece, ...]
    otherwise: tuple[Piece, ...]


class EachBlock(Struct, frozen=True):
    """`{{#each path}}`: an element is `this`; `@index`, `@number`,
    `@key`, `@first`, `@last`; `{{else}}` if there are none."""

    path: PathTree
    body: tuple[Piece, ...]
    otherwise: tuple[Piece, ...]
    at: int
    end: int


Piece: TypeAlias = Words | Tag | If | EachBlock


OPENING: Final = {
    "single": re.compile(r"\\\{\{?|\{+"),
    "double": re.compile(r"\\\{\{?|\$\{(?=\$)|\{+"),
}
BRACES_MAX: Final = 3
"""Number of braces in a row that may belong to a placeholder; those before them are text."""
QUOTED: Final = r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'"""
PIPES: Final = rf"(?:\s*\|\s*[^\W\d]\w*(?:\((?:[^(){{}}\"'\n]|{QUOTED})*\))?)*"
CLOSING: Final = re.compile(rf"(\?)?({PIPES})\s*\}}")
"""Text after the path of `{path}`."""
BODY: Final = re.compile(rf"\{{\{{(?P<before>~|-(?=\s|[^{{}}]*-\}}\}}))?(?P<body>(?:[^{{}}\"']|{QUOTED})*)\}}\}}")
OPTIONAL: Final = re.compile(r"\?(?![?.\[])")
LOOSE: Final = re.compile(r"\{[ \t]*")
PIPED: Final = re.compile(r"\|\s*([^\W\d]\w*)")
STATEMENT: Final = re.compile(r"\{%[-+]?\s*(?P<word>[a-z]+)\b(?P<rest>[^%\n]{0,200})%\}")
NOTE: Final = re.compile(r"\{#[^{}\n]{0,200}#\}")
CODE_BEFORE: Final = re.compile(
    r"(?:[)=>(:;&|+?`]|\b(?:import|export|const|let|var|type|return|else|try|do|finally|class|struct|enum|interface"
    r"|function|default|in))\s*\Z"
)
CODE_AFTER: Final = re.compile(r"\s*(?:from\b|=[^=]|;|=>)|`")
STATEMENTS: Final = {
    "if": 'Write `{{#if x}} … {{else}} … {{/if}}`, or `{{#compare x ">" 3}} … {{/compare}}`.',
    "elif": "Write `{{else}}{{#if x}} … {{/if}}`.",
    "else": "Write `{{else}}`.",
    "endif": "Write `{{/if}}`.",
    "for": "Write `{{#each xs}} … {{this}} … {{/each}}`.",
    "endfor": "Write `{{/each}}`.",
    "raw": "Write `\\{` for each brace that is text.",
    "endraw": "Write `\\{` for each brace that is text.",
    "set": "Compute it in a transform before, or under the node's `inputs`.",
    "include": "Write the text here, or pass it as an input.",
    "macro": "Write the text here.",
    "block": "Write the text here.",
    "extends": "Write the text here.",
}
"""Statements of Jinja, and what to write instead."""
Absent: TypeAlias = OneOf["fails", "warns", "empty"]
LITERAL_BRACES_MAX: Final = 10_000
"""Maximum number of braces left as text that the checks inspect."""
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
    test: Tree | None = None
    then: list[Piece] = field(default_factory=list[Piece])
    otherwise: list[Piece] | None = None

    def add(self, piece: Piece) -> None:
        (self.then if self.otherwise is None else self.otherwise).append(piece)

    def closed(self) -> Piece:
        """Return the whole block."""
        then, otherwise = tuple(self.then), tuple(self.otherwise or ())
        if self.word == "each":
            return EachBlock(cast("PathTree", self.test), then, otherwise, self.at, self.end)
        return If(cast("Tree", self.test), self.word == "unless", then, otherwise)


class Parsed(Struct, frozen=True):
    """A template in pieces."""

    pieces: tuple[Piece, ...]
    literal: tuple[int, ...]
    """Offsets of braces that are text, for checks whether the author meant a placeholder."""


def parse_template(source: str, spelling: Spelling, declared: frozenset[str] = frozenset()) -> Parsed:
    """Split `source` into pieces; `declared` are the names that `{ x }` with blanks may refer to.

    Raises `BadTemplate` for blocks that do not match and for statements of other template languages.
    """
    if len(source) > TEMPLATE_CHARS_MAX:
        spot = Spot(source, TEMPLATE_CHARS_MAX, len(source))
        raise ExpressionTooLong(f"a template has at most {TEMPLATE_CHARS_MAX} characters", spot=spot)
    whole = scan_path(source) if spelling == "double" and source.startswith("$.") else None
    if whole and whole.end == len(source):
        return Parsed((Tag(whole.tree(), "warns", 0, len(source)),), ())
    parser = TemplateParser(source, spelling, declared)
    return Parsed(parser.run(), tuple(parser.literal))


class TemplateParser:
    """One pass over one template; `open` are the blocks around the current position, the template itself first."""

    def __init__(self, source: str, spelling: Spelling, declared: frozenset[str]) -> None:
        self.source = source
        self.opening = OPENING[spelling]
        self.declared = declared
        self.open = [Open("", 0, 0)]
        self.words: list[str] = []
        self.literal: list[int] = []

    def run(self) -> tuple[Piece, ...]:
        position = 0
        while match := self.opening.search(self.source, position):
            self.words.append(self.source[position : match.start()])
            position = self.brace(match[0], match.start())
        self.words.append(self.source[position:])
        self.flush()
        if len(self.open) > 1:
            block = self.open[-1]
            raise self.error(
                f"{{{{#{block.word}}}}} is never closed", block.at, block.end, f"Add {{{{/{block.word}}}}}."
            )
        return tuple(self.open[0].then)

    def brace(self, opening: str, at: int) -> int:
        """Parse the piece that starts at a brace; return where to continue."""
        if opening.startswith("\\"):
            self.words.append(opening[1:])
            return at + len(opening)
        extra = max(len(opening) - BRACES_MAX, 0)
        self.words.append(opening[:extra])
        at += extra
        end: int | None = None
        if opening == "${":
            end = self.single(at, at + 2, absent="warns")
        elif len(opening) > 1:
            end = self.block(at) or self.triple(at) or self.double(at)
        else:
            self.refuse_statement(at)
            end = self.single(at, at + 1) or self.loose(at)
        if end is not None:
            return end
        if len(self.literal) < LITERAL_BRACES_MAX and (at == 0 or self.source[at - 1] != "{"):
            self.literal.append(at)
        self.words.append(self.source[at])
        return at + 1

    def refuse_statement(self, at: int) -> None:
        if match := STATEMENT.match(self.source, at):
            if match["word"] not in STATEMENTS:
                return
            written, hint = match[0], STATEMENTS[match["word"]]
        elif match := NOTE.match(self.source, at):
            written, hint = match[0], "Write `{{! note }}`."
        else:
            return
        hint += " Write `\\{` for a brace that is text."
        raise self.error(f"{written[:60]!r} is a statement of another template language", at, match.end(), hint)

    def triple(self, at: int) -> int | None:
        """Parse `{{{x}}}`: the same as `{{x}}`, which never escapes."""
        if not self.source.startswith("{{{", at):
            return None
        end = self.double(at + 1)
        return end + 1 if end is not None and self.source.startswith("}", end) else end

    def single(self, at: int, start: int, absent: OneOf["fails", "warns"] = "fails") -> int | None:
        """Parse `{path}`, with pipes."""
        scanned = scan_path(self.source, start)
        match = CLOSING.match(self.source, scanned.end) if scanned else None
        if scanned is None or match is None or (scanned.dollar and not scanned.keys):
            return None
        if not match[2] and self.source[match.end() - 2].isspace():
            return None
        if match[2] and not self.names_functions(match[2]):
            return None
        value = parse_pipes(scanned.tree(), self.source, at=match.start(2), end=match.end(2))
        self.put(value, "empty" if match[1] else absent, scanned.at, scanned.end)
        return match.end()

    def names_functions(self, pipes: str) -> bool:
        """Return whether each `|` outside of quotes is followed by the name of a function."""
        return all(is_function(name) for name in PIPED.findall(re.sub(QUOTED, "", pipes)))

    def loose(self, at: int) -> int | None:
        """Parse `{ path }` if the workflow declares such a name. Code also has blanks there: anything else is text."""
        match = LOOSE.match(self.source, at)
        scanned = scan_path(self.source, match.end()) if match else None
        if scanned is None or not self.is_declared(scanned):
            return None
        closing = CLOSING.match(self.source, scanned.end)
        if closing is None or is_code(self.source, at, closing.end()):
            return None
        if not self.names_functions(closing[2]):
            return None
        value = parse_pipes(scanned.tree(), self.source, at=closing.start(2), end=closing.end(2))
        self.put(value, "empty" if closing[1] else "fails", scanned.at, scanned.end)
        return closing.end()

    def is_declared(self, scanned: Scanned) -> bool:
        """Return whether a path starts at a name of the workflow; reserved names count if a key follows."""
        names = [key.key for key in scanned.keys]
        if scanned.dollar or (names and names[0] in ("state", "data")):
            names = names if scanned.dollar else names[1:]
            return bool(names) and names[0] in self.declared
        return bool(names) and (names[0] in self.declared or (names[0] in ROOTS and len(names) > 1))

    def double(self, at: int) -> int | None:
        """Parse `{{ expression }}`. A body that is not an expression stays text, for checks to report."""
        match = BODY.match(self.source, at, at + SOURCE_CHARS_MAX)
        if match is None:
            return None
        start, end = match.span("body")
        after = end > start + 1 and self.trims_after(self.source[end - 2 : end], match["before"])
        value = self.expression(start, end - 1 if after else end)
        if value is None:
            return None
        if match["before"]:
            self.words = ["".join(self.words).rstrip()]
        tree, absent, path_end = value
        self.put(tree, absent, tree.at, path_end)
        return self.skip(match.end()) if after else match.end()

    def trims_after(self, last: str, before: str | None) -> bool:
        """Return whether the last two characters between the braces
        end in a sign that removes the blanks after them."""
        return last[1] == "~" or (last[1] == "-" and (last[0].isspace() or bool(before)))

    def expression(self, start: int, end: int) -> tuple[Tree, Absent, int] | None:
        """Parse the text between `{{` and `}}`: first as a path, whose keys may have dashes, then as an expression.

        Also returns the meaning of a missing value, and the end of the path that may be missing.
        """
        start = self.skip(start)
        scanned = scan_path(self.source, start)
        if scanned and not (scanned.dollar and not scanned.keys):
            rest = self.skip(scanned.end)
            optional = OPTIONAL.match(self.source, rest, end) is not None
            try:
                piped = parse_pipes(scanned.tree(), self.source, at=rest + 1 if optional else rest, end=end)
            except ExpressionError:
                pass
            else:
                return piped, "empty" if optional else "warns", scanned.end
        if start >= end or self.source[start] in "#/!>&^*":
            return None
        try:
            tree = parse_expression(self.source, at=start, end=end)
        except ExpressionError:
            return None
        return (tree, "warns", tree.end) if reads_data(tree) else None

    def put(self, value: Tree, absent: Absent, at: int, end: int) -> None:
        self.flush()
        self.open[-1].add(Tag(value, absent, at, end))

    def block(self, at: int) -> int | None:
        """Parse the opening, middle or end of a block, or a comment."""
        match = BLOCK.match(self.source, at)
        if match is None:
            return None
        end, opened = match.end(), None
        if match["open"]:
            opened = self.opened(match["open"], at, end)
            end = opened.end
        start, after = self.line(at, end)
        if start < at:
            self.trim()
        self.flush()
        if opened:
            self.open.append(opened)
        elif match["close"]:
            self.close(match["close"], at, end)
        elif match["other"]:
            self.middle(at, end)
        return after

    def opened(self, word: str, at: int, position: int) -> Open:
        if word not in BLOCKS:
            raise self.error(f"there is no block {word!r}", at, position, f"Blocks are {', '.join(sorted(BLOCKS))}.")
        if len(self.open) > DEPTH_MAX:
            raise self.error(f"blocks nest at most {DEPTH_MAX} levels", at, position)
        if word in ("if", "unless"):
            test, after = self.condition(word, at, position)
            return Open(word, at, after, test)
        scanned = scan_path(self.source, position)
        if scanned is None:
            raise self.error(f"{{{{#{word}}}}} requires a path", at, position, f"{{{{#{word} state.x}}}}")
        test = as_path(scanned.tree())
        end = scanned.end
        if word == "compare":
            test, end = self.comparison(test, at, end)
        closing = END.match(self.source, end)
        if closing is None:
            raise self.error(f"{{{{#{word}}}}} is not closed by '}}}}' here", at, end)
        return Open(word, at, closing.end(), test)

    def condition(self, word: str, at: int, position: int) -> tuple[Tree, int]:
        """Parse the test of `{{#if …}}`: a path, whose keys may have dashes, or an expression."""
        scanned = scan_path(self.source, position)
        closing = END.match(self.source, scanned.end) if scanned else None
        if scanned and closing:
            return as_path(scanned.tree()), closing.end()
        match = BODY.match(self.source, at, at + SOURCE_CHARS_MAX)
        if match is None or match.end("body") <= position:
            raise self.error(f"{{{{#{word}}}}} requires a condition", at, position, f"{{{{#{word} state.x}}}}")
        try:
            return parse_expression(self.source, at=position, end=match.end("body")), match.end()
        except ExpressionError as why:
            hint = f"{why.hint} Write a path or a condition: {{{{#{word} score > 3}}}}.".strip()
            raise self.error(f"{{{{#{word}}}}}: {why}", why.offset, why.offset + why.length, hint) from None

    def comparison(self, left: PathTree, at: int, position: int) -> tuple[Chain, int]:
        """Parse `path "<" literal` to the tree of `path < literal`."""
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
            raise self.error("{{else}} is outside a block", at, end)
        block.otherwise = []

    def line(self, at: int, end: int) -> tuple[int, int]:
        """Extend a block tag that is alone on its line to the whole line, so that blocks leave no empty lines."""
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
        """Remove the blanks already read before a tag that is alone on its line."""
        text = "".join(self.words)
        self.words = [text.rstrip(" \t")]

    def skip(self, position: int) -> int:
        while position < len(self.source) and self.source[position] in " \t\r\n":
            position += 1
        return position

    def flush(self) -> None:
        if text := "".join(self.words):
            self.open[-1].add(Words(text))
        self.words = []

    def error(self, message: str, at: int, end: int, hint: str = "") -> BadTemplate:
        return BadTemplate(message, spot=Spot(self.source, at, end), hint=hint)


def is_code(source: str, at: int, end: int) -> bool:
    """Return whether the text around a pair of braces shows that they are code: `import { x } from`, `() => { x }`."""
    return bool(CODE_BEFORE.search(source, max(0, at - 40), at) or CODE_AFTER.match(source, end))


def is_function(name: str) -> bool:
    """Return whether a pipe may use this name."""
    return name in FUNCTIONS or name in SPECIAL or name in ALIASES


def reads_data(tree: Tree) -> bool:
    """Return whether an expression reads or computes anything: braces around a fixed value are an example."""
    return any(isinstance(tree_node, Name | Dollar | FunctionCall) for tree_node in inside(tree))


def as_path(tree: Tree) -> PathTree:
    """Narrow the type: a scanned path is always a path."""
    assert isinstance(tree, Name | Dollar | Get | Each)
    return tree


def constant(tree: Tree) -> Tree:
    """Return `true`, `false` and `null` as literals instead of paths."""
    words = {"true": True, "false": False, "null": None}
    if isinstance(tree, Name) and tree.name in words:
        return Literal(words[tree.name], tree.at, tree.end)
    return tree

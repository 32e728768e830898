"""Expression parser, hand-written so that every error has its position and the alternatives that are valid there.

    expr     : coalesce | coalesce "?" expr ":" expr | coalesce "if" coalesce "else" expr
    coalesce : or {"??" or}     or : and {("or"|"||") and}     and : not {("and"|"&&") not}
    not      : compare | "not" not
    compare  : add {(== === != !== < <= > >= | in | not in | is | is not) add}
    add      : mul {("+"|"-") mul}     mul : unary {("*"|"/"|"//"|"%") unary}     unary : postfix | ("-"|"+"|"!") unary
    postfix  : primary {("."|"?.") (KEY ["(" [args] ")"] | "*") | ["?."] "[" index "]" | "|" NAME ["(" [args] ")"]}
    index    : "*" | expr | [expr] ":" [expr]
    primary  : NUMBER | TEXT | true | false | null | "$" | NAME | NAME "(" [args] ")" | "(" expr ")" | list | object
             | "{{" expr "}}"
    args     : arg {"," arg}     arg : expr | NAME "=>" expr | expr "for" NAME "in" coalesce ["if" coalesce]

The levels from coalesce to mul are one loop over a table of strengths (precedence climbing).
"""

from __future__ import annotations

import math
import re
from typing import Final, NamedTuple
from typing import Literal as OneOf

from pointsman.expressions.failures import (
    DEPTH_MAX,
    INTEGER_BITS_MAX,
    SOURCE_CHARS_MAX,
    TOKENS_MAX,
    ExpressionError,
    ExpressionTooDeep,
    ExpressionTooLong,
    NumberTooLarge,
    Spot,
    TooManyTokens,
)
from pointsman.expressions.operators import is_number
from pointsman.expressions.syntax_tree import (
    ADD,
    AND,
    COALESCE,
    COMPARE,
    MULTIPLY,
    NOT,
    OR,
    Chain,
    Comprehension,
    Conditional,
    Dollar,
    Each,
    FunctionCall,
    Get,
    Lambda,
    ListOf,
    Literal,
    Name,
    ObjectOf,
    Prefix,
    Slice,
    Tree,
)

Kind = OneOf["number", "text", "name", "sign", "end"]

TOKEN: Final = re.compile(
    r"""[ \t\r\n]*(?:
      (?P<number>(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)(?!\w)
    | (?P<text>"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')
    | (?P<name>[^\W\d]\w*)
    | (?P<sign>===|!==|==|!=|<=|>=|&&|\|\||\?\?|\?\.|=>|//|[-<>+*/%!?:.,()\[\]{}$|])
    | (?P<end>\Z)
    )""",
    re.VERBOSE,
)
ESCAPE: Final = re.compile(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2})|(.))", re.DOTALL)
SIMPLE: Final = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "'": "'", "\\": "\\", "/": "/"}
STRAY_HINTS: Final = {
    "=": "Compare with `==`.",
    "&": "Write `and` or `&&`.",
    '"': "The text has no closing quote.",
    "'": "The text has no closing quote.",
    "`": "Quote text with `\"` or `'`.",
    "@": "Lambdas look like `x => x.field`.",
}
UNEXPECTED_HINTS: Final = {
    ")": "There is no matching `(`.",
    "]": "There is no matching `[`.",
    "}": "There is no matching `{`.",
    ",": "Only lists, objects and arguments of functions are separated by commas.",
    "==": "Write a value on both sides of `==`.",
    "$": "Write names without `$`.",
}


class Token(NamedTuple):
    """One word or sign. The `text` of a quoted text is its value, without quotes and escapes."""

    kind: Kind
    text: str
    at: int
    end: int


def read_tokens(source: str, start: int = 0, stop: int | None = None) -> list[Token]:
    """Return all tokens of `source[start:stop]`; the last has
    kind `end`. Raises `ExpressionError` with the position."""
    stop = len(source) if stop is None else stop
    if stop - start > SOURCE_CHARS_MAX:
        spot = Spot(source, start + SOURCE_CHARS_MAX, stop)
        raise ExpressionTooLong(
            f"an expression has at most {SOURCE_CHARS_MAX} characters, this one {stop - start}",
            spot=spot,
            hint="Compute parts of it in a transform first.",
        )
    tokens: list[Token] = []
    position = start
    while True:
        match = TOKEN.match(source, position, stop)
        if match is None:
            raise stray(source, position)
        kind = match.lastgroup
        at, position = match.span(kind or 0)
        if kind == "end":
            tokens.append(Token("end", "", at, at))
            return tokens
        word = match[kind or 0]
        if kind == "text":
            tokens.append(Token("text", unquote(word, source, at), at, position))
        elif kind == "number" or kind == "name" or kind == "sign":
            tokens.append(Token(kind, word, at, position))
        if len(tokens) > TOKENS_MAX:
            raise TooManyTokens(
                f"an expression has at most {TOKENS_MAX} words and signs",
                spot=Spot(source, at, position),
                hint="Compute parts of it in a transform first.",
            )


def stray(source: str, position: int) -> ExpressionError:
    """Return the error for a character that cannot start a token."""
    while source[position] in " \t\r\n":
        position += 1
    character = source[position]
    hint = "Write numbers like 12, 0.5 or 1e3." if character.isdigit() else STRAY_HINTS.get(character, "")
    return ExpressionError(f"unexpected {character!r}", spot=Spot(source, position, position + 1), hint=hint)


def unquote(quoted: str, source: str, at: int) -> str:
    """Return the value of a quoted text. An unknown escape keeps its backslash, so `"\\d+"` is a pattern."""
    body = quoted[1:-1]
    if "\\" not in body:
        return body

    def plain(match: re.Match[str]) -> str:
        code = match[1] or match[2]
        return chr(int(code, 16)) if code else SIMPLE.get(match[3], match[0])

    text = ESCAPE.sub(plain, body)
    try:
        # Two escapes may be the halves of one character; a lone half is not a text that JSON can contain.
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        spot = Spot(source, at, at + len(quoted))
        raise ExpressionError("half of a surrogate pair is not a character", spot=spot) from None


OPERATORS: Final[dict[str, tuple[int, str]]] = {
    "??": (COALESCE, "??"),
    "or": (OR, "or"),
    "||": (OR, "or"),
    "and": (AND, "and"),
    "&&": (AND, "and"),
    "==": (COMPARE, "=="),
    "===": (COMPARE, "=="),
    "!=": (COMPARE, "!="),
    "!==": (COMPARE, "!="),
    "is": (COMPARE, "=="),
    "<": (COMPARE, "<"),
    "<=": (COMPARE, "<="),
    ">": (COMPARE, ">"),
    ">=": (COMPARE, ">="),
    "in": (COMPARE, "in"),
    "not": (COMPARE, "not in"),
    "+": (ADD, "+"),
    "-": (ADD, "-"),
    "*": (MULTIPLY, "*"),
    "/": (MULTIPLY, "/"),
    "//": (MULTIPLY, "//"),
    "%": (MULTIPLY, "%"),
}
CONSTANTS: Final[dict[str, bool | None]] = {
    "true": True,
    "True": True,
    "false": False,
    "False": False,
    "null": None,
    "None": None,
    "undefined": None,
}
_ONE_NAME: Final = re.compile(r"[^\W\d]\w{0,99}")
"""An expression that consists of a single name."""
KEYWORDS: Final = frozenset({"and", "or", "not", "in", "is", "if", "else", "for", *CONSTANTS})


def parse_expression(source: str, *, at: int = 0, end: int | None = None) -> Tree:
    """Return the tree of `source[at:end]`, with positions in the
    whole text. Raises `ExpressionError` with the position."""
    if (name := _ONE_NAME.fullmatch(source, at, len(source) if end is None else end)) and name[0] not in KEYWORDS:
        return Name(name[0], name.start(), name.end())
    parser = Parser(source, at, end)
    tree = parser.expression()
    parser.expect_end()
    return tree


def parse_pipes(base: Tree, source: str, *, at: int, end: int) -> Tree:
    """Return `base` piped through the functions of `source[at:end]`: `| upper | default("none")`.

    Raises `ExpressionError` if the text contains anything else.
    """
    if at <= end and not source[at:end].strip(" \t\r\n"):
        return base
    parser = Parser(source, at, end)
    tree = parser.pipes(base)
    parser.expect_end()
    return tree


class Parser:
    """One pass over the tokens of one expression."""

    def __init__(self, source: str, at: int = 0, end: int | None = None) -> None:
        self.source = source
        self.tokens = read_tokens(source, at, end)
        self.position = 0
        self.depth = 0

    # Compare the text of a token only if its kind matches: the quoted text "and" is not an operator.
    def sees(self, *words: str) -> bool:
        token = self.tokens[self.position]
        return token.kind in ("sign", "name") and token.text in words

    def take(self) -> Token:
        token = self.tokens[self.position]
        self.position += 1
        return token

    def takes(self, word: str) -> bool:
        if self.sees(word):
            self.position += 1
            return True
        return False

    def expect(self, word: str, opened: Token | None = None) -> Token:
        if self.sees(word):
            return self.take()
        token = self.tokens[self.position]
        hint = "" if opened is None else f"Close the {opened.text!r} at column {opened.at + 1} with {word!r}."
        raise self.error(f"expected {word!r} instead of {shown(token)}", token, hint)

    def expect_end(self) -> None:
        token = self.tokens[self.position]
        if token.kind == "end":
            return
        before = self.tokens[self.position - 1]
        hint = ""
        if token.kind in ("name", "number", "text") and before.kind in ("name", "number", "text"):
            hint = "Put an operator between two values, and quote texts."
        elif token.text == "=>":
            hint = "Compare with `>=` or `==`. A lambda is an argument of a function: `filter(list, x => x.ok)`."
        else:
            hint = UNEXPECTED_HINTS.get(token.text, "")
        raise self.error(f"unexpected {shown(token)}", token, hint)

    def error(self, message: str, token: Token, hint: str = "") -> ExpressionError:
        return ExpressionError(message, spot=Spot(self.source, token.at, max(token.end, token.at + 1)), hint=hint)

    def descend(self) -> None:
        self.depth += 1
        if self.depth > DEPTH_MAX:
            token = self.tokens[self.position]
            raise ExpressionTooDeep(
                f"an expression nests at most {DEPTH_MAX} levels",
                spot=Spot(self.source, token.at, token.end),
                hint="Compute parts of it in a transform first.",
            )

    def expression(self) -> Tree:
        self.descend()
        left = self.climb(COALESCE)
        if self.takes("?"):
            yes = self.expression()
            self.expect(":")
            no = self.expression()
            left = Conditional(left, yes, no, left.at, no.end)
        elif self.takes("if"):
            condition = self.climb(COALESCE)
            self.expect("else")
            no = self.expression()
            left = Conditional(condition, left, no, left.at, no.end)
        self.depth -= 1
        return left

    def climb(self, weakest: int) -> Tree:
        """Parse an operand and all following operators at least as strong as `weakest`."""
        left = self.negation(weakest) if self.sees("not") else self.unary()
        while (strength := self.operator_ahead()) >= weakest:
            rest: list[tuple[str, Tree]] = []
            while self.operator_ahead() == strength:
                sign = self.operator()
                rest.append((sign, self.climb(strength + 1)))
            left = Chain(strength, left, tuple(rest), left.at, rest[-1][1].end)
        return left

    def operator_ahead(self) -> int:
        token = self.tokens[self.position]
        if token.kind not in ("sign", "name") or token.text not in OPERATORS:
            return 0
        if token.text == "not" and self.tokens[self.position + 1].text != "in":
            return 0
        return OPERATORS[token.text][0]

    def operator(self) -> str:
        word = self.take().text
        if word == "is" and self.takes("not"):
            return "!="
        if word == "not":
            self.expect("in")
        return OPERATORS[word][1]

    def negation(self, weakest: int) -> Tree:
        token = self.take()
        if weakest > NOT:
            raise self.error("'not' is not allowed here", token, "Put it in parentheses: `a == (not b)`.")
        self.descend()
        operand = self.climb(NOT)
        self.depth -= 1
        return Prefix("not", operand, token.at, operand.end)

    def unary(self) -> Tree:
        if not self.sees("-", "+", "!"):
            return self.postfix()
        token = self.take()
        self.descend()
        operand = self.unary()
        self.depth -= 1
        if token.text == "-" and isinstance(operand, Literal) and is_number(operand.value):
            return Literal(-operand.value, token.at, operand.end)
        return Prefix(token.text, operand, token.at, operand.end)

    def postfix(self) -> Tree:
        tree, depth = self.primary(), self.depth
        while self.sees(".", "?.", "[", "|"):
            if self.sees("|"):
                tree = self.pipe(tree)
            elif self.sees("[") or self.takes_optional_bracket():
                tree = self.bracket(tree)
            else:
                self.take()
                tree = self.member(tree)
            if isinstance(tree, FunctionCall):
                # `x.f().g()` is `g(f(x))`, so it counts as deep as that.
                self.descend()
        self.depth = depth
        return tree

    def pipes(self, tree: Tree) -> Tree:
        """Parse the rest of a placeholder, which may only be pipes."""
        while self.sees("|"):
            tree = self.pipe(tree)
            self.descend()
        return tree

    def pipe(self, base: Tree) -> FunctionCall:
        """Parse a pipe: `x | name(args)` is `name(x, args)`."""
        sign, token = self.take(), self.take()
        if token.kind != "name":
            hint = "Write `or` or `||` for a choice, `x | upper` to pass x to a function."
            raise self.error(f"expected the name of a function after '|' instead of {shown(token)}", sign, hint)
        if self.sees("("):
            return self.call(token, base)
        return FunctionCall(token.text, (base,), base.at, token.end, token.at)

    def takes_optional_bracket(self) -> bool:
        """Consume the sign of `?.[` and return whether it was there."""
        optional = self.sees("?.") and self.tokens[self.position + 1].text == "["
        return optional and self.takes("?.")

    def member(self, base: Tree) -> Tree:
        token = self.take()
        if token.kind == "sign" and token.text == "*":
            return Each(base, base.at, token.end)
        if token.kind != "name":
            raise self.error(
                f"expected a key after '.' instead of {shown(token)}",
                token,
                'Write keys with other characters as `a["my-key"]`.',
            )
        if self.sees("("):
            return self.call(token, base)
        return Get(base, Literal(token.text, token.at, token.end), base.at, token.end, dotted=True)

    def bracket(self, base: Tree) -> Tree:
        opened = self.take()
        if self.sees("*") and self.tokens[self.position + 1].text == "]":
            self.take()
            return Each(base, base.at, self.take().end)
        start = None if self.sees(":") else self.expression()
        if self.takes(":"):
            stop = None if self.sees("]") else self.expression()
            return Slice(base, start, stop, base.at, self.expect("]", opened).end)
        end = self.expect("]", opened).end
        if start is None:
            raise self.error("expected an index", opened)
        return Get(base, start, base.at, end)

    def call(self, name: Token, receiver: Tree | None = None) -> FunctionCall:
        opened = self.take()
        arguments: list[Tree | Lambda] = [] if receiver is None else [receiver]
        while not self.sees(")"):
            arguments.append(self.argument())
            if not self.takes(","):
                break
        end = self.expect(")", opened).end
        at = name.at if receiver is None else receiver.at
        return FunctionCall(name.text, tuple(arguments), at, end, name.at)

    def argument(self) -> Tree | Lambda:
        token = self.tokens[self.position]
        arrow = self.tokens[min(self.position + 1, len(self.tokens) - 1)]
        if token.kind == "name" and arrow.kind == "sign" and arrow.text == "=>":
            variable = self.variable()
            self.take()
            body = self.expression()
            return Lambda(variable, body, token.at, body.end)
        body = self.expression()
        return self.comprehension(body, body.at) if self.sees("for") else body

    def variable(self) -> str:
        token = self.take()
        if token.kind != "name" or token.text in KEYWORDS:
            raise self.error(f"expected a variable name instead of {shown(token)}", token)
        return token.text

    def comprehension(self, body: Tree, at: int) -> Comprehension:
        self.expect("for")
        variable = self.variable()
        self.expect("in")
        source = self.climb(COALESCE)
        condition = self.climb(COALESCE) if self.takes("if") else None
        return Comprehension(body, variable, source, condition, at, (condition or source).end)

    def primary(self) -> Tree:
        token = self.take()
        if token.kind == "number":
            return self.number(token)
        if token.kind == "text":
            return Literal(token.text, token.at, token.end)
        if token.kind == "name":
            return self.word(token)
        if token.kind == "sign":
            match token.text:
                case "$":
                    return Dollar(token.at, token.end)
                case "(":
                    inner = self.expression()
                    self.expect(")", token)
                    return inner
                case "[":
                    return self.list_of(token)
                case "{" if self.sees("{"):
                    return self.braced(token)
                case "{":
                    return self.object_of(token)
                case _:
                    pass
        hint = "Complete the expression." if token.kind == "end" else UNEXPECTED_HINTS.get(token.text, "")
        raise self.error(f"expected a value instead of {shown(token)}", token, hint)

    def word(self, token: Token) -> Tree:
        if token.text in CONSTANTS:
            return Literal(CONSTANTS[token.text], token.at, token.end)
        if token.text in KEYWORDS:
            raise self.error(
                f"expected a value instead of {shown(token)}",
                token,
                f"Write a field of that name as `state.{token.text}`.",
            )
        return self.call(token) if self.sees("(") else Name(token.text, token.at, token.end)

    def number(self, token: Token) -> Literal:
        try:
            value = int(token.text) if token.text.isdigit() else float(token.text)
        except ValueError:
            value = math.inf
        if value == math.inf or (isinstance(value, int) and value.bit_length() > INTEGER_BITS_MAX):
            raise NumberTooLarge(
                "this number is too large",
                spot=Spot(self.source, token.at, token.end),
                hint=f"Integers have at most {INTEGER_BITS_MAX} bits, other numbers at most 1.8e308.",
            )
        return Literal(value, token.at, token.end)

    def list_of(self, opened: Token) -> Tree:
        items: list[Tree] = []
        while not self.sees("]"):
            items.append(self.expression())
            if len(items) == 1 and self.sees("for"):
                inner = self.comprehension(items[0], opened.at)
                end = self.expect("]", opened).end
                return Comprehension(inner.body, inner.variable, inner.source, inner.condition, opened.at, end)
            if not self.takes(","):
                break
        return ListOf(tuple(items), opened.at, self.expect("]", opened).end)

    def braced(self, opened: Token) -> Tree:
        """Parse `{{ expr }}`, as in a template: the braces have no meaning here."""
        self.take()
        inner = self.expression()
        self.expect("}", opened)
        self.expect("}", opened)
        return inner

    def object_of(self, opened: Token) -> Tree:
        pairs: list[tuple[str, Tree]] = []
        while not self.sees("}"):
            key = self.take()
            if key.kind == "name" and self.sees("}", ".", "[", "|", ","):
                hint = f"Write it without braces: `{key.text}`. An object is written `{{{key.text}: value}}`."
                raise self.error(f"expected ':' after {shown(key)}", key, hint)
            if key.kind not in ("name", "text"):
                hint = 'Objects look like `{name: 1, "b c": 2}`.'
                raise self.error(f"expected a key instead of {shown(key)}", key, hint)
            self.expect(":")
            pairs.append((key.text, self.expression()))
            if not self.takes(","):
                break
        return ObjectOf(tuple(pairs), opened.at, self.expect("}", opened).end)


def shown(token: Token) -> str:
    """Return a token as messages name it."""
    return "the end" if token.kind == "end" else repr(token.text)

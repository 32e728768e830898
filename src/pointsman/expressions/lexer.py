"""Lexer: splits the text of an expression into tokens with positions."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple

from pointsman.expressions.failures import ExpressionError, ExpressionTooLong, Spot, TooManyTokens
from pointsman.expressions.limits import SOURCE_CHARS_MAX, TOKENS_MAX

Kind = Literal["number", "text", "name", "sign", "end"]

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
        found = TOKEN.match(source, position, stop)
        if found is None:
            raise stray(source, position)
        kind = found.lastgroup
        at, position = found.span(kind or 0)
        if kind == "end":
            tokens.append(Token("end", "", at, at))
            return tokens
        word = found[kind or 0]
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

    def plain(found: re.Match[str]) -> str:
        code = found[1] or found[2]
        return chr(int(code, 16)) if code else SIMPLE.get(found[3], found[0])

    text = ESCAPE.sub(plain, body)
    try:
        # Two escapes may be the halves of one character; a lone half is not a text that JSON can contain.
        return text.encode("utf-16", "surrogatepass").decode("utf-16")
    except UnicodeDecodeError:
        spot = Spot(source, at, at + len(quoted))
        raise ExpressionError("half of a surrogate pair is not a character", spot=spot) from None

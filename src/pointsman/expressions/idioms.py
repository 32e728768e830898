"""Spellings of other systems that are not valid expressions; the document reader rewrites them."""

from __future__ import annotations

import json
import re
from typing import Final

from pointsman.expressions.failures import ExpressionError
from pointsman.expressions.lexer import Token, read_tokens

CONDITION_RESULT: Final = re.compile(r"([^\W\d][\w-]*)\s+condition\s+result\b")
QUOTED: Final = re.compile(r""""(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'""")


KEY_FOLLOWS: Final = frozenset({("sign", "."), ("sign", "?."), ("sign", "[")})


def rewrite_condition_result(source: str) -> str:
    """Replace `X condition result`, the outcome of the conditional X,
    by `nodes["X"].branch == true`. Quoted texts stay unchanged."""
    pieces: list[str] = []
    position = 0
    for quoted in QUOTED.finditer(source):
        pieces += [CONDITION_RESULT.sub(branch_of, source[position : quoted.start()]), quoted[0]]
        position = quoted.end()
    pieces.append(CONDITION_RESULT.sub(branch_of, source[position:]))
    return "".join(pieces)


def branch_of(found: re.Match[str]) -> str:
    # A branch label is text or boolean; the comparison accepts both. Parentheses keep `not X condition result` intact.
    return f"(nodes[{json.dumps(found[1], ensure_ascii=False)}].branch == true)"


def rewrite_state_data(source: str) -> str:
    """Replace `state.data.x` by `state.x`: some systems nest the
    data one level deeper. Other expressions stay unchanged."""
    try:
        tokens = read_tokens(source)
    except ExpressionError:
        return source
    pieces: list[str] = []
    position = 0
    for number in range(len(tokens) - 3):
        state, dot, data, after = tokens[number : number + 4]
        words = (state.text, dot.text, data.text)
        if is_root(tokens, number) and words == ("state", ".", "data") and (after.kind, after.text) in KEY_FOLLOWS:
            pieces.append(source[position : state.end])
            position = data.end
    pieces.append(source[position:])
    return "".join(pieces)


def is_root(tokens: list[Token], number: int) -> bool:
    """Return whether the word starts a path: `a.state` does not, `$.state` does."""
    if tokens[number].kind != "name":
        return False
    if number == 0 or tokens[number - 1].text not in (".", "?."):
        return True
    return number > 1 and tokens[number - 2].text == "$"

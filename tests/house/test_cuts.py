"""Texts from outside are masked before they are cut: a mask cannot find a secret that a cut has split.

`redaction.head` and `redaction.tail` mask and then cut. In the packages that receive data from outside, every other
slice that shortens something is listed here with the reason why it cannot split a secret.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

SOURCE: Final = Path(__file__).parents[2] / "src" / "pointsman"
OUTSIDE: Final = ("executors", "models", "tools", "tool_output.py")
"""Packages and modules whose code runs while secrets are in use (`hiding`)."""
SHORT: Final = 8
"""A slice of so few elements reveals nothing of a secret, which is longer."""
MASKED: Final = frozenset({"masked", "_masked", "_mask"})
"""Functions that return a masked text."""
DIGESTS: Final = frozenset({"hexdigest", "hex"})
SAFE: Final = {
    ("executors/conversation.py", "text[:RESULT_CHARS]"): "masked in the line before",
    (
        "models/scripted.py",
        "words[at:at + _WORDS_PER_CHUNK]",
    ): "a list of words of the script, sent one chunk after another",
    ("tools/http/openapi.py", "'\\n'.join(dict.fromkeys(texts))[:1000]"): "from the file that describes the service",
    (
        "tools/http/openapi.py",
        "_WORD.sub('_', text).strip('_')[:60]",
    ): "the name of an operation in the file that describes the service",
    ("tools/http/messages.py", "seconds[:12]"): "only digits, converted to a number",
    ("tools/mcp/process.py", "(self._text + self._mask(line))[-CHARS_MAX:]"): "both parts are masked",
    ("tools/mcp/server.py", "tools[:LISTED_MAX]"): "a list",
    ("tools/mcp/server.py", "printed.splitlines()[-LINES_SHOWN:]"): "a list of lines of a masked text",
    ("tools/mcp/server.py", "(self.prefix + _WORD.sub('_', offered.name))[:NAME_CHARS_MAX]"): "the name of a tool",
    (
        "tools/page_reader.py",
        "' '.join((tree.title or '').split())[:TITLE_CHARS_MAX]",
    ): "in a process without secrets; `pages` drops what the cut may have split",
    (
        "tools/page_reader.py",
        "text.strip()[:TEXT_CHARS_MAX]",
    ): "in a process without secrets; `pages` drops what the cut may have split",
    ("tools/pages.py", "masked_cut(page.text, TEXT_CHARS_MAX)[:SHOWN_CHARS_MAX]"): "masked before",
    ("tools/pages.py", "masked_cut(page.title, TITLE_CHARS_MAX)[:SHOWN_TITLE_CHARS_MAX]"): "masked before",
    ("tools/pages.py", "answer.body[:1000]"): "only looks for null bytes",
    ("tools/sandbox/interpreter.py", "frames[:FRAMES_SHOWN_MAX // 2]"): "a list",
    ("tools/sandbox/interpreter.py", "frames[len(frames) - FRAMES_SHOWN_MAX // 2:]"): "a list",
    ("tools/sandbox/interpreter.py", "message[:MESSAGE_CHARS_MAX]"): "masked in the line before",
    ("tool_output.py", "(self.text + text)[-CHARS_MAX:]"): "both parts are masked while they are printed",
    ("tools/tool.py", "group.exceptions[:MEMBERS_SHOWN]"): "a list",
    ("tools/tool.py", "text[:HEAD_CHARS]"): "masked where it is made",
    ("tools/tool.py", "text[HEAD_CHARS - CHARS_MAX:]"): "masked where it is made",
}
"""Module and slice -> why it cannot split a secret."""


def bound(node: ast.expr | None) -> str:
    """Return the bound of a cut: a name in capitals, or a number; empty for other bounds."""
    match node:
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return bound(inner)
        case ast.BinOp(left=left, right=right):
            return bound(left) or bound(right)
        case ast.Name(id=name) | ast.Attribute(attr=name) if name.upper() == name:
            return name
        case ast.Constant(value=int(number)) if abs(number) > SHORT:
            return str(number)
        case _:
            return ""


def is_masked(node: ast.expr) -> bool:
    """Return whether the sliced value is the result of a mask, or a digest."""
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name in MASKED | DIGESTS
        case _:
            return False


def cuts() -> Iterator[tuple[str, str]]:
    """Yield module and text of every slice that may shorten an unmasked text."""
    for package in OUTSIDE:
        folder = SOURCE / package
        for path in sorted(folder.rglob("*.py")) if folder.is_dir() else [folder]:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if (
                    isinstance(node, ast.Subscript)
                    and isinstance(node.slice, ast.Slice)
                    and (bound(node.slice.upper) or bound(node.slice.lower))
                    and not is_masked(node.value)
                ):
                    yield path.relative_to(SOURCE).as_posix(), ast.unparse(node)


def test_texts_from_outside_are_masked_before_they_are_cut() -> None:
    found = {*cuts()}
    assert found - SAFE.keys() == set(), "cut it with `redaction.head` or `tail`, or list it in SAFE with the reason"
    assert SAFE.keys() - found == set(), "these slices no longer exist"


def test_a_cut_of_an_unmasked_text_is_found() -> None:
    (cut,) = (node for node in ast.walk(ast.parse("body.decode()[:CHARS_MAX]")) if isinstance(node, ast.Subscript))
    assert isinstance(cut.slice, ast.Slice)
    assert bound(cut.slice.upper) == "CHARS_MAX"
    assert not is_masked(cut.value)
    (cut,) = (node for node in ast.walk(ast.parse("masked(body)[-500:]")) if isinstance(node, ast.Subscript))
    assert is_masked(cut.value)

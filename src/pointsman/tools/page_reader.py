"""Extract text from one HTML page in a separate process: standard input -> {"title", "text"}. Run as a script.

Pages are untrusted: a parser in C reads them, and some make it slow. A separate process can be killed.
Imports nothing of Pointsman, so that it starts fast.
"""

from __future__ import annotations

import json
import sys
from typing import Any

NESTED_MAX = 300
"""Nesting depth above which the main part is not searched for: the search takes quadratic time."""
MAIN_CHARS_MIN = 200
"""A shorter main part is considered a wrong result of the search."""
TEXT_CHARS_MAX = 2_020_000
TITLE_CHARS_MAX = 20_500


def bound(seconds: int, memory_bytes: int) -> None:
    """Limit this process where the system supports it; the parent has a timeout as well."""
    if sys.platform == "win32":
        return
    import resource

    try:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    except (OSError, ValueError):
        pass  # No such limit on this system.


def read(data: bytes, charset: str, *, whole: bool) -> dict[str, str]:
    from resiliparse.extract.html2text import extract_plain_text  # pyright: ignore[reportMissingModuleSource] - compiled
    from resiliparse.parse.encoding import (  # pyright: ignore[reportMissingModuleSource] - compiled
        bytes_to_str,
        detect_encoding,
        map_encoding_to_html5,
    )
    from resiliparse.parse.html import HTMLTree

    guessed = charset or detect_encoding(data, from_html_meta=True) or "utf-8"
    encoding = map_encoding_to_html5(guessed, fallback_utf8=True) or "utf-8"
    tree: Any = HTMLTree.parse(bytes_to_str(data, encoding, errors="replace"))
    text = ""
    if not whole and _nesting(tree) <= NESTED_MAX:
        text = extract_plain_text(tree, main_content=True, links=False, alt_texts=False)
    if len(text) < MAIN_CHARS_MIN:
        text = extract_plain_text(tree, main_content=False, links=False, alt_texts=False)
    return {"title": " ".join((tree.title or "").split())[:TITLE_CHARS_MAX], "text": text.strip()[:TEXT_CHARS_MAX]}


def _nesting(tree: Any) -> int:
    """Return the depth of the tree, computed without recursion."""
    deepest = depth = 0
    node: Any = tree.document
    while node is not None:
        if node.first_child is not None:
            node, depth = node.first_child, depth + 1
            deepest = max(deepest, depth)
            continue
        while node is not None and node.next is None:
            node, depth = node.parent, depth - 1
        node = node.next if node is not None else None
    return deepest


def main() -> None:
    """Run with the arguments: charset or empty, `whole` or `main`, seconds, bytes of memory."""
    charset, part, seconds, memory_bytes = sys.argv[1:5]
    bound(int(seconds), int(memory_bytes))
    page = read(sys.stdin.buffer.read(), charset, whole=part == "whole")
    sys.stdout.buffer.write(json.dumps(page).encode())


if __name__ == "__main__":
    main()

"""How deep a body is nested, before anything reads it: what is nested thousands of levels deep is no data.

    JSON ─▶ strings taken out ─▶ only brackets left ─▶ +1, -1 ─▶ the highest sum

A body with few brackets costs one count of them; others some nanoseconds per byte, and thirty per bracket.
"""

from __future__ import annotations

from itertools import accumulate
from json import detect_encoding
from typing import Final

DEPTH_MAX: Final = 200
"""As deep as a workflow in YAML may be."""
_OPENING: Final = (b"[", b"{")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b'"[]{}'))
_SIGNS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")


def is_too_deep(body: bytes, depth_max: int = DEPTH_MAX) -> bool:
    """Whether brackets are nested deeper. What is not JSON is left to who reads it."""
    encoding = detect_encoding(body)
    if not encoding.startswith("utf-8"):
        body = body.decode(encoding, "replace").encode()
    if sum(body.count(one) for one in _OPENING) <= depth_max:
        return False
    unescaped = body.replace(b"\\\\", b"").replace(b'\\"', b"")
    outside = b"".join(unescaped.translate(None, _NO_BRACKETS).split(b'"')[::2])
    steps = memoryview(outside.translate(_SIGNS)).cast("b")
    return max(accumulate(steps), default=0) > depth_max

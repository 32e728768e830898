"""What reading a body as JSON would cost, before anything reads it: its levels and its values.

    JSON ─▶ slices ─▶ strings taken out ─▶ only brackets, commas left ─▶ +1, -1 ─▶ the highest sum
                                                                     └▶ their number

It takes some nanoseconds per byte and thirty per bracket, and the memory of one slice.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate
from json import detect_encoding
from typing import Final

DEPTH_MAX: Final = 200
"""As deep as a workflow in YAML may be."""
VALUES_MAX: Final = 1_000_000
"""Of a body: each takes about 100 bytes of memory when it is read."""
SLICE_BYTES: Final = 262_144
_OPENING: Final = (b"[", b"{")
_SEPARATING: Final = (*_OPENING, b",")
_NO_SIGNS: Final = bytes(set(range(256)) - set(b'"[]{},'))
_SIGNS: Final = bytes.maketrans(b"[{]}", b"\x01\x01\xff\xff")


class JsonMeter:
    """Measures a body. What is not JSON is left to who reads it."""

    def __init__(self, body: bytes) -> None:
        encoding = detect_encoding(body)
        self._body = body if encoding.startswith("utf-8") else body.decode(encoding, "replace").encode()
        self.depth = 0
        self.values = 0

    def slices(self) -> Iterator[None]:
        """Measure it, one slice at a time. Nothing is measured of a body that is within the limits whatever it says."""
        if sum(self._body.count(one) for one in _SEPARATING) <= DEPTH_MAX:
            return
        at, level, in_text = 0, 0, False
        while at < len(self._body) and self.depth <= DEPTH_MAX and self.values <= VALUES_MAX:
            end = at + SLICE_BYTES
            while self._body[end - 1 : end] == b"\\":  # An escape stays in one piece.
                end += 1
            unescaped = self._body[at:end].replace(b"\\\\", b"").replace(b'\\"', b"")
            parts = unescaped.translate(None, _NO_SIGNS).split(b'"')
            outside = b"".join(parts[in_text::2])
            in_text ^= len(parts) % 2 == 0
            self.values += sum(outside.count(one) for one in _SEPARATING)
            steps = memoryview(outside.replace(b",", b"").translate(_SIGNS)).cast("b")
            sums = [*accumulate(steps, initial=level)]
            self.depth, level = max(self.depth, *sums), sums[-1]
            at = end
            yield


def is_too_deep(body: bytes) -> bool:
    """Whether brackets are nested deeper than `DEPTH_MAX`."""
    meter = JsonMeter(body)
    for _ in meter.slices():
        pass
    return meter.depth > DEPTH_MAX

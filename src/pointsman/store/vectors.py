"""Vectors as every store has them: of length 1, so that their product is the cosine of the angle between them."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Iterable, Sequence

from pointsman.store.errors import VectorsDiffer


def normalized(vector: Sequence[float]) -> array[float]:
    """The same direction, at length 1, in 32 bits a number; one without a direction stays as it is."""
    length = math.sqrt(sum(number * number for number in vector))
    return array("f", (number / length for number in vector) if length else vector)


def mark_of(data: bytes) -> bytes:
    """Return a digest that identifies an encoded value."""
    return hashlib.sha256(data).digest()


def check_length(model: str, known: Iterable[int], length: int) -> None:
    """Raise `VectorsDiffer` if vectors of another length are stored. Empty ones do not count."""
    other = next((one for one in known if one and length and one != length), None)
    if other is not None:
        raise VectorsDiffer(
            f"the embeddings of {model!r} have {length} numbers, the stored ones have {other}",
            hint="Compute them again: `pointsman memory reindex`.",
        )

"""Splits texts into the words by which remembered values are found."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator
from typing import Final

from pointsman.values import Json

_UNSPACED: Final = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
"""Thai, Lao, Burmese, Khmer, Kana, Han: written without spaces between words."""
WORDS: Final = re.compile(rf"[{_UNSPACED}]|[^\W_{_UNSPACED}]+")


def words_of(text: str) -> list[str]:
    """Return each word once, in order, without case and accents; in scripts without spaces each letter is a word.

    No word is an operator of a search language.
    """
    return [*dict.fromkeys(_found(text))]


def folded(text: str) -> str:
    """Return the words with spaces between them, repeated as often as in the text."""
    return " ".join(_found(text))


def _found(text: str) -> list[str]:
    plain = unicodedata.normalize("NFKD", text)
    bare = "".join(letter for letter in plain if not unicodedata.combining(letter)) if not plain.isascii() else plain
    return WORDS.findall(unicodedata.normalize("NFKC", bare).casefold())


def texts(value: Json) -> Iterator[str]:
    """Yield every text and number in a value, and the names of its fields."""
    pending: list[Json] = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, dict):
            pending.extend(item)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)
        elif item is not None:
            yield str(item)

"""Masks passwords in addresses of stores, so that they may be displayed."""

from __future__ import annotations

import re
from typing import Final

_PASSWORD: Final = re.compile(r"((?://|:)[^:/?#@]*):.*@")
"""Up to the last @, because a password may contain one; masking too much does no harm."""
_NAMED: Final = re.compile(r"(password=)[^&\s]*", re.IGNORECASE)


def masked(url: str) -> str:
    """Return the address without passwords."""
    return _NAMED.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))

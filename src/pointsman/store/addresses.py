"""Addresses of stores, as they may be shown: a password is nobody's business."""

from __future__ import annotations

import re
from typing import Final

_PASSWORD: Final = re.compile(r"((?://|:)[^:/?#@]*):.*@")
"""Up to the last @: a password may hold one, and hiding too much harms nobody."""
_NAMED: Final = re.compile(r"(password=)[^&\s]*", re.IGNORECASE)


def masked(url: str) -> str:
    """The address without passwords."""
    return _NAMED.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))

"""Names of executions."""

from __future__ import annotations

import os
import time
from base64 import b32encode
from typing import Final

from pointsman.values import ExecutionId

SORTABLE: Final = str.maketrans("abcdefghijklmnopqrstuvwxyz234567", "0123456789abcdefghjkmnpqrstvwxyz")
"""Base 32 letters in the order of their values (Crockford's), so that ids sort by time."""


def new_id() -> ExecutionId:
    """`exec-` and 26 characters: 48 bits of time in milliseconds, 80 random bits, in sortable base 32."""
    raw = int(time.time() * 1000).to_bytes(6, "big") + os.urandom(10)
    return ExecutionId("exec-" + b32encode(raw).decode().rstrip("=").lower().translate(SORTABLE))

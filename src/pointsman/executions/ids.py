"""Ids of executions: new ones, and those that follow from a caller's key."""

from __future__ import annotations

import os
import time
from base64 import b32encode
from hashlib import blake2b
from typing import Final

from pointsman.store.records import TRIAL
from pointsman.values import ExecutionId

SORTABLE: Final = str.maketrans("abcdefghijklmnopqrstuvwxyz234567", "0123456789abcdefghjkmnpqrstvwxyz")
"""Base 32 letters in the order of their values (Crockford's), so that ids sort by time."""


def new_id(prefix: str = "exec-") -> ExecutionId:
    """Return the prefix and 26 characters: 48 bits of time in milliseconds, 80 random bits, in sortable base 32."""
    raw = int(time.time() * 1000).to_bytes(6, "big") + os.urandom(10)
    return ExecutionId(prefix + b32encode(raw).decode().rstrip("=").lower().translate(SORTABLE))


def new_session() -> str:
    """Return `ses_` and 8 hexadecimal digits: 32 random bits, so that a store may have it already."""
    return f"ses_{os.urandom(4).hex()}"


def new_trial_session() -> str:
    """Return the id of a conversation in which a person tries out an agent."""
    return f"{TRIAL}{os.urandom(8).hex()}"


def id_for_key(workflow: str, key: str, *, prefix: str = "exec-") -> ExecutionId:
    """Return the execution id for a workflow and a caller's key: the same in every process."""
    digest = blake2b(f"{workflow}|{key}".encode(), digest_size=16).digest()
    return ExecutionId(prefix + b32encode(digest).decode().rstrip("=").lower().translate(SORTABLE))

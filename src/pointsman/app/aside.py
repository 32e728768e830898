"""Work on documents of callers beside the event loop: one at a time, so that other requests are answered meanwhile.

The work is linear in the document, whose size is bounded. Short documents are not worth the way to another thread.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, TypeVar

SHORT_CHARS_MAX: Final = 20_000
"""Documents up to this length are read and checked in some 20 ms."""
_THREADS: Final = ThreadPoolExecutor(max_workers=1, thread_name_prefix="documents")
"""One: threads share the interpreter, and each more would slow the event loop further."""

T = TypeVar("T")


async def aside(chars: int, work: Callable[[], T]) -> T:
    """The result of `work`, done in the thread for documents where it is about more than a few characters."""
    if chars <= SHORT_CHARS_MAX:
        return work()
    return await asyncio.get_running_loop().run_in_executor(_THREADS, work)

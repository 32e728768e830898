"""Warnings of providers' clients, collected per task."""

from __future__ import annotations

import warnings
from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TextIO

_gathered: ContextVar[list[str] | None] = ContextVar("_gathered", default=None)
_shown = warnings.showwarning


def _show(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    gathered = _gathered.get()
    if gathered is None or not issubclass(category, UserWarning):
        _shown(message, category, filename, lineno, file, line)
    elif (text := str(message)) not in gathered:
        gathered.append(text)


@contextmanager
def gathering_warnings() -> Generator[list[str]]:
    """Collect the warnings of clients in this task while the block runs, without duplicates."""
    global _shown
    if warnings.showwarning is not _show:
        _shown, warnings.showwarning = warnings.showwarning, _show
    # A client warns in each call; by default Python shows a warning only once per location.
    warnings.filterwarnings("always", category=UserWarning, module=r"pydantic_ai\b")
    gathered: list[str] = []
    token = _gathered.set(gathered)
    try:
        yield gathered
    finally:
        _gathered.reset(token)

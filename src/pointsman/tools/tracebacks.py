"""Tracebacks of tools: the frames of the author, as text of bounded size that a failure can carry.

    exception ─▶ frames in front of the author's own are left out ─▶ text ─▶ `Failure.details["traceback"]`

The exceptions themselves stay in the process. The latest are kept for a while, so that whoever is told of the failure
in Python gets them as its cause.
"""

from __future__ import annotations

import sysconfig
import traceback
from collections import OrderedDict
from pathlib import Path
from types import TracebackType
from typing import Final, cast

from pointsman.engine.failures import Failure
from pointsman.redaction import head, masked
from pointsman.values import JsonObject

CHARS_MAX: Final = 8_000
HEAD_CHARS: Final = 2_000
"""Of a longer traceback so much of its beginning is kept, and the rest of its end."""
MESSAGE_CHARS_MAX: Final = 500
CAUSES_MAX: Final = 64
MEMBERS_SHOWN: Final = 3
"""Of an exception group."""
_DEPTH_MAX: Final = 10
_OURS: Final = str(Path(__file__).parents[1])
_PLUMBING: Final = tuple(
    str(Path(sysconfig.get_path("stdlib")) / name)
    for name in ("asyncio", "concurrent", "threading.py", "contextlib.py")
)
_causes: Final[OrderedDict[str, BaseException]] = OrderedDict()


class RaisedElsewhere(Exception):
    """What a tool raised in another process. Its text is the traceback."""


def raised(what: str, why: BaseException, *, code: str = "tool-failed", retryable: bool = True) -> Failure:
    """The failure that an exception of the author's code means. `what` begins the message: "the tool 'x' failed"."""
    text = traceback_of(why)
    _remember(text, why)
    details: JsonObject = {"traceback": text}
    if (where := where_of(why)) is not None:
        details["where"] = where
    message = head(f"{what}: {summary_of(why)}", MESSAGE_CHARS_MAX)
    return Failure(code=code, message=message, retryable=retryable, details=details)


def summary_of(why: BaseException) -> str:
    """Type and message of an exception, also of one whose message cannot be made."""
    try:
        said = str(why)
    except BaseException as second:
        said = f"(its message cannot be shown: {type(second).__name__})"
    if isinstance(why, BaseExceptionGroup):
        said = f"{said}: {_members_of(cast('BaseExceptionGroup[BaseException]', why))}"
    name = type(cast("BaseException", why)).__name__
    return storable(f"{name}: {said}" if said else name)


def _members_of(group: BaseExceptionGroup[BaseException]) -> str:
    told = "; ".join(map(summary_of, group.exceptions[:MEMBERS_SHOWN]))
    more = len(group.exceptions) - MEMBERS_SHOWN
    return f"{told}; and {more} more" if more > 0 else told


def storable(text: str) -> str:
    """The text with half characters (lone surrogates) written out: they cannot be encoded, so not stored either."""
    return text.encode(errors="backslashreplace").decode()


def traceback_of(why: BaseException) -> str:
    """The traceback, from the first frame of the author on."""
    told = traceback.TracebackException.from_exception(why, compact=True, max_group_width=5, max_group_depth=3)
    _trim(told, depth=0)
    text = masked(storable("".join(told.format()).rstrip()))
    if len(text) <= CHARS_MAX:
        return text
    return f"{text[:HEAD_CHARS]}\n… {len(text) - CHARS_MAX} characters …\n{text[HEAD_CHARS - CHARS_MAX :]}"


def where_of(why: BaseException) -> str | None:
    """File, line and function of the author's innermost frame."""
    frames = [one for one in traceback.extract_tb(why.__traceback__) if _is_authors(one.filename)]
    return f"{frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else None


def cause_in(failure: Failure | None) -> BaseException | None:
    """The exception behind a failure: itself where this process saw it, else its traceback."""
    text = (failure.details or {}).get("traceback") if failure is not None else None
    if not isinstance(text, str):
        return None
    return _causes.get(text) or RaisedElsewhere(f"\n{text}")


def retold(before: Failure, after: Failure) -> Failure:
    """The failure in other words, of the same cause."""
    was, now = ((one.details or {}).get("traceback") for one in (before, after))
    if isinstance(was, str) and isinstance(now, str) and was != now and was in _causes:
        _remember(now, _causes[was])
    return after


def _remember(text: str, why: BaseException) -> None:
    _let_go(why.__traceback__)
    _causes[text] = why
    while len(_causes) > CAUSES_MAX:
        _causes.popitem(last=False)


def _let_go(frames: TracebackType | None) -> None:
    """Of the author's frames; those of ours still run."""
    while frames is not None:
        if _is_authors(frames.tb_frame.f_code.co_filename):
            traceback.clear_frames(frames)
            return
        frames = frames.tb_next


def _trim(told: traceback.TracebackException, *, depth: int) -> None:
    first = next((n for n, frame in enumerate(told.stack) if _is_authors(frame.filename)), 0)
    del told.stack[:first]
    if depth >= _DEPTH_MAX:
        return
    for one in (told.__cause__, told.__context__, *(told.exceptions or ())):
        if one is not None:
            _trim(one, depth=depth + 1)


def _is_authors(filename: str) -> bool:
    return not filename.startswith((_OURS, *_PLUMBING)) and not filename.startswith("<frozen")

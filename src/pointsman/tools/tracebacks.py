"""Tracebacks of tools: the frames of the author's code, as bounded text that a failure can carry.

    exception ─▶ drop the frames before the author's first ─▶ text ─▶ `Failure.details["traceback"]`

The exceptions stay in the process. The latest `CAUSES_MAX` are kept, so that Python callers get them as the cause of
the failure.
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
"""A longer traceback keeps this many characters of its beginning, and the rest of its end."""
MESSAGE_CHARS_MAX: Final = 500
CAUSES_MAX: Final = 64
MEMBERS_SHOWN: Final = 3
"""Number of members of an exception group to show."""
_DEPTH_MAX: Final = 10
_OURS: Final = str(Path(__file__).parents[1])
_PLUMBING: Final = tuple(
    str(Path(sysconfig.get_path("stdlib")) / name)
    for name in ("asyncio", "concurrent", "threading.py", "contextlib.py")
)
_causes: Final[OrderedDict[str, BaseException]] = OrderedDict()


class RaisedElsewhere(Exception):
    """Exception of a tool in another process. Its message is the traceback."""


def raised(what: str, why: BaseException, *, code: str = "tool-failed", retryable: bool = True) -> Failure:
    """Return the failure for an exception of the author's code. `what` begins the message: "the tool 'x' failed"."""
    text = traceback_of(why)
    _remember(text, why)
    details: JsonObject = {"traceback": text}
    if (where := where_of(why)) is not None:
        details["where"] = where
    message = head(f"{what}: {summary_of(why)}", MESSAGE_CHARS_MAX)
    return Failure(code=code, message=message, retryable=retryable, details=details)


def summary_of(why: BaseException) -> str:
    """Return type and message of an exception, even if its message cannot be produced."""
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
    """Return the text with lone surrogates escaped: they can be neither encoded nor stored."""
    return text.encode(errors="backslashreplace").decode()


def traceback_of(why: BaseException) -> str:
    """Return the traceback from the author's first frame on."""
    told = traceback.TracebackException.from_exception(why, compact=True, max_group_width=5, max_group_depth=3)
    _trim(told, depth=0)
    text = masked(storable("".join(told.format()).rstrip()))
    if len(text) <= CHARS_MAX:
        return text
    return f"{text[:HEAD_CHARS]}\n… {len(text) - CHARS_MAX} characters …\n{text[HEAD_CHARS - CHARS_MAX :]}"


def where_of(why: BaseException) -> str | None:
    """Return file, line and function of the author's innermost frame."""
    frames = [one for one in traceback.extract_tb(why.__traceback__) if _is_authors(one.filename)]
    return f"{frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else None


def cause_in(failure: Failure | None) -> BaseException | None:
    """Return the exception behind a failure: the original if this process raised it, or else one with its traceback."""
    text = (failure.details or {}).get("traceback") if failure is not None else None
    if not isinstance(text, str):
        return None
    return _causes.get(text) or RaisedElsewhere(f"\n{text}")


def retold(before: Failure, after: Failure) -> Failure:
    """Return the reworded failure `after`, linked to the exception behind `before`."""
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
    """Clear the local variables of the author's frames; frames of Pointsman still run."""
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

"""Interfaces between the registry and tools, and the errors and tracebacks of tools.

`ToolFailed` carries the `Failure` that a step reports or a model receives.
"""

from __future__ import annotations

import logging
import sysconfig
import traceback
from asyncio import AbstractEventLoop
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import ClassVar, Final, Literal, Protocol, TypeAlias, cast, runtime_checkable

from msgspec import Struct

from pointsman.engine.failures import Failure
from pointsman.errors import AuthorError, OperatorError
from pointsman.ports import ExecutionPort, ToolSpec
from pointsman.redaction import head, hidden, masked
from pointsman.values import Bytes, Json, JsonObject

CHARS_MAX: Final = 8_000
HEAD_CHARS: Final = 2_000
"""A longer traceback keeps this many characters of its beginning, and the rest of its end."""
MESSAGE_CHARS_MAX: Final = 500
CAUSES_MAX: Final = 64
MEMBERS_SHOWN: Final = 3
"""Number of members of an exception group to show."""
_DEPTH_MAX: Final = 10
PACKAGE: Final = str(Path(__file__).parents[1])
"""The folder of Pointsman."""
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
        message = str(why)
    except BaseException as second:
        message = f"(its message cannot be shown: {type(second).__name__})"
    if isinstance(why, BaseExceptionGroup):
        message = f"{message}: {_members_of(cast('BaseExceptionGroup[BaseException]', why))}"
    name = type(cast("BaseException", why)).__name__
    return storable(f"{name}: {message}" if message else name)


def _members_of(group: BaseExceptionGroup[BaseException]) -> str:
    summaries = "; ".join(map(summary_of, group.exceptions[:MEMBERS_SHOWN]))
    more = len(group.exceptions) - MEMBERS_SHOWN
    return f"{summaries}; and {more} more" if more > 0 else summaries


def storable(text: str) -> str:
    """Return the text with lone surrogates escaped: they can be neither encoded nor stored."""
    return text.encode(errors="backslashreplace").decode()


def traceback_of(why: BaseException) -> str:
    """Return the traceback from the author's first frame on."""
    trace = traceback.TracebackException.from_exception(why, compact=True, max_group_width=5, max_group_depth=3)
    _trim(trace, depth=0)
    text = masked(storable("".join(trace.format()).rstrip()))
    if len(text) <= CHARS_MAX:
        return text
    return f"{text[:HEAD_CHARS]}\n… {len(text) - CHARS_MAX} characters …\n{text[HEAD_CHARS - CHARS_MAX :]}"


def where_of(why: BaseException) -> str | None:
    """Return file, line and function of the author's innermost frame."""
    frames = [one for one in traceback.extract_tb(why.__traceback__) if is_authors_file(one.filename)]
    return f"{frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else None


def cause_in(failure: Failure | None) -> BaseException | None:
    """Return the exception behind a failure: the original if this process raised it, or else one with its traceback."""
    text = (failure.details or {}).get("traceback") if failure is not None else None
    if not isinstance(text, str):
        return None
    return _causes.get(text) or RaisedElsewhere(f"\n{text}")


def rephrased(before: Failure, after: Failure) -> Failure:
    """Return the reworded failure `after`, linked to the exception behind `before`."""
    was, now = ((one.details or {}).get("traceback") for one in (before, after))
    if isinstance(was, str) and isinstance(now, str) and was != now and was in _causes:
        _remember(now, _causes[was])
    return after


def _remember(text: str, why: BaseException) -> None:
    _clear_frames(why.__traceback__)
    _causes[text] = why
    while len(_causes) > CAUSES_MAX:
        _causes.popitem(last=False)


def _clear_frames(frames: TracebackType | None) -> None:
    """Clear the local variables of the author's frames; frames of Pointsman still run."""
    while frames is not None:
        if is_authors_file(frames.tb_frame.f_code.co_filename):
            traceback.clear_frames(frames)
            return
        frames = frames.tb_next


def _trim(exception: traceback.TracebackException, *, depth: int) -> None:
    first = next((n for n, frame in enumerate(exception.stack) if is_authors_file(frame.filename)), 0)
    del exception.stack[:first]
    if depth >= _DEPTH_MAX:
        return
    for one in (exception.__cause__, exception.__context__, *(exception.exceptions or ())):
        if one is not None:
            _trim(one, depth=depth + 1)


def is_authors_file(filename: str) -> bool:
    """Return whether a file belongs neither to Pointsman nor to the machinery of Python."""
    return not filename.startswith((PACKAGE, *_PLUMBING)) and not filename.startswith("<frozen")


OUTPUT_BYTES_MAX: Final = Bytes(1_000_000)
"""Default maximum size of a result as JSON."""

RESERVED: Final = frozenset({"router", "end", "final_result"})
"""Names of tools that the engine itself offers to models."""

CORRECT_ARGUMENTS: Final = "Correct the arguments and call the tool again."
"""Hint for a model whose arguments were refused; steps of tool nodes replace it."""

WORKFLOW_PREFIX: Final = "workflow__"
"""Prefix of saved workflows as tools."""

Origin: TypeAlias = Literal["function", "plugin", "builtin", "scripted", "http", "command", "mcp", "client", "workflow"]
"""Origin of a tool; `scripted` tools answer from a script and are marked as such."""


class ToolLimits(Struct, frozen=True, kw_only=True):
    """Maximum size of a tool's result, and its own timeout if shorter than the caller's."""

    timeout_s: float | None = None
    output_bytes_max: Bytes = OUTPUT_BYTES_MAX


class ToolContext(Struct, frozen=True, kw_only=True):
    """Context of a call, besides its arguments: a parameter with this annotation receives it."""

    idempotency_key: str
    """Equal whenever the same call is repeated, after a crash or by a retry."""
    tool: str = ""
    execution: str = ""
    """Id of the calling execution; empty: the call is not part of an execution."""
    run: ExecutionPort | None = None
    """Access to the attempt of the calling execution; None: the call is not part of an execution."""
    loop: AbstractEventLoop | None = None
    """The event loop, if the function runs in a thread."""

    @property
    def node(self) -> str:
        """Id of the node that makes the call; empty: the call is not part of an execution."""
        return "" if self.run is None else self.run.node

    @property
    def logger(self) -> logging.LoggerAdapter[logging.Logger]:
        """The logger `pointsman.tools.NAME`. Its records have the attributes `execution` and `node`."""
        logger = logging.getLogger(f"pointsman.tools.{self.tool}")
        return logging.LoggerAdapter(logger, {"execution": self.execution, "node": self.node})

    def report_progress(self, message: str = "", *, done: float | None = None, total: float | None = None) -> None:
        """Show progress to whoever watches the execution: a live event, which is not stored. May be called from a
        thread. `done` and `total`: in any unit."""
        if self.run is None:
            return
        for redaction in hidden():
            message = redaction.text(message)
        progress: JsonObject = {"message": message, "done": done, "total": total}
        delta: JsonObject = {"kind": "progress", "tool": self.tool}
        delta |= {name: value for name, value in progress.items() if value not in (None, "")}
        if self.loop is None:
            self.run.delta(delta)
        else:
            with suppress(RuntimeError):  # The loop is closed: nobody watches any more.
                self.loop.call_soon_threadsafe(self.run.delta, delta)


class ToolSource(Protocol):
    """A source of tools that must be listed first. Their names begin with `prefix`."""

    @property
    def prefix(self) -> str: ...

    @property
    def origin(self) -> Origin: ...

    @property
    def lasts(self) -> bool:
        """Whether one listing is enough; otherwise the tools are listed each time."""
        ...

    async def listed(self) -> Sequence[Tool]:
        """Return all tools. Raises `ToolFailed` if the source does not answer."""
        ...

    def stand_in(self, name: str) -> Tool | None:
        """Return a tool of that name before the source was listed; None: the source cannot have it."""
        ...

    async def close(self) -> None:
        """Close connections. A later call opens them again."""
        ...

    def retire(self) -> None:
        """Close connections after the calls in progress, because the source was replaced."""
        ...


class ConnectedSources(Protocol):
    """Sources that are added, changed and removed while the app runs."""

    @property
    def version(self) -> int:
        """A number that grows with each change."""
        ...

    @property
    def sources(self) -> Sequence[ToolSource]: ...

    @property
    def is_fresh(self) -> bool:
        """Return whether `refresh` would read nothing now."""
        ...

    async def refresh(self) -> None:
        """Read changes. Cheap."""
        ...

    def changed(self) -> None:
        """Read at the next `refresh`, because this process made a change."""
        ...


@runtime_checkable
class Tool(Protocol):
    """A tool. The registry checks the arguments before a call and the size of the result after it."""

    @property
    def name(self) -> str: ...

    @property
    def spec(self) -> ToolSpec: ...

    @property
    def limits(self) -> ToolLimits: ...

    async def run(self, arguments: JsonObject, context: ToolContext) -> Json:
        """Run the tool. Raises `ToolFailed` for specific failures; other exceptions become `tool-failed`."""
        ...


def need_of(tool: str) -> str:
    """Return what a worker needs to call the tool, in the form of `Failure.needs`. Empty for saved workflows: every
    worker has them in the store, so another worker would fail in the same way."""
    return "" if tool.startswith(WORKFLOW_PREFIX) else f"tool:{tool}"


class ToolFailed(OperatorError):
    """Raised when a tool call fails. Tools may raise it to report a specific failure and whether to retry."""

    code: ClassVar[str] = "tool-failed"

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.message, hint=failure.hint)
        self.failure = failure


class ToolInvalid(AuthorError):
    """Raised for a function that cannot become a tool because of its name, its parameters or their types."""

    code: ClassVar[str] = "tool-invalid"


class ToolNameTaken(OperatorError):
    """Raised when two tools with the same name are registered."""

    code: ClassVar[str] = "tool-name-taken"


class ToolNotLoaded(OperatorError):
    """Raised when a tool of an installed package cannot be loaded."""

    code: ClassVar[str] = "tool-not-loaded"

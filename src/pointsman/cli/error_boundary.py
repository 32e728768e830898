"""Error boundary of every command: turns each error into one line and an exit code, without a traceback.

0 done · 1 failed or errors found · 2 wrong usage or unreadable · 3 waiting · 4 interrupted by a limit · 130 cancelled
"""

from __future__ import annotations

import _thread
import contextlib
import errno
import os
import re
import sys
import threading
import traceback
from collections.abc import Generator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, Final, TextIO, cast

import click
from click.shell_completion import shell_complete

from pointsman import __version__
from pointsman.cli.entry import root
from pointsman.cli.printing import error_object, escape_controls, print_json, problem_lines
from pointsman.errors import CallerError, EngineBug, OperatorError, PointsmanError
from pointsman.extras import missing_for
from pointsman.tool_output import apart_from_tools

if TYPE_CHECKING:
    from pointsman.definition.problems import Problem

_HALF: Final = re.compile("[\ud800-\udfff]")

DEBUG: Final = "POINTSMAN_DEBUG"
DEBUG_OPTION: Final = "--debug"
COMPLETE: Final = "_POINTSMAN_COMPLETE"
"""Environment variable that a shell sets to request completions."""

UNWRITABLE: Final = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF})

FAILED: Final = 1
MISUSED: Final = 2
CANCELLED: Final = 130
AGAIN_S: Final = 0.02
"""Delay in seconds before an interrupt that could not be raised is raised again."""


class OutputUnwritable(OperatorError):
    """The output cannot be written. The command has run nevertheless."""

    code: ClassVar[str] = "output-unwritable"


@dataclass(slots=True)
class OutputMode:
    """State that a command shares with its error boundary."""

    json: bool = False
    """Whether standard output is one JSON value, also for errors."""
    text: str = ""
    """Text of the document to which problems refer; `file` is its name."""
    file: str = ""
    unreadable: bool = False
    """Whether the document cannot be read at all."""
    tool_modules: tuple[str, ...] = ()
    """Modules of tools that the command names."""
    arguments: tuple[str, ...] = ()
    """Arguments of the command line, without `--debug`."""


def output_mode() -> OutputMode:
    """Return the output mode of the running command; the default one while a shell completes a command line."""
    context = click.get_current_context(silent=True)
    mode = None if context is None else context.find_root().obj
    return mode if isinstance(mode, OutputMode) else OutputMode()


def run_guarded(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code."""
    _survive_odd_terminals()
    arguments = _debugging(arguments)
    mode = OutputMode(arguments=tuple(arguments))
    with (
        repeating_interrupts(),
        apart_from_tools(),
        click.Context(root, info_name="pointsman", color=_colour()).scope(),
    ):
        try:
            code = _run(arguments, mode)
            sys.stdout.flush()
        except BrokenPipeError:
            _close_pipe()
            return 0  # The reader of the output closed the pipe.
        except OSError as why:
            _close_pipe()
            print_error(OutputUnwritable(f"standard output cannot be written: {why.strerror}"), mode)
            return FAILED
    return code


@contextlib.contextmanager
def repeating_interrupts() -> Generator[None]:
    """Repeat a Ctrl-C that arrives in a callback that cannot raise, such as a destructor or a callback of pydantic,
    after `AGAIN_S`. Otherwise Python prints a traceback, continues, and the Ctrl-C is lost.
    """
    before = sys.unraisablehook

    def hook(what: sys.UnraisableHookArgs) -> None:
        if issubclass(what.exc_type, KeyboardInterrupt):
            again = threading.Timer(AGAIN_S, _thread.interrupt_main)
            again.daemon = True
            again.start()
        else:
            before(what)

    sys.unraisablehook = hook
    try:
        yield
    finally:
        sys.unraisablehook = before


def _debugging(arguments: Sequence[str]) -> list[str]:
    """Return the arguments without `--debug`, which may be anywhere before `--`; if it is there, enable debugging."""
    remaining = [*arguments]
    until = remaining.index("--") if "--" in remaining else len(remaining)
    if DEBUG_OPTION in remaining[:until]:
        os.environ[DEBUG] = "1"
        remaining = [one for one in remaining[:until] if one != DEBUG_OPTION] + remaining[until:]
    return remaining


def is_debugging() -> bool:
    """Return whether tracebacks are shown."""
    return bool(os.environ.get(DEBUG))


def _colour() -> bool | None:
    """Return False if NO_COLOR is set, else None: colours on terminals only."""
    return False if os.environ.get("NO_COLOR") else None


def _run(arguments: Sequence[str], mode: OutputMode) -> int:
    try:
        _check_encoding(arguments)
        code = _invoked(arguments, mode)
    except click.exceptions.Exit as why:
        return why.exit_code
    except click.exceptions.NoArgsIsHelpError as why:
        click.echo(why.format_message(), err=True)
        return MISUSED
    except click.ClickException as why:
        return _usage_error(why, mode)
    except (click.Abort, KeyboardInterrupt):
        return _interrupted(mode)
    except BrokenPipeError:
        raise
    except EngineBug as why:
        return _bug(why, arguments, mode)
    except PointsmanError as why:
        return _expected_error(why, mode)
    except OSError as why:
        if why.errno in UNWRITABLE and why.filename is None:
            raise  # without a file name, the output itself cannot be written
        return _bug(why, arguments, mode)
    except ModuleNotFoundError as why:
        missing = missing_for(why)
        return _bug(why, arguments, mode) if missing is None else _expected_error(missing, mode)
    except Exception as why:
        return _bug(why, arguments, mode)
    return code if isinstance(code, int) else 0


def _invoked(arguments: Sequence[str], mode: OutputMode) -> object:
    """Do what `root.main` does, but let `BrokenPipeError` through."""
    instruction = os.environ.get(COMPLETE)
    if instruction:
        return shell_complete(root, {"obj": mode}, "pointsman", COMPLETE, instruction)
    with root.make_context("pointsman", [*arguments], obj=mode, color=_colour()) as ctx:
        return root.invoke(ctx)


def _check_encoding(arguments: Sequence[str]) -> None:
    """Raise `UsageError` for an argument that is not valid Unicode, unless it is the name of a file."""
    for number, argument in enumerate(arguments, start=1):
        if not argument.isprintable() and _HALF.search(argument) and not os.path.exists(argument):
            raise click.UsageError(f"argument {number} is not valid Unicode ({argument!r}), and no file has that name")


def _usage_error(why: click.ClickException, mode: OutputMode) -> int:
    if mode.json:
        print_json(error_object("usage", why.format_message()))
    ctx = why.ctx if isinstance(why, click.UsageError) else None
    usage = f"{ctx.get_usage()}\n" if ctx is not None else ""
    click.echo(f"{usage}{click.style('error', fg='red', bold=True)}: {escape_controls(why.format_message())}", err=True)
    if ctx is not None:
        click.echo(f"  → `{ctx.command_path} --help` shows its arguments and options.", err=True)
    return MISUSED


def _expected_error(why: PointsmanError, mode: OutputMode) -> int:
    if mode.json:
        problems = cast("tuple[Problem, ...]", getattr(why, "problems", ()))
        print_json(error_object(why.code, str(why), hint=why.hint, problems=problems))
    print_error(why, mode)
    return MISUSED if isinstance(why, CallerError) or mode.unreadable else FAILED


def _interrupted(mode: OutputMode) -> int:
    """Report a Ctrl-C that arrived while no execution was being driven."""
    if mode.json:
        print_json(
            error_object(
                "stopped", "the command was stopped", hint="`pointsman list` lists the executions that it started."
            )
        )
    click.echo("stopped", err=True)
    return CANCELLED


def print_error(why: PointsmanError, mode: OutputMode) -> None:
    """Print an error on standard error: message, position and hint."""
    problems = cast("tuple[Problem, ...]", getattr(why, "problems", ()))
    for line in problem_lines(problems, file=mode.file, text=mode.text):
        click.echo(line, err=True)
    if not problems:
        click.echo(f"{click.style('error', fg='red', bold=True)} [{why.code}] {escape_controls(str(why))}", err=True)
        if why.hint:
            click.echo(f"  → {escape_controls(why.hint)}", err=True)
    if is_debugging():
        traceback.print_exception(why)


def _bug(why: Exception, arguments: Sequence[str], mode: OutputMode) -> int:
    """Report a bug of Pointsman, and write its traceback to a file."""
    code = why.code if isinstance(why, PointsmanError) else "engine-bug"
    message = f"{type(why).__name__}: {str(why)[:300]}"
    if mode.json:
        print_json(error_object(code, message))
    report = _written(why, arguments)
    click.echo(f"{click.style('bug', fg='red', bold=True)} [{code}] {escape_controls(message)}", err=True)
    click.echo(f"  → This is a bug in Pointsman, not in your document. Please report it with {report}.", err=True)
    if is_debugging():
        traceback.print_exception(why)
    return FAILED


def _written(why: Exception, arguments: Sequence[str]) -> str:
    command = arguments[0] if arguments else ""
    header = [f"pointsman {__version__}, Python {sys.version}, {sys.platform}", f"command: {command}", ""]
    import tempfile  # Deferred: it loads compression and random numbers, for a report that few processes write.

    try:
        with tempfile.NamedTemporaryFile(
            "w", prefix="pointsman-bug-", suffix=".txt", delete=False, encoding="utf-8", errors="backslashreplace"
        ) as file:
            file.write("\n".join(header) + "".join(traceback.format_exception(why)))
    except OSError:
        return "the output of --debug"
    return file.name


def _survive_odd_terminals() -> None:
    """Replace closed streams by empty ones, and print characters that the encoding lacks as escapes, so that printing
    does not fail. On Windows, files and pipes carry UTF-8 instead of the code page of the machine."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode, encoding="utf-8"))  # noqa: SIM115 - for the life of the process
    encoding = "utf-8" if sys.platform == "win32" and "PYTHONIOENCODING" not in os.environ else None
    for stream, errors in ((sys.stdin, None), (sys.stdout, "backslashreplace"), (sys.stderr, "backslashreplace")):
        with contextlib.suppress(AttributeError, ValueError):
            cast("_Reconfigurable", stream).reconfigure(encoding=encoding, errors=errors)


class _Reconfigurable(TextIO):
    def reconfigure(self, *, encoding: str | None, errors: str | None) -> None: ...


def _close_pipe() -> None:
    """Redirect standard output to the null device, so that the interpreter's last flush does not fail."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

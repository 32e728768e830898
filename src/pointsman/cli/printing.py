"""Output of commands: JSON for programs on standard output, lines for people, without control characters."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

import click

from pointsman.values import Json, JsonObject, JsonView, json_of

if TYPE_CHECKING:
    from pointsman.auth.sharing import SharingView
    from pointsman.definition.problems import Problem

PRINTED_MAX: Final = 50
"""Problems printed of one file."""
LINE_CHARS_MAX: Final = 110
"""Characters shown of a source line, around the position of a problem."""

_CONTROL: Final = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_COLOURS: Final = {"error": "red", "warning": "yellow", "note": "blue"}


def escape_controls(text: str) -> str:
    """Escape control characters: texts of documents and models are not trusted."""
    return _CONTROL.sub(lambda match: f"\\u{ord(match[0]):04x}", text)


def print_json(value: Json | JsonView) -> None:
    """Print a JSON value to standard output: indented on a terminal, else on one line."""
    click.echo(json.dumps(value, ensure_ascii=_plain(), indent=2 if sys.stdout.isatty() else None))


def print_line(value: Json) -> None:
    """Print a JSON value on one line."""
    click.echo(json.dumps(value, ensure_ascii=_plain()))


def print_deleted(*names: str, as_json: bool) -> None:
    """Print the names of deleted things."""
    if as_json:
        print_json({"deleted": [*names]})
        return
    for name in names:
        say(f"deleted {name}")


def _plain() -> bool:
    """Return whether the encoding of standard output may be limited to ASCII."""
    return not (sys.stdout.encoding or "").lower().startswith("utf")


def say(text: str) -> None:
    """Print a line for people on standard error."""
    click.echo(escape_controls(text), err=True)


def message_lines(message: str) -> list[str]:
    """Return the lines of a progress node's message."""
    return [escape_controls(line) for line in message.rstrip().splitlines()]


def shown(value: Json, *, chars_max: int = 0) -> str:
    """Return a value for people: texts unchanged, other values as JSON; cut at `chars_max`."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if chars_max and len(text) > chars_max:
        text = text[: chars_max - 1] + "…"
    return escape_controls(text)


def problem_lines(problems: Sequence[Problem], *, file: str, text: str) -> Iterator[str]:
    """Yield the lines for the problems of one file: at most `PRINTED_MAX` problems, and the number of further ones."""
    lines = re.split(r"\r\n|\r|\n", text) if problems else []
    for problem in problems[:PRINTED_MAX]:
        yield from _lines_of(problem, file=file, text=lines)
    if len(problems) > PRINTED_MAX:
        yield f"and {len(problems) - PRINTED_MAX} more (`--json` lists them)"


def _lines_of(problem: Problem, *, file: str, text: Sequence[str]) -> list[str]:
    """Return the position and message of a problem, the source line with a caret, and the next step."""
    place = f"{file}:{problem.line}:{problem.column}" if problem.line is not None else file
    severity = click.style(problem.severity, fg=_COLOURS[problem.severity], bold=True)
    lines = [f"{escape_controls(place)}: {severity} [{problem.code}] {escape_controls(problem.message)}"]
    if problem.line is not None and problem.column is not None:
        lines += _quoted(text, problem.line, problem.column)
    if problem.hint:
        lines.append(f"  → {escape_controls(problem.hint)}")
    if problem.fix is not None:
        lines.append("  → `check --json` has a fix for this, as a JSON Patch.")
    return lines


def _quoted(text: Sequence[str], line: int, column: int) -> list[str]:
    if line > len(text) or not text[line - 1].strip():
        return []
    source = text[line - 1].replace("\t", " ")
    cut = max(0, column - 1 - LINE_CHARS_MAX // 2) if len(source) > LINE_CHARS_MAX else 0
    visible = source[cut : cut + LINE_CHARS_MAX]
    if cut:
        visible = f"…{visible[1:]}"
    if cut + LINE_CHARS_MAX < len(source):
        visible = f"{visible[:-1]}…"
    before = len(escape_controls(visible[: column - 1 - cut]))
    return [
        f"{line:6} │ {escape_controls(visible)}",
        f"       │ {' ' * before}{click.style('^', fg='green', bold=True)}",
    ]


def error_object(code: str, message: str, *, hint: str = "", problems: tuple[Problem, ...] = ()) -> JsonObject:
    """Return the output of `--json` for a refused command: an execution object without an execution."""
    return {
        "executionId": None,
        "workflowId": None,
        "status": "refused",
        "output": None,
        "state": {},
        "path": [],
        "steps": 0,
        "waiting": [],
        "errors": [{"code": code, "message": message, "nodeId": None, "hint": hint}],
        "usage": {"inputTokens": 0, "outputTokens": 0, "costUsd": None, "modelCalls": 0},
        "durationMs": 0,
        "problems": [json_of(problem.to_json()) for problem in problems],
    }


def read_hidden(what: str) -> str:
    """Read a secret from a prompt, or from a pipe without the end of its last line."""
    if sys.stdin.isatty():
        return str(click.prompt(what, hide_input=True, err=True))
    try:
        return sys.stdin.read().removesuffix("\n").removesuffix("\r")
    except UnicodeDecodeError:
        raise click.UsageError(f"the {what.lower()} on standard input is not UTF-8 text.") from None


def print_sharing(kind: str, name: str, sharing: SharingView, *, as_json: bool) -> None:
    """Print who sees a workflow or a folder. `kind`: the field of its name in JSON."""
    if as_json:
        print_json({kind: name, **sharing})
        return
    among = f" ({', '.join(map(shown, sharing['groups']))})" if sharing["groups"] else ""
    click.echo(
        f"{shown(name)}: owner {shown(sharing['owner'] or '') or 'none'}, shared with {sharing['audience']}{among}"
    )

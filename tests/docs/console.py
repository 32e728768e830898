"""Reads the code blocks of a page, and runs its console blocks: each command must print what the page shows.

```console $ pointsman run examples/2nchat/2nchat.json -i message=hello     commands run in order, in a store of the
page completed exec-… (4 steps; …)                                    … stands for any text; alone, for any lines $
pointsman show exec-…                                          in a command: the last named execution $ echo $?
the exit code of the command before ```
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ANY: Final = "…"
_FENCE: Final = re.compile(r"^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```\s*$", re.MULTILINE | re.DOTALL)
_EXECUTION: Final = re.compile(r"exec-[0-9a-z]{8,}")


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block: its language, the text after the language, its text and its position."""

    language: str
    about: str
    text: str
    line: int


@dataclass(frozen=True, slots=True)
class Command:
    """A command line of a console block and the lines the page shows below it."""

    line: str
    shows: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """The result of a command."""

    output: str
    code: int


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    found: list[Block] = []
    for fence in _FENCE.finditer(text):
        language, _, about = fence["info"].strip().partition(" ")
        found.append(Block(language, about.strip(), fence["body"], text.count("\n", 0, fence.start()) + 1))
    return found


def commands_of(text: str) -> Iterator[Command]:
    """Yield lines that begin with `$`, joined with their continuation lines."""
    command, shows = "", list[str]()
    for line in text.replace("\\\n", " ").splitlines():
        if line.startswith("$ "):
            if command:
                yield Command(command, tuple(shows))
            command, shows = line[2:].strip(), []
        else:
            shows.append(line)
    if command:
        yield Command(command, tuple(shows))


def play(text: str, run: Callable[[list[str]], CommandOutput]) -> list[str]:
    """Run the commands of a block and return the differences. `run` gets the words after `pointsman`."""
    wrong: list[str] = []
    last, execution = CommandOutput("", 0), ""
    for command in commands_of(text):
        if command.line == "echo $?":
            last = CommandOutput(str(last.code), 0)
        else:
            words = shlex.split(command.line.replace(f"exec-{ANY}", execution), comments=True)
            if words[:1] != ["pointsman"]:
                wrong.append(f"not a command of pointsman: {command.line}")
                continue
            last = run(words[1:])
            execution = (_EXECUTION.findall(last.output) or [execution])[-1]
        if not shown_in(command.shows, last.output):
            wrong.append(f"$ {command.line}\n-- shown:\n{chr(10).join(command.shows)}\n-- printed:\n{last.output}")
    return wrong


def shown_in(shows: tuple[str, ...], output: str) -> bool:
    """Return whether the output matches line by line, without blank lines, and with `…` as in the module's
    docstring."""
    pattern = "".join(f"{_line(line)}\n" if line.strip() != ANY else r"(?:.*\n)*?" for line in shows if line.strip())
    printed = "".join(f"{line.rstrip()}\n" for line in output.splitlines() if line.strip())
    return re.fullmatch(pattern, printed) is not None


def _line(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.rstrip().split(ANY))

"""Reads the code blocks of a page, and runs its console blocks: each command must print what the page shows.

A block is described by the words behind its opening fence.

`yaml letter.yaml`                the block is saved under this name in the directory of the page's commands
`yaml examples/letter.yaml`       the block is a part of this file
`console`                         lines that begin with `$` are commands, run in order; the others are their output

In output `…` stands for any text; alone, for any lines. In a command `exec-…` is the last named execution. `echo $?`
prints the exit code of the command before.
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

    @property
    def file(self) -> str:
        """The name under which the block is saved; empty: it is not."""
        return self.about if re.fullmatch(r"[\w-]+(\.[\w-]+)+", self.about) else ""


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


class Terminal:
    """Runs blocks one after another. `run` gets the words of a command."""

    def __init__(self, run: Callable[[list[str]], CommandOutput]) -> None:
        self._run = run
        self._last = CommandOutput("", 0)
        self._execution = ""

    def play(self, text: str) -> str:
        """Run the commands of a block and return the differences."""
        wrong: list[str] = []
        for command in commands_of(text):
            if command.line == "echo $?":
                self._last = CommandOutput(str(self._last.code), 0)
            else:
                self._last = self._run(shlex.split(command.line.replace(f"exec-{ANY}", self._execution), comments=True))
                self._execution = (_EXECUTION.findall(self._last.output) or [self._execution])[-1]
            if not shown_in(command.shows, self._last.output):
                shown = "\n".join(command.shows)
                wrong.append(f"$ {command.line}\n-- shown:\n{shown}\n-- printed:\n{self._last.output}")
        return "\n".join(wrong)


def shown_in(shows: tuple[str, ...], output: str) -> bool:
    """Return whether the output matches line by line, without blank lines, and with `…` as in the module's
    docstring."""
    pattern = "".join(f"{_line(line)}\n" if line.strip() != ANY else r"(?:.*\n)*?" for line in shows if line.strip())
    printed = "".join(f"{line.rstrip()}\n" for line in output.splitlines() if line.strip())
    return re.fullmatch(pattern, printed) is not None


def _line(line: str) -> str:
    return ".*".join(re.escape(part) for part in line.rstrip().split(ANY))

"""What is shown of an answer while it comes: the words of each agent under its name, and the tools it calls.

Where standard output is no terminal nothing is shown: programs get the answer alone, when it is whole.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

import click

from pointsman.app import Pointsman
from pointsman.cli.printing import harmless
from pointsman.values import JsonObject


@dataclass(slots=True)
class Voice:
    """Prints live words. One step speaks at a time; who else speaks meanwhile is shown when it is done."""

    names: dict[str, str]
    """Node -> what people call it."""
    hidden: frozenset[str]
    """Nodes whose words are not for people."""
    speaker: str = ""
    heard: dict[str, str] = field(default_factory=dict[str, str])
    """Step -> what it said in the attempt that runs."""
    last: str = ""
    """What the step that ended last had said."""

    def see(self, event: JsonObject) -> None:
        """Take an event or a live delta."""
        step, node = f"{event['execution']}/{event.get('step', '')}", str(event.get("node", ""))
        kind = str(event["kind"])
        if node in self.hidden:
            return
        match kind:
            case "delta":
                self._delta(step, node, cast(JsonObject, event["delta"]))
            case "step_succeeded":
                self._end(step, node)
            case "step_failed" | "step_cancelled" | "attempt_started":
                self._break_off(step)
            case _:
                pass

    def _delta(self, step: str, node: str, delta: JsonObject) -> None:
        if delta.get("kind") == "text":
            text = harmless(str(delta.get("text", "")))
            begins = step not in self.heard
            self.heard[step] = self.heard.get(step, "") + text
            if self.speaker in ("", step) and self.heard[step].strip():
                self.speaker = step
                whole = self.heard[step].lstrip()
                self._write(self._named(node, whole) if begins or whole == text.lstrip() else text)
        elif delta.get("kind") == "discarded":
            self._break_off(step)
        elif delta.get("kind") == "tool_call":
            self._line(f"  · {self._called(node)} calls {harmless(str(delta.get('tool')))}")

    def _end(self, step: str, node: str) -> None:
        said = self.heard.pop(step, "").strip()
        if not said:
            return
        self.last = said
        if self.speaker == step:
            self._write("\n")
            self.speaker = ""
        else:
            self._line(self._named(node, said), plain=True)

    def _break_off(self, step: str) -> None:
        if self.heard.pop(step, "") and self.speaker == step:
            self._write(click.style(" … (broke off)\n", dim=True))
            self.speaker = ""

    def pause(self) -> None:
        """Somebody else is about to write."""
        if self.speaker:
            self._break_off(self.speaker)

    def _line(self, text: str, *, plain: bool = False) -> None:
        if self.speaker:
            return  # In the middle of somebody's words there is no room for a line.
        self._write((text if plain else click.style(text, dim=True)) + "\n")

    def _called(self, node: str) -> str:
        return harmless(self.names.get(node, node))

    def _named(self, node: str, text: str) -> str:
        return click.style(f"{self._called(node)}: ", bold=True) + text

    @staticmethod
    def _write(text: str) -> None:
        click.echo(text, nl=False)


@contextmanager
def spoken(
    app: Pointsman, names: dict[str, str], hidden: frozenset[str], *, quiet: bool
) -> Generator[Voice, None, None]:
    """Show what is said while inside, on a terminal."""
    voice = Voice(names, hidden)
    if quiet or not sys.stdout.isatty():
        yield voice
        return
    leave = app.watch(voice.see)
    try:
        yield voice
    finally:
        leave()
        voice.pause()

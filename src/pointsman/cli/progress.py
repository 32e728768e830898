"""Live progress on a terminal: finished steps scroll by, running ones are shown below them, with counters and text.

The board is computed from the events of journals. If standard error is not a terminal, only the messages of progress
nodes are printed.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final, cast

import click
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from pointsman.app import Pointsman
from pointsman.cli.printing import escape_controls, message_lines, say
from pointsman.client.events import DeltaEvent
from pointsman.executions.public_events import watch_deltas, watch_progress
from pointsman.values import JsonObject

RUNNING_SHOWN_MAX: Final = 8
TAIL_CHARS: Final = 60
TEXT_LINES: Final = 8
"""Lines of the text that a model is writing."""
TEXT_CHARS_MAX: Final = 4_000
REFRESHES_PER_S: Final = 8


@dataclass(slots=True)
class ProgressLine:
    """A step that has begun and not ended."""

    node: str
    began: float
    depth: int
    branch: str = ""
    note: str = ""
    tail: str = ""


@dataclass(slots=True)
class ParallelProgress:
    """An open parallel, with the number of its ended branches."""

    node: str
    total: int
    settled: int = 0
    failed: int = 0


@dataclass(slots=True)
class ProgressDisplay:
    """State of the executions of this process, from their events."""

    console: Console
    names: dict[str, str] = field(default_factory=dict[str, str])
    """Node -> display name. May be set after the first events."""
    running: dict[str, ProgressLine] = field(default_factory=dict[str, ProgressLine])
    fans: dict[str, ParallelProgress] = field(default_factory=dict[str, ParallelProgress])
    rounds: dict[str, int] = field(default_factory=dict[str, int])
    writing: ProgressLine | None = None
    """The step whose model wrote last."""
    steps: int = 0
    calls: int = 0
    tokens: int = 0
    cost: float = 0.0
    spinner: Spinner = field(default_factory=lambda: Spinner("dots"))

    def _name(self, node: str) -> str:
        return escape_controls(self.names.get(node, node))

    def see(self, event: JsonObject) -> None:
        """Process an event or a live delta."""
        kind = str(event["kind"])
        step = f"{event['execution']}/{event.get('step', '')}"
        match kind:
            case "delta":
                self._delta(step, cast(JsonObject, event["delta"]))
            case "step_started" | "gate_opened":
                self._begin(step, event)
            case "attempt_started":
                self._note(step, f"{event.get('reason', 'retry')}, attempt {event['attempt']}")
            case "step_succeeded" | "step_passed" | "step_cancelled" | "step_failed" | "gate_closed" | "scopes_closed":
                self._end(step, kind, event)
            case "scopes_opened":
                items = cast("list[object] | None", event.get("items"))
                starts = cast("list[str]", event["starts"])
                total = len(starts) * (1 if items is None else len(items))
                self.running.pop(step, None)
                self.fans[step] = ParallelProgress(_node(event), total)
            case "branch_settled" if step in self.fans:
                self.fans[step].settled += 1
                self.fans[step].failed += event["outcome"] == "failed"
            case "loop_round":
                self.rounds[_node(event)] = cast(int, event["round"])
            case "loop_left":
                self.rounds.pop(_node(event), None)
            case "emitted" if event["name"] == "progress" and isinstance(event.get("data"), str):
                for line in message_lines(str(event["data"])):
                    self.console.print(Text(line), soft_wrap=True)
            case "warned":
                self._print("!", "yellow", _node(event), str(event["message"]))
            case _:
                pass

    def _begin(self, step: str, event: JsonObject) -> None:
        scope = cast("list[JsonObject]", event.get("scope", []))
        depth = len(scope) + (event.get("parent") is not None)
        branch = f" {scope[-1]['branch']}" if scope else ""
        line = self.running.setdefault(step, ProgressLine(_node(event), time.monotonic(), depth, branch))
        if event["kind"] == "gate_opened":
            line.note = "waits for a person"

    def _note(self, step: str, note: str) -> None:
        if step in self.running:
            self.running[step].note, self.running[step].tail = note, ""

    def _delta(self, step: str, delta: JsonObject) -> None:
        line = self.running.get(step)
        if line is None:
            return
        if delta.get("kind") == "discarded":
            line.tail = ""
        elif delta.get("kind") == "text":
            line.tail = (line.tail + str(delta.get("text", "")))[-TEXT_CHARS_MAX:]
            self.writing = line
        elif delta.get("kind") == "tool_call":
            line.note = f"calls {delta.get('tool')}"
        elif delta.get("kind") == "progress":
            line.note = " ".join(map(str, [delta.get("message", ""), *_share(delta)])).strip()

    def _end(self, step: str, kind: str, event: JsonObject) -> None:
        self._count(event)
        if kind == "step_failed" and not event.get("final", True):
            failure = cast(JsonObject, event["failure"])
            self._note(step, f"{failure['code']}: will be retried")
            return
        if kind == "gate_closed":
            self._note(step, str(event["action"]))
            return
        line = self.running.pop(step, None)
        fan = self.fans.pop(step, None) if kind == "scopes_closed" else None
        self.steps += kind != "scopes_closed"
        if fan is not None:
            failed = f", {fan.failed} failed" if fan.failed else ""
            self._print("✓", "green", fan.node, f"{fan.total} branches{failed}")
        elif line is not None and not line.depth:
            self._print_end(line, kind, event)

    def _print_end(self, line: ProgressLine, kind: str, event: JsonObject) -> None:
        took = f"{time.monotonic() - line.began:.1f} s"
        if kind == "step_failed":
            failure = cast(JsonObject, event["failure"])
            self._print("✗", "red", line.node, f"{took}  {failure['code']}: {failure['message']}")
        elif kind == "step_cancelled":
            self._print("–", "dim", line.node, "cancelled")
        else:
            led = event.get("next") or cast(JsonObject, event.get("said") or {}).get("action") or line.note
            self._print("✓", "green", line.node, f"{took}  {f'→ {led}' if led else ''}")

    def _count(self, event: JsonObject) -> None:
        usage = event.get("usage")
        if isinstance(usage, dict):
            self.calls += cast(int, usage.get("model_calls", 0))
            self.tokens += cast(int, usage.get("input_tokens", 0)) + cast(int, usage.get("output_tokens", 0))
            self.cost += cast(float, usage.get("cost_usd") or 0.0)

    def _print(self, mark: str, style: str, node: str, rest: str) -> None:
        self.console.print(
            Text.assemble((f"{mark} ", style), (self._name(node), "bold"), "  ", (escape_controls(rest), "dim")),
            soft_wrap=False,
            overflow="ellipsis",
            no_wrap=True,
        )

    def __rich__(self) -> RenderableType:
        """Render the running steps, the open parallels and loops, and the counters."""
        table = Table.grid(padding=(0, 1))
        now = time.monotonic()
        for line in [*self.running.values()][:RUNNING_SHOWN_MAX]:
            tail = "" if line is self.writing else " ".join(line.tail.split())[-TAIL_CHARS:]
            note = escape_controls("  ".join(part for part in (line.note, tail) if part))
            name = Text(
                "  " * line.depth + self._name(line.node) + line.branch, style="bold", overflow="ellipsis", no_wrap=True
            )
            table.add_row(self.spinner, name, f"{now - line.began:5.1f} s", Text(note, style="dim", no_wrap=True))
        more = len(self.running) - RUNNING_SHOWN_MAX
        if more > 0:
            table.add_row("", f"and {more} more", "", "")
        for fan in self.fans.values():
            table.add_row("", Text(f"{self._name(fan.node)} {fan.settled}/{fan.total}", style="cyan"), "", "branches")
        for node, number in self.rounds.items():
            table.add_row("", Text(f"{self._name(node)} round {number}", style="cyan"), "", "")
        cost = f", ${self.cost:.4f}" if self.cost else ""
        total = f"{self.steps} steps, {self.calls} model calls, {self.tokens} tokens{cost}"
        return Group(table, *self._text_lines(), Text(total, style="dim"))

    def _text_lines(self) -> list[Text]:
        """Return the last lines that a model has written, as wide as the terminal."""
        if self.writing is None or self.writing not in self.running.values():
            return []
        text = Text("\n".join(message_lines(self.writing.tail)))
        return [*text.wrap(self.console, self.console.width)[-TEXT_LINES:]]


def _node(event: JsonObject) -> str:
    """Return the node of an event, marked if it is in a sub-workflow, whose names are independent."""
    node = str(event.get("node", ""))
    return f"↳ {node}" if event.get("parent") is not None else node


def _print_message(message: str) -> None:
    for line in message_lines(message):
        say(line)


def _print_delta(event: DeltaEvent) -> None:
    click.echo(json.dumps(event.to_json(), ensure_ascii=False), err=True)


@contextmanager
def watched(app: Pointsman, *, quiet: bool, tokens: bool = False) -> Generator[ProgressDisplay, None, None]:
    """On a terminal, show the progress of the app inside the context; elsewhere print only messages of nodes.

    `tokens`: print partial output instead, one JSON object for each line.
    """
    board = ProgressDisplay(Console(stderr=True, highlight=False))
    if tokens:
        leave = watch_deltas(app.context, _print_delta)
        try:
            yield board
        finally:
            leave()
        return
    if quiet:
        yield board
        return
    if not sys.stderr.isatty() or not board.console.is_terminal or board.console.is_dumb_terminal:
        leave = watch_progress(app.context, _print_message)
        try:
            yield board
        finally:
            leave()
        return
    leave = app.watch(board.see)
    try:
        with Live(board, console=board.console, refresh_per_second=REFRESHES_PER_S, transient=True):
            yield board
    finally:
        leave()


def _share(delta: JsonObject) -> list[str]:
    """Return the reported share of the work: `3/10`, or `3`."""
    return ["/".join(f"{number:g}" for name in ("done", "total") if isinstance(number := delta.get(name), int | float))]

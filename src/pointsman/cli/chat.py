"""`pointsman chat`: conversation at the terminal. Each message is a turn: a separate execution in one session.

read a line ──▶ one turn, in the event loop ──▶ a gate? its answer is the next line ──▶ read a line
Ctrl-C: discard the line    Ctrl-C: end the turn, keep the conversation       Ctrl-D: leave
"""

from __future__ import annotations

import asyncio
import secrets
import sys
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import ClassVar, Final, Literal, TypeAlias, cast

import click

from pointsman.app import Execution, Pointsman, Workflow
from pointsman.auth.subjects import check_session, is_conversational
from pointsman.cli.app_opening import file_or_id, file_or_workflow, installation, session_at_prompt
from pointsman.cli.error_boundary import output_mode, print_error
from pointsman.cli.options import (
    answer_of,
    by_option,
    lenient_option,
    model_option,
    quiet_option,
    script_option,
    store_option,
    var_option,
)
from pointsman.cli.printing import escape_controls, say, shown
from pointsman.cli.references import complete_file_or_workflow
from pointsman.cli.results import code_of, outcome_lines, output_text, shown_lines, warn_scripted
from pointsman.definition.model.workflow import WorkflowDefinition as Definition
from pointsman.errors import CallerError, EngineBug, PointsmanError
from pointsman.executions.children import OpenGate
from pointsman.executions.opening import drive
from pointsman.executions.views import gate_view
from pointsman.session import Session
from pointsman.values import Json, JsonObject, json_of


def is_terminal() -> bool:
    """Return whether both standard input and standard output are terminals."""
    return sys.stdin.isatty() and sys.stdout.isatty()


def read_line(prompt: str) -> str | None:
    """Return the next line; None at the end of the input. On Ctrl-C, move to a new line and raise
    `KeyboardInterrupt`."""
    if not is_terminal():
        if sys.stdin.isatty():
            click.echo(escape_controls(prompt), nl=False, err=True)
        line = sys.stdin.readline()
        return line.rstrip("\n") if line else None
    with suppress(ImportError):
        import_module("readline")  # Importing it gives `input` line editing and history.
    try:
        return input(escape_controls(prompt))
    except EOFError:
        click.echo("")
        return None
    except KeyboardInterrupt:
        click.echo("")
        raise


HELP: Final = """\
/help      show this list
/history   show the conversation so far
/new       start another conversation
/cancel    cancel the open turn; the conversation continues
/quit      leave (also Ctrl-D); the conversation is stored
//…        send a message that begins with a slash
Ctrl-C cancels the running turn: the conversation is then as it was before the message."""

Outcome: TypeAlias = Literal["went on", "left"]
Work: TypeAlias = Callable[[], Outcome]


class NotConversational(CallerError):
    """The workflow is not conversational."""

    code: ClassVar[str] = "not-conversational"


@click.command()
@click.argument("workflow", metavar="FILE|ID", shell_complete=complete_file_or_workflow)
@click.option("--session", metavar="ID", help="Continue this conversation.")
@click.option("--reopen", is_flag=True, help="Reopen it if an agent has ended it.")
@model_option
@script_option
@store_option
@var_option
@by_option
@lenient_option
@quiet_option
def chat(
    workflow: str,
    *,
    session: str | None,
    reopen: bool,
    model: str | None,
    script: Path | None,
    store: str | None,
    variables: tuple[tuple[str, str], ...],
    by: str,
    lenient: bool,
    quiet: bool,
) -> int:
    """Chat with a conversational workflow. Each line is a turn; the end of the input (Ctrl-D) leaves. /help lists
    commands.

    At a gate the next line is the answer. The conversation is stored: --session continues it, also a turn that a
    crash interrupted. If the input is not a terminal, a turn that does not complete ends the command with its
    exit code.
    """
    source = file_or_id(workflow)
    app = installation(store, model=model, script=script, variables=variables)
    with asyncio.Runner() as runner:
        runner.run(app.__aenter__())
        try:
            talk = Talk(
                app, runner, runner.run(file_or_workflow(app, source)), workflow, by=by, lenient=lenient, quiet=quiet
            )
            return talk.talk(session, reopen=reopen)
        finally:
            runner.run(app.__aexit__(None, None, None))


@dataclass(slots=True)
class Talk:
    """Chat of one user with one workflow, in one conversation at a time."""

    app: Pointsman
    runner: asyncio.Runner
    workflow: Workflow | str
    reference: str
    """The workflow as the user named it."""
    by: str
    lenient: bool
    quiet: bool
    session: str = ""
    code: int = 0
    has_warned: bool = False
    """Whether the warning about the scripted model has been printed."""

    def talk(self, session: str | None, *, reopen: bool) -> int:
        """Chat until the input ends or the user leaves; return the exit code."""
        self.session = new_session() if session is None else session
        self.runner.run(self._must_be_conversational())
        if reopen:
            self.runner.run(self._acting().conversations.reopen(self.session))
        say(f"session {self.session}" + (" (/help lists commands, Ctrl-D leaves)" if is_terminal() else ""))
        outcome = self._guarded(self._continue_turn) if session is not None else "went on"
        while outcome == "went on":
            try:
                line = read_line("you: ")
            except KeyboardInterrupt:
                say("(Ctrl-D leaves)")
                continue
            outcome = "left" if line is None else self._guarded(lambda line=line: self._line(line))
        return self.code

    def _guarded(self, work: Work) -> Outcome:
        """Run work; at a terminal, print errors, let Ctrl-C cancel the turn, and continue the conversation.

        Engine bugs, and all errors without a terminal, are raised.
        """
        try:
            return work()
        except EngineBug:
            raise
        except KeyboardInterrupt:
            if not is_terminal():
                raise
            with suppress(RuntimeError):
                # Ctrl-C at the very end of a `run` leaves a pending interrupt in the loop; this run consumes it.
                self.runner.run(asyncio.sleep(0))
            return self._cancel()
        except PointsmanError as why:
            if not is_terminal():
                raise
            print_error(why, output_mode())
            return "went on"

    def _continue_turn(self) -> Outcome:
        """Continue a turn that was interrupted by the end of its process, or that the user left."""
        execution = self.runner.run(self._left(run=True))
        if execution is None:
            return "went on"
        say(f"continuing {execution.id}")
        return self._turn(lambda: _finished(execution))

    async def _left(self, *, run: bool) -> Execution | None:
        """Return the open turn of the session, if any: opened for execution (`run`), or only to send it requests."""
        return await self._acting().conversations.open_turn(self.session, run=run)

    def _line(self, line: str) -> Outcome:
        text = line.strip()
        if not text:
            return "went on"
        if text.startswith("/") and not text.startswith("//"):
            return self._command(text)
        return self._turn(lambda: self._begin(text.removeprefix("/") if text.startswith("//") else text))

    async def _begin(self, text: str) -> Execution:
        executions = self._acting().executions
        return await executions.run(self.workflow, text, session=self.session, lenient=self.lenient, by=self.by)

    def _acting(self) -> Session:
        """Return the session of the user, for one verb; its audit entry names the workflow and the conversation."""
        return session_at_prompt(self.app, workflow=self.reference, session=self.session, by=self.by)

    def _command(self, text: str) -> Outcome:
        match text.partition(" ")[0]:
            case "/quit" | "/exit":
                return "left"
            case "/help":
                say(HELP)
            case "/new":
                self.session = new_session()
                say(f"session {self.session}")
            case "/history":
                for message in self.runner.run(self._acting().conversations.stored(self.session)).messages:
                    print_message(message)
            case "/cancel":
                return self._cancel()
            case other:
                say(f"there is no command {other!r}. /help lists commands; // sends a text with a slash.")
        return "went on"

    def _cancel(self) -> Outcome:
        execution = self.runner.run(self._left(run=False))
        if execution is None:
            say("no turn is open")
            return "went on"
        self.runner.run(self._stop(execution))
        say(f"cancelled {execution.id}; the conversation is as it was before")
        return "went on"

    async def _stop(self, execution: Execution) -> None:
        cancelled = await self._acting().executions.cancel(execution.id, reason="at the prompt", by=self.by)
        await cancelled.settled()

    def _turn(self, begin: Callable[[], Awaitable[Execution]]) -> Outcome:
        """Run one turn, and ask the user for the answers of its gates."""
        execution, waits = self.runner.run(self._drive(begin))
        while waits is not None:
            question = json_of(gate_view(waits.at))
            say("\n".join([shown(question["message"]), *shown_lines(question)]))
            try:
                line = read_line(f"{waits.node} ({options_of(question)}): ")
            except KeyboardInterrupt:
                line = None
            if line is None:
                self.code = code_of("waiting")
                self._print_outcome(execution)
                return "left"
            if line.strip():
                self._answer(execution, waits, line.strip(), digest=str(question["digest"]))
            _, waits = self.runner.run(self._drive(lambda: _finished(execution)))
        return self._ended(execution)

    async def _drive(self, begin: Callable[[], Awaitable[Execution]]) -> tuple[Execution, OpenGate | None]:
        """Begin or continue a turn, drive it, print its output, and return the gate at which it waits, if any."""
        nodes = (await self._definition()).nodes
        hidden = frozenset(node.id for node in nodes if node.chat_visible is False)
        with live_output(self.app, hidden, quiet=self.quiet) as live:
            execution = await begin()
            if execution.is_scripted and not self.has_warned and not self.quiet:
                self.has_warned = True
                warn_scripted()
            live.begin(execution.names)
            await drive(execution)
        output = execution.state.outcome.output
        if execution.status == "completed" and output is not None and output_text(output).strip() != live.last:
            click.echo(output_text(output) if not is_terminal() else escape_controls(output_text(output)))
        return execution, next(iter(execution.gates), None)

    async def _definition(self) -> Definition:
        source = self.workflow
        if isinstance(source, str):
            source = await self._acting().workflows.source(source)
        return source.definition

    async def _must_be_conversational(self) -> None:
        check_session(self.session)
        definition = await self._definition()
        if not is_conversational(definition):
            raise NotConversational(
                f"{definition.id!r} is not conversational",
                hint="Set `config: {conversational: true}`, or use `pointsman run`.",
            )

    def _answer(self, execution: Execution, gate: OpenGate, text: str, *, digest: str) -> None:
        """Answer the gate, with the digest of the data that the user has `digest`. If the answer is invalid, print why;
        the caller then asks again."""

        def answer() -> Outcome:
            try:
                parsed = answer_of(gate.id, text)
            except click.BadParameter as why:
                say(why.message)
                return "went on"
            executions = self._acting().executions
            self.runner.run(
                executions.answer(
                    execution.asking(gate).id,
                    gate.id,
                    parsed.action,
                    parsed.data,
                    comment=parsed.comment,
                    by=self.by,
                    digest=parsed.digest or digest,
                )
            )
            return "went on"

        self._guarded(answer)

    def _ended(self, execution: Execution) -> Outcome:
        status = execution.status
        if status == "completed":
            if self.runner.run(self._acting().conversations.stored(self.session)).closed:
                say("the conversation has ended; /new starts another one")
                return "went on" if is_terminal() else "left"
            return "went on"
        self._print_outcome(execution)
        if is_terminal():
            return "went on"
        self.code = code_of(status)
        return "left"

    def _print_outcome(self, execution: Execution) -> None:
        view = json_of(self.runner.run(execution.view()))
        for line in outcome_lines(
            view, stopped=False, store=self.app.settings.store or None, lasting=execution.is_kept
        ):
            click.echo(line, err=True)


def new_session() -> str:
    return f"chat-{secrets.token_hex(6)}"


def print_message(message: Json) -> None:
    """Print a message of a conversation, unless it is empty or the result of a tool."""
    if isinstance(message, dict) and isinstance(text := message.get("content"), str) and text.strip():
        author = "you" if message.get("role") == "user" else message.get("name") or message.get("role")
        if message.get("role") != "tool":
            click.echo(f"{shown(author)}: {shown(text)}")


def options_of(gate: JsonObject) -> str:
    """Return the actions of a gate, separated by `|`."""
    options = cast("list[JsonObject]", gate["options"])
    return "|".join(shown(option.get("value", option.get("action"))) for option in options) or "ACTION"


@dataclass(slots=True)
class LiveOutput:
    """Prints the text of steps while models write it: one step at a time; the text of other steps when they end."""

    hidden: frozenset[str]
    """Nodes with `chatVisible: false`."""
    names: dict[str, str] | None = None
    """Node -> display name; None: not known yet, because the execution is being started."""
    early: list[JsonObject] = field(default_factory=list[JsonObject])
    """Events before the names were known. A fast model answers before a start returns."""
    speaker: str = ""
    received: dict[str, str] = field(default_factory=dict[str, str])
    """Step -> its text in the running attempt."""
    last: str = ""
    """Text of the step that ended last."""

    def begin(self, names: dict[str, str]) -> None:
        """Print what came before the names were known, and everything that comes from now on."""
        self.names = names
        for event in self.early:
            self.see(event)
        self.early.clear()

    def see(self, event: JsonObject) -> None:
        """Process an event or a live delta."""
        if self.names is None:
            self.early.append(event)
            return
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
            text = escape_controls(str(delta.get("text", "")))
            begins = step not in self.received
            self.received[step] = self.received.get(step, "") + text
            if self.speaker in ("", step) and self.received[step].strip():
                self.speaker = step
                whole = self.received[step].lstrip()
                self._write(self._named(node, whole) if begins or whole == text.lstrip() else text)
        elif delta.get("kind") == "discarded":
            self._break_off(step)
        elif delta.get("kind") == "tool_call":
            self._line(f"  · {self._called(node)} calls {escape_controls(str(delta.get('tool')))}")

    def _end(self, step: str, node: str) -> None:
        text = self.received.pop(step, "").strip()
        if not text:
            return
        self.last = text
        if self.speaker == step:
            self._write("\n")
            self.speaker = ""
        else:
            self._line(self._named(node, text), plain=True)

    def _break_off(self, step: str) -> None:
        if self.received.pop(step, "") and self.speaker == step:
            self._write(click.style(" … (interrupted)\n", dim=True))
            self.speaker = ""

    def pause(self) -> None:
        """End the line of an incomplete text, before other output."""
        if self.speaker:
            self._break_off(self.speaker)

    def _line(self, text: str, *, plain: bool = False) -> None:
        if self.speaker:
            return  # A text is being written on the current line.
        self._write((text if plain else click.style(text, dim=True)) + "\n")

    def _called(self, node: str) -> str:
        return escape_controls((self.names or {}).get(node, node))

    def _named(self, node: str, text: str) -> str:
        return click.style(f"{self._called(node)}: ", bold=True) + text

    @staticmethod
    def _write(text: str) -> None:
        click.echo(text, nl=False)


async def _finished(execution: Execution) -> Execution:
    """Return an execution that has begun already."""
    return execution


@contextmanager
def live_output(app: Pointsman, hidden: frozenset[str], *, quiet: bool) -> Generator[LiveOutput, None, None]:
    """Print the live output of the app inside the context, if standard output is a terminal."""
    live = LiveOutput(hidden)
    if quiet or not sys.stdout.isatty():
        yield live
        return
    leave = app.watch(live.see)
    try:
        yield live
    finally:
        leave()
        live.pause()

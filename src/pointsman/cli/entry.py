"""Table of commands and their modules. A module is imported when one of its commands is used, so that help is fast."""

from __future__ import annotations

from importlib import import_module
from typing import Final, NamedTuple, cast

import click

from pointsman import __version__
from pointsman.cli.examples import show_examples


class CommandLocation(NamedTuple):
    """Module and name of a command, and its line in the list of commands."""

    module: str
    name: str
    says: str


COMMANDS: Final[dict[str, CommandLocation]] = {
    "demo": CommandLocation("demo", "demo", "Run example workflows offline, in a few seconds."),
    "check": CommandLocation("documents", "check", "List all problems of workflow files, with their places."),
    "run": CommandLocation("run", "run", "Run a workflow to its end, or to a gate without an answer."),
    "chat": CommandLocation("chat", "chat", "Chat with a conversational workflow, turn by turn."),
    "test": CommandLocation("testing", "test", "Run workflow tests: files that end in .test.yaml."),
    "list": CommandLocation("inspection", "list_", "List executions, newest first."),
    "show": CommandLocation("inspection", "show", "Show the state of an execution."),
    "events": CommandLocation("inspection", "events", "Print the journal of an execution."),
    "timeline": CommandLocation("inspection", "timeline", "Show the times of all steps, as bars."),
    "usage": CommandLocation("usage", "usage", "Show tokens, cost and time by workflow, node, model, key or day."),
    "records": CommandLocation("records", "records", "List the records of a session: plans, documents, actions …"),
    "answer": CommandLocation("run", "answer", "Answer a gate, and continue the execution."),
    "steer": CommandLocation("people", "steer", "Change data or jump to a node in a running execution."),
    "inbox": CommandLocation("people", "inbox", "List open gates that wait for people."),
    "delegate": CommandLocation("people", "delegate", "Pass your right to answer a gate on to another person."),
    "resume": CommandLocation("run", "resume", "Continue after a crash, a pause or a limit."),
    "retry": CommandLocation("fork", "retry", "Retry the failed step of an execution, or any step in a copy."),
    "fork": CommandLocation("fork", "fork", "Continue from any row of an execution, in a copy."),
    "move": CommandLocation("migrate", "move", "Continue with another definition, if everything fits."),
    "replay": CommandLocation("replay", "replay", "Decide a journal again, without calling anything."),
    "signal": CommandLocation("run", "signal", "Send an event to an execution, and continue it."),
    "publish": CommandLocation("triggers", "publish", "Publish an event to waiting executions and event triggers."),
    "schedules": CommandLocation("triggers", "schedules", "Schedules: list, add, pause, resume, delete, next, run."),
    "keep": CommandLocation("serve", "keep", "Run a background worker: resume executions, fire timers and schedules."),
    "serve": CommandLocation("serve", "serve", "Serve the API and the web app, and run the background work."),
    "mcp": CommandLocation("mcp", "mcp", "Serve MCP clients on standard input and output."),
    "keys": CommandLocation("serve", "keys", "API keys of the server: add, list, revoke."),
    "secrets": CommandLocation(
        "secrets", "secrets", "Secrets of the store: init, set, allow, disallow, list, delete, rotate."
    ),
    "audit": CommandLocation("audit", "audit", "Print the audit log: changes, callers and results."),
    "notifications": CommandLocation("notifications", "notifications", "Notices to external addresses: list, retry."),
    "pause": CommandLocation("control", "pause", "Start no further step of an execution."),
    "cancel": CommandLocation("control", "cancel", "Cancel an execution permanently."),
    "delete": CommandLocation("storage", "delete", "Delete executions or a conversation permanently."),
    "gc": CommandLocation("storage", "gc", "Delete executions beyond their retention, and unused contents."),
    "export": CommandLocation("storage", "export", "Export an execution to a file, to continue it in another store."),
    "import": CommandLocation("storage", "import_", "Import an execution from an exported file."),
    "backup": CommandLocation("backups", "backup", "Write everything in the store into one file, while it is in use."),
    "restore": CommandLocation("backups", "restore", "Restore a backup into an empty store, of any kind."),
    "bulk": CommandLocation("bulk", "bulk", "Cancel, pause, resume, retry or delete many at once."),
    "memory": CommandLocation("memory", "memory", "Memory: list, get, set, append, delete, search, history."),
    "convert": CommandLocation("documents", "convert", "Write a workflow in another dialect, or draw it."),
    "workflows": CommandLocation("library", "workflows", "Saved workflows: list, save, get, delete, diff, versions."),
    "schema": CommandLocation("documents", "schema", "Print the JSON Schema of the native format."),
    "tools": CommandLocation("installation", "tools", "List the tools that workflows can use here."),
    "models": CommandLocation("installation", "models", "List the models that workflows can use here."),
    "settings": CommandLocation("installation", "settings", "Show the effective settings with their sources."),
    "verify": CommandLocation("installation", "verify", "Check the store for damage."),
    "doctor": CommandLocation("installation", "doctor", "Diagnose this installation."),
    "completion": CommandLocation("completion", "completion", "Print the completion script of a shell."),
}


class Root(click.Group):
    """All commands, listed in the order of `COMMANDS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        place = COMMANDS.get(cmd_name)
        if place is None:
            return None
        command = cast(click.Command, getattr(import_module(f"pointsman.cli.{place.module}"), place.name))
        show_examples(command, cmd_name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            from pointsman.definition.problems import did_you_mean

            near = did_you_mean(args[0], COMMANDS) or "`pointsman --help` lists them."
            ctx.fail(f"there is no command {args[0]!r}. {near}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.says) for name, place in COMMANDS.items()])


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="pointsman")
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks. May follow any command.")
def root() -> None:
    """A durable engine for declarative agentic workflows.

    \b
    pointsman demo                          see it work
    pointsman check flow.yaml               what is wrong with a workflow
    pointsman run flow.yaml -i goal=ships   run it

    Exit codes: 0 completed, 1 failed or errors found, 2 wrong usage or unreadable input, 3 waiting at a gate or
    paused, 4 interrupted by a limit, 130 cancelled, or left by Ctrl-C (and resumable).
    """

"""Table of commands with their modules, and examples. A module is imported when one of its commands is used."""

from __future__ import annotations

from importlib import import_module
from typing import Final, NamedTuple, cast

import click

from pointsman import __version__


class CommandLocation(NamedTuple):
    """Module and name of a command, and its description in the list of commands."""

    module: str
    name: str
    summary: str


COMMANDS: Final[dict[str, CommandLocation]] = {
    "demo": CommandLocation("demo", "demo", "Run example workflows offline, in a few seconds."),
    "init": CommandLocation("init", "init", "Write a starter project: workflow, test, tools, settings."),
    "check": CommandLocation("documents", "check", "List all problems of workflow files, with their places."),
    "run": CommandLocation("run", "run", "Run a workflow to its end, or to a gate without an answer."),
    "chat": CommandLocation("chat", "chat", "Chat with a conversational workflow, turn by turn."),
    "test": CommandLocation("testing", "test", "Run workflow tests: files that end in .test.yaml."),
    "eval": CommandLocation("evaluations", "evaluate", "Run a workflow over a dataset, and score its outputs."),
    "datasets": CommandLocation("evaluations", "datasets", "Datasets of evaluations: list, save, show, delete."),
    "list": CommandLocation("inspection", "list_", "List executions, newest first."),
    "show": CommandLocation("inspection", "show", "Show the state of an execution."),
    "events": CommandLocation("inspection", "events", "Print the journal of an execution."),
    "logs": CommandLocation("inspection", "logs", "Print what happened in an execution, line by line."),
    "timeline": CommandLocation("inspection", "timeline", "Show the times of all steps, as bars."),
    "usage": CommandLocation("installation", "usage", "Show tokens, cost and time by workflow, node, model or day."),
    "records": CommandLocation("inspection", "records", "List the records of a session: plans, documents, actions …"),
    "answer": CommandLocation("run", "answer", "Answer a gate, and continue the execution."),
    "steer": CommandLocation("control", "steer", "Change data or jump to a node in a running execution."),
    "inbox": CommandLocation("control", "inbox", "List open gates that wait for people."),
    "delegate": CommandLocation("control", "delegate", "Pass your right to answer a gate on to another person."),
    "resume": CommandLocation("run", "resume", "Continue an execution after a crash, a pause or a limit."),
    "retry": CommandLocation("control", "retry", "Retry the failed step of an execution, or any step in a copy."),
    "fork": CommandLocation("control", "fork", "Continue a copy of an execution, from any row of it."),
    "move": CommandLocation(
        "control", "move", "Continue an execution with another definition, if everything in progress fits."
    ),
    "replay": CommandLocation(
        "control", "replay", "Decide the rows of a journal again and compare, without calling anything."
    ),
    "signal": CommandLocation("run", "signal", "Send an event to an execution, and continue it."),
    "publish": CommandLocation("triggers", "publish", "Publish an event to waiting executions and event triggers."),
    "schedules": CommandLocation("triggers", "schedules", "Schedules: list, add, pause, resume, delete, next, run."),
    "worker": CommandLocation(
        "serve", "worker", "Run a background worker: resume executions, fire timers and schedules."
    ),
    "serve": CommandLocation("serve", "serve", "Serve the API and the web app, and run the background work."),
    "mcp": CommandLocation("serve", "mcp", "Serve MCP clients on standard input and output."),
    "keys": CommandLocation("access", "keys", "API keys of the server: add, list, revoke."),
    "secrets": CommandLocation(
        "access", "secrets", "Secrets of the store: init, set, allow, disallow, list, delete, rotate."
    ),
    "audit": CommandLocation("access", "audit", "Print the audit log: changes, callers and results."),
    "notifications": CommandLocation(
        "triggers", "notifications", "Notices to external addresses: list, retry, revoke links."
    ),
    "pause": CommandLocation("control", "pause", "Pause an execution: start no further step."),
    "cancel": CommandLocation("control", "cancel", "Cancel an execution permanently."),
    "delete": CommandLocation("storage", "delete", "Delete executions or a conversation permanently."),
    "gc": CommandLocation("storage", "gc", "Delete executions beyond their retention, and unused contents."),
    "export": CommandLocation("storage", "export", "Export an execution to a file, to continue it in another store."),
    "import": CommandLocation("storage", "import_", "Import an execution from an exported file."),
    "backup": CommandLocation("storage", "backup", "Back up the whole store into one file, while it is in use."),
    "restore": CommandLocation("storage", "restore", "Restore a backup into an empty store, of any kind."),
    "bulk": CommandLocation("control", "bulk", "Cancel, pause, resume, retry or delete many executions at once."),
    "memory": CommandLocation("memory", "memory", "Memory: list, get, set, append, delete, search, history."),
    "convert": CommandLocation("documents", "convert", "Write a workflow in another dialect, or draw it."),
    "workflows": CommandLocation("library", "workflows", "Saved workflows: list, save, get, delete, diff, versions."),
    "folders": CommandLocation("folders", "folders", "Folders of saved workflows: list, add, rename, share, delete."),
    "templates": CommandLocation("templates", "templates", "Templates: list, show, try, use."),
    "schema": CommandLocation("documents", "schema", "Print the JSON Schema of the native format."),
    "tools": CommandLocation("installation", "tools", "List the tools that workflows can use here."),
    "models": CommandLocation(
        "installation", "models", "Models that workflows can use here: list, connect, disconnect, default."
    ),
    "settings": CommandLocation("settings", "settings", "Show the effective settings, and change some of them."),
    "verify": CommandLocation("installation", "verify", "Check the store for damage."),
    "doctor": CommandLocation("installation", "doctor", "Diagnose this installation."),
    "completion": CommandLocation("references", "completion", "Print the completion script of a shell."),
}

ALIASES: Final = {"keep": "worker"}
"""Former names of commands; they still work, and help does not list them."""


class Root(click.Group):
    """All commands, listed in the order of `COMMANDS`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = ALIASES.get(cmd_name, cmd_name)
        place = COMMANDS.get(name)
        if place is None:
            return None
        command = cast(click.Command, getattr(import_module(f"pointsman.cli.{place.module}"), place.name))
        show_examples(command, name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS | ALIASES and not args[0].startswith("-"):
            from pointsman.definition.problems import did_you_mean

            near = did_you_mean(args[0], COMMANDS) or "`pointsman --help` lists them."
            ctx.fail(f"there is no command {args[0]!r}. {near}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, place.summary) for name, place in COMMANDS.items()])


@click.group(cls=Root, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="pointsman")
@click.option("--debug", is_flag=True, expose_value=False, help="Show tracebacks. May follow any command.")
def root() -> None:
    """A durable engine for declarative agentic workflows.

    \b
    pointsman demo                          see it work
    pointsman check flow.yaml               list the problems of a workflow
    pointsman run flow.yaml -i goal=ships   run it

    Exit codes: 0 completed, 1 failed or errors found, 2 wrong usage or unreadable input, 3 waiting at a gate or
    paused, 4 interrupted by a limit, 130 cancelled, or stopped with Ctrl-C (resumable).
    """


EXAMPLES: Final[dict[str, tuple[str, ...]]] = {
    "demo": ("pointsman demo",),
    "init": ("pointsman init letters",),
    "check": ("pointsman check flow.yaml", "pointsman check *.yaml --json", "pointsman check builtin:agentforge"),
    "run": (
        "pointsman run flow.yaml -i goal=ships",
        "pointsman run letter --input @order.json --model openai:gpt-5-mini",
        "pointsman run flow.yaml -i goal=ships --answer review=approve --json",
        "pointsman run flow.yaml -i goal=ships --watch",
        """pointsman run --command "Write a proposal, send to ann@example.org\"""",
    ),
    "chat": ("pointsman chat desk.yaml --session ann",),
    "test": ("pointsman test examples",),
    "eval": (
        "pointsman eval triage-support --data cases.csv --match kind --min kind=0.9",
        """pointsman eval letter --data letters --score "short=len(output.text) < 400" --judge "tone=It is polite." """,
    ),
    "datasets save": ("pointsman datasets save tickets triage-support cases.jsonl --match kind",),
    "datasets list": ("pointsman datasets list",),
    "datasets show": ("pointsman datasets show tickets",),
    "datasets delete": ("pointsman datasets delete tickets",),
    "templates list": ("pointsman templates list --tag people",),
    "templates show": ("pointsman templates show triage-support > triage.yaml",),
    "templates try": ("pointsman templates try triage-support",),
    "templates use": ("pointsman templates use triage-support --as support",),
    "list": ("pointsman list --status waiting --workflow letter",),
    "show": ("pointsman show last", "pointsman show exec-1 --json"),
    "events": ("pointsman events exec-1 --follow", "pointsman events exec-1 --jsonl --after 12"),
    "logs": ("pointsman logs last --follow", "pointsman logs exec-1 --jsonl"),
    "timeline": ("pointsman timeline exec-1",),
    "records": ("pointsman records ses_0badcafe", "pointsman records ses_0badcafe --json"),
    "answer": (
        "pointsman answer exec-1 review approve",
        """pointsman answer exec-1 review '{"action": "edit", "data": {"title": "Ships"}}' --as ann""",
    ),
    "steer": (
        """pointsman steer exec-1 --say "Be brief." --goto writer""",
        "pointsman steer exec-1 --set draft.title=Ships",
    ),
    "inbox": ("pointsman inbox --as ann --group editors",),
    "delegate": ("pointsman delegate exec-1 review ben --as ann",),
    "resume": ("pointsman resume exec-1", "pointsman resume exec-1 --limit steps=2000 --limit costUsd=5"),
    "retry": ("pointsman retry exec-1", "pointsman retry exec-1 --from draft --set style=short"),
    "fork": ("pointsman fork exec-1 --at 12", "pointsman fork exec-1 --at 12 --set draft.title=Ships"),
    "move": ("pointsman move exec-1 --to flow.yaml --check",),
    "replay": ("pointsman replay exec-1",),
    "signal": ("""pointsman signal exec-1 order.paid '{"amount": 5}' --key payment-7""",),
    "publish": ("""pointsman publish order.paid '{"order": 7}'""",),
    "schedules add": (
        """pointsman schedules add report --cron "0 7 * * 1-5" --timezone Europe/Berlin""",
        "pointsman schedules add report --every 15m -i who=ann",
    ),
    "schedules list": ("pointsman schedules list",),
    "schedules pause": ("pointsman schedules pause report",),
    "schedules resume": ("pointsman schedules resume report",),
    "schedules delete": ("pointsman schedules delete report",),
    "schedules next": ("pointsman schedules next report --count 10",),
    "schedules run": ("pointsman schedules run report",),
    "worker": ("pointsman worker --store sqlite:///flows.db", "pointsman worker --wait"),
    "serve": ("pointsman serve --store sqlite:///flows.db --port 8000",),
    "workflows share": ("pointsman workflows share news --with groups --group desk",),
    "audit": ("pointsman audit --who ada --json",),
    "keys add": ("pointsman keys add ada --role editor --group desk",),
    "keys list": ("pointsman keys list",),
    "keys revoke": ("pointsman keys revoke ada",),
    "secrets init": ("pointsman secrets init",),
    "secrets set": ("pointsman secrets set WEATHER", "pointsman secrets set WEATHER --as ada"),
    "secrets list": ("pointsman secrets list",),
    "secrets allow": (
        "pointsman secrets allow WEATHER --host api.example.com",
        "pointsman secrets allow SMTP --tool send_mail",
    ),
    "secrets disallow": ("pointsman secrets disallow WEATHER --host api.example.com",),
    "secrets delete": ("pointsman secrets delete WEATHER",),
    "secrets rotate": ("pointsman secrets rotate --new-key",),
    "notifications list": ("pointsman notifications list",),
    "notifications retry": ("pointsman notifications retry NOTICE",),
    "notifications revoke-links": ("pointsman notifications revoke-links",),
    "pause": ("pointsman pause exec-1 --by ann",),
    "cancel": ('pointsman cancel exec-1 --reason "no longer needed"',),
    "delete": ("pointsman delete exec-1 exec-2", "pointsman delete --session ann"),
    "gc": ("pointsman gc --dry-run",),
    "export": ("pointsman export exec-1 -o exec-1.jsonl",),
    "import": ("pointsman import exec-1.jsonl", "pointsman import exec-1.jsonl --new-id"),
    "backup": ("pointsman backup monday.backup --store sqlite:///flows.db",),
    "restore": ("pointsman restore monday.backup --store postgresql://pointsman@db/pointsman",),
    "bulk": (
        "pointsman bulk retry --status failed --workflow letter",
        "pointsman bulk cancel --since 2027-01-31 --yes",
    ),
    "memory list": ("pointsman memory list --user ann",),
    "memory get": ("pointsman memory get --user ann tone",),
    "memory set": ("pointsman memory set --user ann tone short --ttl 30d",),
    "memory append": ("pointsman memory append --user ann notes Called.",),
    "memory delete": ("pointsman memory delete --user ann tone",),
    "memory search": ("pointsman memory search --user ann invoice",),
    "memory history": ("pointsman memory history --user ann tone",),
    "memory restore": ("pointsman memory restore --user ann tone 2",),
    "memory reindex": ("pointsman memory reindex",),
    "convert": ("pointsman convert flow.yaml --to mermaid", "pointsman convert flow.yaml --to graph --out flow.json"),
    "workflows list": ("pointsman workflows list",),
    "workflows save": ("pointsman workflows save flow.yaml --author ann",),
    "workflows get": ("pointsman workflows get letter@2",),
    "workflows clone": ("pointsman workflows clone builtin:deep_research my-research",),
    "workflows design": ("""pointsman workflows design "A letter that a person sees first." --id letter --save""",),
    "workflows edit": (
        """pointsman workflows edit letter --words "Write it in verse." """.strip(),
        "pointsman workflows edit letter --operations @change.json --apply",
    ),
    "workflows rollback": ("pointsman workflows rollback letter 1",),
    "mcp": ("pointsman mcp --store sqlite:///desk.db",),
    "workflows publish": ('pointsman workflows publish letter "Spring mailing" --note "With the new greeting."',),
    "workflows unpublish": ("pointsman workflows unpublish letter",),
    "workflows move": ("pointsman workflows move letter sales/mail",),
    "folders list": ("pointsman folders list",),
    "folders add": ("pointsman folders add sales/mail",),
    "folders rename": ("pointsman folders rename sales/mail sales/letters",),
    "folders share": ("pointsman folders share sales --group desk",),
    "folders delete": ("pointsman folders delete sales/mail",),
    "workflows delete": ("pointsman workflows delete letter",),
    "workflows diff": ("pointsman workflows diff letter 1 2",),
    "workflows versions": ("pointsman workflows versions letter",),
    "schema": ("pointsman schema > workflow.schema.json", "pointsman schema --openapi > openapi.json"),
    "tools": ("pointsman tools --script script.yaml",),
    "tools import": ("pointsman tools import https://api.example.org/openapi.json --out shop.toml",),
    "models": ("pointsman models --keys", "pointsman models --ping --model openai:gpt-5-mini"),
    "models connect": (
        "pointsman models connect openai --default",
        "pointsman models connect openai-compatible --name gateway --base-url https://llm.example.com/v1 --model m",
    ),
    "models disconnect": ("pointsman models disconnect openai",),
    "models default": ("pointsman models default openai:gpt-5-mini",),
    "settings": ("pointsman settings",),
    "settings set": (
        "pointsman settings set language de",
        """pointsman settings set variables '{"REGION": "eu"}'""",
    ),
    "settings unset": ("pointsman settings unset language",),
    "settings mail": (
        "pointsman settings mail smtp.example.com --user desk --sender desk@example.com --test ada@example.com",
    ),
    "usage": ("pointsman usage --by model --since 2026-11-01",),
    "verify": ("pointsman verify --store sqlite:///flows.db",),
    "doctor": ("pointsman doctor",),
    "completion": ('eval "$(pointsman completion bash)"',),
}


def show_examples(command: click.Command, name: str) -> None:
    """Add the examples to the help of a command and of its subcommands."""
    if name in EXAMPLES and not command.epilog:
        lines = "\n".join(f"  {line.strip()}" for line in EXAMPLES[name])
        command.epilog = f"\b\n{'Example' if len(EXAMPLES[name]) == 1 else 'Examples'}:\n{lines}"
    if isinstance(command, click.Group):
        for inner, one in command.commands.items():
            show_examples(one, f"{name} {inner}")

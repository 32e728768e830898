"""`pointsman demo`: runs example workflows offline, in seconds, and prints their output, timeline and usage."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from shutil import which
from typing import Final

import click

from pointsman.app import Execution, Pointsman, Workflow
from pointsman.cli.app_opening import go, session_at_prompt
from pointsman.cli.inspection import account_lines, bar_lines
from pointsman.cli.options import json_option, not_empty
from pointsman.cli.printing import escape_controls, print_json, shown
from pointsman.cli.progress import watched
from pointsman.cli.results import CODES, outcome_lines, output_text
from pointsman.executions.opening import drive
from pointsman.settings import Settings, data_directory, make_data_directory, masked_address
from pointsman.values import Json, JsonObject, json_of
from pointsman.workflows.builtin import examples_directory
from pointsman.workflows.scripts import load_script, slowed

DOCUMENT_LINES_MAX: Final = 16
ANSWER_S: Final = 0.6
"""Duration of a scripted answer in seconds if standard error is a terminal, so that the progress can be followed."""


@dataclass(frozen=True, slots=True)
class Scene:
    """One execution of the demo, and the part of its output to print."""

    title: str
    says: str
    file: str
    script: str
    input: JsonObject
    document: str
    """Member of the output to print; empty: the whole output."""


SCENES: Final = (
    Scene(
        "agentforge: five agents write a proposal, check it, and repair what the check found",
        "plan and research → developer → writer → validation → (score below 80, or issues?) → reviewer",
        "agentforge/agentforge.yaml",
        "agentforge/script.yaml",
        {"goal": "Optimize our warehouse operations"},
        "final",
    ),
    Scene(
        "2nChat: a supervisor routes a chat to its workers, whose tools the graph runs",
        "user: Which companies in Oslo were not called for a month?",
        "2nchat/2nchat.json",
        "2nchat/script.yaml",
        {"message": "Which companies in Oslo were not called for a month?"},
        "",
    ),
)

AFTERWARDS: Final = """\
Show the steps in your browser:

  {program} serve --store {store} --script {folder}/agentforge/script.yaml
{links}

All answers were scripted: no network, no key, the same result every time. With a real model:

  export OPENAI_API_KEY=…
  {program} run {folder}/agentforge/agentforge.yaml -i goal="Optimize our warehouse" --model openai:gpt-5-mini

Next:
  {program} check FILE
      list the problems of your workflow, with line and column
  {program} run FILE
      run it; Ctrl-C, then `{program} resume` continues where it stopped
  {program} test {folder}
      run the tests of the examples"""


@click.command()
@click.option(
    "--store",
    envvar="POINTSMAN_STORE",
    metavar="URL",
    callback=not_empty,
    help="Address of the store (default: POINTSMAN_STORE, else demo.db in the data directory).",
)
@json_option
def demo(*, store: str | None, as_json: bool) -> int:
    """Run two example workflows offline, in a few seconds: progress, document, timeline, usage of each agent."""
    folder = examples_directory()
    if store is None:
        make_data_directory()
        store = f"sqlite:///{data_directory() / 'demo.db'}"
    settings = Settings(store=store, delays=False)
    played = [go(_play(scene, folder, settings, as_json=as_json)) for scene in SCENES]
    if as_json:
        print_json({"store": masked_address(store), "executions": [view for view, _ in played]})
        return max(code for _, code in played)
    links = "\n".join(
        f"  http://{settings.server.host}:{settings.server.port}/executions/{view['executionId']}" for view, _ in played
    )
    click.echo()
    click.echo(
        AFTERWARDS.format(program=_program(), folder=_shortest(folder), store=quote(masked_address(store)), links=links)
    )
    return max(code for _, code in played)


def _shortest(path: Path) -> str:
    """Return a path relative to the working directory if it is inside."""
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _program() -> str:
    """Return the command that starts this program: its bare name if PATH resolves it to this program, else its path."""
    program = Path(sys.argv[0]).absolute()
    if program.stem != "pointsman":
        return f"{quote(_shortest(Path(sys.executable)))} -m pointsman"
    path = which(program.name)
    return program.name if path and Path(path).absolute() == program else quote(_shortest(program))


async def _play(scene: Scene, folder: Path, settings: Settings, *, as_json: bool) -> tuple[JsonObject, int]:
    """Run a scene and print it; return the execution and its exit code. Also saves the workflow for viewing."""
    if not as_json:
        click.echo()
        click.echo(click.style(f"━━ {scene.title}", bold=True))
        click.echo(f"   {scene.says}")
        click.echo()
    source = Workflow.load(folder / scene.file)
    script = load_script(folder / scene.script)
    if sys.stderr.isatty():
        script = slowed(script, ANSWER_S)
    async with Pointsman(settings=settings, model="scripted", script=script) as app:
        session = session_at_prompt(app)
        await session.workflows.save(source, author="demo", draft=True)
        with watched(app, quiet=as_json) as display:
            execution: Execution = await session.executions.run(source, scene.input)
            display.names.update(execution.names)
            await drive(execution)
        view = json_of(await execution.view())
        lanes = await session.executions.timeline(execution.id)
    if not as_json:
        _print_document(view["output"], scene.document)
        click.echo()
        for line in (
            *bar_lines(lanes),
            "",
            *account_lines(lanes),
            "",
            *outcome_lines(view, stopped=False, store=None, lasting=True),
        ):
            click.echo(line)
    return view, CODES.get(str(view["status"]), 1)


def _print_document(output: Json, name: str) -> None:
    text = output_text(output.get(name) if name and isinstance(output, dict) else output)
    lines = text.rstrip().splitlines()
    for line in lines[:DOCUMENT_LINES_MAX]:
        click.echo(f"   │ {escape_controls(line)}")
    if len(lines) > DOCUMENT_LINES_MAX:
        click.echo(f"   │ … {shown(len(lines) - DOCUMENT_LINES_MAX)} more lines")

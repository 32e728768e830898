"""Open the app for a command: with its flags, its audit entry, and an orderly end on signals."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Iterable, Sequence
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from pointsman.app import Pointsman, Workflow
from pointsman.auth.callers import Caller
from pointsman.auth.verbs import target_text
from pointsman.cli.error_boundary import output_mode
from pointsman.cli.options import os_user
from pointsman.definition.problems import WorkflowInvalid, did_you_mean
from pointsman.errors import CallerError
from pointsman.session import Session
from pointsman.settings import Settings, load_settings
from pointsman.values import JsonObject
from pointsman.workflows.scripts import Script, parse_script, script_text
from pointsman.workflows.sources import is_file_name

T = TypeVar("T")


class ReferenceUnknown(CallerError):
    """The reference is neither a file nor a saved workflow."""

    code = "reference-unknown"


def installation(
    store: str | None = None,
    *,
    model: str | None = None,
    script: Path | None = None,
    variables: Sequence[tuple[str, str]] = (),
    delays: bool | None = None,
    runtime: str | None = None,
) -> Pointsman:
    """Return the app of a command, with settings from file, environment and flags."""
    settings = loaded(store, delays=delays, runtime=runtime)
    if variables:
        settings = settings.model_copy(update={"variables": {**settings.variables, **dict(variables)}})
    app = Pointsman(settings=settings, model=model, script=None if script is None else _script(script))
    if settings.authoring != "off":
        from pointsman.authoring.tools import offer_verbs  # Imported late: rarely enabled.

        offer_verbs(app.tools, lambda: app.context, settings.authoring)
    if "_POINTSMAN_COMPLETE" not in os.environ:  # No warning may disturb a command line that a shell completes.
        for why in app.tools.broken_modules:
            click.echo(f"warning: {why}\n  → {why.hint}", err=True)
    return app


def session_at_prompt(app: Pointsman, **target: object) -> Session:
    """Return the session of the running command. Its caller is an admin: a user who can open the store can do
    everything. Audit entries contain the name of the command and `target`, the parameters that identify the changed
    thing; `by` is left out if it is the login."""
    context = click.get_current_context(silent=True)
    path = "" if context is None else context.command_path.partition(" ")[2]
    caller = prompt_caller()
    objects = {name: value for name, value in target.items() if name != "by" or value != caller.name}
    return app.acting_as(caller, via=f"pointsman {path}".strip(), target=target_text(objects))


def _script(path: Path) -> Script:
    """Read a script; problems while parsing it are reported with the script's file name."""
    mode = output_mode()
    before = mode.file, mode.text
    text = script_text(path)
    mode.file, mode.text = str(path), text
    script = parse_script(text)
    mode.file, mode.text = before
    return script


def loaded(store: str | None = None, *, delays: bool | None = None, runtime: str | None = None) -> Settings:
    settings = load_settings(flags={"store": store, "delays": delays, "runtime": runtime})
    modules = (*settings.tool_modules, *output_mode().tool_modules)
    if modules and "" not in sys.path:
        sys.path.append("")  # Modules of tools may lie in the working directory. Last: a file hides no other module.
    return settings.model_copy(update={"tool_modules": modules})


def document(file: str, *, dialect: str | None = None) -> Workflow:
    """Load a workflow from a file, and report later problems with this file's name and text."""
    source = Workflow.load(file, dialect=dialect)
    report_problems_of(source, file)
    return source


def report_problems_of(source: Workflow, file: str) -> None:
    mode = output_mode()
    mode.file, mode.text = file, source.document.text
    mode.unreadable = source.unreadable


def file_or_id(reference: str, *, dialect: str | None = None) -> Workflow | str:
    """Resolve FILE|ID: load it if it exists as a file or looks like a file name, else return it as a workflow id."""
    if Path(reference).exists() or is_file_name(reference):
        return document(reference, dialect=dialect)
    return reference


async def file_or_workflow(app: Pointsman, workflow: Workflow | str | None) -> Workflow | str:
    """Return the workflow, or for None the pipeline. Raises `ReferenceUnknown` if a workflow id does not exist."""
    if workflow is None:
        workflow = await session_at_prompt(app).workflows.pipeline()
    if isinstance(workflow, str):
        ids = await session_at_prompt(app).workflows.ids()
        if workflow.partition("@")[0] not in ids:
            hint = did_you_mean(workflow.partition("@")[0], ids) or "`pointsman workflows list` lists them."
            raise ReferenceUnknown(f"{workflow!r} is neither a file nor a saved workflow", hint=hint)
    return workflow


async def input_schema(session: Session, workflow: Workflow | str) -> JsonObject | None:
    """Return the input schema of a workflow; None if it has none or the document cannot be read."""
    source = await session.workflows.source(workflow) if isinstance(workflow, str) else workflow
    return None if source.read.workflow is None else source.read.workflow.input_schema


@asynccontextmanager
async def reporting_problems_of(app: Pointsman, workflow: Workflow | str) -> AsyncGenerator[None, None]:
    """Report problems of a saved workflow, such as those of a draft, with its name and text, as for a file."""
    try:
        yield
    except WorkflowInvalid:
        if isinstance(workflow, str):
            report_problems_of(await session_at_prompt(app).workflows.source(workflow), workflow)
        raise


def go(work: Coroutine[Any, Any, T]) -> T:
    """Run the coroutine of a command in a new event loop, and return its result."""
    return asyncio.run(work)


def prompt_caller() -> Caller:
    """Return the caller of a command, an admin: a user who can open the store can do everything."""
    return Caller(name=os_user(), role="admin", entrance="shell")


ENDS: Final = tuple(getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name))
"""Signals that end a command as Ctrl-C does. `asyncio.run` handles Ctrl-C (SIGINT) itself."""


@contextmanager
def on_signals(signals: Iterable[signal.Signals], stop: Callable[[], None]) -> Generator[None, None, None]:
    """Call `stop` on each of the signals. A signal that is ignored stays ignored, as `nohup` requires."""
    loop = asyncio.get_running_loop()
    heeded: list[signal.Signals] = []
    for one in signals:
        if signal.getsignal(one) is signal.SIG_IGN:
            continue
        try:
            loop.add_signal_handler(one, stop)
        except NotImplementedError:
            break  # not supported by this system
        heeded.append(one)
    try:
        yield
    finally:
        for heeded_signal in heeded:
            loop.remove_signal_handler(heeded_signal)


@asynccontextmanager
async def stoppable() -> AsyncGenerator[None, None]:
    """Cancel the block on SIGTERM or SIGHUP, as on Ctrl-C. A second signal has no further effect."""
    task = asyncio.current_task()
    assert task is not None
    announced = False

    def stop() -> None:
        nonlocal announced
        if not announced:
            announced = True
            task.cancel()

    with on_signals(ENDS, stop):
        try:
            yield
        except asyncio.CancelledError:
            if announced:
                raise click.Abort from None
            raise

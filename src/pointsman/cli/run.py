"""Commands that drive executions: run, answer, resume, signal. Each drives to the end or to an open gate.

`--watch` runs a command again whenever a file changes, in a new process, so that modules of tools are loaded again:

    files ── time and size, every 0.5 s ──▶ changed? wait until they stay the same ──▶ end the run, run again
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any, Final, TypeAlias, TypedDict, TypeVar, Unpack, cast

import click

from pointsman.app import Execution, Pointsman, Workflow
from pointsman.cli.app_opening import (
    file_or_id,
    file_or_workflow,
    go,
    input_schema,
    installation,
    loaded,
    reporting_problems_of,
    session_at_prompt,
    stoppable,
)
from pointsman.cli.error_boundary import MISUSED, output_mode, print_error
from pointsman.cli.options import (
    AnswerPair,
    Decorated,
    Pair,
    answer_of,
    by_option,
    dialect_option,
    input_of,
    json_option,
    lenient_option,
    model_option,
    not_empty,
    person_options,
    quiet_option,
    script_option,
    store_option,
    value_of,
    var_option,
)
from pointsman.cli.printing import print_json, say, shown
from pointsman.cli.progress import watched
from pointsman.cli.references import complete_action, complete_file_or_workflow, complete_gate, execution_argument
from pointsman.cli.results import at_store, code_of, print_outcome, queued_lines, warn_scripted
from pointsman.errors import CallerError
from pointsman.executions.dry_run import dry_view
from pointsman.executions.execution import OwnershipLost
from pointsman.executions.isolation import acts_outside
from pointsman.executions.opening import GivenAnswer, drive
from pointsman.executions.start import StartOptions, trial_id, trial_of
from pointsman.values import Json, JsonObject, json_of
from pointsman.workflows.checking import called_again

INTERVAL_S: Final = 0.5
WATCH: Final = "--watch"
SETTINGS_FILE: Final = "pointsman.toml"

Stamp: TypeAlias = tuple[int, int] | None
"""Modification time in nanoseconds and size in bytes; None: the file does not exist."""


def watched_files(workflow: str | None, script: Path | None, given: str | None, modules: Iterable[str]) -> list[Path]:
    """Return the files that a run reads: the workflow, its script, the file of its input, modules of tools below the
    working directory, and the settings there. Raises `UsageError` if the workflow is not a file."""
    if workflow is None or not Path(workflow).is_file():
        raise click.UsageError(f"{WATCH} needs a workflow file, and {workflow!r} is not one.")
    files = [Path(workflow), Path(SETTINGS_FILE), *(Path(*module.split(".")).with_suffix(".py") for module in modules)]
    if script is not None:
        files.append(script)
    if given is not None and given.startswith("@"):
        files.append(Path(given[1:]))
    return files


def stamps(files: Collection[Path]) -> dict[Path, Stamp]:
    return {file: _stamp(file) for file in files}


def _stamp(file: Path) -> Stamp:
    try:
        stat = file.stat()
    except OSError:
        return None
    return stat.st_mtime_ns, stat.st_size


async def watch(arguments: Sequence[str], files: Collection[Path]) -> int:
    """Run `pointsman` with the arguments, and again after each change, until a signal ends it."""
    say(f"watching {', '.join(str(file) for file in files if file.exists())}; Ctrl-C ends it")
    async with stoppable():
        while True:
            seen = stamps(files)
            # -P: as in the installed program, files of the working directory replace no module.
            child = await asyncio.create_subprocess_exec(sys.executable, "-P", "-m", "pointsman", *arguments)
            try:
                changed = await _changed(files, seen)
            finally:
                if child.returncode is None:
                    child.terminate()
                    await child.wait()
            say(f"{', '.join(changed)} changed: running again")


async def _changed(files: Collection[Path], seen: dict[Path, Stamp]) -> list[str]:
    """Wait until files have changed and are completely written; return their names."""
    before = seen
    while True:
        await asyncio.sleep(INTERVAL_S)
        now = stamps(files)
        if now == before and now != seen:
            return [str(file) for file in files if now[file] != seen[file]]
        before = now


def partial_run_options(command: Callable[..., int]) -> Callable[..., int]:
    """Add `--until`, `--pin` and `--break`, passed as `tried`. With any of them, the run is partial: lists omit it."""

    @wraps(command)
    def folded(
        *, until: tuple[str, ...], pins: tuple[tuple[str, str], ...], breaks: tuple[str, ...], **others: object
    ) -> int:
        return command(tried=_with_id(_partial_run(until, pins, breaks)), **others)

    for option in (
        click.option(
            "--break",
            "breaks",
            multiple=True,
            metavar="NODE",
            help="Pause before a node; `resume` continues to the next one, `resume --step` by one step. Repeatable.",
        ),
        click.option(
            "--pin",
            "pins",
            type=Pair(),
            multiple=True,
            metavar="NODE=JSON",
            help="Use this result instead of running the node. Repeatable.",
        ),
        click.option(
            "--until",
            multiple=True,
            metavar="NODE",
            help="Perform only the nodes that lead to this one, and stop after it. Repeatable.",
        ),
    ):
        folded = option(folded)
    return folded


def watch_option(command: Callable[..., int]) -> Callable[..., int]:
    """Add `--watch`, which runs the command again after each change of its files."""

    @wraps(command)
    def watched_command(*, watches: bool, **values: Any) -> int:
        return _watch(**values) if watches else command(**values)

    return click.option(
        "--watch", "watches", is_flag=True, help="Run again whenever the workflow, its script or its tools change."
    )(watched_command)


def _watch(*, workflow: str | None, script: Path | None, given: str | None, as_json: bool, **_: object) -> int:

    if as_json:
        raise click.UsageError(f"{WATCH} prints the result of each run; --json prints one.")
    modules = loaded().tool_modules
    arguments = [argument for argument in output_mode().arguments if argument != WATCH]
    return go(watch(arguments, watched_files(workflow, script, given, modules)))


def _partial_run(until: Sequence[str], pins: Sequence[tuple[str, str]], breaks: Sequence[str]) -> JsonObject:
    """Return the specification of the partial run; empty for a normal run."""
    pinned: dict[str, Json] = {node: value_of(text, what=f"the result of {node!r}") for node, text in pins}
    return trial_of(pinned=pinned, until=until, breakpoints=breaks) if pinned or until or breaks else {}


def _with_id(trial: JsonObject) -> StartOptions:
    """Return the start options of a partial run, which has an id of its own form; none for a normal run."""
    if not trial:
        return StartOptions()
    return StartOptions(execution=trial_id(), trial=trial)


InputReader: TypeAlias = Callable[[Pointsman, Workflow | str], Awaitable[Json]]
"""Reads the input for a workflow."""


async def dry_run(
    app: Pointsman, target: Workflow | str | None, read: InputReader, answers: Sequence[GivenAnswer], *, as_json: bool
) -> int:
    """Print a dry run; return the exit code."""
    async with app:
        workflow = await file_or_workflow(app, target)
        executions = session_at_prompt(app).executions
        view = json_of(dry_view(await executions.dry_run(workflow, await read(app, workflow), answers=answers)))
    if as_json:
        print_json(view)
    else:
        for line in lines_of(view):
            click.echo(line)
    return code_of(str(view["status"]))


def lines_of(view: JsonObject) -> list[str]:
    """Return a dry run as lines: path, waits, calls, errors, cost."""
    lines = [f"path: {shown(' → '.join(cast('list[str]', view['path'])), chars_max=1000)}"]
    for wait in cast("list[JsonObject]", view["waits"]):
        place = wait["nodeId"] or wait["event"]
        lines.append(f"waits at {shown(place)} ({wait['kind']}); assumed: {shown(wait['answered'] or 'its end')}")
    lines += [_call(call) for call in cast("list[JsonObject]", view["calls"])]
    for error in cast("list[JsonObject]", view["errors"]):
        lines.append(f"{click.style('error', fg='red')} [{error['code']}] {shown(error['message'])}")
    cost = cast(JsonObject, view["cost"])
    unpriced = ", ".join(cast("list[str]", cost["unpriced"]))
    cost_text = f"unknown, no price for {unpriced}" if unpriced else _range(cost["lowUsd"], cost["highUsd"])
    return [*lines, f"{view['status']} after {view['steps']} steps; nothing was called; cost: {cost_text}"]


def _call(one: JsonObject) -> str:
    most = one["callsMax"]
    times = f"{one['calls']}×" if most == one["calls"] else f"{one['calls']}× to {most or 'any number'}×"
    text = f"{shown(one['nodeId'])}: {times} {one['kind']} {shown(one['name'])}"
    if one["kind"] != "model":
        return text
    tokens = f"about {one['inputTokens']} → {one['outputTokens']} tokens"
    return f"{text}, {tokens}, {_range(one['costUsd'], one['costMaxUsd'])}"


def _range(low: Json, high: Json) -> str:
    if not isinstance(low, int | float):
        return "no price known"
    if not isinstance(high, int | float):
        return f"${low:.4f} or more"
    if low == high == 0:
        return "free"
    return f"${low:.4f}" if low == high else f"${low:.4f} to ${high:.4f}"


T = TypeVar("T")
DURABILITIES: Final = ("step", "async", "exit")
TOKENS: Final = "pointsman.tokens"
"""Key of the command's context: whether `--tokens` was given."""
UNFINISHED: Final = ("pending", "running", "waiting")

Starter: TypeAlias = Callable[[Pointsman], Awaitable[Execution]]
"""Starts or opens an execution."""


class Driving(TypedDict):
    """Values of `driving_options`."""

    answers: tuple[GivenAnswer, ...]
    model: str | None
    store: str | None
    script: Path | None
    as_json: bool
    quiet: bool


def driving_options(command: Decorated) -> Decorated:
    """Add the options of every command that drives an execution."""
    answers = click.option(
        "--answer",
        "answers",
        type=AnswerPair(),
        multiple=True,
        metavar="NODE=JSON",
        help='Answer for the next gate of a node: approve, or {"action": …, "data": …}. Repeatable; each is used once.',
    )
    for option in (quiet_option, json_option, script_option, store_option, model_option, answers):
        command = option(command)
    return command


def _keep_tokens(context: click.Context, _option: click.Parameter, given: bool) -> None:  # noqa: FBT001 - click calls it
    context.meta[TOKENS] = given


@click.command()
@click.argument("workflow", metavar="[FILE|ID]", required=False, shell_complete=complete_file_or_workflow)
@click.option("--input", "given", metavar="JSON|@FILE|-", help="The input: JSON, a text, a file, or standard input.")
@click.option(
    "-i", "fields", type=Pair(), multiple=True, metavar="NAME=VALUE", help="One field of the input. Repeatable."
)
@click.option(
    "--command",
    metavar="TEXT",
    help='The input in words: "Write …, send to ann@example.org". Starts a session of its own.',
)
@driving_options
@var_option
@click.option("--session", metavar="ID", callback=not_empty, help="The conversation of this turn.")
@click.option("--language", metavar="LANG", help="Language of texts with several languages: de, fr, pt-BR.")
@click.option("--durability", type=click.Choice(DURABILITIES), help="When rows of the journal must be on disk.")
@click.option(
    "--key", metavar="TEXT", callback=not_empty, help="Idempotency key: the same key again returns the same execution."
)
@partial_run_options
@click.option(
    "--dry-run", "dry", is_flag=True, help="Show the path and the cost; call no model and no tool, store nothing."
)
@watch_option
@click.option(
    "--tokens",
    is_flag=True,
    expose_value=False,
    callback=_keep_tokens,
    help="Print partial output of models and tools to standard error, as lines of JSON.",
)
@by_option
@dialect_option
@lenient_option
def run(
    workflow: str | None,
    *,
    given: str | None,
    fields: tuple[tuple[str, str], ...],
    command: str | None,
    answers: tuple[GivenAnswer, ...],
    model: str | None,
    store: str | None,
    script: Path | None,
    variables: tuple[tuple[str, str], ...],
    session: str | None,
    language: str | None,
    durability: str | None,
    key: str | None,
    tried: StartOptions,
    dry: bool,
    dialect: str | None,
    lenient: bool,
    as_json: bool,
    quiet: bool,
    by: str,
) -> int:
    """Run a workflow to its end, or to the first gate without an answer.

    The output goes to standard output, everything else to standard error. After Ctrl-C, `pointsman resume`
    continues the execution. With --command and no workflow, the pipeline of the settings runs.
    """
    given, given_workflow = given if command is None else _input_of_command(command, given), workflow
    app = installation(store, model=model, script=script, variables=variables)
    source = _workflow_of(app, workflow, command, dialect=dialect)
    options: StartOptions = {**tried, "durability": durability, "language": language, "key": key, "lenient": lenient}
    options["by"] = by

    async def read(app: Pointsman, workflow: Workflow | str) -> Json:
        return input_of(given, fields, await input_schema(session_at_prompt(app), workflow) if fields else None)

    if dry:
        return go(dry_run(app, source, read, answers, as_json=as_json))

    async def begin(app: Pointsman) -> Execution:
        workflow = await file_or_workflow(app, source)
        data = await read(app, workflow)
        await _warn(app, workflow, durability)
        options["session"] = session or (None if command is None else await _unused_session(app))
        async with reporting_problems_of(app, workflow):
            executions = session_at_prompt(app, workflow=given_workflow, by=by).executions
            return await executions.run(workflow, data, **options)

    return go(follow(app, begin, answers, as_json=as_json, quiet=quiet, store=store))


def _workflow_of(
    app: Pointsman, workflow: str | None, command: str | None, *, dialect: str | None
) -> Workflow | str | None:
    """Return the workflow to run; None: the pipeline of the settings."""
    if workflow is None and command is None:
        raise click.UsageError("Missing argument 'FILE|ID'.")
    if workflow is None or (command is not None and workflow == app.settings.pipeline and not Path(workflow).is_file()):
        return None
    return file_or_id(workflow, dialect=dialect)


def _input_of_command(command: str, text: str | None) -> str:
    """Return the input that `--command` describes, as JSON."""
    if text is not None:
        raise click.UsageError("give either --command or --input")
    from pointsman.chat.verbs import parse_command  # Deferred: most inputs are data.

    return json.dumps(parse_command(command).input)


async def _unused_session(app: Pointsman) -> str:
    return await session_at_prompt(app).conversations.unused_name()


async def _warn(app: Pointsman, workflow: Workflow | str, durability: str | None) -> None:
    """Warn about tools that `--durability` may call again, and about calls that are real although a script answers."""
    if durability is None and app.script is None:
        return
    source = await session_at_prompt(app).workflows.source(workflow) if isinstance(workflow, str) else workflow
    read = source.read.workflow
    if app.script is not None and read is not None and (outside := acts_outside(read, app.tools)):
        say(f"warning: the script has no answers for {', '.join(outside)}: these calls are real")
    if durability is None:
        return
    for problem in called_again(source, durability, app.settings, app.tools):
        say(f"warning: {problem.message}")


async def follow(
    app: Pointsman,
    begin: Starter,
    answers: Sequence[GivenAnswer],
    *,
    as_json: bool,
    quiet: bool,
    store: str | None,
) -> int:
    """Drive an execution to its end or an open gate, show its progress, print its result; return the exit code."""
    mode = output_mode()
    async with stoppable(), app:
        with watched(app, quiet=quiet, tokens=click.get_current_context().meta.get(TOKENS, False)) as display:
            executions = session_at_prompt(app).executions
            execution = await executions.outermost(await begin(app))
            display.names.update(execution.names)
            if execution.is_scripted and not quiet:  # The summary contains it in any case.
                warn_scripted()
            for line in queued_lines(await executions.queue_position(execution), at_store(store)):
                say(line)
            stopped, refused = False, False
            unused: tuple[GivenAnswer, ...] = ()
            try:
                unused = await drive(execution, answers)
            except OwnershipLost as why:
                say(f"note: {why}")
            except CallerError as why:  # the gate refuses the answer
                refused = True
                print_error(why, mode)
            except asyncio.CancelledError:
                stopped = True
                _clear_cancellation()
        seen, stopped_late = await _undisturbed(execution.view())
        view, lasting, stopped = json_of(seen), execution.is_kept, stopped or stopped_late
    if not as_json and not quiet and view["sessionId"] is not None:
        say(f"session {shown(view['sessionId'])}")
    for answer in unused:
        say(f"note: no gate of {answer.node!r} opened for the answer {answer.action!r}")
    # The execution may have ended or been paused at the moment of the interrupt.
    stopped = stopped and str(view["status"]) in UNFINISHED
    code = print_outcome(view, as_json=as_json, stopped=stopped, store=store, lasting=lasting)
    return MISUSED if refused else code


async def _undisturbed(work: Coroutine[Any, Any, T]) -> tuple[T, bool]:
    """Await work to its end. Return its result, and whether Ctrl-C came meanwhile."""
    task = asyncio.ensure_future(work)
    stopped = False
    while not task.done():
        try:
            await asyncio.shield(task)
        except asyncio.CancelledError:
            if task.cancelled():
                raise
            stopped = True
            _clear_cancellation()
    return task.result(), stopped


def _clear_cancellation() -> None:
    """Clear the cancellation of this task by Ctrl-C, so that the result can be printed."""
    task = asyncio.current_task()
    if task is not None:
        task.uncancel()


@click.command()
@execution_argument
@click.argument("node", shell_complete=complete_gate)
@click.argument("json_", metavar="JSON", shell_complete=complete_action)
@person_options
@click.option(
    "--key",
    default="",
    metavar="TEXT",
    help="Idempotency key: the same answer under the same key has no further effect.",
)
@click.option(
    "--digest",
    metavar="TEXT",
    help="Digest of the gate as `show` prints it: an answer to another state is refused.",
)
@driving_options
def answer(
    execution: str,
    node: str,
    json_: str,
    *,
    by: str,
    groups: tuple[str, ...],
    key: str,
    digest: str | None,
    **options: Unpack[Driving],
) -> int:
    """Answer the open gate of a node (or a gate by its id), and continue the execution.

    JSON is an action such as approve, or {"action": …, "data": …, "comment": …}.
    """
    parsed = answer_of(node, json_)
    expected_digest = parsed.digest if digest is None else digest
    if digest == "":
        raise click.BadParameter("it is empty. Copy the gate's digest, or omit the option.", param_hint="--digest")
    if parsed.digest and parsed.digest != expected_digest:
        raise click.BadParameter("it is not the digest in JSON. Keep one of them.", param_hint="--digest")

    async def begin(app: Pointsman) -> Execution:
        return await session_at_prompt(app, execution=execution, node=node, by=by).executions.answer(
            execution,
            parsed.node,
            parsed.action,
            parsed.data,
            comment=parsed.comment,
            by=by,
            groups=groups,
            key=key,
            digest=expected_digest,
            reopens=True,
        )

    return drive_from(begin, options)


@click.command()
@execution_argument
@click.option(
    "--limit",
    "limits",
    type=Pair(),
    multiple=True,
    metavar="NAME=NUMBER",
    help="Raise a limit that stopped it: steps=2000, executionTime=600 (seconds), costUsd=5. Repeatable.",
)
@click.option("--step", is_flag=True, help="Pause again before the next step begins.")
@driving_options
def resume(execution: str, *, limits: tuple[tuple[str, str], ...], step: bool, **options: Unpack[Driving]) -> int:
    """Continue an execution whose process ended, that was paused, or that a limit stopped.

    Completed steps are not repeated. An execution that waits at a gate continues with `answer`.
    """
    raised = {name: number_of(name, text) for name, text in limits}

    async def begin(app: Pointsman) -> Execution:
        executions = session_at_prompt(app, execution=execution).executions
        return await executions.resume(execution, limits=raised, step=step, by="")

    return drive_from(begin, options)


def number_of(name: str, text: str) -> float:
    """Parse the value of a limit."""
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number < float("inf"):
        raise click.BadParameter(f"{name}={text!r} is not a number above 0.", param_hint="--limit")
    return number


@click.command()
@execution_argument
@click.argument("name")
@click.argument("json_", metavar="JSON", default="null")
@click.option(
    "--key",
    default="",
    metavar="TEXT",
    help="Idempotency key: the same event under the same key has no further effect.",
)
@driving_options
def signal(execution: str, name: str, json_: str, *, key: str, **options: Unpack[Driving]) -> int:
    """Send an event to an execution, and continue it. Without a waiting step the event is stored for the first
    one."""
    data = value_of(json_, what="the event's data")

    async def begin(app: Pointsman) -> Execution:
        executions = session_at_prompt(app, execution=execution, name=name).executions
        taken, outcome = await executions.signal(execution, name, data, key=key, by="")
        if outcome == "kept":
            say(f"note: no step waits for the event {name!r} yet: it is stored")
        elif outcome == "known":
            say(f"note: an event with the key {key!r} was received before; this one has no effect")
        return taken

    return drive_from(begin, options)


def drive_from(begin: Starter, options: Driving) -> int:
    """Open or start an execution and drive it; return the exit code."""
    app = installation(options["store"], model=options["model"], script=options["script"])
    return go(
        follow(
            app,
            begin,
            options["answers"],
            as_json=options["as_json"],
            quiet=options["quiet"],
            store=options["store"],
        )
    )

"""`pointsman eval` and `pointsman datasets`: run a workflow over cases, and score its outputs."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import click

from pointsman.app import Execution, Pointsman, Workflow
from pointsman.cli.app_opening import file_or_id, go, installation, session_at_prompt, stoppable
from pointsman.cli.options import Pair, json_option, model_option, script_option, store_option
from pointsman.cli.printing import print_deleted, print_json, say, shown
from pointsman.cli.references import complete_file_or_workflow
from pointsman.cli.results import CODES, WAITING
from pointsman.evaluations.datasets import DatasetCase, DatasetInvalid, read_cases
from pointsman.evaluations.runs import PARALLEL, RunDetail, RunLimits
from pointsman.evaluations.scorers import Scorer
from pointsman.evaluations.verbs import DatasetDetail, DatasetView
from pointsman.executions.opening import drive
from pointsman.session import Session

BELOW: Final = 1
"""Exit code if a mean is below its minimum."""
DATA_ENDINGS: Final = (".csv", ".json", ".jsonl")


def scorer_options(command: click.decorators.FC) -> click.decorators.FC:
    """Add the options that describe scorers."""
    for option in (
        click.option("--human", "humans", multiple=True, type=Pair(), metavar="NAME=QUESTION", help="A person scores."),
        click.option("--judge", "judges", multiple=True, type=Pair(), metavar="NAME=RUBRIC", help="A model scores."),
        click.option(
            "--score",
            "formulas",
            multiple=True,
            type=Pair(),
            metavar="NAME=EXPRESSION",
            help="An expression over `output` and `case` scores: 0 to 1, or true and false.",
        ),
        click.option(
            "--match", "matched", multiple=True, metavar="NAME", help="The output must have all that the case expects."
        ),
    ):
        command = option(command)
    return command


def _scorers(
    matched: tuple[str, ...],
    formulas: tuple[tuple[str, str], ...],
    judges: tuple[tuple[str, str], ...],
    humans: tuple[tuple[str, str], ...],
) -> tuple[Scorer, ...]:
    return (
        *(Scorer(name=name, kind="match") for name in matched),
        *(Scorer(name=name, kind="expression", text=text) for name, text in formulas),
        *(Scorer(name=name, kind="judge", text=text) for name, text in judges),
        *(Scorer(name=name, kind="human", text=text) for name, text in humans),
    )


@click.command("eval")
@click.argument("workflow", metavar="FILE|ID[@REVISION]", shell_complete=complete_file_or_workflow)
@click.option("--data", required=True, metavar="DATASET|FILE", help="A dataset, or a file in CSV, JSON or JSON lines.")
@scorer_options
@click.option(
    "--min", "minima", multiple=True, type=Pair(), metavar="NAME=NUMBER", help="Fail if the mean of a score is lower."
)
@click.option("--parallel", type=click.IntRange(1, 100), default=PARALLEL, help="Cases at once.")
@click.option("--budget", type=click.FloatRange(min=0), metavar="USD", help="Interrupt the run at this cost.")
@model_option
@script_option
@json_option
@store_option
def evaluate(
    workflow: str,
    *,
    data: str,
    matched: tuple[str, ...],
    formulas: tuple[tuple[str, str], ...],
    judges: tuple[tuple[str, str], ...],
    humans: tuple[tuple[str, str], ...],
    minima: tuple[tuple[str, str], ...],
    parallel: int,
    budget: float | None,
    model: str | None,
    script: Path | None,
    as_json: bool,
    store: str | None,
) -> int:
    """Run a workflow over a dataset, and score its outputs.

    A workflow file is saved as a revision, and a file of cases as a dataset by its name, so that scores of
    revisions can be compared. A run is an execution: `resume` continues it after a crash or with a higher limit.
    Exit code 0: all means reach their `--min`; 1: one does not.
    """
    least = {name: _number(name, text) for name, text in minima}
    scorers = _scorers(matched, formulas, judges, humans)
    if unknown := least.keys() - {one.name for one in scorers} if scorers else ():
        raise click.UsageError(f"--min names {sorted(unknown)[0]!r}, which is no scorer.")
    limits = RunLimits(parallel=parallel, cost_usd=budget)
    app = installation(store, model=model, script=script)
    found = go(_evaluate(app, file_or_id(workflow), data, scorers, model, limits))
    if as_json:
        print_json(found)
    else:
        _print_run(found, least)
    if found["status"] != "completed":
        return CODES.get(found["status"], WAITING)
    return BELOW if any(found["scores"].get(name, 0.0) < value for name, value in least.items()) else 0


def _number(name: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise click.UsageError(f"--min {name}: {text[:40]!r} is not a number.") from None


async def _evaluate(
    app: Pointsman,
    workflow: Workflow | str,
    data: str,
    scorers: tuple[Scorer, ...],
    model: str | None,
    limits: RunLimits,
) -> RunDetail:
    async with app, stoppable():
        session = session_at_prompt(app, data=data)
        if isinstance(workflow, Workflow):
            workflow = (await session.workflows.save(workflow))["id"]
        if data.endswith(DATA_ENDINGS):
            data = (await _saved(session, Path(data).stem, workflow, Path(data), scorers))["id"]
        execution: Execution = await session.evaluations.start(
            data, workflow=workflow, scorers=scorers, model=model, limits=limits
        )
        await drive(execution)
        return await session.evaluations.run(execution.id)


def _cases(file: Path) -> list[DatasetCase]:
    try:
        text = file.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as why:
        raise DatasetInvalid(f"{str(file)!r} cannot be read: {why}") from None
    return read_cases(text, name=file.name)


async def _saved(session: Session, name: str, workflow: str, file: Path, scorers: tuple[Scorer, ...]) -> DatasetView:
    cases = _cases(file)
    return await session.evaluations.save_dataset(name, workflow.partition("@")[0], cases, scorers=scorers)


def _print_run(found: RunDetail, least: dict[str, float]) -> None:
    for case in found["cases"]:
        marks = "  ".join(f"{name} {value:.2f}" for name, value in case["scores"].items())
        failure = f"  {click.style(case['error'], fg='red')}" if case["error"] else ""
        click.echo(f"{case['case']:10} {marks}{failure}  {shown(str(case['input']), chars_max=60)}")
    for name, mean in found["scores"].items():
        enough = mean >= least.get(name, 0.0)
        needed = f", at least {least[name]:g} is required" if name in least else ""
        mark = click.style("✓", fg="green") if enough else click.style("✗", fg="red")
        click.echo(f"{mark} {name}: {mean:.3f}{needed}")
    revision = f"{found['workflow']}@{found['revision']}"
    if found["status"] == "waiting":
        say("People must answer first (`pointsman inbox`); `pointsman show` shows the run.")
    say(
        f"{found['status']} {found['executionId']}: {shown(revision)}, {found['count']} cases, {found['failed']} failed"
    )


@click.group()
def datasets() -> None:
    """Datasets of evaluations: inputs of a workflow with the outputs that are expected."""


@datasets.command("list")
@json_option
@store_option
def list_(*, as_json: bool, store: str | None) -> None:
    """List the datasets."""
    found = go(_listed(store))
    if as_json:
        print_json({"datasets": found})
        return
    for one in found:
        click.echo(f"{shown(one['id']):24} {one['count']:5} cases  {shown(one['workflow'])}")


async def _listed(store: str | None) -> list[DatasetView]:
    async with installation(store) as app:
        return (await session_at_prompt(app).evaluations.datasets())["datasets"]


@datasets.command()
@click.argument("dataset", metavar="ID")
@click.argument("workflow", metavar="WORKFLOW")
@click.argument("file", type=click.Path(path_type=Path))
@scorer_options
@json_option
@store_option
def save(
    dataset: str,
    workflow: str,
    file: Path,
    *,
    matched: tuple[str, ...],
    formulas: tuple[tuple[str, str], ...],
    judges: tuple[tuple[str, str], ...],
    humans: tuple[tuple[str, str], ...],
    as_json: bool,
    store: str | None,
) -> None:
    """Save a file of cases (CSV, JSON, JSON lines) as a dataset, with the scorers of its runs."""
    saved = go(_save(store, dataset, workflow, file, _scorers(matched, formulas, judges, humans)))
    if as_json:
        print_json(saved)
    else:
        click.echo(f"{saved['id']}: {saved['count']} cases")


async def _save(store: str | None, dataset: str, workflow: str, file: Path, scorers: tuple[Scorer, ...]) -> DatasetView:
    async with installation(store) as app:
        return await _saved(session_at_prompt(app, dataset=dataset), dataset, workflow, file, scorers)


@datasets.command()
@click.argument("dataset", metavar="ID")
@store_option
def show(dataset: str, *, store: str | None) -> None:
    """Print a dataset with its cases as JSON."""
    print_json(go(_show(store, dataset)))


async def _show(store: str | None, dataset: str) -> DatasetDetail:
    async with installation(store) as app:
        return await session_at_prompt(app).evaluations.dataset(dataset)


@datasets.command()
@click.argument("dataset", metavar="ID")
@json_option
@store_option
def delete(dataset: str, *, as_json: bool, store: str | None) -> None:
    """Delete a dataset. Its runs stay."""
    go(_delete(store, dataset))
    print_deleted(dataset, as_json=as_json)


async def _delete(store: str | None, dataset: str) -> None:
    async with installation(store) as app:
        await session_at_prompt(app, dataset=dataset).evaluations.delete_dataset(dataset)

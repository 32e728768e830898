"""Commands for workflow documents: check, convert, and print their schema."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Final

import click

from pointsman.app import Pointsman, Workflow
from pointsman.auth.callers import LOCAL
from pointsman.auth.subjects import UnknownWorkflow
from pointsman.cli.app_opening import (
    ReferenceUnknown,
    file_or_id,
    file_or_workflow,
    go,
    installation,
    report_problems_of,
    session_at_prompt,
)
from pointsman.cli.options import (
    Decorated,
    dialect_option,
    json_option,
    lenient_option,
    script_option,
    store_option,
    var_option,
)
from pointsman.cli.printing import escape_controls, print_json, problem_lines
from pointsman.cli.references import complete_file_or_workflow
from pointsman.definition.problems import Problem, error
from pointsman.values import Json, json_of
from pointsman.workflows.checking import CheckedSource
from pointsman.workflows.conversion import TARGETS, converted
from pointsman.workflows.library import tools_in
from pointsman.workflows.sources import FileUnreadable

CLEAN: Final = 0
ERRORS: Final = 1
UNREADABLE: Final = 2


def _how_it_reads(command: Decorated) -> Decorated:
    for option in (script_option, var_option, lenient_option, dialect_option, store_option):
        command = option(command)
    return command


@click.command()
@click.argument("files", nargs=-1, required=True, metavar="FILE|ID…", shell_complete=complete_file_or_workflow)
@json_option
@_how_it_reads
def check(
    files: tuple[str, ...],
    *,
    as_json: bool,
    store: str | None,
    dialect: str | None,
    lenient: bool,
    variables: tuple[tuple[str, str], ...],
    script: Path | None,
) -> int:
    """List all problems of workflow files with their places; also of saved and built-in workflows, by their ids.

    Exit code 0: no errors (warnings do not count); 1: errors; 2: a file cannot be read at all. With several
    files, the worst of them; --json then prints a list, one object per file, each with its "file".
    """
    app = installation(store, script=script, variables=variables)
    results = go(_checked(app, files, dialect=dialect, lenient=lenient))
    if as_json:
        objects = [json_of(result.to_json()) for result, _, _ in results]
        print_json(objects[0] if len(files) == 1 else [{"file": f, **o} for f, o in zip(files, objects, strict=True)])
    else:
        for file, (result, text, _) in zip(files, results, strict=True):
            _print_checked(result, file=file, text=text)
    return max(code for _, _, code in results)


async def _checked(
    app: Pointsman, files: Sequence[str], *, dialect: str | None, lenient: bool
) -> list[tuple[CheckedSource, str, int]]:
    """Return problems, text and exit code of each document. Opens the store only for saved workflows, and for
    workflows that call others."""
    sources = [_read(file, dialect=dialect) for file in files]
    needed = any(isinstance(source, str) or (isinstance(source, Workflow) and bool(source.calls)) for source in sources)
    async with app if needed else nullcontext():
        try:
            return [await _checked_one(app, source, lenient=lenient) for source in sources]
        finally:
            await app.tools.close()


def _read(file: str, *, dialect: str | None) -> Workflow | str | FileUnreadable:
    try:
        return file_or_id(file, dialect=dialect)
    except FileUnreadable as why:
        return why


async def _checked_one(
    app: Pointsman, document: Workflow | str | FileUnreadable, *, lenient: bool
) -> tuple[CheckedSource, str, int]:
    try:
        if isinstance(document, FileUnreadable):
            raise document
        source = document if isinstance(document, Workflow) else await _saved(app, document)
    except (FileUnreadable, ReferenceUnknown, UnknownWorkflow) as why:
        problem = error(why.code, "", str(why), hint=why.hint)
        return CheckedSource((problem,), None, None), "", UNREADABLE
    if source.read.workflow is not None:  # contacts MCP servers, so that the check reports unreachable ones
        await app.tools.prepare(tools_in(source.read.workflow, app.settings.agents))
    result = await app.check(source, lenient=lenient, reader=LOCAL)
    code = UNREADABLE if source.unreadable else CLEAN if result.ok else ERRORS
    return result, source.document.text, code


async def _saved(app: Pointsman, reference: str) -> Workflow:
    """Return a saved or built-in workflow. Raises `ReferenceUnknown`, `UnknownWorkflow`."""
    await file_or_workflow(app, reference)
    source = await session_at_prompt(app).workflows.source(reference)
    report_problems_of(source, reference)
    return source


async def _opened(app: Pointsman, reference: str) -> Workflow:
    async with app:
        return await _saved(app, reference)


def _print_checked(result: CheckedSource, *, file: str, text: str) -> None:
    for line in problem_lines(result.problems, file=file, text=text):
        click.echo(line)
    click.echo(f"{escape_controls(file)}: {_summary(result)}")


def _summary(result: CheckedSource) -> str:
    dialect = f"{result.dialect}, " if result.dialect else ""
    counts = {kind: sum(p.severity == kind for p in result.problems) for kind in ("error", "warning", "note")}
    summary = ", ".join(f"{n} {kind}{'s' if n > 1 else ''}" for kind, n in counts.items() if n)
    is_disabled = any(p.code == "disabled" for p in result.problems)
    verdict = "can run" if result.ok and not is_disabled else "cannot run"
    return (
        f"{dialect}{summary or 'no problems'}: {verdict}{' while it is disabled' if result.ok and is_disabled else ''}"
    )


@click.command()
@click.argument("file", metavar="FILE|ID", shell_complete=complete_file_or_workflow)
@click.option("--to", "target", required=True, metavar="NAME", type=click.Choice(TARGETS), help=", ".join(TARGETS))
@click.option(
    "--out", metavar="FILE", type=click.Path(path_type=Path), help="Write to this file instead of standard output."
)
@click.option("--yaml", "as_yaml", is_flag=True, help="YAML instead of JSON.")
@dialect_option
@json_option
@store_option
def convert(
    file: str,
    *,
    target: str,
    out: Path | None,
    as_yaml: bool,
    dialect: str | None,
    as_json: bool,
    store: str | None,
) -> int:
    """Write a workflow in another dialect (native, rows, graph, steps, plan), or draw it (mermaid, bpmn).

    Losses are listed on standard error, with their places.
    """
    document = file_or_id(file, dialect=dialect)
    source = document if isinstance(document, Workflow) else go(_opened(installation(store), document))
    made = converted(source, target, as_yaml=as_yaml)
    _print_losses(made.losses, file=file, text=source.document.text)
    if as_json:
        losses: list[Json] = [json_of(loss.to_json()) for loss in made.losses]
        print_json(
            {"to": target, "text": None if out else made.text, "file": str(out) if out else None, "losses": losses}
        )
    if out is None:
        if not as_json:
            click.echo(made.text)
        return CLEAN
    try:
        out.write_text(made.text + "\n", encoding="utf-8", errors="backslashreplace")
    except OSError as why:
        raise click.FileError(str(out), why.strerror or "cannot be written") from None
    return CLEAN


def _print_losses(losses: tuple[Problem, ...], *, file: str, text: str) -> None:
    for line in problem_lines(losses, file=file, text=text):
        click.echo(line, err=True)


@click.command()
@click.option("--openapi", is_flag=True, help="The OpenAPI 3.1 document of the server instead.")
@click.option("--operations", is_flag=True, help="The JSON Schema of operations on workflows instead.")
def schema(*, openapi: bool, operations: bool) -> int:
    """Print the JSON Schema of the native format, for editors and generators; or the OpenAPI document of the
    server."""
    if openapi and operations:
        raise click.UsageError("give either --openapi or --operations")
    if operations:
        from pointsman.authoring.operations import operations_schema  # Imported late, as below.

        print_json(operations_schema())
        return CLEAN
    if openapi:
        from pointsman.server.application import openapi_document  # Imported late: it loads a web framework.

        print_json(openapi_document())
        return CLEAN
    from pointsman.definition.model.schema import native_schema

    print_json(native_schema())
    return CLEAN

"""`pointsman workflows`: saved workflows, their revisions and sharing; design and edit operations."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pointsman.app import Pointsman, Workflow
from pointsman.auth.sharing import AUDIENCES, Audience, Sharing, sharing_view
from pointsman.authoring.operations import read_operations
from pointsman.authoring.verbs import DesignedWorkflow, EditedWorkflow, RestoredRevision
from pointsman.cli.app_opening import document, go, installation, session_at_prompt
from pointsman.cli.options import (
    dialect_option,
    json_option,
    model_option,
    not_empty,
    script_option,
    store_option,
    value_of,
    var_option,
)
from pointsman.cli.printing import print_deleted, print_json, print_sharing, say, shown
from pointsman.cli.references import complete_workflow
from pointsman.cli.results import warn_scripted
from pointsman.cli.times import TIME_CHARS, when
from pointsman.values import Json, JsonObject
from pointsman.workflows.folders import MovedWorkflow
from pointsman.workflows.revisions import SavedRevision, WorkflowEntryView
from pointsman.workflows.versions import NamedVersionView

if TYPE_CHECKING:
    from pointsman.authoring.design import Round


DONE, ERRORS = 0, 1


@click.group()
def workflows() -> None:
    """Saved workflows, for `run ID` and for calls by other workflows."""


@workflows.command("list")
@click.option("--all", "include_disabled", is_flag=True, help="Include disabled ones.")
@click.option("--saved", "only_saved", is_flag=True, help="Omit built-in ones.")
@json_option
@store_option
def list_(*, include_disabled: bool, only_saved: bool, as_json: bool, store: str | None) -> None:
    """List the latest revision of each saved workflow, then the built-in ones."""
    entries = _entries(store, None, include_disabled=include_disabled, built_in=False if only_saved else None)
    _print_entries(go(entries), as_json=as_json)


@workflows.command()
@click.argument("workflow", metavar="ID", shell_complete=complete_workflow)
@json_option
@store_option
def versions(workflow: str, *, as_json: bool, store: str | None) -> None:
    """List all revisions of a workflow, newest first."""
    _print_entries(go(_entries(store, workflow)), as_json=as_json)


async def _entries(
    store: str | None, workflow: str | None, *, include_disabled: bool = False, built_in: bool | None = None
) -> list[WorkflowEntryView]:
    async with installation(store) as app:
        workflows = session_at_prompt(app).workflows
        if workflow is not None:
            return (await workflows.versions(workflow))["workflows"]
        return (await workflows.list(include_disabled=include_disabled, built_in=built_in))["workflows"]


def _print_entries(entries: list[WorkflowEntryView], *, as_json: bool) -> None:
    if as_json:
        print_json({"workflows": entries})
        return
    if not entries:
        click.echo("no saved workflows", err=True)
    for entry in entries:
        version = f"  {entry['version']}" if entry["version"] else ""
        head = entry["id"] if entry["builtIn"] else f"{entry['id']}@{entry['revision']}"
        saved = f"{'built in':{TIME_CHARS}}" if entry["builtIn"] else when(entry["createdAt"])
        click.echo(f"{shown(head):30}  {saved}  {entry['dialect']:7} {shown(entry['name'])}{version}{_named(entry)}")


def _named(entry: WorkflowEntryView) -> str:
    """Return the name of a revision, and whether it runs by id or is a draft; empty if no version is published or
    named."""
    published, label = entry["published"], entry["label"]
    name = "" if label is None else f"  {shown(label['name'])}"
    if published is None:
        return name
    if published["revision"] == entry["revision"]:
        return f"{name}  (published)"
    return f"{name}  (draft)" if entry["revision"] > published["revision"] else name


@workflows.command()
@click.argument("file")
@click.option("--draft", is_flag=True, help="Save it although it has errors; it cannot run until they are fixed.")
@click.option("--author", default="", metavar="NAME", help="Stored with the revision.")
@dialect_option
@json_option
@script_option
@store_option
@var_option
def save(
    file: str,
    *,
    draft: bool,
    author: str,
    dialect: str | None,
    as_json: bool,
    script: Path | None,
    store: str | None,
    variables: tuple[tuple[str, str], ...],
) -> None:
    """Save a workflow file as a new revision. The same document again is the same revision.

    With --script it is checked as `run --script` runs it: with the tools of the script. The script is not saved.
    """
    source = document(file, dialect=dialect)
    app = installation(store, script=script, variables=variables)
    saved = go(_save(app, source, draft=draft, author=author, file=file))
    if as_json:
        print_json(saved)
    else:
        click.echo(f"{saved['id']}@{saved['revision']}")


async def _save(app: Pointsman, source: Workflow, *, draft: bool, author: str, file: str) -> SavedRevision:
    async with app:
        session = session_at_prompt(app, file=file)
        return await session.workflows.save(source, draft=draft, author=author)


@workflows.command()
@click.argument("workflow", metavar="ID[@REVISION]", shell_complete=complete_workflow)
@json_option
@store_option
def get(workflow: str, *, as_json: bool, store: str | None) -> None:
    """Print a saved workflow as its author wrote it."""
    text = go(_source(store, workflow)).document.text
    if as_json:
        print_json({"workflow": workflow, "text": text})
        return
    click.echo(text, nl=False)


async def _source(store: str | None, workflow: str) -> Workflow:
    async with installation(store) as app:
        return await session_at_prompt(app).workflows.source(workflow)


@workflows.command()
@click.argument("workflow", metavar="ID[@REVISION]", shell_complete=complete_workflow)
@click.argument("new", metavar="NEW")
@click.option("--author", default="", metavar="NAME", help="Stored with the revision.")
@json_option
@store_option
def clone(workflow: str, new: str, *, author: str, as_json: bool, store: str | None) -> None:
    """Save a copy of a workflow under another id: a built-in one to change it, or any saved one."""
    saved = go(_clone(store, workflow, new, author))
    if as_json:
        print_json(saved)
    else:
        click.echo(f"{saved['id']}@{saved['revision']}")


async def _clone(store: str | None, workflow: str, new: str, author: str) -> SavedRevision:
    async with installation(store) as app:
        return await session_at_prompt(app).workflows.clone(workflow, new, author=author)


@workflows.command()
@click.argument("workflow", metavar="ID", shell_complete=complete_workflow)
@json_option
@store_option
def delete(workflow: str, *, as_json: bool, store: str | None) -> None:
    """Delete a workflow. Executions keep their revision; saving the workflow again restores it."""
    go(_delete(store, workflow))
    print_deleted(workflow, as_json=as_json)


async def _delete(store: str | None, workflow: str) -> None:
    async with installation(store) as app:
        await session_at_prompt(app).workflows.delete(workflow)


@workflows.command()
@click.argument("workflow", metavar="ID", shell_complete=complete_workflow)
@click.argument("name", metavar="NAME")
@click.option("--note", default="", metavar="TEXT", help="What is new in this version.")
@click.option("--revision", type=click.IntRange(1), metavar="N", help="The revision; default: the newest.")
@json_option
@store_option
def publish(workflow: str, name: str, *, note: str, revision: int | None, as_json: bool, store: str | None) -> None:
    """Name a version of a workflow and let it run by ID; later revisions are drafts until they are published."""
    version = go(_publish(store, workflow, name, note, revision))
    if as_json:
        print_json(version)
        return
    click.echo(f"{shown(workflow)}@{version['revision']}: {shown(version['name'])}")


async def _publish(store: str | None, workflow: str, name: str, note: str, revision: int | None) -> NamedVersionView:
    async with installation(store) as app:
        return await session_at_prompt(app).workflows.publish(workflow, name, note=note, revision=revision)


@workflows.command()
@click.argument("workflow", metavar="ID", shell_complete=complete_workflow)
@json_option
@store_option
def unpublish(workflow: str, *, as_json: bool, store: str | None) -> None:
    """Let the newest revision of a workflow run by ID again. Names of versions stay."""
    go(_unpublish(store, workflow))
    if as_json:
        print_json({"workflow": workflow, "published": None})
        return
    click.echo(f"{shown(workflow)}: the newest revision runs")


async def _unpublish(store: str | None, workflow: str) -> None:
    async with installation(store) as app:
        await session_at_prompt(app).workflows.unpublish(workflow)


@workflows.command()
@click.argument("workflow", metavar="ID", shell_complete=complete_workflow)
@click.argument("folder", metavar="FOLDER")
@json_option
@store_option
def move(workflow: str, folder: str, *, as_json: bool, store: str | None) -> None:
    """Put a workflow into a folder such as sales/mail; "" takes it out of its folder. Its id stays."""
    moved = go(_move(store, workflow, folder))
    if as_json:
        print_json(moved)
        return
    click.echo(f"{shown(moved['id'])}: {shown(moved['folder']) or 'in no folder'}")


async def _move(store: str | None, workflow: str, folder: str) -> MovedWorkflow:
    async with installation(store) as app:
        return await session_at_prompt(app).folders.move(workflow, folder)


@workflows.command()
@click.argument("workflow", metavar="ID", shell_complete=complete_workflow)
@click.argument("old", type=int, required=False)
@click.argument("new", type=int, required=False)
@json_option
@store_option
def diff(workflow: str, *, old: int | None, new: int | None, as_json: bool, store: str | None) -> None:
    """Compare two revisions line by line (default: the latest two)."""
    text = go(_diff(store, workflow, old, new))
    if as_json:
        print_json({"workflow": workflow, "diff": text})
        return
    click.echo(text, nl=False)


async def _diff(store: str | None, workflow: str, old: int | None, new: int | None) -> str:
    async with installation(store) as app:
        return await session_at_prompt(app).workflows.diff(workflow, old, new)


@workflows.command("share")
@click.argument("workflow", metavar="ID", shell_complete=complete_workflow)
@click.option("--with", "audience", type=click.Choice(AUDIENCES), help="Audience beside its owner.")
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="GROUP",
    help="Group that may see and use it (implies --with groups). Repeatable.",
)
@click.option("--owner", metavar="NAME", callback=not_empty, help="The new owner.")
@json_option
@store_option
def share_(
    workflow: str,
    *,
    audience: Audience | None,
    groups: tuple[str, ...],
    owner: str | None,
    as_json: bool,
    store: str | None,
) -> None:
    """Set the owner and the sharing of a workflow over HTTP. Without options: print them."""
    sharing = go(_share(store, workflow, audience or ("groups" if groups else None), groups, owner))
    print_sharing("workflow", workflow, sharing_view(sharing), as_json=as_json)


async def _share(
    store: str | None, workflow: str, audience: Audience | None, groups: tuple[str, ...], owner: str | None
) -> Sharing:
    async with installation(store) as app:
        sharing = session_at_prompt(app).sharing
        if audience is None and owner is None:
            return await sharing.of_workflow(workflow)
        return await sharing.share_workflow(workflow, audience, groups=groups, owner=owner)


def _print_round(one: Round) -> None:
    """Print a design round on standard error: standard output is reserved for the document."""
    if one.usage.scripted and one.number == 1:
        warn_scripted()
    errors = [problem for problem in one.problems if problem.severity == "error"]
    say(f"round {one.number} ({shown(one.model)}): {len(errors)} error{'' if len(errors) == 1 else 's'}")
    for problem in errors[:5]:
        say(f"  {shown(problem.message)}")


@workflows.command()
@click.argument("words")
@click.option("--id", "name", default="", metavar="ID", help="The id of the workflow.")
@click.option("--save", is_flag=True, help="Save it, if it has no errors.")
@click.option("--out", metavar="FILE", type=click.Path(path_type=Path), help="Write it to this file.")
@model_option
@script_option
@json_option
@store_option
def design(
    words: str,
    *,
    name: str,
    save: bool,
    out: Path | None,
    model: str | None,
    script: Path | None,
    as_json: bool,
    store: str | None,
) -> int:
    """Let a model design a workflow from a description in WORDS. Each round is printed on standard error.

    Exit code 0: the workflow has no errors; 1: it has errors, or none was designed.
    """
    designed = go(_design(store, model, script, words, name=name, save=save))
    text = str(designed["text"])
    if out is not None and text:
        try:
            out.write_text(text, encoding="utf-8")
        except OSError as why:
            raise click.FileError(str(out), why.strerror or "cannot be written") from None
    if as_json:
        print_json(designed)
    elif out is None and text:
        click.echo(text, nl=not text.endswith("\n"))
    if "id" in designed and "revision" in designed:
        say(f"saved {shown(designed['id'])}@{designed['revision']}")
    return DONE if designed["ok"] else ERRORS


async def _design(
    store: str | None, model: str | None, script: Path | None, words: str, *, name: str, save: bool
) -> DesignedWorkflow:
    async with installation(store, model=model, script=script) as app:
        return await session_at_prompt(app).authoring.design(words, name=name, save=save, listener=_print_round)


@workflows.command()
@click.argument("workflow", metavar="ID", shell_complete=complete_workflow)
@click.option("--words", default="", metavar="TEXT", help="Description of the change; a model finds the operations.")
@click.option("--operations", "given", metavar="JSON|@FILE", help="The operations themselves, as a list.")
@click.option("--apply", is_flag=True, help="Save the changes; without this option they are only shown.")
@model_option
@script_option
@json_option
@store_option
def edit(
    workflow: str,
    *,
    words: str,
    given: str | None,
    apply: bool,
    model: str | None,
    script: Path | None,
    as_json: bool,
    store: str | None,
) -> int:
    """Change a saved workflow, by a description or by operations. Shows the changes; --apply saves them.

    Exit code 0: the result has no errors; 1: it has errors.
    """
    if bool(words) == (given is not None):
        raise click.UsageError("give either --words or --operations")
    edited = go(_edit(store, model, script, workflow, words, _operations(given), apply=apply))
    if as_json:
        print_json(edited)
        return DONE if edited["ok"] else ERRORS
    for change in edited["changes"]:
        click.echo(_line(change))
    for problem in edited["new"]:
        say(f"new {problem['severity']}: {shown(problem['message'])}")
    say(
        f"saved {shown(edited['id'])}@{edited['revision']}"
        if edited["applied"]
        else "not saved: --apply saves the changes"
    )
    return DONE if edited["ok"] else ERRORS


async def _edit(
    store: str | None,
    model: str | None,
    script: Path | None,
    workflow: str,
    words: str,
    operations: Json,
    *,
    apply: bool,
) -> EditedWorkflow:
    async with installation(store, model=model, script=script) as app:
        authoring = session_at_prompt(app).authoring
        if words:
            return await authoring.edit_by_words(workflow, words, apply=apply, listener=_print_round)
        return await authoring.edit(workflow, read_operations(operations), apply=apply)


def _operations(text: str | None) -> Json:
    if text is None:
        return None
    if not text.startswith("@"):
        return value_of(text, what="--operations")
    try:
        return value_of(Path(text[1:]).read_text(encoding="utf-8"), what=text)
    except (OSError, UnicodeDecodeError) as why:
        raise click.BadParameter(f"{text[1:]!r} cannot be read: {why}.", param_hint="--operations") from None


def _line(change: JsonObject) -> str:
    """Return an operation as one line."""
    rest = ", ".join(f"{key} {shown(value)}" for key, value in change.items() if key != "op")
    return f"{change['op']}: {rest}"


@workflows.command()
@click.argument("workflow", metavar="ID", shell_complete=complete_workflow)
@click.argument("revision", type=click.IntRange(min=1))
@json_option
@store_option
def rollback(workflow: str, revision: int, *, as_json: bool, store: str | None) -> None:
    """Save an old REVISION as the latest one."""
    restored = go(_rollback(store, workflow, revision))
    if as_json:
        print_json(restored)
    else:
        click.echo(f"{restored['id']}@{restored['revision']}")


async def _rollback(store: str | None, workflow: str, revision: int) -> RestoredRevision:
    async with installation(store) as app:
        return await session_at_prompt(app).authoring.restore(workflow, revision)

"""`pointsman templates`: shipped workflows to start from."""

from __future__ import annotations

import click

from pointsman.authoring.templates import TemplateDetail, TemplateView
from pointsman.cli.app_opening import go, installation, session_at_prompt
from pointsman.cli.options import json_option, store_option, value_of
from pointsman.cli.printing import print_json, shown
from pointsman.cli.results import code_of
from pointsman.cli.run import lines_of
from pointsman.executions.dry_run import DryRun, dry_view
from pointsman.values import Json, json_of
from pointsman.workflows.revisions import SavedRevision


@click.group()
def templates() -> None:
    """Shipped workflows to start from, each with a script, so that it can be tried offline."""


@templates.command("list")
@click.option("--tag", default="", metavar="TAG", help="Only templates with this tag.")
@json_option
def list_(*, tag: str, as_json: bool) -> None:
    """List the templates."""
    found = [one for one in go(_listed()) if not tag or tag in one["tags"]]
    if as_json:
        print_json({"templates": found})
        return
    for one in found:
        click.echo(f"{shown(one['id']):24} {shown(one['name']['en'], chars_max=70)}  [{', '.join(one['tags'])}]")


async def _listed() -> list[TemplateView]:
    async with installation("memory:") as app:
        return (await session_at_prompt(app).templates.list())["templates"]


@templates.command()
@click.argument("template", metavar="ID")
@json_option
def show(template: str, *, as_json: bool) -> None:
    """Print the document of a template."""
    found = go(_read(template))
    if as_json:
        print_json(found)
        return
    click.echo(f"{found['name']['en']}: {found['description']['en']}", err=True)
    click.echo(found["text"], nl=False)


async def _read(template: str) -> TemplateDetail:
    async with installation("memory:") as app:
        return await session_at_prompt(app).templates.read(template)


@templates.command("try")
@click.argument("template", metavar="ID")
@click.option("--input", "given", metavar="JSON", help="The input; by default the sample input of the template.")
@json_option
def try_(template: str, *, given: str | None, as_json: bool) -> int:
    """Run a template with its script: nothing is called, and nothing is stored."""
    view = dry_view(go(_try(template, None if given is None else value_of(given, what="the input"))))
    if as_json:
        print_json(view)
    else:
        print_json(view["output"])
        for line in lines_of(json_of(view)):
            click.echo(line, err=True)
    return code_of(view["status"])


async def _try(template: str, given: Json) -> DryRun:
    async with installation("memory:") as app:
        return await session_at_prompt(app).templates.try_out(template, given)


@templates.command()
@click.argument("template", metavar="ID")
@click.option("--as", "new", metavar="ID", help="Id of the copy; by default that of the template.")
@json_option
@store_option
def use(template: str, *, new: str | None, as_json: bool, store: str | None) -> None:
    """Save a copy of a template, and the workflows that it calls."""
    saved = go(_use(template, new, store))
    if as_json:
        print_json(saved)
    else:
        click.echo(f"{saved['id']}@{saved['revision']}")


async def _use(template: str, new: str | None, store: str | None) -> SavedRevision:
    async with installation(store) as app:
        return await session_at_prompt(app, template=template).templates.use(template, new)

"""Commands for this installation: tools, models, settings, verify, doctor."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import click

from pointsman.app import Pointsman
from pointsman.cli.app_opening import go, installation, loaded, session_at_prompt
from pointsman.cli.options import json_option, model_option, script_option, store_option
from pointsman.cli.printing import escape_controls, print_json, shown
from pointsman.cli.usage import key_lines
from pointsman.extras import EXTRAS, is_installed
from pointsman.operations.health import HealthFinding, sandbox_in_use
from pointsman.operations.model_catalogue import ModelCatalogue, ModelPing, NamedModelView
from pointsman.operations.provider_keys import ModelKeys
from pointsman.settings.display import masked_address
from pointsman.settings.display import shown as settings_view
from pointsman.values import Json, JsonObject
from pointsman.workflows.tool_verbs import McpServerView, ToolView


@click.group(invoke_without_command=True)
@json_option
@script_option
@click.pass_context
def tools(context: click.Context, *, as_json: bool, script: Path | None) -> None:
    """List the tools that workflows can use here: built-in, of the settings, of installed packages, of a script."""
    if context.invoked_subcommand is not None:
        return
    found, servers = go(_tools(script))
    if as_json:
        print_json({"tools": found, "servers": servers})
        return
    for one in found:
        description = one["description"] if one["enabled"] else f"disabled: {one['off']}"
        click.echo(f"{shown(one['name']):24} {one['origin']:9} {shown(description, chars_max=120)}")
    for failure in (one["failure"] for one in servers if one["failure"] is not None):
        click.echo(f"warning: {shown(failure['message'], chars_max=400)}", err=True)
        for line in str(failure.get("stderr") or "").splitlines():
            click.echo(f"  {escape_controls(line)}", err=True)
        click.echo(f"  → {shown(failure['hint'])}", err=True)


async def _tools(script: Path | None) -> tuple[list[ToolView], list[McpServerView]]:
    """Return the tools and the MCP servers, without opening the store of the settings."""
    async with installation("memory:", script=script) as app:
        return await session_at_prompt(app).tools.inspect()


@tools.command("import")
@click.argument("source")
@click.option("--server", default="", metavar="URL", help="Address of the service, if the document has none.")
@click.option("--prefix", default="", help="Prefix of the tools' names.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="Write to this file instead of standard output."
)
def import_(*, source: str, server: str, prefix: str, out: Path | None) -> None:
    """Convert the operations of an OpenAPI document, a file or an address, into tools.

    The output is a tool file: review it, and name it under `tool_files` in the settings.
    """
    from pointsman.workflows.http_tools import import_openapi, tool_file  # Imported late: it loads an HTTP client.

    found = go(import_openapi(loaded(), source, server=server, prefix=prefix))
    text = tool_file(found)
    if out is None:
        click.echo(text)
    else:
        out.write_text(text + "\n", encoding="utf-8")
        click.echo(f"{len(found.tools)} tools in {out}", err=True)
    for loss in found.losses:
        click.echo(f"note: {shown(loss)}", err=True)


@click.command()
@click.option("--ping", is_flag=True, help="Send each model a one-word request, which real ones bill.")
@click.option("--keys", is_flag=True, help="Show the state of each key: its use of today, and whether it rests.")
@json_option
@model_option
@script_option
@store_option
def models(*, ping: bool, keys: bool, as_json: bool, model: str | None, script: Path | None, store: str | None) -> int:
    """List the models that workflows can use here: those of the settings with their prices, and the providers
    with their keys, masked.

    Exit code 1 if a pinged model did not answer.
    """
    # Listing models alone does not require the store, which may be absent or in use.
    app = installation(store if keys else "memory:", model=model, script=script)
    found, pings, paying = go(_models(app, ping=ping, keys=keys))
    if as_json:
        more = {**({"pings": pings} if ping else {}), **({} if paying is None else {"paying": paying})}
        print_json({**found, **more})
    else:
        _show_models(found, pings)
        for line in () if paying is None else key_lines(paying):
            click.echo(line)
    return 0 if all(one["ok"] for one in pings) else 1


async def _models(
    app: Pointsman, *, ping: bool, keys: bool
) -> tuple[ModelCatalogue, list[ModelPing], ModelKeys | None]:
    """Return the models, the result of each ping, and the state of the keys."""
    async with app:
        operations = session_at_prompt(app).operations
        pings = (await operations.ping_models())["models"] if ping else []
        return await operations.models(), pings, await operations.model_keys() if keys else None


def _show_models(found: ModelCatalogue, pings: list[ModelPing]) -> None:
    default = found["default"] or "none: an agent must name its model"
    click.echo(f"default: {shown(default)}{', for every agent' if found['forEveryAgent'] else ''}")
    answers = {one["name"]: one for one in pings}
    for one in found["models"]:
        answer = answers.get(one["name"])
        if one["scripted"] and answer is None:
            continue
        columns = [
            ", ".join(one["uses"]),
            _price(one),
            *([] if answer is None else [_ping_result(answer)]),
        ]
        click.echo(f"{shown(one['name']):32} {' · '.join(text for text in columns if text)}")
        failure = None if answer is None else answer.get("failure")
        if failure is not None and failure["hint"]:
            click.echo(f"  → {shown(failure['hint'], chars_max=200)}")
    for one in found["providers"]:
        keys = ", ".join(one["masked"])
        columns = (
            f"{one['keys']} keys{f' ({keys})' if keys else ''}, from {one['source']}  {one['baseUrl'] or ''}".rstrip()
        )
        click.echo(f"{shown(one['name']):14} {shown(one['kind'])}: {shown(columns, chars_max=160)}")
        if one["missing"]:
            click.echo(f"  → {shown(one['missing'], chars_max=200)}")
    click.echo("scripted       offline, deterministic: --model scripted [--script FILE]")


def _price(model: NamedModelView) -> str:
    if model["scripted"]:
        return "scripted"
    if model["inputUsdPerMillion"] is None:
        return "no price: set one under [prices]"
    own = " (settings)" if model["priceFrom"] == "settings" else ""
    return f"${model['inputUsdPerMillion']:g} in, ${model['outputUsdPerMillion']:g} out per million tokens{own}"


def _ping_result(answer: ModelPing) -> str:
    failure = answer.get("failure")
    if failure is None:
        made_up = ": scripted, no provider was called" if answer.get("scripted") else ""
        return f"answered in {answer.get('seconds', 0.0):g} s{made_up}"
    return f"{failure['code']}: {shown(failure['message'], chars_max=120)}"


@click.command()
@json_option
@store_option
def settings(*, as_json: bool, store: str | None) -> None:
    """Show the effective settings with their sources; secrets are masked."""
    found = settings_view(loaded(store))
    if as_json:
        print_json(found)
        return
    for name, one in cast("dict[str, JsonObject]", found).items():
        click.echo(f"{name:20} {shown(one['value'], chars_max=80):50} {one['source']}")


@click.command()
@json_option
@store_option
def verify(*, as_json: bool, store: str | None) -> int:
    """Check the store for damage: pages, the hash chains of the journals, contents. Reads everything.

    Exit code 1 if something is damaged.
    """
    found = go(_damage(store))
    if as_json:
        print_json({"ok": not found, "damage": cast("list[Json]", found)})
    else:
        for line in found:
            click.echo(shown(line))
        click.echo("damaged" if found else "no damage", err=True)
    return 1 if found else 0


async def _damage(store: str | None) -> list[str]:
    async with installation(store) as app:
        return await session_at_prompt(app).operations.damage()


@click.command()
@click.option("--fix", is_flag=True, help="Make the repairs without risk: delete unused contents.")
@json_option
@store_option
def doctor(*, fix: bool, as_json: bool, store: str | None) -> int:
    """Diagnose this installation: its store, sandbox, extras, model, tools, and executions that do not continue.

    Exit code 1 if an error is found. `pointsman verify` looks for damage, which takes longer.
    """
    url, box, found, mended = go(_findings(store, fix=fix))
    if as_json:
        report: list[Json] = [one.to_json() for one in found]
        warned: list[Json] = [one.message for one in found if one.severity != "note"]
        mended_codes: list[Json] = [one.code for one in mended]
        extras: JsonObject = {name: is_installed(name) for name in EXTRAS}
        print_json(
            {
                "store": url,
                "sandbox": box or None,
                "extras": extras,
                "findings": report,
                "warnings": warned,
                "mended": mended_codes,
            }
        )
    else:
        click.echo(f"store: {shown(url)}")
        click.echo(f"sandbox: {box or 'none'}")
        click.echo(f"extras: {', '.join(name for name in EXTRAS if is_installed(name)) or 'none'}")
        if absent := [name for name in EXTRAS if not is_installed(name)]:
            click.echo(f"not installed: {', '.join(absent)} (pip install 'pointsman[NAME]')")
        for one in found:
            hint = f"\n  → {shown(one.hint)}" if one.hint else ""
            click.echo(f"{one.severity}: {shown(one.message)}{' (fixed)' if one in mended else hint}")
        if not found:
            click.echo("no problems found")
    return 1 if any(one.severity == "error" for one in found) else 0


async def _findings(store: str | None, *, fix: bool) -> tuple[str, str, list[HealthFinding], list[HealthFinding]]:
    async with installation(store) as app:
        operations = session_at_prompt(app).operations
        found = await operations.findings()
        box = await sandbox_in_use(app.settings)
        return masked_address(app.settings.store_url), box, found, await operations.repair(found) if fix else []

"""Commands for this installation: tools, models, settings, usage, verify, doctor."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple, cast

import click

from pointsman.app import Pointsman
from pointsman.cli.app_opening import go, installation, loaded, session_at_prompt
from pointsman.cli.options import json_option, model_option, script_option, store_option
from pointsman.cli.printing import escape_controls, print_json, read_hidden, say, shown
from pointsman.cli.times import when_and_distance
from pointsman.executions.usage_rollup import DIMENSIONS, Dimension, UsageRow
from pointsman.extras import EXTRAS, is_installed
from pointsman.operations.health import HealthFinding, sandbox_in_use
from pointsman.operations.model_catalogue import ModelCatalogue, NamedModelView
from pointsman.operations.model_connections import SUGGESTED, ConnectionRequest, ProviderConnection
from pointsman.operations.model_ping import ModelPing
from pointsman.operations.provider_keys import ModelKeys, ModelKeyView
from pointsman.operations.usage import BudgetRow, csv_of
from pointsman.operations.workers import WorkersReport
from pointsman.settings import masked_address
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
    views, servers = go(_tools(script))
    if as_json:
        print_json({"tools": views, "servers": servers})
        return
    for view in views:
        description = view["description"] if view["enabled"] else f"disabled: {view['off']}"
        click.echo(f"{shown(view['name']):24} {view['origin']:9} {shown(description, chars_max=120)}")
    for failure in (server["failure"] for server in servers if server["failure"] is not None):
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

    imported = go(import_openapi(loaded(), source, server=server, prefix=prefix))
    text = tool_file(imported)
    if out is None:
        click.echo(text)
    else:
        out.write_text(text + "\n", encoding="utf-8")
        click.echo(f"{len(imported.tools)} tools in {out}", err=True)
    for loss in imported.losses:
        click.echo(f"note: {shown(loss)}", err=True)


@click.group(invoke_without_command=True)
@click.option("--ping", is_flag=True, help="Send each model a one-word request, which real ones bill.")
@click.option("--keys", is_flag=True, help="Show the state of each key: its use of today, and whether it rests.")
@json_option
@model_option
@script_option
@store_option
@click.pass_context
def models(
    context: click.Context,
    *,
    ping: bool,
    keys: bool,
    as_json: bool,
    model: str | None,
    script: Path | None,
    store: str | None,
) -> int:
    """List the models that workflows can use here: those of the settings with their prices, and the providers
    with their keys, masked. With --keys or --store also the models that are connected in the store.

    Exit code 1 if a pinged model did not answer.
    """
    if context.invoked_subcommand is not None:
        return 0
    # Listing the models of the settings does not require the store, which may be absent or in use.
    app = installation(store if keys or store else "memory:", model=model, script=script)
    catalogue, pings, paying = go(_models(app, ping=ping, keys=keys))
    if as_json:
        more = {**({"pings": pings} if ping else {}), **({} if paying is None else {"paying": paying})}
        print_json({**catalogue, **more})
    else:
        _show_models(catalogue, pings)
        for line in () if paying is None else key_lines(paying):
            click.echo(line)
    return 0 if all(one["ok"] for one in pings) else 1


@models.command()
@click.argument("kind")
@click.option("--name", default="", help="Name in `NAME:model` (default: its kind).")
@click.option("--model", default="", metavar="MODEL", help="Model to test, without its provider.")
@click.option("--default", is_flag=True, help="Use the model for agents without a model.")
@click.option("--base-url", default="", metavar="URL", help="Address, of a service of your own.")
@click.option("--region", default="", help="Region, of Bedrock.")
@click.option("--api-version", default="", help="Version of the API, of Azure.")
@click.option("--no-key", is_flag=True, help="The service needs no key, or the stored key stays.")
@click.option("--no-test", is_flag=True, help="Save without a test request.")
@json_option
@store_option
def connect(
    *,
    kind: str,
    name: str,
    model: str,
    default: bool,
    base_url: str,
    region: str,
    api_version: str,
    no_key: bool,
    no_test: bool,
    as_json: bool,
    store: str | None,
) -> int:
    """Connect a provider of models: openai, anthropic, google, groq, mistral, bedrock, ollama, vllm,
    openai-compatible, azure, openrouter, deepseek.

    The key is read from standard input or a prompt, never from an argument, which other users could see. It is stored
    encrypted. Running servers use it within a second. Exit code 1 if the model did not answer the test.
    """
    request = ConnectionRequest(
        kind=kind,
        key=None if no_key else read_hidden("Key"),
        base_url=base_url,
        region=region,
        api_version=api_version,
        model=model or SUGGESTED.get(kind, ""),
        default=default,
        test=not no_test,
    )
    found = go(_connect(store, name or kind, request))
    if as_json:
        print_json({**found})
        return 0 if found["saved"] else 1
    if (ping := found["ping"]) is not None:
        click.echo(f"{shown(ping['name'])}: {_ping_result(ping)}")
        if (failure := ping.get("failure")) is not None and failure["hint"]:
            click.echo(f"  → {shown(failure['hint'], chars_max=200)}")
    say(f"connected {name or kind}; default model: {found['default'] or 'none'}" if found["saved"] else "not saved")
    return 0 if found["saved"] else 1


async def _connect(store: str | None, name: str, request: ConnectionRequest) -> ProviderConnection:
    async with installation(store) as app:
        return await session_at_prompt(app).operations.connect_provider(name, request)


@models.command()
@click.argument("name")
@json_option
@store_option
def disconnect(name: str, *, as_json: bool, store: str | None) -> None:
    """Delete a connected provider and its key."""
    go(_disconnect(store, name))
    if as_json:
        print_json({"disconnected": [name]})
    else:
        say(f"disconnected {name}")


async def _disconnect(store: str | None, name: str) -> None:
    async with installation(store) as app:
        await session_at_prompt(app).operations.disconnect_provider(name)


@models.command("default")
@click.argument("model")
@json_option
@store_option
def default_(model: str, *, as_json: bool, store: str | None) -> None:
    """Choose the model of agents without a model: `provider:model`; "" for none."""
    go(_choose_default(store, model))
    if as_json:
        print_json({"default": model or None})
    else:
        say(f"default model: {model or 'none'}")


async def _choose_default(store: str | None, model: str) -> None:
    async with installation(store) as app:
        await session_at_prompt(app).operations.choose_default_model(model)


async def _models(
    app: Pointsman, *, ping: bool, keys: bool
) -> tuple[ModelCatalogue, list[ModelPing], ModelKeys | None]:
    """Return the models, the result of each ping, and the state of the keys."""
    async with app:
        operations = session_at_prompt(app).operations
        pings = (await operations.ping_models())["models"] if ping else []
        return await operations.models(), pings, await operations.model_keys() if keys else None


def _show_models(catalogue: ModelCatalogue, pings: list[ModelPing]) -> None:
    default = catalogue["default"] or "none: an agent must name its model"
    click.echo(f"default: {shown(default)}{', for every agent' if catalogue['forEveryAgent'] else ''}")
    answers = {ping["name"]: ping for ping in pings}
    for model in catalogue["models"]:
        answer = answers.get(model["name"])
        if model["scripted"] and answer is None:
            continue
        columns = [
            ", ".join(model["uses"]),
            _price(model),
            *([] if answer is None else [_ping_result(answer)]),
        ]
        click.echo(f"{shown(model['name']):32} {' · '.join(text for text in columns if text)}")
        failure = None if answer is None else answer.get("failure")
        if failure is not None and failure["hint"]:
            click.echo(f"  → {shown(failure['hint'], chars_max=200)}")
    for provider in catalogue["providers"]:
        keys = f" ({', '.join(provider['masked'])})" if provider["masked"] else ""
        columns = f"{provider['keys']} keys{keys}, from {provider['source']}  {provider['baseUrl'] or ''}".rstrip()
        click.echo(f"{shown(provider['name']):14} {shown(provider['kind'])}: {shown(columns, chars_max=160)}")
        if provider["missing"]:
            click.echo(f"  → {shown(provider['missing'], chars_max=200)}")
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
def verify(*, as_json: bool, store: str | None) -> int:
    """Check the store for damage: pages, the hash chains of the journals, contents. Reads everything.

    Exit code 1 if something is damaged.
    """
    damage = go(_damage(store))
    if as_json:
        print_json({"ok": not damage, "damage": cast("list[Json]", damage)})
    else:
        for line in damage:
            click.echo(shown(line))
        click.echo("damaged" if damage else "no damage", err=True)
    return 1 if damage else 0


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
    url, sandbox, findings, fixed, running = go(_findings(store, fix=fix))
    if as_json:
        report: list[Json] = [finding.to_json() for finding in findings]
        warned: list[Json] = [finding.message for finding in findings if finding.severity != "note"]
        fixed_codes: list[Json] = [finding.code for finding in fixed]
        extras: JsonObject = {name: is_installed(name) for name in EXTRAS}
        print_json(
            {
                "store": url,
                "sandbox": sandbox or None,
                "extras": extras,
                "findings": report,
                "warnings": warned,
                "fixed": fixed_codes,
                "mended": fixed_codes,  # Its former name.
                "workers": cast("JsonObject", running),
            }
        )
    else:
        click.echo(f"store: {shown(url)}")
        click.echo(f"sandbox: {sandbox or 'none'}")
        click.echo(f"extras: {', '.join(name for name in EXTRAS if is_installed(name)) or 'none'}")
        if absent := [name for name in EXTRAS if not is_installed(name)]:
            click.echo(f"not installed: {', '.join(absent)} (pip install 'pointsman[NAME]')")
        for line in worker_lines(running):
            click.echo(shown(line, chars_max=400))
        for finding in findings:
            hint = f"\n  → {shown(finding.hint)}" if finding.hint else ""
            click.echo(f"{finding.severity}: {shown(finding.message)}{' (fixed)' if finding in fixed else hint}")
        if not findings:
            click.echo("no problems found")
    return 1 if any(finding.severity == "error" for finding in findings) else 0


def worker_lines(report: WorkersReport) -> list[str]:
    """Describe the processes of a store and its queues."""
    lines: list[str] = []
    for worker in report["workers"]:
        most = f" of {worker['capacity']}" if worker["capacity"] else ""
        work = f"{worker['steps']}{most} steps" if worker["queues"] else f"{worker['executions']}{most} executions"
        queues = f" of {', '.join(worker['queues'])}" if worker["queues"] else ""
        lines.append(f"{worker['role']}: {worker['name']} ({worker['version']}), {work}{queues}")
    lines += [
        f"queue {queue['queue']}: {queue['workers']} workers, {queue['running']} steps run, {queue['waiting']} wait"
        for queue in report["queues"]
    ]
    return lines


class Diagnosis(NamedTuple):
    """What `doctor` prints."""

    store: str
    sandbox: str
    findings: list[HealthFinding]
    fixed: list[HealthFinding]
    running: WorkersReport


async def _findings(store: str | None, *, fix: bool) -> Diagnosis:
    async with installation(store) as app:
        operations = session_at_prompt(app).operations
        findings = await operations.findings()
        sandbox = await sandbox_in_use(app.settings)
        fixed = await operations.repair(findings) if fix else []
        return Diagnosis(masked_address(app.settings.store_url), sandbox, findings, fixed, await operations.workers())


SHOWN: Final = ("steps", "retries", "failures", "seconds", "modelCalls", "toolCalls", "inputTokens", "outputTokens")


@click.command()
@click.option(
    "--by",
    multiple=True,
    type=click.Choice(DIMENSIONS),
    help="Group by this. Repeatable (default: workflow).",
)
@click.option("--of", multiple=True, metavar="WHAT:NAME", help="Only entries with this name: model:gpt-5. Repeatable.")
@click.option("--since", default="", metavar="DAY", help="From this day on (UTC): 2026-11-21.")
@click.option("--until", default="", metavar="DAY", help="Up to this day.")
@click.option("--csv", "as_csv", is_flag=True, help="As CSV.")
@click.option(
    "--budgets", "as_budgets", is_flag=True, help="Show the budgets of executions and keys, and what is left."
)
@click.option("--rebuild", is_flag=True, help="Compute everything again from the existing journals.")
@json_option
@store_option
def usage(
    *,
    by: tuple[Dimension, ...],
    of: tuple[str, ...],
    since: str,
    until: str,
    as_csv: bool,
    as_budgets: bool,
    rebuild: bool,
    as_json: bool,
    store: str | None,
) -> None:
    """Show usage of ended executions by workflow, node, model, key, day, user or execution; the most expensive
    first."""
    if as_budgets:
        _show_budgets(*go(_budgets(store, since, until)), as_json=as_json, as_csv=as_csv)
        return
    dimensions = by or ("workflow",)
    rows = go(_usage(store, dimensions, of, since, until, rebuild=rebuild))
    if as_json:
        print_json({"usage": rows})
    elif as_csv:
        click.echo(csv_of(rows), nl=False)
    else:
        for line in table_lines(rows, [dimension for dimension in DIMENSIONS if dimension in dimensions]):
            click.echo(line)


async def _usage(
    store: str | None, by: tuple[Dimension, ...], of: tuple[str, ...], since: str, until: str, *, rebuild: bool
) -> list[UsageRow]:
    async with installation(store) as app:
        operations = session_at_prompt(app).operations
        if rebuild:
            await operations.rebuild_usage()
        return await operations.usage(by, since=since, until=until, of=of)


async def _budgets(store: str | None, since: str, until: str) -> tuple[list[BudgetRow], ModelKeys]:
    async with installation(store) as app:
        operations = session_at_prompt(app).operations
        return await operations.budgets(since=since, until=until), await operations.model_keys()


def _show_budgets(rows: list[BudgetRow], paying: ModelKeys, *, as_json: bool, as_csv: bool) -> None:
    if as_json:
        print_json({"budgets": rows, "paying": paying})
    elif as_csv:
        click.echo(csv_of(rows), nl=False)
    else:
        click.echo("budget of each execution:" if rows else "no workflow has a budget: set its `limits`")
        for row in rows:
            measure = row["measure"]
            most, highest = amount_text(measure, row["most"]), amount_text(measure, row["highest"])
            limit = f"at most {most} ({row['setBy']}, {row['policy']})"
            spent = f"highest use {highest}" if row["dearest"] else "not used yet"
            over = f", {row['over']} reached it" if row["over"] else ""
            click.echo(f"  {shown(row['workflow']):24} {measure:10} {limit}; {spent}{over}")
        for line in key_lines(paying):
            click.echo(line)


def table_lines(rows: list[UsageRow], by: list[Dimension]) -> list[str]:
    """Return a table with a header; columns are as wide as their widest cell."""
    head = [*by, "steps", "retries", "failures", "seconds", "calls", "tools", "tokens in", "tokens out", "cost"]
    body = [
        [*(shown(row.get(name)) or "-" for name in by), *(shown(row[name]) for name in SHOWN), _cost(row)]
        for row in rows
    ]
    wide = [max(len(line[column]) for line in [head, *body]) for column in range(len(head))]
    return [
        "  ".join(
            cell.ljust(width) if column < len(by) else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, wide, strict=True))
        ).rstrip()
        for line in [head, *body]
    ]


def _cost(row: UsageRow) -> str:
    """Return the cost; `+`: some calls are of models without a known price."""
    unknown = "+" if row["unpricedCalls"] else ""
    return f"${row['costUsd']:.4f}{unknown}" if row["costUsd"] is not None else "?" if unknown else "-"


ELSEWHERE: Final = "running calls are counted by the process that makes them: see the Models page of the server"


def key_lines(keys: ModelKeys) -> Iterator[str]:
    """Yield a line for each key, and a note about running calls."""
    yield "keys, today (UTC):"
    for provider in keys["providers"]:
        if provider["missing"]:
            yield f"  {shown(provider['name']):24} {shown(provider['missing'], chars_max=200)}"
        for key in provider["keys"]:
            yield f"  {shown(key['id']):24} {_condition(key):32} {_use_today(key)}".rstrip()
    yield ELSEWHERE


def _condition(key: ModelKeyView) -> str:
    until = f" until {when_and_distance(key['until'])}" if key["until"] is not None else ""
    name = f" ({shown(key['name'])})" if key["name"] else ""
    return f"{key['condition']}{until}{name}"


def _use_today(key: ModelKeyView) -> str:
    """Return the use of a key today, and its limits; the use of a key without limits is not stored."""
    most, paid = key["mostToday"], key["today"]
    if most is None:
        return "no daily limit"
    amounts = (
        ("calls", paid["calls"], most["calls"], " calls"),
        ("tokens", paid["tokens"], most["tokens"], " tokens"),
        ("costUsd", paid["costUsd"], most["costUsd"], ""),
    )
    parts = [
        f"{amount_text(name, used)} of {amount_text(name, limit)}{unit}"
        for name, used, limit, unit in amounts
        if limit is not None
    ]
    return ", ".join(parts)


def amount_text(name: str, value: object) -> str:
    """Return an amount as dollars or as a number."""
    return f"${value:.4f}" if name == "costUsd" else f"{value:g}" if isinstance(value, float) else f"{value}"

"""`pointsman usage`: usage, budgets and the state of model keys, as tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import click

from pointsman.cli.app_opening import go, installation, session_at_prompt
from pointsman.cli.options import json_option, store_option
from pointsman.cli.printing import print_json, shown
from pointsman.cli.results import when
from pointsman.executions.usage_rollup import DIMENSIONS, Dimension, UsageRow
from pointsman.operations.provider_keys import ModelKeys, ModelKeyView
from pointsman.operations.usage import BudgetRow, csv_of

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
    found = go(_usage(store, dimensions, of, since, until, rebuild=rebuild))
    if as_json:
        print_json({"usage": found})
    elif as_csv:
        click.echo(csv_of(found), nl=False)
    else:
        for line in table_lines(found, [one for one in DIMENSIONS if one in dimensions]):
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


def _show_budgets(found: list[BudgetRow], paying: ModelKeys, *, as_json: bool, as_csv: bool) -> None:
    if as_json:
        print_json({"budgets": found, "paying": paying})
    elif as_csv:
        click.echo(csv_of(found), nl=False)
    else:
        click.echo("budget of each execution:" if found else "no workflow has a budget: set its `limits`")
        for row in found:
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
    until = f" until {when(key['until'])}" if key["until"] is not None else ""
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

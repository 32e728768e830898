"""The command that decides a journal again."""

from __future__ import annotations

import json
from typing import cast

import click

from pointsman.cli.app_opening import go, installation, known, named
from pointsman.cli.completion import complete_execution
from pointsman.cli.options import json_option, store_option
from pointsman.cli.printing import print_json, shown
from pointsman.executions.replays import replay_view
from pointsman.values import Json, JsonObject


@click.command()
@click.argument("execution", shell_complete=complete_execution)
@click.option("--against", metavar="FILE|ID@REV", help="Decide with another definition, and compare.")
@json_option
@store_option
def replay(execution: str, *, against: str | None, as_json: bool, store: str | None) -> int:
    """Fold the journal of an execution, decide each row again, and compare. No model and no tool is called.

    Exit code 1: a row differs.
    """
    found = go(_replay(store, execution, against))
    if as_json:
        print_json(found)
    else:
        for line in lines_of(found):
            click.echo(line)
    return 0 if found["same"] else 1


async def _replay(store: str | None, execution: str, against: str | None) -> JsonObject:
    async with installation(store) as app:
        other = None if against is None else await known(app, named(against))
        return replay_view(await app.replay(execution, against=other))


def lines_of(found: JsonObject) -> list[str]:
    """What came of it, for people."""
    lines = [_difference(one) for one in cast("list[JsonObject]", found["differences"])]
    untold = cast("list[int]", found["untold"])
    if untold:
        rows = ", ".join(map(str, untold))
        lines.append(f"note: row {rows} cannot be decided again: its report is not stored")
    said = click.style("the same", fg="green") if found["same"] else click.style("different", fg="red")
    lines.append(f"{said}: {found['rows']} rows decided again, then {found['status']}")
    return lines


def _difference(one: JsonObject) -> str:
    place = f"row {one['row']}, event {one['event']} ({one['kind']}) {shown(one['field'])}".rstrip()
    return f"{place}\n  recorded: {_value(one['recorded'])}\n  now:      {_value(one['now'])}"


def _value(value: Json) -> str:
    return shown(json.dumps(value, ensure_ascii=False), chars_max=400)

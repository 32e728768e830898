"""Migrating executions to other definitions: list what does not fit, or migrate."""

from __future__ import annotations

from typing import Final

from typing_extensions import TypedDict

from pointsman.engine.data import dotted
from pointsman.engine.decide.migrate import MigrationMismatch, MigrationRefused, misfits
from pointsman.engine.decide.outputs import undeclared
from pointsman.engine.reports import MigrationRequested
from pointsman.engine.state import ExecutionState
from pointsman.runtime.driver import Driver
from pointsman.values import JsonObject
from pointsman.workflows.library import AUTHORS, Library, Prepared

OF_DEFINITIONS: Final = frozenset({"revision", "pins", "observability", AUTHORS})
"""Options that an execution has from its definition."""


async def onto_definition(library: Library, prepared: Prepared, state: ExecutionState, by: str) -> MigrationRequested:
    """Return the request to continue with a definition, which is saved in the store for it."""
    kept: JsonObject = {name: value for name, value in state.setup.options.items() if name not in OF_DEFINITIONS}
    options = {**kept, **await library.options(prepared)}
    return MigrationRequested(definition=await library.keep(prepared.runnable), options=options, by=by)


async def move(
    library: Library, driver: Driver, onto: MigrationRequested, *, check_only: bool
) -> list[MigrationMismatch]:
    """Migrate an execution if everything fits; with `check_only` return everything that does not fit.

    Raises `MigrationRefused`, `WrongStatus`.
    """
    plan = await library.pinned(onto.definition, onto.options)
    found = [*misfits(plan, driver.state, driver.plan)]
    found += [
        MigrationMismatch("state-schema", dotted(path), message)
        for path, message in undeclared(plan.declared, driver.state.root.data.root)
    ]
    if check_only:
        return found
    if found:
        more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
        raise MigrationRefused(f"{found[0].where}: {found[0].message}{more}", hint="`move … --check` lists all of it.")
    await driver.move(plan, onto)
    return []


class MisfitView(TypedDict):
    """Something in progress that has no place in the other definition."""

    code: str
    where: str
    """The step, or the node with its branch."""
    message: str


class MigrationView(TypedDict):
    """Whether everything in progress has a place in the other definition."""

    executionId: str
    fits: bool
    moved: bool
    problems: list[MisfitView]


def migration_view(execution: str, found: list[MigrationMismatch], *, check_only: bool) -> MigrationView:
    """Return the outcome of a migration."""
    return {
        "executionId": execution,
        "fits": not found,
        "moved": not found and not check_only,
        "problems": [{"code": one.code, "where": one.where, "message": one.message} for one in found],
    }

"""The tools that come with us. What reaches outside is off until the settings say where to."""

from __future__ import annotations

from collections.abc import Iterator

from pointsman.settings import Settings
from pointsman.tools.calculator import calculator
from pointsman.tools.off import OffTool
from pointsman.tools.tool import Tool


def builtin_tools(settings: Settings) -> Iterator[Tool]:
    """All of them, those that are off too. Loads only what is on."""
    yield calculator
    yield _sql(settings)


def _sql(settings: Settings) -> Tool:
    if not settings.sql:
        return OffTool("sql", "Read a database.", because="Name a database in the settings: [sql.NAME] with its `url`.")
    from pointsman.tools.sql.tool import SqlTool

    return SqlTool(settings.sql, resolved=settings.resolved)

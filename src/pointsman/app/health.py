"""The health of an installation: what an operator should know before something breaks."""

from __future__ import annotations

from pointsman.app.installation import Pointsman
from pointsman.errors import PointsmanError


async def warnings(app: Pointsman) -> list[str]:
    """What an operator should know about this installation."""
    found = [*app.store.warnings()]
    if not app.settings.has_provider():
        found.append("no model provider is configured: the scripted model answers every agent")
    for name in app.tools.names():
        try:
            app.tools.find(name)
        except PointsmanError as why:
            found.append(f"tool {name!r}: {why}")
    return found


async def damage(app: Pointsman) -> list[str]:
    """Every contradiction in the store, one sentence each. Reads everything."""
    return await app.store.verify()

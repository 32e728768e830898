"""Writes docs/reference/access.md from the operations themselves: `python -m tests.server.matrix`."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pointsman.auth.callers import ROLES, Role
from pointsman.server.application import ROUTERS
from pointsman.server.operation import described, least_of

PAGE: Final = Path(__file__).resolve().parents[2] / "docs" / "reference" / "access.md"
INTRODUCTION: Final = """\
# Access by operation

The lowest role that each operation requires; roles are in the order of the columns. Sharing further narrows what a
caller sees of workflows, executions, gates, sessions and memory: [access](../how-to/access.md).

| operation | viewer | operator | editor | admin |
|---|---|---|---|---|
"""


def matrix() -> dict[str, Role | None]:
    """Return the minimum role of each operation in the code; None: it requires no key, or checks access itself."""
    found: dict[str, Role | None] = {}
    for route in described(ROUTERS):
        least = least_of(route)
        found |= {f"{method} {route.path.replace(':path', '')}": least for method in route.methods or ()}
    return dict(sorted(found.items(), key=lambda one: one[0].split()[::-1]))


LET_IN_BY_THEMSELVES: Final = {operation for operation, least in matrix().items() if least is None}
"""Operations that need no key or check something else: a signature, a key in the body."""


def page() -> str:
    return INTRODUCTION + "\n".join(_row(operation, least) for operation, least in matrix().items()) + "\n"


def _row(operation: str, least: Role | None) -> str:
    if least is None:
        return f"| `{operation}` | no key |  |  |  |"
    cells = ["yes" if ROLES.index(role) >= ROLES.index(least) else "" for role in ROLES]
    return f"| `{operation}` | {' | '.join(cells)} |"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")

"""Hints over HTTP: a command that somebody at a prompt would give is told as the operation that does the same.

    "`pointsman show exec-1` tells how far it is."  ─▶  "`GET /api/workflows/executions/exec-1` tells how far it is."

Commands of the operator (`verify`, `doctor`, `keys revoke` …) have no operation, and stay what they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

ONE: Final = "/api/workflows/executions/ID"
OPERATIONS: Final[Mapping[str, str]] = {
    "list": "GET /api/workflows/executions",
    "list --json": "GET /api/sessions",
    "show": f"GET {ONE}",
    "events": f"GET {ONE}/events",
    "cancel": f"POST {ONE}/cancel",
    "resume": f"POST {ONE}/resume",
    "retry": f"POST {ONE}/retry",
    "fork": f"POST {ONE}/fork",
    "delete": f"DELETE {ONE}",
    "notifications list": "GET /api/notifications",
    "secrets set": "PUT /api/secrets/ID",
}
"""What does over HTTP what a command does; `ID`: what the command names, where it names something."""
_NAMES: Final = "|".join(sorted(OPERATIONS, key=len, reverse=True))
COMMAND: Final = re.compile(rf"`pointsman ({_NAMES})(?![\w-])(?: ([\w.-]+))?[^`]*`")


def over_http(hint: str) -> str:
    """A hint, for whoever has an address and no prompt."""
    return COMMAND.sub(lambda command: f"`{OPERATIONS[command[1]].replace('ID', command[2] or 'ID')}`", hint)

"""python -m tests.server.unkeyed FILE …: as `tests.server.charge_cli`, but a repeated call gets a key of its own."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from unittest.mock import patch

from pointsman.cli import main
from pointsman.tools import registry
from pointsman.tools.tool import ToolContext
from tests.server.charge_cli import offer_charge


def of_this_process(*, idempotency_key: str, **more: object) -> ToolContext:
    """Return the context of a call with a key that depends on the process."""
    return ToolContext(idempotency_key=f"{idempotency_key}-{os.getpid()}", **more)  # pyright: ignore[reportArgumentType] - passes the rest on


if __name__ == "__main__":
    patch.object(registry, "ToolContext", of_this_process).start()
    offer_charge(Path(sys.argv.pop(1)))
    main()

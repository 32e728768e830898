"""python -m tests.server.charge_cli FILE …: `pointsman …` with the tool `charge`, which writes its calls to FILE.

Each line has the unix time, the process, the execution and the idempotency key of a call that begins.
"""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Final

from pointsman import Pointsman, tool
from pointsman.cli import main, serve
from pointsman.tools.tool import ToolContext

TAKES_S: Final = 0.2


def offer_charge(file: Path) -> None:
    """Offer the tool in every installation of this process."""

    @tool
    async def charge(context: ToolContext, seconds: float = TAKES_S) -> str:
        """Charge a card, which takes some seconds."""
        with file.open("a", encoding="utf-8") as calls:
            calls.write(f"{time.time()} {os.getpid()} {context.execution} {context.idempotency_key}\n")
        await asyncio.sleep(seconds)
        return "paid"

    opened = serve.installation

    def with_charge(store: str | None, **options: object) -> Pointsman:
        app = opened(store, **options)  # pyright: ignore[reportArgumentType] - passes the options of the command on
        app.tools.add_builtin(charge)
        return app

    serve.installation = with_charge


if __name__ == "__main__":
    offer_charge(Path(sys.argv.pop(1)))
    main()

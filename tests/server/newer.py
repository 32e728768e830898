"""python -m tests.server.newer FILE …: as `tests.server.charge_cli`, by a release whose rows this one cannot read."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import patch

from pointsman.cli import main
from pointsman.store import postgres
from pointsman.store.postgres import claims
from pointsman.values import JsonObject
from tests.server.charge_cli import offer_charge


def unchanged(event: JsonObject) -> JsonObject:
    return event


if __name__ == "__main__":
    patch.object(postgres, "UPCASTERS", (unchanged,)).start()
    patch.object(claims, "VERSION", "99.0").start()
    offer_charge(Path(sys.argv.pop(1)))
    main()

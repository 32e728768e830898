"""python -m tests.server.greedy FILE …: as `tests.server.charge_cli`, but it claims executions of live owners."""

from __future__ import annotations

import sys
from pathlib import Path
from unittest.mock import patch

from pointsman.cli import main
from pointsman.store.postgres import claims
from tests.server.charge_cli import offer_charge

if __name__ == "__main__":
    nobody = claims.CLAIM.replace("interval '12 s'", "interval '0 s'").replace("interval '15 s'", "interval '0 s'")
    patch.object(claims, "CLAIM", nobody).start()
    offer_charge(Path(sys.argv.pop(1)))
    main()

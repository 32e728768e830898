"""python -m tests.server.shifted FILE …: as `tests.server.charge_cli`, with a clock five minutes ahead."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Final
from unittest.mock import patch

from pointsman.cli import main
from tests.server.charge_cli import offer_charge

AHEAD_S: Final = 300.0

if __name__ == "__main__":
    real = time.time
    patch.object(time, "time", lambda: real() + AHEAD_S).start()
    offer_charge(Path(sys.argv.pop(1)))
    main()

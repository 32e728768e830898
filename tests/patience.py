"""Time limits of waits in tests: long enough for a loaded machine, short enough to detect a hang."""

from __future__ import annotations

from typing import Final

PATIENCE_S: Final = 60.0

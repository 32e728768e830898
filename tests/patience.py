"""How long tests wait for what must come: a loaded machine is slow, and what never comes is found all the same."""

from __future__ import annotations

from typing import Final

PATIENCE_S: Final = 60.0

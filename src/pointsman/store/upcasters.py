"""How old events become today's. Oldest first; a lift is only ever appended, never changed or deleted."""

from __future__ import annotations

from typing import Final

from pointsman.store.codec import Upcaster

UPCASTERS: Final[tuple[Upcaster, ...]] = ()

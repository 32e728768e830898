"""Upcasters: bring stored events of old shapes to today's. Oldest first; releases only append to them."""

from __future__ import annotations

from typing import Final

from pointsman.store.codec import Upcaster

UPCASTERS: Final[tuple[Upcaster, ...]] = ()

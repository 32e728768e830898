"""Best-effort background work: log failures and let the next run retry."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from pointsman.errors import Outage, PointsmanError

LOG: Final = logging.getLogger("pointsman.app")


@contextmanager
def retried(what: str) -> Generator[None]:
    """Log an error of the block without raising it; `what` names the work. Outages are not logged:
    writers report them."""
    try:
        yield
    except Outage:
        pass
    except PointsmanError as why:
        LOG.warning("%s cannot be done now, and is tried again: [%s] %s", what, why.code, why)

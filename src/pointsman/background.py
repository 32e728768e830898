"""What nobody waits for and is soon done again: an error ends neither it nor whoever listens, and is not lost."""

from __future__ import annotations

import logging
from collections.abc import Generator
from contextlib import contextmanager
from typing import Final

from pointsman.errors import Outage, PointsmanError

LOG: Final = logging.getLogger("pointsman.app")


@contextmanager
def retried(what: str) -> Generator[None]:
    """`what` cannot be done, as the log says. Of a store that is away for a while whoever writes is told."""
    try:
        yield
    except Outage:
        pass
    except PointsmanError as why:
        LOG.warning("%s cannot be done now, and is tried again: [%s] %s", what, why.code, why)

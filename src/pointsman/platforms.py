"""Platforms: the error of features that the operating system does not support."""

from __future__ import annotations

import sys
from typing import ClassVar, Final

from pointsman.errors import OperatorError

INSTEAD: Final = "Run Pointsman on Linux or macOS, in WSL, or in a Linux container."


class PlatformUnsupported(OperatorError):
    """A feature was used that does not exist on this operating system."""

    code: ClassVar[str] = "platform-unsupported"


def need_posix(feature: str, *, instead: str = INSTEAD) -> None:
    """Raise `PlatformUnsupported` on Windows. `feature` begins the sentence: "The server"."""
    if sys.platform == "win32":
        raise PlatformUnsupported(f"{feature} is not supported on Windows", hint=instead)

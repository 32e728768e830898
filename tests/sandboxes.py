"""The sandboxes of this machine: tests that need a missing one are skipped with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Literal, NoReturn

import pytest

from pointsman.tools.sandbox import process as boxes
from pointsman.tools.sandbox.process import Sandbox, SandboxMissing, SandboxUnavailable, find_sandbox
from pointsman.tools.sandbox.seccomp import Machine

BoxName = Literal["bubblewrap", "landlock"]
BOXES: Final[tuple[BoxName, ...]] = ("bubblewrap", "landlock")


def why_no_box() -> str:
    """Return the reason why there is none; empty if there is one."""
    try:
        find_sandbox()
    except SandboxMissing as why:
        return str(why)
    return ""


def box_or_skip(name: BoxName) -> Sandbox:
    try:
        return find_sandbox(name)
    except SandboxMissing as why:
        pytest.skip(str(why))


needs_box: Final = pytest.mark.skipif(bool(why_no_box()), reason=why_no_box() or "there is one")


def take_boxes_away(patch: pytest.MonkeyPatch) -> None:
    """Simulate a machine without sandboxes."""

    def refuse(machine: Machine) -> NoReturn:
        raise SandboxUnavailable("it was taken away")

    finders: dict[str, Callable[[Machine], Sandbox]] = dict.fromkeys(BOXES, refuse)
    patch.setattr(boxes, "FINDERS", finders)
    find_sandbox.cache_clear()

"""The control-flow patterns have shapes without problems."""

from __future__ import annotations

import pytest

from pointsman.values import JsonObject
from tests.definition.check.problems_in import codes, drawn

NESTED = """
    start -> fan1; fan1 -> fan2, a; fan2 -> b, c; b -> join2; c -> join2
    join2 -> join1; a -> join1; join1 -> end
"""
FEEDING = """
    start -> a, b; a -> join1; b -> join2; join1 -x-> join2; join2 -y-> join1
    join1 -default-> end; join2 -default-> end
"""
SHAPES: dict[str, tuple[str, dict[str, JsonObject]]] = {
    "1 sequence": ("start -> a; a -> b; b -> end", {}),
    "2-3 parallel split, synchronization": ("start -> a, b; a -> m; b -> m; m -> end", {}),
    "4-5 exclusive choice, simple merge": ("start -> dec; dec -x-> a; dec -> b; a -> m; b -> m; m -> end", {}),
    "6-7 multi-choice, synchronizing merge": ("start -> s; s -x-> a; s -y-> b; a -> m; b -> m; m -> end", {}),
    "8 multi-merge": ("start -> a, b; a -> m; b -> m; m -> end", {"m": {"trigger": "each"}}),
    "9 discriminator": ("start -> fan; fan -> a, b; a -> join; b -> join; join -> end", {"join": {"wait": "any"}}),
    "10 arbitrary cycles": ("start -> a; a -> b; b -x-> a; b -default-> c; c -y-> b; c -default-> end", {}),
    "11 implicit termination": ("start -> a, b; a -> end; b -> c", {}),
    "12 instances without synchronization": ("start -> fan; fan -> a", {"fan": {"items": "x"}}),
    "13-14 instances known": ("start -> fan; fan -> a; a -> join; join -> end", {"fan": {"items": "x"}}),
    "16 deferred choice": (
        "start -> wait; wait -> dec; dec -x-> a; dec -> b; a -> end; b -> end",
        {"wait": {"event": "e"}},
    ),
    "17 interleaved routing": ("start -> loop; loop -> a; a -> loop; loop -> end", {"loop": {"over": "x"}}),
    "21 structured loop": ("start -> loop; loop -> a; a -> b; b -> loop; loop -> end", {"loop": {"while": "x"}}),
    "30 partial join": (
        "start -> fan; fan -> a, b, c; a -> join; b -> join; c -> join; join -> end",
        {"join": {"wait": 2}},
    ),
    "31 cancelling partial join": (
        "start -> fan; fan -> a, b; a -> join; b -> join; join -> end",
        {"join": {"wait": "any", "cancelRest": True}},
    ),
    "37 local synchronizing merge": (
        "start -> s; s -> a, b; a -> dec; dec -x-> c; dec -> m; b -> m; c -> m; m -> end",
        {},
    ),
    "43 explicit termination": ("start -> a, b; a -> end; b -> c; c -> d", {"end": {"terminate": True}}),
    "nested parallels": (NESTED, {}),
    "loops in branches": (
        "start -> fan; fan -> loop, b; loop -> a; a -> loop; loop -> join; b -> join; join -> end",
        {"loop": {"maxIterations": 2}},
    ),
    "branches in loops": (
        "start -> loop; loop -> fan; fan -> a, b; a -> join; b -> join; join -> loop; loop -> end",
        {"loop": {"maxIterations": 2}},
    ),
    "two joins that feed each other": (FEEDING, {}),
}


@pytest.mark.parametrize("name", SHAPES)
def test_each_pattern_has_a_valid_shape(name: str) -> None:
    drawing, configs = SHAPES[name]
    assert codes(drawn(drawing, configs=configs)) == []

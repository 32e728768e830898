"""Slices `[start:stop]` of a list or text."""

from __future__ import annotations

from pointsman.expressions.environment import EvaluationFrame
from pointsman.expressions.failures import MixedTypes, Spot
from pointsman.expressions.operators import CHARS_PER_VISIT_BITS, type_name, whole
from pointsman.expressions.path_access import Code
from pointsman.values import Json


def cut(base: Code, start: Code | None, stop: Code | None, spot: Spot) -> Code:
    """Return the closure of a slice of a list or text; null for null. Bounds beyond the ends are cut to the ends."""

    def run(frame: EvaluationFrame) -> Json:
        value = base(frame)
        low, high = bound(start, frame, spot), bound(stop, frame, spot)
        if value is None:
            return None
        if isinstance(value, list):
            part = value[low:high]
            frame.spend(len(part), spot)
            return part
        if isinstance(value, str):
            piece = value[low:high]
            frame.spend(len(piece) >> CHARS_PER_VISIT_BITS, spot)
            return piece
        raise MixedTypes(f"only lists and texts have parts, not {type_name(value)}", spot=spot)

    return run


def bound(code: Code | None, frame: EvaluationFrame, spot: Spot) -> int | None:
    """Evaluate a bound of a slice; null and absent mean the end."""
    value = code(frame) if code else None
    if value is None:
        return None
    if whole(value):
        return int(value)
    raise MixedTypes(f"a bound is a whole number, not {type_name(value)}", spot=spot)

"""Dry runs: the way an execution would go, and what it would cost, without a call of a model or a tool."""

from pointsman.app.dry.playing import DryRun, dry_view, play
from pointsman.app.dry.standing_in import Quiet

__all__ = ["DryRun", "Quiet", "dry_view", "play"]

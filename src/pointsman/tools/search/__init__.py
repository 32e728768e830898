"""Search engines: one tool, whichever of them the operator has."""
